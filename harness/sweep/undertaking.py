"""One command over many seeds: its clock, its folder, its campaign, and what it comes to.

It decides how much work is handed out at once, how long shrinking may take, and which exit status
the whole amounts to.  What is printed of it is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import msgspec

from harness.case import Case
from harness.ops import Operation
from harness.ops.base import Op
from harness.scenario import Setup
from harness.shrinking import Means, shrink_case
from harness.sweep.artifacts import command_folder
from harness.sweep.campaign import After, Campaign
from harness.sweep.crew import CrewPlan, Event
from harness.sweep.interrupts import Interrupts
from harness.sweep.jobs import JobQueue
from harness.sweep.patience import patient_runner
from harness.sweep.smoke import shortfalls
from harness.sweep.tally import never_ran
from harness.sweep.verdict import Exit
from harness.sweep.workload import SeedWork
from harness.violation import Violation
from shrink import Budget, DoesNotFail

CHUNK_OPERATIONS = 1000
"""Operations handed out at once: enough to hide the cost of it, few enough to end on time."""

SEED_SECONDS_MIN, SLOWEST_PER_SECOND = 60.0, 50
"""A seed hangs when it takes longer than a minute and fifty operations a second allow."""

SHRINK_SECONDS = 20.0
FINDINGS_SHRUNK_MAX = 8
FINDINGS_TOLD_MAX = 32
"""Findings that get pictures and a test of their own; the others keep their case and a report."""


class Undertaking:
    """A campaign with a clock, from its first seed to its exit status.

    Attributes:
        work: what every seed has in common.
        folder: where everything is written; new for this undertaking.
        interrupts: whether somebody wants it to end.
        campaign: totals and findings so far.
    """

    def __init__(self, command: str, work: SeedWork, artifacts: Path) -> None:
        self.work = work
        self.folder = command_folder(artifacts, command)
        self.interrupts = Interrupts()
        self.campaign = Campaign(work, self.folder)
        self._begin = time.monotonic()

    def seconds(self) -> float:
        """Wall time since the beginning."""
        return time.monotonic() - self._begin

    def events(self, queue: JobQueue, workers: int, after: After) -> Iterator[Event]:
        """Run all jobs, then make what was found small; each job once it is counted.

        Raises:
            CrewError: if worker processes cannot start.
        """
        operations = self.work.operations
        plan = CrewPlan(
            size=workers,
            workload=self.work,
            folder=self.folder,
            chunk_jobs=max(1, CHUNK_OPERATIONS // operations),
            seed_seconds_max=SEED_SECONDS_MIN + operations / SLOWEST_PER_SECOND,
        )
        with self.interrupts:
            yield from self.campaign.run(plan, queue, after, self.interrupts)
            self._shrink()

    def digest(self) -> str | None:
        """Fold over every seed; None when an interrupt or a death left some out."""
        incomplete = self.interrupts.seen or self.campaign.deaths
        return None if incomplete else self.campaign.total.digest

    def status(self) -> Exit:
        """What all of it amounts to."""
        if self.interrupts.seen:
            return Exit.INTERRUPTED
        if self.campaign.raised:
            return Exit.INTERNAL
        if len(self.campaign.findings):
            return Exit.VIOLATION
        return Exit.CLEAN if self.campaign.total.applied else Exit.NOTHING_RAN

    def shortfalls(self) -> list[str]:
        """What the scenarios and checks did not reach, one sentence each."""
        short = [f"check {name} never ran" for name in never_ran(self.campaign.total)]
        for named, tally in zip(self.work.scenarios, self.campaign.by_scenario, strict=True):
            short += shortfalls(named, tally)
        return short

    def _shrink(self) -> None:
        """Make the first findings small and tell the others as they were found.

        Other failures that are met on the way become findings too.
        """
        findings = self.campaign.findings
        shrunk = 0
        while shrunk < min(FINDINGS_SHRUNK_MAX, len(findings)) and not self.interrupts.seen:
            finding = findings.all()[shrunk]
            shrunk += 1
            if finding.case is None:
                continue
            met = partial(self._met, finding.case)
            budget = Budget(deadline=partial(self._is_over, time.monotonic() + SHRINK_SECONDS))
            try:
                with self.interrupts.raising():
                    run = patient_runner(finding.case)
                    smaller = shrink_case(finding.case, budget, means=Means(met=met), run=run)
            except KeyboardInterrupt:
                # The case as found is on disk, and is as good a proof.
                return
            except DoesNotFail:
                findings.keep_whole(finding)
                continue
            findings.add_smaller(finding, smaller)
        for finding in findings.all()[shrunk:FINDINGS_TOLD_MAX]:
            if finding.case is not None and not self.interrupts.seen:
                findings.complete(finding)

    def _met(
        self, case: Case, setup: Setup, operations: Sequence[Op], violation: Violation
    ) -> None:
        other = msgspec.structs.replace(
            case,
            setup=setup,
            operations=cast(tuple[Operation, ...], operations),
            violation=violation,
        )
        self.campaign.findings.add_met(other)

    def _is_over(self, end: float) -> bool:
        return self.interrupts.seen or time.monotonic() > end
