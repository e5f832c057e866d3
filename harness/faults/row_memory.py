"""Faults of row memory: rows reset too early, too often or never, and copies that are none."""

from __future__ import annotations

from harness.device.memory import Image, Mismatch
from harness.device.row_memory import RowMemorySpace
from harness.engine import Engine
from harness.faults.fault import Fault, Plant
from harness.faults.parts import become, in_rows, subjects
from harness.requests import Phase, Request
from harness.rows import RowBook
from harness.world import World
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.device.port import RowContent, RowMemoryDevice, Stream
from unikv.requests import RequestTable, RowMemory


def in_row_memory(broken: type[RowMemory]) -> Plant:
    """Plant memory of rows that is handed over wrongly."""

    def plant(world: World) -> None:
        for subject in subjects(world):
            become(subject.row_memory, broken)

    return plant


def _without_a_wait(world: World) -> None:
    cell = (Toucher.ROW_RESTORE, InFlight.FORWARD)
    for subject in subjects(world):
        subject.row_memory._clearance = {**CLEARANCE, cell: Clearance.SAME_STREAM}


class _ResetsAtHandOut(RequestTable):
    __slots__ = ()

    def take(self) -> int:
        row = super().take()
        assert isinstance(self._device, RowMemoryDevice)
        self._device.reset_rows(Stream.SCHEDULE, (row,))
        self.resets.unmark(row)
        return row


class _NeverResets(RowMemory):
    __slots__ = ()

    def reset_new_rows(self, stream: Stream) -> tuple[int, ...]:
        return self._table.resets.take_marked()


class _ForgetsAllButOne(RowMemory):
    __slots__ = ()

    def reset_new_rows(self, stream: Stream) -> tuple[int, ...]:
        rows = self._table.resets.take_marked()
        if rows:
            self._device.reset_rows(stream, rows[:1])
        return rows


class _ResetsWhatIsHeld(RowMemory):
    __slots__ = ()

    def reset_new_rows(self, stream: Stream) -> tuple[int, ...]:
        rows = super().reset_new_rows(stream)
        if rows:
            self._device.reset_rows(stream, self._table.held_rows())
        return rows


class _ResetsWhatIsRestored(RowMemory):
    __slots__ = ()

    def restore(self, row: int, content: RowContent) -> None:
        super().restore(row, content)
        self._table.resets.mark(row)


class _RestoresOnAnotherStream(RowMemory):
    __slots__ = ()

    def restore(self, row: int, content: RowContent) -> None:
        event = self._device.record_event(Stream.FORWARD)
        self._device.wait_event(Stream.LOAD, event)
        self._device.restore_row(Stream.LOAD, row, content)
        self._table.resets.unmark(row)


class _ResetsBeforeItsWait(Engine):
    """Resets new rows first, where a launch should wait for the schedule stream."""

    world: World

    def order_launch(self) -> None:
        if self.world.rows.is_kept:
            RowBook.reset_new(self.world.rows, self.world)
        super().order_launch()


class _ResetsNothing(RowBook):
    def reset_new(self, world: World) -> None:
        """It is done already."""


def _reset_early(world: World) -> None:
    become(world.engine, _ResetsBeforeItsWait)
    assert isinstance(world.engine, _ResetsBeforeItsWait)
    world.engine.world = world
    become(world.rows, _ResetsNothing)


class _CopyFromRow:
    """Writes into a row what another holds when it runs."""

    def __init__(self, row: int, source: int) -> None:
        self._row = row
        self._source = source

    def apply(self, image: Image) -> None:
        image.row_memory[self._row] = image.row_memory[self._source]

    def start(self, image: Image) -> Mismatch | None:
        self.apply(image)
        return None

    end = start
    run = start


class _SavesViews(RowMemorySpace):
    sources: dict[int, int]

    def save(self, stream: int, row: int, number: int) -> None:
        super().save(stream, row, number)
        self.sources[number] = row

    def restore(self, stream: int, row: int, number: int) -> None:
        effect = _CopyFromRow(row, self.sources[number])
        self._device.submit(stream, "restore", 0, effect, self.accesses((row,))[1:])


def _save_views(world: World) -> None:
    become(world.device.row_memory, _SavesViews)
    assert isinstance(world.device.row_memory, _SavesViews)
    world.device.row_memory.sources = {}


class _ForgetsWhatWasParked(RowBook):
    """Requests that come back from host memory get their pages back and not their row."""

    def take(self, world: World, request: Request) -> None:
        super().take(world, request)
        if request.phase is Phase.LOADING:
            request.saved = None


def _forget_what_was_parked(world: World) -> None:
    become(world.rows, _ForgetsWhatWasParked)


class _RestoresBeforeTheReset(RowMemory):
    """Writes a row whole and leaves it marked, so that the next launch resets it."""

    __slots__ = ()

    def restore(self, row: int, content: RowContent) -> None:
        was_marked = self._table.resets.is_marked(row)
        super().restore(row, content)
        if was_marked:
            self._table.resets.mark(row)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="row-reset-at-hand-out",
        planted="a row is reset on the schedule stream when it is handed out, under the forward"
        " that still uses it",
        plant=in_rows(_ResetsAtHandOut),
        checks=("ordering",),
        scenario="rows",
        ablates="edge reset by the forward",
        edge="schedule <- forward|schedule <- side",
        pair=("body|commit", "reset write"),
    ),
    Fault(
        id="row-never-reset",
        planted="a row that was handed out is taken for reset, and nothing was enqueued",
        plant=in_row_memory(_NeverResets),
        checks=("initialised",),
        scenario="rows",
        rows=("B25",),
    ),
    Fault(
        id="row-reset-forgotten",
        planted="of several rows that were handed out a launch resets the first",
        plant=in_row_memory(_ForgetsAllButOne),
        checks=("initialised",),
        scenario="rows",
    ),
    Fault(
        id="held-rows-reset",
        planted="a launch that resets new rows resets those of running requests too",
        plant=in_row_memory(_ResetsWhatIsHeld),
        checks=("content",),
        scenario="rows",
    ),
    Fault(
        id="row-reset-before-the-wait",
        planted="a launch resets new rows before its stream has waited the schedule stream",
        plant=_reset_early,
        checks=("ordering",),
        scenario="rows",
        ablates="edge F <- S (reset)",
        edge="forward <- schedule",
        pair=("save read|restore write", "reset write"),
    ),
    Fault(
        id="row-restored-behind-the-read-end",
        planted="a row is saved and restored behind the table reads of a forward, which uses the"
        " row to its end",
        plant=_without_a_wait,
        checks=("ordering",),
        scenario="rows",
        ablates="CLEARANCE[row restore, forward]",
        edge="schedule <- forward|schedule <- side",
        pair=("body|commit|reset write", "save read|restore write"),
    ),
    Fault(
        id="row-restored-on-another-stream",
        planted="a row is restored on the load stream, which waits forwards and no schedule work",
        plant=in_row_memory(_RestoresOnAnotherStream),
        checks=("ordering",),
        scenario="rows",
        ablates="CLEARANCE[row restore, schedule]",
        edge="<- load|load <- schedule",
        pair=("restore write|save read", "body|commit|reset|restore|save"),
    ),
    Fault(
        id="restored-row-reset",
        planted="a row that was written whole is reset by the next launch all the same",
        plant=in_row_memory(_ResetsWhatIsRestored),
        checks=("content",),
        scenario="rows",
    ),
    Fault(
        id="row-saved-as-a-view",
        planted="what a paused request saves is a view of its row, which the next holder writes",
        plant=_save_views,
        checks=("content",),
        scenario="rows",
        rows=("B43",),
    ),
    Fault(
        id="resumed-row-not-restored",
        planted="a request that comes back from host memory gets its pages back, and its row stays"
        " as a launch has reset it",
        plant=_forget_what_was_parked,
        checks=("content",),
        scenario="host_tier",
    ),
    Fault(
        id="resumed-row-restored-before-its-reset",
        planted="a row that nobody has reset is written whole and stays marked, so the launch that"
        " brings its holder back resets it",
        plant=in_row_memory(_RestoresBeforeTheReset),
        checks=("content",),
        scenario="host_tier",
    ),
)
