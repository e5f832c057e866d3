"""One stored case made small: its clock, its processes, and the files beside it.

The insight: nothing that is there is ever replaced.  The result goes to the first free name, other
failures that were met get files of their own, and what was ended early goes on when it is asked for
again.

What is tried is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from os.path import lexists
from pathlib import Path

import msgspec

from harness.canonical import Item
from harness.case import Case, load_case, save_case
from harness.errors import InputError
from harness.ops.base import Op
from harness.report.folder import files_of
from harness.report.length import Length
from harness.scenario import Setup
from harness.shrinking import Means, Run, Smaller, shrink_run, smaller_case
from harness.sweep.artifacts import write_beside
from harness.sweep.candidates import Candidates
from harness.sweep.findings import replay_command
from harness.sweep.interrupts import Interrupts
from harness.sweep.patience import Measured, patient_runner
from harness.sweep.verdicts import Verdicts
from harness.violation import Violation
from shrink import ALONE, Ahead, Budget, DoesNotFail, Observer

NAMES_MAX = 1000
"""How many names of one kind are tried before something else must be wrong."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What became of a case.

    Attributes:
        smaller: the smallest one found.
        path: where it was written, or where the same was already.
        operations: of the case as it was given.
        executions: candidates that were judged, remembered ones included.
        seconds: wall time.
        met: files of other failures that were met on the way, by signature.
        troubles: what could not be kept on the way, and why.
    """

    smaller: Smaller
    path: Path
    operations: int
    executions: int
    seconds: float
    met: dict[str, Path]
    troubles: tuple[str, ...] = ()


class Unwritten(InputError):
    """A case was made small and cannot be written down.

    Attributes:
        smaller: the smallest one found.
        path: a file that fails in the same way.
    """

    def __init__(self, why: str, smaller: Smaller, path: Path) -> None:
        super().__init__(why)
        self.smaller = smaller
        self.path = path


@dataclass(slots=True)
class OtherFailures:
    """Failures of other signatures, each written down when it is first met.

    Invariant: one file per signature, or the reason why there is none.  Changed by `keep` alone.
    """

    case: Case
    folder: Path
    paths: dict[str, Path] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)

    def keep(self, setup: Setup, operations: Sequence[Op], violation: Violation) -> None:
        """Write it down as a case that fails by itself."""
        if violation.signature in self.paths.keys() | self.lost.keys():
            return
        other = msgspec.structs.replace(
            self.case, setup=setup, operations=tuple(operations), violation=violation
        )
        stem = f"other-{violation.short_signature}"
        known = self.folder / f"{stem}.json"
        # What an earlier reduction kept is as good, whichever candidate it was.
        if known.exists() and _signature(known) == violation.signature:
            self.paths[violation.signature] = known
            return
        try:
            self.paths[violation.signature] = _written(self.folder, stem, other)
        except InputError as error:
            # A full disk must not end the reduction.
            self.lost[violation.signature] = f"{error}; it fails with {violation.signature}"


class Shrinking:
    """One case on its way to a smaller one.

    Attributes:
        case: what the file holds.
        interrupts: whether somebody wants it to end; the best so far is written then.

    Raises:
        InputError: if the file is no case.
    """

    def __init__(self, path: Path, budget_seconds: int, jobs: int) -> None:
        self.case = load_case(path)
        self.interrupts = Interrupts()
        self.budget_seconds = budget_seconds
        self._path = path
        self._jobs = jobs
        self._measured = Measured()
        self._begin = time.monotonic()

    def seconds(self) -> float:
        """Wall time since the beginning."""
        return time.monotonic() - self._begin

    def run(self, observer: Observer) -> Shrunk:
        """Make it small, and write the smaller one beside it.

        Raises:
            Unwritten: if what became of it cannot be written.
            InputError: if another file cannot be.
            DoesNotFail: if the case does not fail any more.
        """
        if not self._still_fails():
            raise DoesNotFail(f"{self._path}: does not fail any more")
        try:
            return self._run(observer)
        except DoesNotFail:
            # The verdicts on disk were not this program's after all, and they are forgotten.
            return self._run(observer)

    def _run(self, observer: Observer) -> Shrunk:
        case, others = self.case, OtherFailures(self.case, self._path.parent)
        budget = Budget(deadline=self._is_over)
        with closing(Verdicts(self._path, case)) as verdicts:
            with self.interrupts, self._runner() as (run, ahead):
                means = Means(observer, ahead, verdicts, others.keep)
                reduction = shrink_run(
                    case.setup, case.operations, run, case.violation.signature, budget, means=means
                )
            try:
                smaller = smaller_case(case, reduction)
            except DoesNotFail:
                verdicts.forget()
                raise
            path = self._told(smaller)
            if smaller.complete:
                verdicts.forget()
        return Shrunk(
            smaller=smaller,
            path=path,
            operations=len(case.operations),
            executions=reduction.executions,
            seconds=self.seconds(),
            met=others.paths,
            troubles=tuple(filter(None, (verdicts.trouble, *others.lost.values()))),
        )

    def _told(self, smaller: Smaller) -> Path:
        """Write the smaller case and its report; the path of the case."""
        path = self._path
        try:
            path = _written(path.parent, "min", smaller.case)
            length = Length.of(complete=smaller.complete)
            write_beside(path.parent, files_of(smaller.case, replay_command(path), length=length))
        except InputError as error:
            raise Unwritten(str(error), smaller, path) from error
        return path

    @contextmanager
    def _runner(self) -> Iterator[tuple[Run, Ahead[Item]]]:
        if self._jobs == 1:
            yield patient_runner(self.case, self._measured), ALONE
            return
        with Candidates(self.case, self._jobs, self._measured) as candidates:
            yield candidates.run, candidates

    def _still_fails(self) -> bool:
        found = patient_runner(self.case, self._measured)(self.case.setup, self.case.operations)
        return any(v.signature == self.case.violation.signature for v in found)

    def _is_over(self) -> bool:
        return self.interrupts.seen or self.seconds() > self.budget_seconds


def _written(folder: Path, stem: str, case: Case) -> Path:
    """Write a case to the first free name of a kind; one that holds it already is as good."""
    for number in range(1, NAMES_MAX):
        path = folder / (f"{stem}.json" if number == 1 else f"{stem}-{number}.json")
        # A link to nothing is something too.
        if not lexists(path):
            save_case(path, case)
            return path
        if _holds(path, case):
            return path
    raise InputError(f"{folder}: {NAMES_MAX} files named {stem}; remove some")


def _holds(path: Path, case: Case) -> bool:
    try:
        return load_case(path) == case
    except InputError:
        return False


def _signature(path: Path) -> str:
    try:
        return load_case(path).violation.signature
    except InputError:
        return ""
