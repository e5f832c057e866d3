"""One input of a fuzzer: bytes that decide a setup and a trace.

The insight: an input is a header and then one frame of a few bytes for each operation.  A fuzzer
that changes, drops or doubles a frame changes one operation; if all draws came from one run of
bytes, everything behind the change would mean something else.

Which fuzzer chose the bytes is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from harness.case import CASE_VERSION, Case
from harness.choices import ByteChoices, Choices
from harness.generate import Generator
from harness.ops import Operation, Outcome
from harness.runner import Run, SeedResult
from harness.scenario import Scenario
from harness.setup import draw_setup
from harness.unikv_subject import UnikvSubject
from harness.violation import Violation
from harness.world import SubjectFactory, World
from unikv import __version__

HEADER_BYTES = 64
"""Bytes of the header: the setup, then the mix of operations; zeros where an input is shorter."""

FRAME_BYTES = 8
"""Bytes of one operation: one choice among many weights takes four, and four arguments follow."""

_ROUNDS = 8
"""How often a frame can be read from its beginning before it is zeros: an operation that turns out
impossible is drawn anew, up to ten times."""

NO_SEED = 0
"""Stands for the seed of a case that no seed made."""

Watch = Callable[[World, Operation, Outcome], None]
"""Is told of every operation after it was applied and checked."""


class FramedChoices:
    """Decisions from a header, then from one frame after the other.

    Args:
        header: what decides until a frame is opened.
    """

    __slots__ = ("_choices",)

    def __init__(self, header: bytes) -> None:
        self._choices: Choices = ByteChoices(header)

    def open(self, frame: bytes) -> None:
        """Decide by this frame from now on, from its beginning."""
        self._choices = ByteChoices(frame * _ROUNDS)

    def below(self, bound: int) -> int:
        """A number in `[0, bound)`."""
        return self._choices.below(bound)


@dataclass(frozen=True, slots=True)
class Target:
    """What inputs are run on.

    Attributes:
        name, scenario: the workload family; `name` is what reports call it.
        operations_max: frames that are read; what follows is not looked at.
        plant: id of a planted fault; None for the allocator as it is.
        subject: the allocator under test.
    """

    name: str
    scenario: Scenario
    operations_max: int
    plant: str | None = None
    subject: SubjectFactory = UnikvSubject

    @property
    def bytes_max(self) -> int:
        """Length of the longest input that is read whole."""
        return HEADER_BYTES + FRAME_BYTES * self.operations_max


class InputRun:
    """A world that is driven frame by frame, up to its first violation.

    Args:
        target: what to run.
        header: decides the setup and the mix of operations.
    """

    def __init__(self, target: Target, header: bytes) -> None:
        self._choices = FramedChoices(header)
        setup = draw_setup(target.scenario, self._choices)
        self.run = Run(setup, target.plant, target.subject)
        families = self.run.world.subjects[0].families
        self._generator = Generator(target.scenario, self._choices, "swarm", None, families)

    def step(self, frame: bytes) -> tuple[Operation, Outcome]:
        """Draw one operation from a frame, apply it and check everything."""
        self._choices.open(frame)
        operation = self._generator.next(self.run.world)
        outcome = self.run.execute(operation)
        self._generator.heard(outcome)
        return operation, outcome

    def finish(self) -> Iterator[tuple[Operation, Outcome]]:
        """Bring the world to an empty rest, checking everything on the way."""
        for operation in self.run.finish():
            yield operation, self.run.execute(operation)

    @property
    def violations(self) -> list[Violation]:
        """What was found; the run is over then."""
        return self.run.violations


def frames(data: bytes) -> Iterator[bytes]:
    """The frames behind the header; the last may be shorter."""
    for at in range(HEADER_BYTES, len(data), FRAME_BYTES):
        yield data[at : at + FRAME_BYTES]


def unwatched(world: World, operation: Operation, outcome: Outcome) -> None:
    """Nobody wants to know."""


def run_input(target: Target, data: bytes, watch: Watch = unwatched) -> SeedResult:
    """Run one input up to its first violation or an empty rest.

    Args:
        target: what to run.
        data: of any length.
        watch: is told of every operation.
    """
    running = InputRun(target, data[:HEADER_BYTES])
    for done in _operations(running, data[: target.bytes_max]):
        watch(running.run.world, *done)
        if running.violations:
            break
    return running.run.result(target.name, NO_SEED)


def _operations(running: InputRun, data: bytes) -> Iterator[tuple[Operation, Outcome]]:
    yield from map(running.step, frames(data))
    yield from running.finish()


def case_of(target: Target, result: SeedResult, violation: Violation) -> Case:
    """A failed input as a case, which replays without the bytes and without the fuzzer."""
    return Case(
        version=CASE_VERSION,
        unikv=__version__,
        scenario=target.name,
        scenario_data=target.scenario,
        setup=result.setup,
        seed=NO_SEED,
        plant=target.plant,
        operations=result.trace,
        violation=violation,
    )
