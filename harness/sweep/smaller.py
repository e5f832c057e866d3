"""Findings made small one after the other, and with them what is met on the way.

The insight: whoever has findings wants the same of them: the first few small, some more told as
they were found, and no failure lost that a candidate showed.  Each is taken up once, so more may be
added, and the whole be asked for again.

What is shown of it is somebody else's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

import msgspec

from harness.case import Case
from harness.ops import Operation
from harness.ops.base import Op
from harness.scenario import Setup
from harness.shrinking import Means, Met, Smaller, shrink_case
from harness.sweep.findings import Finding, Findings
from harness.sweep.interrupts import Interrupts
from harness.sweep.patience import patient_runner
from harness.violation import Violation
from shrink import Budget, DoesNotFail, Progress

SHRINK_SECONDS = 20.0
"""Wall time that one finding of a command may take to be made small."""

FINDINGS_SHRUNK_MAX = 8
FINDINGS_TOLD_MAX = 32
"""Findings that get pictures and a test of their own; the others keep their case and a report."""

UNSTEADY = "run once more, it does not fail in this way, so its runs do not repeat"


class Step(NamedTuple):
    """How far findings are on their way to be small.

    Attributes:
        finding: the one that is made small.
        place, total: which one it is, from 1, and how many are to be made small.
        operations: what is left of it.
        executions: candidates of it that were run.
        share: of the time that all of them may take, in [0, 1].
    """

    finding: Finding
    place: int
    total: int
    operations: int
    executions: int
    share: float


Watch = Callable[[Step], None]
"""Is told after every candidate."""

Shorten = Callable[[Finding, Case, Met], Smaller]
"""Makes the case of a finding small; raises `DoesNotFail` where it does not fail."""


def stopwatch() -> Callable[[], float]:
    """Tells the wall time since it was made, in seconds."""
    begin = time.monotonic()
    return lambda: time.monotonic() - begin


def unwatched(step: Step) -> None:
    """Nobody looks."""


def make_small(
    findings: Findings,
    shorten: Shorten,
    interrupts: Interrupts,
    count_max: int = FINDINGS_SHRUNK_MAX,
) -> None:
    """Make the first findings small and tell the others as they were found.

    Other failures that are met on the way become findings too.

    Args:
        findings: those that were made small or told before stay as they are.
        shorten: makes one of them small.
        interrupts: whether somebody wants it to end.
        count_max: how many are made small.
    """
    while not interrupts.seen:
        waiting = filter(findings.is_waiting, findings.all()[:count_max])
        finding = next(waiting, None)
        if finding is None:
            break
        case = finding.case
        assert case is not None, "a crash waits for nothing"
        try:
            with interrupts.raising():
                smaller = shorten(finding, case, partial(_add_met, findings, case))
        except DoesNotFail:
            findings.complete(finding, UNSTEADY)
            continue
        except KeyboardInterrupt:
            if not interrupts.seen:
                raise
            # The case as found is on disk, and is as good a proof.
            return
        findings.add_smaller(finding, smaller)
    for finding in findings.all()[:FINDINGS_TOLD_MAX]:
        if findings.is_waiting(finding) and not interrupts.seen:
            findings.complete(finding)


def make_small_in_time(
    findings: Findings, interrupts: Interrupts, watch: Watch = unwatched
) -> None:
    """The same in this process, each finding within `SHRINK_SECONDS`."""

    def shorten(finding: Finding, case: Case, met: Met) -> Smaller:
        watched = _Watched(findings, finding, watch, stopwatch())
        budget = Budget(deadline=lambda: interrupts.seen or watched.share() >= 1)
        means = Means(observer=watched, met=met)
        return shrink_case(case, budget, means=means, run=patient_runner(case))

    make_small(findings, shorten, interrupts)


@dataclass(frozen=True, slots=True)
class _Watched:
    """Tells who watches of one finding."""

    findings: Findings
    finding: Finding
    watch: Watch
    seconds: Callable[[], float]

    def share(self) -> float:
        """How much of its time is over, in [0, 1]."""
        return min(1.0, self.seconds() / SHRINK_SECONDS)

    def started(self, pass_name: str) -> None:
        """What is tried is not told."""

    def tried(self, progress: Progress) -> None:
        """Tell what is left; a trace begins with its setup."""
        failing = [one for one in self.findings.all()[:FINDINGS_SHRUNK_MAX] if one.case]
        before, total = failing.index(self.finding), len(failing)
        share = (before + self.share()) / total
        left, runs = progress.length - 1, progress.executions
        self.watch(Step(self.finding, before + 1, total, left, runs, share))


def _add_met(
    findings: Findings, case: Case, setup: Setup, operations: Sequence[Op], violation: Violation
) -> None:
    operations = cast(tuple[Operation, ...], operations)
    findings.add_met(
        msgspec.structs.replace(case, setup=setup, operations=operations, violation=violation)
    )
