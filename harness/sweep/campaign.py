"""A campaign: jobs go out to a crew, results come back in order, failures become findings.

The insight: results are taken in the fixed order of the jobs, and the first failure in that order
ends a campaign that stops at failures.  What lies behind it never existed, so every figure and
every finding is the same however many processes there were.

What an operation or a check is, and what is printed, is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import assert_never

from harness.runner import SeedResult
from harness.sweep.crew import CrewPlan, Died, Event, crew_for
from harness.sweep.findings import Findings
from harness.sweep.interrupts import Interrupts
from harness.sweep.jobs import JobQueue
from harness.sweep.tally import Tally
from harness.sweep.worker import Finished
from harness.sweep.workload import SeedWork


class After(Enum):
    """What follows the first failure."""

    STOP = "stop"
    GO_ON = "go on"


class Campaign:
    """Seeds of one command, on their way to totals and findings.

    Invariant: totals and findings are those of a beginning of the order, except that an interrupt
    may leave gaps.  Changed by `run` alone.

    Attributes:
        total: sums over every seed.
        by_scenario: the same for each scenario.
        findings: failures by signature.
        deaths: seeds that ended their process, and so left no result.
        raised: whether a Python exception did so: an error of the harness itself.
        trouble: why a journal was not kept, for the first one that was not; empty where all were.
    """

    def __init__(self, work: SeedWork, folder: Path) -> None:
        self.total = Tally()
        self.by_scenario = [Tally() for _ in work.scenarios]
        self.findings = Findings(folder)
        self.deaths = 0
        self.raised = False
        self.trouble = ""
        self._work = work
        self._held: dict[int, Event] = {}
        self._next = 0

    def run(
        self, plan: CrewPlan, queue: JobQueue, after: After, interrupts: Interrupts
    ) -> Iterator[Event]:
        """Run everything; what becomes of each job, in order, once it is counted.

        Raises:
            CrewError: if worker processes cannot start.
        """
        with crew_for(plan) as crew:
            for event in crew.events(queue, interrupts):
                self._held[event.job.position] = event
                if after is After.STOP and failed(event):
                    queue.stop_after(event.job.position)
                while self._next in self._held:
                    event = self._held.pop(self._next)
                    self._next += 1
                    self._absorb(event)
                    yield event
                    if after is After.STOP and failed(event):
                        return
        # Only an interrupt, or a death at the end of a budget, leaves a gap before these.
        for position in sorted(self._held):
            event = self._held.pop(position)
            self._absorb(event)
            yield event

    def _absorb(self, event: Event) -> None:
        job = event.job
        match event:
            case Finished(_, result, busy_seconds, trouble):
                assert isinstance(result, SeedResult)
                self.trouble = self.trouble or trouble
                self.total.add(result, busy_seconds)
                self.by_scenario[job.scenario].add(result, busy_seconds)
                if result.violations:
                    # A run stops at its first operation that fails; what else that operation
                    # broke follows from the same cause.
                    self.findings.add_case(self._work.case(job, result, result.violations[0]))
            case Died():
                self.deaths += 1
                self.raised = self.raised or event.raised
                replay = self._work.command(job.scenario, str(job.seed))
                self.findings.add_crash(event, self._work.name(job), replay)
            case _:
                assert_never(event)


def failed(event: Event) -> bool:
    """Whether a job found something or ended its process."""
    return isinstance(event, Died) or bool(event.result.violations)
