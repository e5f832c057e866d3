"""Planted faults hunted by a crew: whether each was caught, by what, and at which cost.

The insight: a fault may also hang or kill the process that it is planted in, so hunts run where
seeds run, and such an end is an answer like any other: not caught.

How a fault is planted and when a hunt gives up is not known here, except that time is bounded.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, assert_never

import msgspec

from harness.faults.ablation import witness
from harness.faults.catalog import FAULTS
from harness.faults.hunt import attempts
from harness.scenario import Count
from harness.sweep.crew import CrewPlan, Died, Event, crew_for
from harness.sweep.interrupts import Interrupts
from harness.sweep.jobs import Job, JobQueue
from harness.sweep.worker import Finished
from harness.sweep.workload import NamedScenario
from harness.violation import Violation

HUNT_SECONDS_MAX = 60.0
"""Processor time of one hunt."""

SILENCE_SECONDS_MAX = 180.0
"""Wall time after which a hunt hangs that only looks for its fault."""


class Shrunken(msgspec.Struct, frozen=True, kw_only=True):
    """What the failing runs of one fault came down to.

    Attributes:
        seeds: failing runs that were made small.
        confirmed: results that fail likewise when they are run from their beginning.
        operations, executions: medians of what is left and of runs; a half between two of them.
        seconds: median of processor time; of the first ten alone, which are timed.
        longest: operations of the longest result.
        distinct_results: texts, setup included, that are not the same.
        same_result: runs that ended in the commonest text.
        signatures: kinds of failure among the runs; there is at least one text for each.
        same_result_each: runs that ended in the commonest text of their kind of failure.
        seconds_longest: processor time of the dearest of the timed ones.
    """

    seeds: Count
    confirmed: Count
    operations: int | float
    longest: Count
    distinct_results: Count
    same_result: Count
    signatures: Count
    same_result_each: Count
    seconds: float
    seconds_longest: float
    executions: int | float


class Hunted(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one hunt.

    Attributes:
        fault: its id.
        caught: whether a check that may see it reported it as what it is.
        check: that check, or the one that reported something else, or how the process ended;
            empty where nothing was reported.
        scenario, seed: of the last run.
        operations: operations applied over all runs.
        cpu_seconds: processor time of all runs.
        digest, violations: of the last run.
        trace: where an edge was taken out, the fewest operations that collide, in words.
        shrunk: what its failing runs came down to; None where nobody asked.
    """

    fault: str
    caught: bool
    check: str
    scenario: str = ""
    seed: int = 0
    operations: int = 0
    cpu_seconds: float = 0.0
    digest: str = ""
    violations: tuple[Violation, ...] = ()
    trace: tuple[str, ...] = ()
    shrunk: Shrunken | None = None

    @property
    def holds(self) -> bool:
        """Whether it was caught, and no result of a reduction has lost its failure."""
        return self.caught and (self.shrunk is None or self.shrunk.confirmed == self.shrunk.seeds)


@dataclass(frozen=True, slots=True)
class HuntWork:
    """Hunts for faults; the seed of a job is the place of a fault in `faults`, its ids."""

    scenarios: tuple[NamedScenario, ...]
    faults: tuple[str, ...]

    @property
    def silence_seconds(self) -> float:
        """Wall time after which a hunt hangs."""
        return SILENCE_SECONDS_MAX

    def run(self, job: Job) -> Hunted:
        """Hunt for one fault until it is caught, reported as something else, or time is up."""
        fault = FAULTS[self.faults[job.seed]]
        begin = time.process_time()
        hunted = Hunted(fault=fault.id, caught=False, check="")
        for catch in attempts(fault, {named.name: named.scenario for named in self.scenarios}):
            hunted = Hunted(
                fault=fault.id,
                caught=catch.caught,
                check=catch.check,
                scenario=catch.scenario,
                seed=catch.seed,
                operations=catch.operations,
                cpu_seconds=round(time.process_time() - begin, 3),
                digest=catch.result.digest,
                violations=catch.result.violations,
            )
            if hunted.cpu_seconds > HUNT_SECONDS_MAX:
                break
        return hunted

    def name(self, job: Job) -> str:
        """The fault's id: what its journal calls it."""
        return self.faults[job.seed]


@dataclass(frozen=True, slots=True)
class AblationWork(HuntWork):
    """Hunts that order alone has to see, each made as small as it gets."""

    def run(self, job: Job) -> Hunted:
        """Take out one edge; `operations` are those of the smallest trace that misses it."""
        fault = FAULTS[self.faults[job.seed]]
        begin = time.process_time()
        found = witness(fault, {named.name: named.scenario for named in self.scenarios})
        seconds = round(time.process_time() - begin, 3)
        if found is None:
            return Hunted(fault=fault.id, caught=False, check="", cpu_seconds=seconds)
        return Hunted(
            fault=fault.id,
            caught=True,
            check=found.violation.check,
            operations=found.length,
            cpu_seconds=seconds,
            violations=(found.violation,),
            trace=tuple(map(repr, found.operations)),
        )


class Kept(Protocol):
    """Rows of hunts that outlive the process."""

    def recall(self, fault: str) -> Hunted | None:
        """How a hunt has ended; None where it is still to be done."""
        ...

    def keep(self, hunted: Hunted) -> None:
        """Keep how a hunt has ended."""
        ...


class Forgotten:
    """Nothing is kept: every hunt is done."""

    def recall(self, fault: str) -> Hunted | None:
        """Nothing was kept."""
        return None

    def keep(self, hunted: Hunted) -> None:
        """Nothing is kept."""


FORGOTTEN = Forgotten()


class Hunts:
    """Hunts of one command.

    Attributes:
        work: what is hunted.
        ended: hunts by the place of the fault; changed by `run` alone.
        interrupts: whether somebody wants it to end.
    """

    def __init__(self, work: HuntWork, folder: Path, kept: Kept = FORGOTTEN) -> None:
        self.ended: dict[int, Hunted] = {}
        self._kept = kept
        self.interrupts = Interrupts()
        self.work = work
        self._folder = folder
        self._begin = time.monotonic()

    def seconds(self) -> float:
        """Wall time since the beginning."""
        return time.monotonic() - self._begin

    def run(self, workers: int) -> Iterator[Hunted]:
        """Hunt for every fault whose hunt is not kept; each hunt as it ends, the kept ones first.

        Raises:
            CrewError: if worker processes cannot start.
            InputError: if a row cannot be read or kept.
        """
        for place, fault in enumerate(self.work.faults):
            known = self._kept.recall(fault)
            if known is not None:
                self.ended[place] = known
                yield known
        missing = [place for place in range(len(self.work.faults)) if place not in self.ended]
        if not missing:
            return
        plan = CrewPlan(workers, self.work, self._folder, 1, self.work.silence_seconds)
        jobs = (Job(place, 0, place) for place in missing)
        queue = JobQueue(jobs, closed=lambda: self.interrupts.seen)
        with self.interrupts, crew_for(plan) as crew:
            for event in crew.events(queue, self.interrupts):
                hunted = self.answer(event)
                self.ended[event.job.position] = hunted
                # A process may have been ended for reasons that have nothing to do with its fault.
                if not isinstance(event, Died):
                    self._kept.keep(hunted)
                yield hunted

    def missed_first(self) -> list[Hunted]:
        """Every hunt that ended: the missed ones, then the others, each in catalog order."""
        in_order = [self.ended[place] for place in sorted(self.ended)]
        return sorted(in_order, key=lambda hunted: hunted.caught)

    def answer(self, event: Event) -> Hunted:
        """What became of a hunt."""
        match event:
            case Finished(_, result, _):
                assert isinstance(result, Hunted)
                return result
            case Died():
                return Hunted(fault=self.work.name(event.job), caught=False, check=event.how)
            case _:
                assert_never(event)
