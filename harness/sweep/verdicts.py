"""Verdicts on disk: which candidates of a case fail, so that an interrupted reduction goes on.

The insight: a reduction is a function of its verdicts, so nothing else has to be kept.  One that
finds them all again arrives where it was ended without running anything, and a process that was
killed can have lost no more than its last line.  A verdict is one program's: nobody checks later
that a candidate passes, so after a change of the program all are found anew.

What a candidate is, and who asks, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec

from harness.canonical import Item
from harness.case import Case
from harness.errors import InputError
from harness.loading import read_file
from harness.program import ROOT, sources_digest

SUFFIX = ".shrinking"
DIGEST_BYTES = 12
FORMAT = 1
BYTES_MAX = 1 << 30
"""Of a file that is read: forty million verdicts."""

_FAILS, _PASSES = "1", "0"


class Verdicts:
    """The verdicts on the candidates of one case, in a file beside it.

    Invariant: every line of the file but the first is one verdict, whole.  Changed by `remember`
    alone; `forget` ends it.

    Attributes:
        trouble: why verdicts are not kept any more; empty while they are.

    Args:
        path: the case file.
        case: what it holds; verdicts of another case or program are dropped.
        root: the folder that the program lies in.

    Raises:
        InputError: if the file beside it is something else, or cannot be written.
    """

    def __init__(self, path: Path, case: Case, root: Path = ROOT) -> None:
        self.path = path.with_name(f".{path.name}{SUFFIX}")
        key = msgspec.json.encode((case, sources_digest(root)))
        about = blake2b(key, digest_size=DIGEST_BYTES)
        self._header = f"verdicts {FORMAT} {about.hexdigest()}"
        self._known: dict[str, bool] = {}
        self.trouble = ""
        try:
            self._read()
            # Unbuffered, so that a line is with the system at once, and none is left over to fail.
            self._file = self.path.open("ab", buffering=0)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{self.path}: cannot keep verdicts here: {error}; make the folder writable, or"
                " copy the case to one that is"
            ) from error

    def __len__(self) -> int:
        return len(self._known)

    def recall(self, items: Sequence[Item]) -> bool | None:
        """Whether a candidate fails; None where it was not run."""
        return self._known.get(_digest(items))

    def remember(self, items: Sequence[Item], *, fails: bool) -> None:
        """Keep whether a candidate fails; where a disk is full, only as long as this runs."""
        digest = _digest(items)
        self._known[digest] = fails
        if self.trouble:
            return
        try:
            self._file.write(f"{digest} {_FAILS if fails else _PASSES}\n".encode("ascii"))
        except OSError as error:
            self.trouble = (
                f"{self.path}: verdicts are not kept any more: {error.strerror}; what was kept is"
                " removed to make room for the result"
            )
            self.forget()

    def close(self) -> None:
        """Leave the file for a later reduction."""
        self._file.close()

    def forget(self) -> None:
        """Remove the file: the reduction is complete."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _read(self) -> None:
        """Take in the file's whole lines and cut a torn one off; begin anew where it is stale."""
        data = read_file(self.path, "file of verdicts", BYTES_MAX) if self.path.exists() else b""
        text = data.decode("ascii")
        whole = text[: text.rfind("\n") + 1]
        header, *lines = whole.splitlines() or [""]
        if text and not text.startswith("verdicts "):
            raise InputError(
                f"{self.path}: begins with {text[:20]!r}, not with verdicts; it is not ours to"
                " write to, so move it away"
            )
        if header != self._header:
            self.path.write_text(f"{self._header}\n", "ascii")
            return
        self._known = {line[:-2]: line.endswith(_FAILS) for line in lines}
        if whole != text:
            with self.path.open("r+", encoding="ascii") as file:
                file.truncate(len(whole))


def _digest(items: Sequence[Item]) -> str:
    return blake2b(msgspec.json.encode(items), digest_size=DIGEST_BYTES).hexdigest()
