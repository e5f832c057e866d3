"""Standard input, output and error, as whoever started the program left them.

The insight: what a stream cannot take must not keep anything else from being said or found.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper


def prepare_streams() -> None:
    """Let standard output and error take any text: what their encoding lacks becomes an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
