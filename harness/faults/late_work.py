"""Faults behind the metadata phase: late look-ups, lost joins, buffers reused early."""

from __future__ import annotations

from collections.abc import Sequence

from harness.device.clock import Access, SpaceClock
from harness.device.memory import Effect
from harness.device.modeled import ModeledDevice
from harness.engine import Engine, Step
from harness.faults.fault import Fault, Plant
from harness.faults.parts import become, in_engine, in_world
from harness.static_buffers import Filled, StaticBuffers
from harness.world import World
from unikv.device.port import Stream
from unikv.static_buffer import StaticBuffer


class _LooksUpInTheCommit(ModeledDevice):
    """Commits look up what the metadata phase of their step has looked up, once more."""

    looked_up: Sequence[Access]

    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        if kind == "metadata":
            self.looked_up = [access for access in touched if self.is_table(access.space)]
        elif kind == "commit":
            touched = [*touched, *self.looked_up]
        super().submit(stream, kind, step, effect, touched)

    def is_table(self, space: SpaceClock) -> bool:
        """Whether it is what this one looks up."""
        return False


class _LooksUpRows(_LooksUpInTheCommit):
    def is_table(self, space: SpaceClock) -> bool:
        return space is self.rows


class _LooksUpStates(_LooksUpInTheCommit):
    def is_table(self, space: SpaceClock) -> bool:
        # The first band is the one of states, where there are any.
        return space is self.maps[0] and self.layout.bands[0].mints


def in_device(broken: type[ModeledDevice]) -> Plant:
    """Plant kernels that touch more than they should."""

    def plant(world: World) -> None:
        become(world.device, broken)

    return plant


class _NeverJoins(Engine):
    def join_side(self, stream: int) -> None:
        """The step's event lies behind its body alone."""


class _NeverForks(Engine):
    def fork_side(self, stream: Stream) -> None:
        """Whatever runs on the side stream is behind nothing."""


class _OneStaticBuffer(StaticBuffers):
    def take(self) -> int:
        return self.free[0]

    def give_back(self, index: int, step: int) -> None:
        self.buffers[index].processed(step)


class _ForgetsItsReader(StaticBuffer):
    __slots__ = ()

    def fill(self, step: int, values: Sequence[int]) -> tuple[int, ...]:
        self._reader = 0
        return super().fill(step, values)

    def processed(self, step: int) -> None:
        """It is not known who reads it."""


class _KeepsWhatItWasCapturedWith(StaticBuffers):
    """Puts the values of a step where no replay finds them."""

    def fill(self, index: int, step: int, values: Sequence[int]) -> Filled:
        filled = super().fill(index, step, values)
        return filled._replace(values=[0] * len(filled.values))


class _FilledForTheStepBefore(StaticBuffer):
    __slots__ = ()

    def fill(self, step: int, values: Sequence[int]) -> tuple[int, ...]:
        return super().fill(max(1, step - 1), values)


class _PadsWithTheLast(StaticBuffer):
    __slots__ = ()

    def fill(self, step: int, values: Sequence[int]) -> tuple[int, ...]:
        filled = super().fill(step, values)
        self._values = tuple(value or values[-1] for value in filled)
        return self._values


def in_static_buffers(broken: type[StaticBuffer]) -> Plant:
    """Plant static buffers that are given to steps wrongly."""

    def plant(world: World) -> None:
        for buffer in world.engine.statics.buffers:
            become(buffer, broken)

    return plant


def in_statics(broken: type[StaticBuffers]) -> Plant:
    """Plant an engine that hands static buffers out wrongly."""

    def plant(world: World) -> None:
        become(world.engine.statics, broken)

    return plant


def _reuse_one(world: World) -> None:
    become(world.engine.statics, _OneStaticBuffer)
    for buffer in world.engine.statics.buffers:
        become(buffer, _ForgetsItsReader)


class _BarrierOfTheProcessed(World):
    """A pipeline whose barrier is for the micro-batch whose results it hands out."""

    def process_oldest_step(self) -> Step:
        if self.setup.pipeline and self.unordered_step not in (None, self.steps[0]):
            # All of the forward stream would be all of the newest micro-batch too.
            self.device.wait_event(Stream.SCHEDULE, self.steps[0].read_end)
            self.unordered_step = None
        return super().process_oldest_step()


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="row-looked-up-late",
        planted="a commit looks its request rows up when it runs, and others may have them by then",
        plant=in_device(_LooksUpRows),
        checks=("ordering",),
        scenario="rows",
        rows=("B23", "B143"),
        edge="schedule <- forward|schedule <- side",
        pair=("commit read", "row write"),
    ),
    Fault(
        id="state-map-looked-up-late",
        planted="a commit looks its state slots up when it runs, and they may have moved by then",
        plant=in_device(_LooksUpStates),
        checks=("ordering",),
        scenario="rows",
        rows=("B143",),
        edge="schedule <- forward|schedule <- side",
        pair=("commit read", "map write"),
    ),
    Fault(
        id="side-stream-commit-not-joined",
        planted="a step is recorded without waiting for its commit on the side stream",
        plant=in_engine(_NeverJoins),
        checks=("ordering",),
        scenario="rows",
        ablates="edge F <- X (commit)",
        edge="<- side",
        pair=("commit", "read|write"),
    ),
    Fault(
        id="side-stream-commit-not-forked",
        planted="a commit on the side stream waits for nothing of its forward",
        plant=in_engine(_NeverForks),
        checks=("ordering",),
        scenario="rows",
        ablates="edge X <- F",
        edge="side <- ",
        pair=("body|reset|move|map|restore", "commit"),
    ),
    Fault(
        id="static-buffer-refused",
        planted="an engine with several steps in flight has one static buffer for all of them",
        plant=in_statics(_OneStaticBuffer),
        checks=("ledger",),
        scenario="rows",
        rows=("B29",),
    ),
    Fault(
        id="static-buffer-refilled-early",
        planted="the same, and the buffer does not know who still reads it",
        plant=_reuse_one,
        checks=("ordering",),
        scenario="rows",
        rows=("B29",),
        ablates="edge static buffer refilled after its step",
        edge="host <- forward|host <- side",
        pair=("body read|commit read", "fill write"),
    ),
    Fault(
        id="static-buffer-not-refilled",
        planted="a replay finds in its buffer what the graph was captured with",
        plant=in_statics(_KeepsWhatItWasCapturedWith),
        checks=("content",),
        scenario="rows",
        rows=("B137",),
    ),
    Fault(
        id="static-buffer-of-another-step",
        planted="a static buffer is filled for the step before the one that reads it",
        plant=in_static_buffers(_FilledForTheStepBefore),
        checks=("ledger",),
        scenario="rows",
        rows=("B137",),
    ),
    Fault(
        id="graph-padded-with-a-slot",
        planted="padded rows of a captured graph name the last slot of the batch, not the sink",
        plant=in_static_buffers(_PadsWithTheLast),
        checks=("content",),
        scenario="rows",
        rows=("B139",),
    ),
    Fault(
        id="pipeline-barrier-of-another-batch",
        planted="a pipeline applies the barrier before its results, for the micro-batch that they"
        " are of instead of the one that it launched",
        plant=in_world(_BarrierOfTheProcessed),
        checks=("ordering",),
        scenario="rows",
        rows=("B19",),
        ablates="edge S <- read end of the launched micro-batch",
        edge="schedule <- forward",
        pair=("metadata read|body read", "map write|row write"),
    ),
)
