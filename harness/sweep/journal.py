"""What a worker writes down: a seed before it runs, and how it ended after.

The insight: a process that is killed can say nothing afterwards, so it says everything before.  A
seed that was started and did not end is the one that killed it.

Each line is one unbuffered write to a file of its own, so it is with the operating system before
the seed runs, and no two processes share a file.
"""

from __future__ import annotations

from errno import ENOSPC
from os import strerror
from pathlib import Path

import msgspec

from harness.sweep.jobs import Job, Result


class Opened(msgspec.Struct, frozen=True, tag_field="line", tag="worker"):
    """First line: which worker writes here, and its process id."""

    worker: int
    process: int


class Started(msgspec.Struct, frozen=True, tag_field="line", tag="start"):
    """A seed is about to run."""

    seed: int
    scenario: str
    position: int


class Ended(msgspec.Struct, frozen=True, tag_field="line", tag="done"):
    """A seed has ended; `violations` are signatures."""

    seed: int
    scenario: str
    position: int
    digest: str
    violations: tuple[str, ...]


Line = Opened | Started | Ended


class Journal:
    """The file of one worker; only ever appended to.

    Attributes:
        trouble: why nothing is written down any more; empty while it is.
    """

    def __init__(self, path: Path, worker: int, process: int) -> None:
        self.trouble = ""
        self._path = path
        self._file = path.open("ab", buffering=0)
        self._write(Opened(worker, process))

    def start(self, job: Job, scenario: str) -> None:
        """Write down a seed that is about to run."""
        self._write(Started(job.seed, scenario, job.position))

    def end(self, job: Job, scenario: str, result: Result) -> None:
        """Write down how a seed ended."""
        signatures = tuple(violation.signature for violation in result.violations)
        self._write(Ended(job.seed, scenario, job.position, result.digest, signatures))

    def close(self) -> None:
        """No more lines."""
        self._file.close()

    def _write(self, line: Line) -> None:
        # A full disk must not lose a seed.  Whatever came behind a line that was cut off would
        # not be read, so nothing does.
        if self.trouble:
            return
        data = msgspec.json.encode(line) + b"\n"
        try:
            if self._file.write(data) < len(data):
                raise OSError(ENOSPC, strerror(ENOSPC))
        except OSError as error:
            self.trouble = (
                f"{self._path}: cannot write down which seed runs: {error.strerror}; make room, or"
                " name another folder with --artifacts"
            )


def read_journal(path: Path) -> list[Line]:
    """The lines of a journal, none if there is no file.

    A seed had been started and had not ended when the last line is `Started`.  A line without its
    end was cut off, and is left out.
    """
    whole, _, _ = (path.read_bytes() if path.exists() else b"").rpartition(b"\n")
    decoder = msgspec.json.Decoder(Line)
    return [decoder.decode(line) for line in whole.splitlines()]
