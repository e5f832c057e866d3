"""Faults of the engine's loop: a wait left out, misplaced or taken at the wrong mark."""

from __future__ import annotations

from collections.abc import Sequence

from harness.device.clock import Access
from harness.device.launches import ModeledEvent
from harness.device.memory import Effect
from harness.device.modeled import ModeledDevice
from harness.engine import Engine, Step
from harness.faults.fault import Fault
from harness.faults.parts import become, in_clearance, in_engine, in_world
from harness.world import World
from unikv.alloc.clearance import InFlight, Toucher
from unikv.device.port import Stream


class _WaitsForTheLaunchBefore(Engine):
    mark: ModeledEvent | None = None

    def order_launch(self) -> None:
        earlier, self.mark = self.mark, self.device.record_event(Stream.SCHEDULE)
        if earlier is not None:
            self.device.wait_event(Stream.FORWARD, earlier)


class _BarrierOnTheStepBefore(Engine):
    before: Step | None = None

    def order_tables(self, step: Step) -> None:
        before, self.before = self.before, step
        if before is not None:
            super().order_tables(before)


class _BarrierWhereDeclared(Engine):
    def order_tables(self, step: Step) -> None:
        if step.declares_read_end:
            super().order_tables(step)


class _MetadataIsEnough(Engine):
    def order_tables(self, step: Step) -> None:
        self.device.wait_event(Stream.SCHEDULE, step.read_end)


class _EventBeforeTheBody(Engine):
    def end_of(self, step: Step) -> ModeledEvent:
        read_end = step.read_end
        return ModeledEvent(read_end.stream, read_end.index, read_end.epoch, read_end.clock)


class _ProcessesWithoutSynchronizing(Engine):
    def synchronize(self, step: Step) -> None:
        assert step.event is not None


class _SynchronizesMetadata(Engine):
    def synchronize(self, step: Step) -> None:
        self.device.host_wait(step.read_end)


class _OneStagingBuffer(Engine):
    def take_staging(self) -> int:
        return self.free_staging[0]


class _BarrierOnlyWhereWritesAreKnown(World):
    def order_tables(self) -> None:
        step = self.unordered_step
        if step is not None and step.number == self.truth.newest_unknown:
            self.unordered_step = None
        super().order_tables()


class _BodiesOnASideStream(ModeledDevice):
    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        if kind == "body" and stream == Stream.FORWARD and step % 2:
            # The side stream is forked as it must be; only the join back is forgotten.
            self.wait_event(Stream.SIDE, self.record_event(stream))
            stream = Stream.SIDE
        super().submit(stream, kind, step, effect, touched)


class _SideStreamJoinedAtTheNextLaunch(ModeledDevice):
    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        if kind == "metadata" and stream == Stream.FORWARD:
            # In time for the next step, and too late for the event of the step it belongs to.
            self.wait_event(stream, self.record_event(Stream.SIDE))
        if kind == "body" and stream == Stream.FORWARD:
            self.wait_event(Stream.SIDE, self.record_event(stream))
            stream = Stream.SIDE
        super().submit(stream, kind, step, effect, touched)


class _ReadsRowsInTheBody(ModeledDevice):
    """Bodies look their request rows up once more; `looked_up` are those of the newest metadata."""

    looked_up: Sequence[Access]

    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        if kind == "metadata":
            self.looked_up = [access for access in touched if access.space is self.rows]
        elif kind == "body":
            touched = [*touched, *self.looked_up]
        super().submit(stream, kind, step, effect, touched)


def _read_rows_late(world: World) -> None:
    become(world.device, _ReadsRowsInTheBody)


def _fork_bodies(world: World) -> None:
    become(world.device, _BodiesOnASideStream)


def _join_late(world: World) -> None:
    become(world.device, _SideStreamJoinedAtTheNextLaunch)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="launch-without-schedule",
        planted="a forward is launched without waiting for the schedule stream",
        plant=in_clearance(Toucher.FORWARD, InFlight.SCHEDULE),
        checks=("ordering",),
        ablates="CLEARANCE[forward, schedule]",
        edge="forward <- schedule",
        pair=("row write|map write|zero write", "metadata read|body"),
    ),
    Fault(
        id="launch-after-old-mark",
        planted="a launch waits for the schedule stream as it stood at the launch before",
        plant=in_engine(_WaitsForTheLaunchBefore),
        checks=("ordering",),
        ablates="edge F <- S (launch)",
        edge="forward <- schedule",
        pair=("row write|map write|zero write|move write", "metadata read|body"),
    ),
    Fault(
        id="barrier-dropped",
        planted="the schedule stream writes tables without waiting for a forward's table reads",
        plant=in_clearance(Toucher.TABLE_WRITE, InFlight.FORWARD),
        checks=("ordering",),
        rows=("B19",),
        ablates="CLEARANCE[table write, forward]",
        edge="schedule <- forward",
        pair=("metadata read", "map write|row write"),
    ),
    Fault(
        id="barrier-one-step-behind",
        planted="the barrier waits for the table reads of the step before the newest one",
        plant=in_engine(_BarrierOnTheStepBefore),
        checks=("ordering",),
        rows=("B19", "B23"),
        ablates="edge S <- shared-read end (barrier)",
        edge="schedule <- forward",
        pair=("metadata read", "map write|row write"),
    ),
    Fault(
        id="row-read-behind-the-read-end",
        planted="a step that has declared the end of its table reads looks its rows up once more",
        plant=_read_rows_late,
        checks=("ordering",),
        rows=("B23",),
        edge="schedule <- forward",
        pair=("body read", "row write"),
    ),
    Fault(
        id="barrier-only-where-declared",
        planted="a backend that declares no end of its table reads gets no barrier at all",
        plant=in_engine(_BarrierWhereDeclared),
        checks=("ordering",),
        rows=("B21",),
        ablates="edge S <- all of F (barrier, no read end)",
        edge="schedule <- forward",
        pair=("metadata read", "map write|row write"),
    ),
    Fault(
        id="barrier-behind-the-metadata",
        planted="the barrier waits for the metadata also where tables are read until the end",
        plant=in_engine(_MetadataIsEnough),
        checks=("ordering",),
        ablates="edge S <- all of F (barrier, no read end)",
        edge="schedule <- forward",
        pair=("body read", "map write|row write"),
    ),
    Fault(
        id="event-before-the-body",
        planted="the event of a step is recorded after its metadata instead of its last kernel",
        plant=in_engine(_EventBeforeTheBody),
        checks=("ordering",),
        ablates="edge step event on F (record)",
        edge="schedule <- forward",
        pair=("body", "zero write|move"),
    ),
    Fault(
        id="process-without-wait",
        planted="a step is processed before the host has waited for it",
        plant=in_engine(_ProcessesWithoutSynchronizing),
        checks=("ordering",),
        ablates="edge host <- step (process)",
        edge="host <- forward|host <- schedule|schedule <- forward",
        pair=("metadata read|body", "fill write|zero write|move"),
    ),
    Fault(
        id="process-after-metadata",
        planted="the host waits only for the metadata of the step that it processes",
        plant=in_engine(_SynchronizesMetadata),
        checks=("ordering",),
        ablates="edge host <- step (process)",
        edge="schedule <- forward",
        pair=("body", "zero write|move"),
    ),
    Fault(
        id="staging-refilled-early",
        planted="every step stages its tables in the same buffer, though a step in flight reads it",
        plant=in_engine(_OneStagingBuffer),
        checks=("ordering", "content"),
        rows=("B29", "B31"),
        ablates="edge host <- step (staging)",
        edge="host <- forward|host <- schedule",
        pair=("metadata read", "fill write"),
    ),
    Fault(
        id="barrier-only-where-writes-are-known",
        planted="a step whose writes are unknown gets no barrier for its table reads",
        plant=in_world(_BarrierOnlyWhereWritesAreKnown),
        checks=("ordering",),
        ablates="CLEARANCE[table write, unknown forward]",
        edge="schedule <- forward",
        pair=("metadata read", "map write|row write"),
    ),
    Fault(
        id="side-stream-not-joined",
        planted="every other step runs its body on a side stream that is never joined",
        plant=_fork_bodies,
        checks=("ordering",),
        ablates="CLEARANCE[forward, forward]",
        edge="forward <- side|schedule <- side",
        pair=("body", "body|zero write|move"),
    ),
    Fault(
        id="side-stream-joined-late",
        planted="a step's side stream is joined at the next launch, after the step was recorded",
        plant=_join_late,
        checks=("ordering", "ledger"),
        ablates="edge F <- X (record)",
        edge="schedule <- side",
        pair=("body", "zero write|move"),
    ),
)
