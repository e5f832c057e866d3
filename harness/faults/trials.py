"""Runs of a broken world that look at some promises only.

Order alone shows what an edge is good for: checks of states see most early returns before anybody
touches the page, and say nothing of who would have collided.  And of lent pages truth knows little,
so in a lending world checks of states would not understand what they see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.check import Examiner, capacity, host_reads, noted, ordering
from harness.choices import Choices, SeedChoices
from harness.faults.fault import Fault, Ground
from harness.faults.kept import Translate, UseTranslation
from harness.faults.lending import LendingWorld
from harness.faults.loans import Backup, Drop, Hold, Load, Publish, Return, Send
from harness.faults.mistakes import MISTAKES, Mistake
from harness.generate import Generator
from harness.ops import Abort
from harness.ops.base import Op, Outcome
from harness.requests import Phase
from harness.scenario import Scenario, Setup
from harness.setup import draw_setup
from harness.violation import Violation
from harness.world import BrokenSubject, World
from unikv.errors import UnikvError

Examiners = tuple[Examiner, ...]

ORDER: Examiners = (ordering.examine,)
"""Whether two accesses collide, and nothing else."""

LENT: Examiners = (noted.examine, ordering.examine, host_reads.examine, capacity.examine)
"""What a lending world can be asked: order, host reads, answers and assertions."""

WORLDS: Mapping[Ground, Callable[[Setup], World]] = {
    Ground.OPERATIONS: World,
    Ground.LENDING: LendingWorld,
}
"""What a fault of each ground is planted in."""

LOANS_MAX = 6
"""Loans at once, past which one ends before another begins."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run up to its first violation.

    Attributes:
        setup: the storage and engine.
        trace: the operations, the last of which found the violations.
        applied: how many were applied and count.
        violations: what was found.
    """

    setup: Setup
    trace: tuple[Op, ...]
    applied: int
    violations: tuple[Violation, ...]


class TrialRun:
    """Applies operations to a world and keeps what the examiners find."""

    def __init__(self, world: World, examiners: Examiners) -> None:
        self.violations: list[Violation] = []
        self._world = world
        self._examiners = examiners
        self._trace: list[Op] = []
        self._applied = 0

    def execute(self, operation: Op) -> Outcome:
        """Apply one operation and examine the world."""
        world = self._world
        world.device.operation = len(self._trace)
        self._trace.append(operation)
        for port in world.ports:
            port.begin_operation()
        outcome = Outcome.SKIPPED
        if not (operation.between_steps and world.open_step is not None):
            try:
                outcome = operation.apply(world)
            except BrokenSubject:
                outcome = Outcome.REFUSED
            except UnikvError as error:
                # Loans call the storage itself, where nobody turns an error into a report.
                kind = type(error).__name__
                world.truth.note("assertion", f"{kind} in a loan", f"{operation}: {error}")
                outcome = Outcome.REFUSED
        self._applied += operation.counted and outcome is Outcome.DONE
        world.books = world.subjects[0].books()
        for examine in self._examiners:
            self.violations += examine(world)
        world.truth.problems.clear()
        world.device.races.clear()
        world.device.bad_reads.clear()
        world.capacity_answers.clear()
        world.answers.clear()
        return outcome

    def result(self) -> Trial:
        """What the run did and found."""
        found = tuple(self.violations)
        return Trial(self._world.setup, tuple(self._trace), self._applied, found)


class Lender:
    """Draws loans among the operations of a scenario."""

    def __init__(self, scenario: Scenario, choices: Choices) -> None:
        self._choices = choices
        self._drawn = Generator(scenario, choices, "swarm", None)
        self._names = 0
        self.heard = self._drawn.heard

    def next(self, world: World) -> Op:
        """Where pages are lent, a loan in one of three draws, else an operation."""
        is_lending = isinstance(world, LendingWorld) and world.open_step is None
        if is_lending and self._choices.below(3) == 0:
            return self._loan(world)
        return self._drawn.next(world)

    def _loan(self, world: World) -> Op:
        assert isinstance(world, LendingWorld)
        loans, requests = list(world.loans), list(world.requests)
        old = loans[self._choices.below(len(loans))] if loans else ""
        request = requests[self._choices.below(len(requests))] if requests else ""
        due = [r.name for r in world.requests.values() if r.phase is Phase.RUNNING and r.prepared]
        loading = due[self._choices.below(len(due))] if due else ""
        self._names += 1
        new = f"loan{self._names}"
        draw = 0 if len(loans) >= LOANS_MAX else self._choices.below(26)
        return (
            Return(old),
            Return(old),
            Publish(old),
            Publish(old),
            Drop(old),
            Drop(old),
            Hold(new, 1 + self._choices.below(3)),
            Hold(new, 1 + self._choices.below(3)),
            Send(new, request),
            Send(new, ""),
            Load(new, loading),
            Load(new, loading),
            Load(new, loading),
            Load(new, loading),
            # Whoever goes away now leaves pages to others while they are loaded.
            Abort(loading),
            Abort(loading),
            Abort(loading),
            Backup(new, request),
            Backup(new, request),
            Backup(new, ""),
            Translate(),
            Translate(),
            UseTranslation(),
            UseTranslation(),
            Mistake(self._names % len(MISTAKES)),
            Mistake(self._names % len(MISTAKES)),
        )[draw]


def try_seed(
    fault: Fault | None,
    ground: Ground,
    scenario: Scenario,
    seed: int,
    operations: int,
    examiners: Examiners,
) -> Trial:
    """Draw and run so many operations of a seed, up to the first violation.

    Args:
        fault: planted first; None for a world that is as it should be.
        ground: what happens in the world.
        scenario: the workload family.
        seed: the only source of chance.
        operations: how many to draw.
        examiners: the checks that look.
    """
    choices = SeedChoices(seed)
    world = WORLDS[ground](draw_setup(scenario, choices))
    if fault is not None:
        fault.plant(world)
    run, lender = TrialRun(world, examiners), Lender(scenario, choices)
    for _ in range(operations):
        lender.heard(run.execute(lender.next(world)))
        if run.violations:
            break
    return run.result()


def try_trace(fault: Fault, setup: Setup, trace: Sequence[Op], examiners: Examiners) -> Trial:
    """Run given operations in a fresh world with the fault, up to the first violation."""
    world = WORLDS[fault.ground](setup)
    fault.plant(world)
    run = TrialRun(world, examiners)
    for operation in trace:
        run.execute(operation)
        if run.violations:
            break
    return run.result()
