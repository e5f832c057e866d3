"""Folders that a command writes to: a new one each time, so nothing is ever overwritten.

What the files in them mean is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from os.path import lexists
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
            _refuse_link_to_nothing(folder)
            continue
        except OSError as error:
            raise InputError(
                f"{folder}: cannot make this folder: {error.strerror};"
                " name a writable one with --artifacts"
            ) from error
        return folder
    raise InputError(f"{parent}: {FOLDERS_MAX} folders named {name}; remove some")


def _refuse_link_to_nothing(folder: Path) -> None:
    """What exists already may be a link on the way, which no other name helps against."""
    for link in folder.parents:
        if link.is_symlink() and not link.exists():
            raise InputError(
                f"{link}: links to {str(link.readlink())!r}, where nothing is; make that folder, or"
                " name another with --artifacts"
            )


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
            temporary.write_text(text, encoding="utf-8", errors="backslashreplace")
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"{path}: cannot write this file: {error.strerror}; make room, or name another folder"
            " with --artifacts"
        ) from error


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files of these names, each whole or not at all; those of the same name are replaced.

    Raises:
        InputError: if one cannot be written.
    """
    for name, content in files.items():
        write_text(folder / name, content.decode())


def write_beside(folder: Path, files: Mapping[str, bytes]) -> dict[str, Path]:
    """Write files and replace none: `report.md` becomes `report-2.md` where that is taken.

    Returns:
        Where each is; a file that holds the same already is as good.

    Raises:
        InputError: if one cannot be written.
    """
    return {name: _beside(folder / name, content) for name, content in files.items()}


def _beside(wanted: Path, content: bytes) -> Path:
    for number in range(1, FOLDERS_MAX):
        path = wanted if number == 1 else wanted.with_stem(f"{wanted.stem}-{number}")
        # A link to nothing is something too.
        if not lexists(path):
            write_text(path, content.decode())
            return path
        if path.is_file() and path.read_bytes() == content:
            return path
    raise InputError(f"{wanted.parent}: {FOLDERS_MAX} files named {wanted.stem}; remove some")
