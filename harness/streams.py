"""Standard input, output and error, as whoever started the program left them.

The insight: what a stream cannot take must not keep anything else from being said or found.  One
that is closed is an empty one: there is nothing to read, and what is written goes nowhere.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TextIO


class OutputRefused(Exception):
    """Standard output takes nothing more: its reader has left, or its disk is full."""


def prepare_streams() -> None:
    """Have all three, and let them take any text: what an encoding lacks becomes an escape."""
    # In the order of their numbers, so that no file of ours gets one of those.
    sys.stdin = sys.stdin or _empty()
    sys.stdout = sys.stdout or _empty()
    sys.stderr = sys.stderr or _empty()
    for stream, errors in (
        (sys.stdin, "surrogateescape"),
        (sys.stdout, "backslashreplace"),
        (sys.stderr, "backslashreplace"),
    ):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=errors)


@contextmanager
def output_only() -> Iterator[None]:
    """Within, nothing but output is written, so whatever the system refuses is that.

    Raises:
        OutputRefused: if it is.
    """
    try:
        yield
    except OSError as error:
        raise OutputRefused(error.strerror) from error


def drop(stream: TextIO) -> None:
    """What is still to be said goes nowhere, so that it does not fail once more at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _empty() -> TextIO:
    return open(os.open(os.devnull, os.O_RDWR), "r+", encoding="utf-8")
