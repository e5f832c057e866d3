"""Faults around copies between device and host: waits lost, fences lost, too little order given.

They are hunted in a lending world, where loans are drawn among the operations.
"""

from __future__ import annotations

from harness.device.launches import ModeledEvent
from harness.faults.fault import Fault, Ground
from harness.faults.lending import Courier, LendingEngine
from harness.faults.parts import in_chain, in_clearance, in_courier, in_fences, in_lending_engine
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import InFlight, Toucher
from unikv.alloc.fences import CopyUse, Fences, Ranges
from unikv.alloc.use import Use
from unikv.device.port import Stream


class _BackupsByPage(Fences):
    """Finds backups by their pages instead of by their bytes."""

    __slots__ = ()

    def touching(self, ranges: Ranges) -> list[CopyUse]:
        return [
            use
            for use in super().touching(ranges)
            if use.use is Use.COPY_WRITE or not set(use.ranges).isdisjoint(ranges)
        ]


class _Backups(Fences):
    """Those of some fences that are backups."""

    __slots__ = ()

    def __init__(self, fences: Fences) -> None:
        super().__init__()
        self._uses = [use for use in fences.uses() if use.use is Use.COPY_READ]


class _GrowsOverLoads(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        if band.holes >= count:
            return super()._acquire(band, count, span)
        fences, self.ledger.fences = self.ledger.fences, _Backups(self.ledger.fences)
        pages = super()._acquire(band, count, span)
        self.ledger.fences = fences
        return pages


class _WaitsWhereItZeroes(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        if band.layout.zeroed:
            return super()._acquire(band, count, span)
        fences, self.ledger.fences = self.ledger.fences, Fences()
        pages = super()._acquire(band, count, span)
        self.ledger.fences = fences
        return pages


class _BackupIgnoresForwards(Courier):
    def before_backup(self) -> None:
        schedule = self.device.record_event(Stream.SCHEDULE)
        self.device.wait_event(Stream.BACKUP, schedule)


class _BackupIgnoresSchedule(Courier):
    def before_backup(self) -> None:
        self.device.wait_event(Stream.BACKUP, self.device.record_event(Stream.FORWARD))


class _LoadIgnoresSchedule(Courier):
    def before_load(self) -> None:
        pass


class _LaunchesOverLoads(LendingEngine):
    def due_loads(self) -> list[ModeledEvent]:
        return []


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="hand-out-over-a-backup",
        planted="a page freed under a backup is written while the backup still reads it",
        plant=in_clearance(Toucher.HAND_OUT, InFlight.BACKUP),
        ground=Ground.LENDING,
        checks=("ordering",),
        rows=("B41",),
        ablates="CLEARANCE[hand-out, backup]",
        edge="schedule <- backup",
        pair=("backup read", "zero write|move write"),
    ),
    Fault(
        id="hand-out-over-a-load",
        planted="a page freed under a load is written while the load still writes it",
        plant=in_clearance(Toucher.HAND_OUT, InFlight.LOAD),
        ground=Ground.LENDING,
        checks=("ordering",),
        rows=("B35",),
        ablates="CLEARANCE[hand-out, load]",
        edge="schedule <- load",
        pair=("load write", "zero write|move write"),
    ),
    Fault(
        id="move-of-a-page-being-loaded",
        planted="a copy does not wait for the load that still writes its source",
        plant=in_clearance(Toucher.MOVE_SOURCE, InFlight.LOAD),
        ground=Ground.LENDING,
        checks=("ordering",),
        scenario="hybrid",
        ablates="CLEARANCE[move source, load]",
        edge="schedule <- load",
        pair=("load write", "move read"),
    ),
    Fault(
        id="backup-fence-by-page",
        planted="a backup is found by its pages, so a band of other pages grows over its bytes",
        plant=in_fences(_BackupsByPage),
        ground=Ground.LENDING,
        checks=("ordering",),
        scenario="hybrid",
        rows=("B35",),
        ablates="CLEARANCE[growth, backup]",
        edge="schedule <- backup",
        pair=("backup read", "zero write|move write"),
    ),
    Fault(
        id="growth-over-a-load",
        planted="a band that grows looks for loads in the holes it had, not in what it gains",
        plant=in_chain(_GrowsOverLoads),
        ground=Ground.LENDING,
        checks=("ordering",),
        scenario="hybrid",
        rows=("B35",),
        ablates="CLEARANCE[growth, load]",
        edge="schedule <- load",
        pair=("load write", "zero write|move write"),
    ),
    Fault(
        id="unzeroed-page-over-a-backup",
        planted="a hand-out waits for copies only where it zeroes, so a forward writes the others",
        plant=in_chain(_WaitsWhereItZeroes),
        ground=Ground.LENDING,
        checks=("ordering",),
        scenario="hybrid",
        ablates="CLEARANCE[forward, backup]",
        edge="forward <- backup",
        pair=("backup read", "body write"),
    ),
    Fault(
        id="launch-over-a-load",
        planted="a forward is launched without waiting for the loads of its batch",
        plant=in_lending_engine(_LaunchesOverLoads),
        ground=Ground.LENDING,
        checks=("ordering",),
        ablates="CLEARANCE[forward, load]",
        edge="forward <- load",
        pair=("load write", "body"),
    ),
    Fault(
        id="backup-ahead-of-its-writer",
        planted="a backup waits for the schedule stream and not for the forwards that write",
        plant=in_courier(_BackupIgnoresForwards),
        ground=Ground.LENDING,
        checks=("ordering",),
        rows=("B33",),
        ablates="CLEARANCE[backup copy, forward]",
        edge="backup <- forward",
        pair=("body write", "backup read"),
    ),
    Fault(
        id="backup-ahead-of-a-move",
        planted="a backup waits for forwards and not for the moves of the schedule stream",
        plant=in_courier(_BackupIgnoresSchedule),
        ground=Ground.LENDING,
        checks=("ordering",),
        rows=("B09",),
        ablates="CLEARANCE[backup copy, schedule]",
        edge="backup <- schedule",
        pair=("move write", "backup read"),
    ),
    Fault(
        id="load-ahead-of-the-take",
        planted="a load waits for nothing, so it may land before the pages are handed out",
        plant=in_courier(_LoadIgnoresSchedule),
        ground=Ground.LENDING,
        checks=("ordering",),
        ablates="CLEARANCE[load copy, schedule]",
        edge="load <- schedule",
        pair=("zero write|move", "load write"),
    ),
)
