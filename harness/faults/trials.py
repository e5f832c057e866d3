"""Runs of a broken world that look at some promises only.

Order alone shows what an edge is good for: checks of states see most early returns before anybody
touches the page, and say nothing of who would have collided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.check import Examiner, capacity, host_reads, noted, ordering
from harness.choices import Choices, SeedChoices
from harness.faults.fault import Fault, Ground
from harness.faults.kept import KeepingWorld, Translate, UseTranslation
from harness.faults.mistakes import MISTAKES, Mistake
from harness.generate import Generator
from harness.ops.base import Op, Outcome
from harness.problem import BrokenSubject
from harness.scenario import Scenario, Setup
from harness.setup import draw_setup
from harness.violation import Violation
from harness.world import World
from unikv.errors import UnikvError

Examiners = tuple[Examiner, ...]

ORDER: Examiners = (ordering.examine,)
"""Whether two accesses collide, and nothing else."""

AT_ONCE: Examiners = (noted.examine, ordering.examine, host_reads.examine, capacity.examine)
"""What can be asked of an operation that no case file knows: order, answers and assertions."""

WORLDS: Mapping[Ground, Callable[[Setup], World]] = {
    Ground.OPERATIONS: World,
    Ground.CALLS: KeepingWorld,
}
"""What a fault of each ground is planted in."""


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
                # Its calls go to the storage itself, where nobody turns an error into a report.
                detail = f"{type(error).__name__} in a call of the engine"
                world.truth.note("assertion", detail, f"{operation}: {error}")
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


class Caller:
    """Draws calls that no operation makes among the operations of a scenario."""

    def __init__(self, scenario: Scenario, choices: Choices) -> None:
        self._choices = choices
        self._drawn = Generator(scenario, choices, "swarm", None)
        self.heard = self._drawn.heard

    def next(self, world: World) -> Op:
        """Where the world keeps translations, such a call in one of ten draws."""
        is_keeping = isinstance(world, KeepingWorld) and world.open_step is None
        if is_keeping and self._choices.below(10) == 0:
            mistake = Mistake(self._choices.below(len(MISTAKES)))
            return (Translate(), UseTranslation(), mistake)[self._choices.below(3)]
        return self._drawn.next(world)


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
    run, caller = TrialRun(world, examiners), Caller(scenario, choices)
    for _ in range(operations):
        caller.heard(run.execute(caller.next(world)))
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
