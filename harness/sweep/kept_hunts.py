"""Hunts that have ended, in a folder: a table that takes nights, in as many pieces as it takes.

The insight: a hunt is a function of the program, the scenarios and what is asked of it.  A row that
was kept under the same of these is as good as a new one; any other is made again.

What a hunt is for is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from harness.errors import InputError
from harness.loading import read_file
from harness.sweep.artifacts import write_text
from harness.sweep.hunts import Hunted
from harness.sweep.workload import NamedScenario
from unikv import __version__

DIGEST_BYTES = 8
ROW_BYTES_MAX = 32 << 20


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file: under what a hunt was done, and how it ended."""

    about: str
    hunted: Hunted


class KeptHunts:
    """Rows in a folder, a file for each fault.

    Args:
        folder: made where it is missing.
        scenarios, seeds: what is asked of every hunt.

    Raises:
        InputError: if the folder cannot be made.
    """

    def __init__(self, folder: Path, scenarios: Sequence[NamedScenario], seeds: int) -> None:
        asked = (__version__, [(named.name, named.scenario) for named in scenarios], seeds)
        self._about = blake2b(msgspec.json.encode(asked), digest_size=DIGEST_BYTES).hexdigest()
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"--out: {folder}: cannot make this folder: {error.strerror}; name a writable one"
            ) from error

    def recall(self, fault: str) -> Hunted | None:
        """How a hunt ended that was done under the same; None where none is kept.

        Raises:
            InputError: if a file of that name is none of ours.
        """
        path = self._path(fault)
        try:
            if not path.exists():
                return None
            row = msgspec.json.decode(read_file(path, "row of a hunt", ROW_BYTES_MAX), type=_Row)
        except (InputError, msgspec.DecodeError) as error:
            raise InputError(
                f"--out: {path}: not a row of a hunt: {error}; remove it, or name another folder"
            ) from error
        if row.hunted.fault != fault:
            raise InputError(
                f"--out: {path}: fault is {row.hunted.fault!r}; this name is for the row of"
                f" {fault!r}; remove it, or name another folder"
            )
        return row.hunted if row.about == self._about else None

    def keep(self, hunted: Hunted) -> None:
        """Write a row, whole or not at all; one that was kept under something else is replaced.

        Raises:
            InputError: if it cannot be written.
        """
        text = msgspec.json.format(msgspec.json.encode(_Row(about=self._about, hunted=hunted)))
        write_text(self._path(hunted.fault), f"{text.decode()}\n")

    def _path(self, fault: str) -> Path:
        return self._folder / f"{fault}.json"
