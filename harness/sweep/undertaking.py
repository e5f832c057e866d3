"""One command over many seeds: its clock, its folder, its campaign, and what it comes to.

It decides how much work is handed out at once, and which exit status the whole amounts to.  What
is printed of it is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from harness.sweep.artifacts import command_folder
from harness.sweep.campaign import After, Campaign
from harness.sweep.crew import CrewPlan, Event
from harness.sweep.interrupts import Interrupts
from harness.sweep.jobs import JobQueue
from harness.sweep.smaller import Watch, make_small_in_time, unwatched
from harness.sweep.smoke import shortfalls
from harness.sweep.tally import never_ran
from harness.sweep.verdict import Exit
from harness.sweep.workload import SeedWork

CHUNK_OPERATIONS = 1000
"""Operations handed out at once: enough to hide the cost of it, few enough to end on time."""

SEED_SECONDS_MIN, SLOWEST_PER_SECOND = 60.0, 50
"""A seed hangs when it takes longer than a minute and fifty operations a second allow."""


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

    def events(
        self, queue: JobQueue, workers: int, after: After, watch: Watch = unwatched
    ) -> Iterator[Event]:
        """Run all jobs, then make what was found small; each job once it is counted.

        Args:
            queue: what to run.
            workers: processes.
            after: what to do after a job that fails.
            watch: told how far findings are on their way to be small.

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
            make_small_in_time(self.campaign.findings, self.interrupts, watch)

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
