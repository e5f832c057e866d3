"""Which seed runs next, as data: the order is fixed before any process starts.

The insight: a position in that order is all that processes need to share.  Results are put back in
order by it, so nothing that is reported depends on how many processes there were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from harness.violation import Violation

JOBS_MAX = 10_000_000
"""Most seeds of one command."""


class Job(NamedTuple):
    """One seed to run: its position in the order, the scenario's position, and the seed."""

    position: int
    scenario: int
    seed: int


class Result(Protocol):
    """What a job comes to, as far as it is written down."""

    @property
    def digest(self) -> str:
        """Of everything that happened, in hexadecimal."""
        ...

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What was found."""
        ...


class Workload(Protocol):
    """Turns a job into a result; both are sent between processes, so they can be pickled."""

    def run(self, job: Job) -> Result:
        """Run one job to its end."""
        ...

    def name(self, job: Job) -> str:
        """What the job is part of: its scenario's name, or a fault's id."""
        ...


def seed_jobs(seeds: range) -> Iterator[Job]:
    """The seeds of one scenario, in order."""
    for position, seed in enumerate(seeds):
        yield Job(position, 0, seed)


def endless_jobs(scenario_count: int) -> Iterator[Job]:
    """Seed 1 of every scenario, then seed 2 of every scenario, up to `JOBS_MAX` jobs."""
    for position in range(JOBS_MAX):
        yield Job(position, position % scenario_count, 1 + position // scenario_count)


def repeated_jobs(scenario_count: int, seeds: range) -> Iterator[Job]:
    """Every seed of the first scenario, then every seed of the next."""
    positions = count()
    for scenario in range(scenario_count):
        for seed in seeds:
            yield Job(next(positions), scenario, seed)


class JobQueue:
    """Hands out jobs.

    Invariant: a job is handed out once, in order, unless it was put back; none behind the position
    given to `stop_after`, and none once `closed` says so.  Changed by `take`, `put_back` and
    `stop_after`.
    """

    def __init__(self, jobs: Iterator[Job], closed: Callable[[], bool]) -> None:
        self._jobs = jobs
        self._closed = closed
        self._returned: deque[Job] = deque()
        self._last = JOBS_MAX

    def take(self, most: int) -> list[Job]:
        """Up to `most` jobs; none means that no more will come."""
        taken: list[Job] = []
        while len(taken) < most and not self._closed():
            job = self._next()
            if job is None:
                break
            taken.append(job)
        return taken

    def put_back(self, jobs: list[Job]) -> None:
        """Hand out again what a dead process had not started."""
        self._returned.extendleft(reversed(jobs))

    def stop_after(self, position: int) -> None:
        """Hand out nothing behind `position`."""
        self._last = min(self._last, position)

    def _next(self) -> Job | None:
        while self._returned:
            job = self._returned.popleft()
            if job.position <= self._last:
                return job
        fresh = next(self._jobs, None)
        return fresh if fresh is not None and fresh.position <= self._last else None
