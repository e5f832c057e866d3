"""Text on its way out: what a terminal would obey, or no encoding holds, becomes an escape.

The insight: a name of a file may be any bytes, and a case may come from a stranger, so any text may
hold any character.  Whether it is right is not asked here: what was found has to be said.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping


def shown(text: str) -> str:
    """Text that moves no cursor and has an encoding; lines stay lines."""
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign == "\n" else sign.encode("unicode_escape").decode()
        for sign in text
    )


def quoted(word: str) -> str:
    """A word as a shell reads it; one that cannot be printed, byte by byte as bash and zsh do."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_byte_shown, os.fsencode(word)))}'"


def json_line(record: Mapping[str, object]) -> str:
    """A record on one line of ASCII; a name of a file is read back as what it was."""
    return json.dumps(record, separators=(",", ":"))


def _byte_shown(byte: int) -> str:
    sign = chr(byte)
    return sign if " " <= sign <= "~" and sign not in "'\\" else f"\\x{byte:02x}"
