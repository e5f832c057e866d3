"""Faults that run schedule work on a stream of its own, with one of its forks or joins forgotten.

What needs no wait needs none because it is on one stream.  Each fault here breaks that construction
for one kind of work and keeps every other edge, so that only the ordering it rests on is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.device.launches import ModeledEvent
from harness.device.modeled import ModeledDevice
from harness.faults.fault import Fault
from harness.faults.parts import become
from harness.world import World
from unikv.device.port import Stream


class _Unforked(ModeledDevice):
    """Has a stream apart, behind the forward and before the schedule stream, not behind it."""

    def _behind_forward(self, apart: Stream) -> None:
        self.wait_event(apart, self.record_event(Stream.FORWARD))

    def _before_schedule(self, apart: Stream) -> None:
        self.wait_event(Stream.SCHEDULE, self.record_event(apart))


class _MovesApart(_Unforked):
    def move_pages(
        self, stream: int, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        self._behind_forward(Stream.BACKUP)
        super().move_pages(Stream.BACKUP, band, sources, targets)
        self._before_schedule(Stream.BACKUP)


class _MovesBandsAtOnce(ModeledDevice):
    """Runs the copies of one operation side by side, a stream for each of two bands.

    `batch` is the operation that copied last, its first band, and the mark before its first copy.
    """

    batch: tuple[int, int, ModeledEvent | None]

    def move_pages(
        self, stream: int, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        if not any(targets):
            # A prewarm copies every band onto the sink, and is no relief.
            super().move_pages(stream, band, sources, targets)
            return
        operation, first, begin = self.batch
        if operation != self.operation or begin is None:
            self.batch = self.operation, band, self.record_event(stream)
        elif band != first:
            self.wait_event(Stream.BACKUP, begin)
            super().move_pages(Stream.BACKUP, band, sources, targets)
            self.wait_event(stream, self.record_event(Stream.BACKUP))
            return
        super().move_pages(stream, band, sources, targets)


class _UnbindsApart(_Unforked):
    def write_map(self, stream: int, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
        if any(pages):
            super().write_map(stream, band, ids, pages)
            return
        self._behind_forward(Stream.SIDE)
        super().write_map(Stream.SIDE, band, ids, pages)
        self._before_schedule(Stream.SIDE)


class _ZerosApart(_Unforked):
    """Zeroes some pages apart: those whose bytes the same band had before.

    `last_band` names, per granule of the arena, the band that was zeroed there last.
    """

    last_band: dict[int, int]

    def zero_pages(self, stream: int, band: int, pages: Sequence[int]) -> None:
        apart = [page for page in pages if self._is_apart(band, page)]
        rest = [page for page in pages if page not in apart]
        if rest:
            super().zero_pages(stream, band, rest)
        if apart:
            self._behind_forward(Stream.LOAD)
            super().zero_pages(Stream.LOAD, band, apart)
            self._before_schedule(Stream.LOAD)
        self.last_band |= dict.fromkeys(self.granules(band, pages), band)

    def _is_apart(self, band: int, page: int) -> bool:
        return {self.last_band.get(unit) for unit in self.granules(band, [page])} == {band}


class _ZerosGrownBytesApart(_ZerosApart):
    def _is_apart(self, band: int, page: int) -> bool:
        before = {self.last_band.get(unit, band) for unit in self.granules(band, [page])}
        return before != {band}


class _ZerosUnjoined(ModeledDevice):
    def zero_pages(self, stream: int, band: int, pages: Sequence[int]) -> None:
        self.wait_event(Stream.LOAD, self.record_event(Stream.SCHEDULE))
        super().zero_pages(Stream.LOAD, band, pages)


def _move_apart(world: World) -> None:
    become(world.device, _MovesApart)


def _move_bands_at_once(world: World) -> None:
    become(world.device, _MovesBandsAtOnce)
    assert isinstance(world.device, _MovesBandsAtOnce)
    world.device.batch = -1, -1, None


def _unbind_apart(world: World) -> None:
    become(world.device, _UnbindsApart)


def _zero_apart(world: World) -> None:
    become(world.device, _ZerosApart)
    assert isinstance(world.device, _ZerosApart)
    world.device.last_band = {}


def _zero_grown_apart(world: World) -> None:
    become(world.device, _ZerosGrownBytesApart)
    assert isinstance(world.device, _ZerosGrownBytesApart)
    world.device.last_band = {}


def _zero_unjoined(world: World) -> None:
    become(world.device, _ZerosUnjoined)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="moves-unordered",
        planted="moves run on a stream that does not wait for the schedule stream",
        plant=_move_apart,
        checks=("ordering",),
        scenario="hybrid",
        ablates="CLEARANCE[move source, schedule]",
        edge="backup <- schedule",
        pair=("zero write|move", "move"),
    ),
    Fault(
        id="one-batch-for-two-bands",
        planted="a relief copies two bands at once, though one lands where the other has left",
        plant=_move_bands_at_once,
        checks=("ordering",),
        scenario="hybrid",
        ablates="edge S <- S (one batch per band)",
        edge="backup <- schedule",
        pair=("move read", "move write"),
    ),
    Fault(
        id="unbinds-unordered",
        planted="freed ids are unbound on a stream that does not wait for the schedule stream",
        plant=_unbind_apart,
        checks=("ordering",),
        ablates="CLEARANCE[table write, schedule]",
        edge="side <- schedule",
        pair=("map write", "map write"),
    ),
    Fault(
        id="zeroing-unordered",
        planted="a reused page is zeroed on a stream that does not wait for the schedule stream",
        plant=_zero_apart,
        checks=("ordering",),
        ablates="CLEARANCE[hand-out, schedule]",
        edge="load <- schedule",
        pair=("zero write|move", "zero write"),
    ),
    Fault(
        id="growth-unordered",
        planted="bytes that another band left are zeroed on a stream that does not wait for the"
        " schedule stream",
        plant=_zero_grown_apart,
        checks=("ordering",),
        ablates="CLEARANCE[growth, schedule]",
        edge="load <- schedule",
        pair=("zero write|move", "zero write"),
    ),
    Fault(
        id="zeroing-unjoined",
        planted="pages are zeroed on a stream that no forward waits for",
        plant=_zero_unjoined,
        checks=("ordering",),
        rows=("B25",),
        ablates="edge F <- S (launch)",
        edge="forward <- load",
        pair=("zero write", "body"),
    ),
)
