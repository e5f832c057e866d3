"""A claim put to the test: the missing edge is added to the model, and everything is run again.

The same operations say whether the edge is the cause; many other seeds say whether it is all of it.
Each seed is run without the edge too, since a seed that never failed proves nothing.

How a replay is told and what is printed is not known here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.case import Case, Drawn
from harness.report.edge import Edge, EdgeBetween, EdgeRule, edges_of, with_edge
from harness.report.story import Story
from harness.runner import Run, RunFactory, run_seed, run_trace
from harness.sweep.crew import CrewPlan, Died, crew_for
from harness.sweep.interrupts import Interrupts
from harness.sweep.jobs import Job, JobQueue, seed_jobs
from harness.violation import Violation

SILENCE_SECONDS_MAX = 180.0
"""Wall time after which a seed hangs."""

CHUNK_JOBS = 4

UNKNOWN = Drawn(strategy="swarm", ranks=None, traffic="")
"""How seeds are drawn where a case does not say how its own was."""


class Tried(msgspec.Struct, frozen=True):
    """One seed without and with the edge.

    Attributes:
        digest: of the run with it.
        before: signatures of what the seed showed without it.
        violations: what it showed with it.
    """

    digest: str
    before: tuple[str, ...]
    violations: tuple[Violation, ...]


@dataclass(frozen=True, slots=True)
class EdgeWork:
    """Runs seeds of a case's scenario, with its planted fault, without and with an edge.

    They are drawn as the case's own was, where that is known, but for recorded traffic.
    """

    case: Case
    rule: EdgeRule
    operations: int

    def run(self, job: Job) -> Tried:
        """Run one seed twice."""
        before, _ = self._run(job.seed, Run)
        after, digest = self._run(job.seed, with_edge(self.rule))
        return Tried(digest, tuple(violation.signature for violation in before), after)

    def _run(self, seed: int, build: RunFactory) -> tuple[tuple[Violation, ...], str]:
        case, drawn = self.case, drawn_for(self.case)
        result = run_seed(
            case.scenario_data,
            case.scenario,
            seed,
            self.operations,
            plant=case.plant,
            ranks=drawn.ranks,
            strategy=drawn.strategy,
            build=build,
        )
        return result.violations, result.digest

    def name(self, job: Job) -> str:
        """The scenario's name."""
        return self.case.scenario


def drawn_for(case: Case) -> Drawn:
    """How more seeds of a case are drawn."""
    return UNKNOWN if case.drawn is None else case.drawn


@dataclass(slots=True)
class Count:
    """What became of the seeds so far.

    Attributes:
        tried: how many ran to their end.
        before, after: how many failed like the case without the edge, and with it.
        otherwise: with it, other failures by signature.
        deaths: seeds that ended their process.
    """

    tried: int
    before: int
    after: int
    otherwise: Counter[str]
    deaths: int


@dataclass(frozen=True, slots=True)
class EdgeProof:
    """What came of an edge, so far as it was tried.

    Attributes:
        once: what the same operations show with the edge between their own two accesses.
        by_rule: what they show with the same edge between all accesses of those kinds.
        rule: that edge.
        seeds: further seeds that were asked for; perhaps not all of them ended.
        operations: of each of them.
        count: what those that ended showed.
    """

    once: tuple[Violation, ...]
    by_rule: tuple[Violation, ...]
    rule: EdgeRule
    seeds: range
    operations: int
    count: Count

    @property
    def left(self) -> int:
        """Seeds that were asked for and did not run to their end."""
        return len(self.seeds) - self.count.tried


class Explaining:
    """The edge that a story says is missing, put to the test.

    Attributes:
        story: the failure.
        edge, rule: the edge of its two accesses, and the same for all of their kind.
        count: what further seeds showed; changed by `seeds` alone.
        interrupts: whether somebody wants it to end.
    """

    def __init__(self, story: Story, edge: EdgeBetween, rule: EdgeRule) -> None:
        self.story = story
        self.edge = edge
        self.rule = rule
        self.count = Count(0, 0, 0, Counter(), 0)
        self.interrupts = Interrupts()
        self._begin = time.monotonic()

    def seconds(self) -> float:
        """Wall time since the beginning."""
        return time.monotonic() - self._begin

    def again(self, edge: Edge) -> tuple[Violation, ...]:
        """What the same operations show with an edge."""
        case = self.story.case
        result = run_trace(case.setup, case.operations, plant=case.plant, build=with_edge(edge))
        return result.violations

    def seeds(self, proof: EdgeProof, workers: int, folder: Path) -> Iterator[int]:
        """Run the seeds without and with the rule; how many have ended, after each.

        Raises:
            CrewError: if worker processes cannot start.
        """
        work = EdgeWork(self.story.case, self.rule, proof.operations)
        plan = CrewPlan(workers, work, folder, CHUNK_JOBS, SILENCE_SECONDS_MAX)
        queue = JobQueue(seed_jobs(proof.seeds), closed=lambda: self.interrupts.seen)
        with self.interrupts, crew_for(plan) as crew:
            for event in crew.events(queue, self.interrupts):
                if isinstance(event, Died):
                    self.count.deaths += 1
                else:
                    assert isinstance(event.result, Tried)
                    self._absorb(event.result)
                yield self.count.tried + self.count.deaths

    def _absorb(self, tried: Tried) -> None:
        signature = self.story.violation.signature
        after = [violation.signature for violation in tried.violations]
        self.count.tried += 1
        self.count.before += signature in tried.before
        self.count.after += signature in after
        if after and signature not in after:
            self.count.otherwise[after[0]] += 1


def explaining(story: Story) -> Explaining | None:
    """The test of a story's missing edge; None where no edge is missing."""
    edges = edges_of(story)
    return None if edges is None else Explaining(story, *edges)
