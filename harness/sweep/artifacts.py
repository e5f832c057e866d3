"""Folders that a command writes to: a new one each time, so nothing is ever overwritten.

What the files in them mean is not known here.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import InputError

FOLDERS_MAX = 1000
"""How many folders of one name are tried before something else must be wrong."""


def new_folder(parent: Path, name: str) -> Path:
    """Make `parent/name`, or `parent/name-2` and so on where that is taken.

    Raises:
        InputError: if no folder can be made there.
    """
    for number in range(1, FOLDERS_MAX):
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise InputError(
                f"{folder}: cannot make this folder: {error.strerror};"
                " name a writable one with --artifacts"
            ) from error
        return folder
    raise InputError(f"{parent}: {FOLDERS_MAX} folders named {name}; remove some")


def command_folder(parent: Path, command: str) -> Path:
    """A new folder for one run of a command, named after it and the time.

    Raises:
        InputError: if no folder can be made there.
    """
    return new_folder(parent, f"{command}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        InputError: if it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{path}: cannot write this file: {error.strerror}; make room, or name another folder"
            " with --artifacts"
        ) from error
