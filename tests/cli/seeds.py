"""Workloads for tests of processes: what a seed does is decided by its number."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NoReturn

import msgspec

from harness.choices import SeedChoices
from harness.loading import load_scenario
from harness.ops import Flush
from harness.runner import SeedResult
from harness.setup import draw_setup
from harness.sweep.crew import CrewPlan, Event, crew_for
from harness.sweep.interrupts import Interrupts
from harness.sweep.jobs import Job, JobQueue, Workload
from harness.sweep.workload import NamedScenario, SeedWork
from harness.violation import Violation

SMOKE = Path(__file__).parents[2] / "scenarios" / "smoke.yaml"


def a_violation(detail: str = "books differ", operation: int = 1) -> Violation:
    """A violation of the ledger check."""
    return Violation(check="ledger", what=f"{detail} in page 3", detail=detail, operation=operation)


def a_result(seed: int, *violations: Violation) -> SeedResult:
    """What a seed of ten operations comes to; its digest is its own number."""
    return SeedResult(
        scenario="smoke",
        seed=seed,
        operations=10,
        applied=8,
        refused=1,
        skipped=1,
        checks={"ordering": 10, "capacity": 0},
        probes={"rested": 1},
        counters={"moves": 2, "settles": 1},
        violations=violations,
        digest=f"{seed:032x}",
        trace=(Flush(limit=1), Flush(limit=2)) if violations else (),
        setup=draw_setup(load_scenario(SMOKE), SeedChoices(seed)),
    )


@dataclass(frozen=True)
class Peaceful:
    """Every seed ends well."""

    def run(self, job: Job) -> SeedResult:
        """Run a seed."""
        return a_result(job.seed)

    def name(self, job: Job) -> str:
        """The scenario's name."""
        return "smoke"


@dataclass(frozen=True)
class Deadly(Peaceful):
    """One seed ends its process, one raises, one never ends, one presses Ctrl-C."""

    kills: int = -1
    raises: int = -1
    hangs: int = -1
    interrupts: int = -1

    def run(self, job: Job) -> SeedResult:
        """Run a seed."""
        if job.seed == self.kills:
            os.kill(os.getpid(), signal.SIGKILL)
        if job.seed == self.hangs:
            signal.pause()
        if job.seed == self.interrupts:
            worker = multiprocessing.parent_process()
            os.kill(os.getpid() if worker is None else os.getppid(), signal.SIGINT)
        if job.seed == self.raises:
            raise KeyError(job.seed)
        return a_result(job.seed)


class Pestered(Peaceful):
    """Every seed gets a Ctrl-C of its own."""

    def run(self, job: Job) -> SeedResult:
        """Run a seed."""
        os.kill(os.getpid(), signal.SIGINT)
        return a_result(job.seed)


class Unloadable(Peaceful):
    """Ends the process that receives it."""

    def __reduce__(self) -> tuple[Callable[[int], NoReturn], tuple[int]]:
        return os._exit, (3,)


@dataclass(frozen=True, slots=True)
class Failing(SeedWork):
    """A real workload whose seeds from 5 on fail, in two ways."""

    def run(self, job: Job) -> SeedResult:
        """Run a seed."""
        if job.seed < 5:
            return a_result(job.seed)
        return a_result(job.seed, a_violation("even" if job.seed % 2 == 0 else "odd"))


def failing() -> Failing:
    """A workload whose seeds from 5 on fail."""
    scenario = msgspec.structs.replace(load_scenario(SMOKE), probes=())
    return Failing((NamedScenario("smoke", SMOKE, scenario),), 10)


def always_open() -> bool:
    """A queue that is not closed before its end."""
    return False


def queue_of(*seeds: range) -> JobQueue:
    """A queue of these seeds."""
    jobs = (Job(at, 0, seed) for at, seed in enumerate(chain(*seeds)))
    return JobQueue(jobs, always_open)


def plan_of(
    workload: Workload, folder: Path, *, size: int = 2, chunk: int = 2, limit: float = 60
) -> CrewPlan:
    """A crew of two that gets two seeds at a time."""
    return CrewPlan(size, workload, folder, chunk, limit)


def events_of(plan: CrewPlan, queue: JobQueue) -> Iterator[Event]:
    """Everything that happens to a queue."""
    with Interrupts() as interrupts, crew_for(plan) as crew:
        yield from crew.events(queue, interrupts)
