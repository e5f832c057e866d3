"""Faults of the order of copies between device and host: waits lost, uses lost, too little waited.

A copy follows no step, so what keeps its bytes is its use in the ledger and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from harness.faults.fault import Fault
from harness.faults.parts import (
    become,
    in_chain,
    in_clearance,
    in_fences,
    in_host,
    in_users,
)
from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import InFlight, Toucher
from unikv.alloc.fences import CopyUse, Fences, Ranges
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.taken import LoadTaken
from unikv.alloc.use import Use
from unikv.cache.claims import pages_of
from unikv.cache.host_copies import Load
from unikv.cache.host_tier import HostTier
from unikv.device.port import Event, Stream


class _BackupsByPage(Fences):
    """Finds backups by their pages instead of by their bytes."""

    __slots__ = ()

    def touching(self, ranges: Ranges) -> list[CopyUse]:
        return [
            use
            for use in super().touching(ranges)
            if use.use is Use.COPY_WRITE or not set(use.ranges).isdisjoint(ranges)
        ]


@contextmanager
def _without(fences: Fences, kind: Use) -> Iterator[None]:
    """Nobody finds uses of this kind meanwhile."""
    hidden = [use for use in fences._uses if use.use is kind]
    fences._uses = [use for use in fences._uses if use.use is not kind]
    try:
        yield
    finally:
        fences._uses = sorted([*fences._uses, *hidden], key=lambda use: use.number)


class _GrowsOverLoads(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        if band.holes >= count:
            return super()._acquire(band, count, span)
        with _without(self.ledger.fences, Use.COPY_WRITE):
            return super()._acquire(band, count, span)


class _WaitsWhereItZeroes(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        if band.layout.zeroed:
            return super()._acquire(band, count, span)
        with _without(self.ledger.fences, Use.COPY_READ):
            return super()._acquire(band, count, span)


class _SettlesUnwaited(ForwardSteps):
    __slots__ = ()

    def wait(self, number: int) -> bool:
        if number <= self.retired_through:
            return False
        self.settled_through = number
        return True


class _LoadSettlesUnwaited(ChainAllocator):
    def take_for_load(self, counts: Sequence[int]) -> LoadTaken:
        become(self.steps, _SettlesUnwaited)
        try:
            return super().take_for_load(counts)
        finally:
            become(self.steps, ForwardSteps)


class _LoadIgnoresBackups(ChainAllocator):
    def take_for_load(self, counts: Sequence[int]) -> LoadTaken:
        with _without(self.ledger.fences, Use.COPY_READ):
            return super().take_for_load(counts)


class _LoadTakesStuckPages(ChainAllocator):
    def take_for_load(self, counts: Sequence[int]) -> LoadTaken:
        for band in self.bands if self.fits_load(counts) else ():
            stuck = self.ledger.held.stuck(band.index)
            if stuck:
                band.release_pending(sorted(stuck))
                self.ledger.held._stuck[band.index] = set()
                self.reclaim.retreat(band)
        return super().take_for_load(counts)


class _ForgetsBackups(AsyncUsers):
    __slots__ = ()

    def begin_backup(self, ids: Sequence[Sequence[int]], event: Event) -> int:
        number = super().begin_backup(ids, event)
        self._ledger.fences.end(number)
        return number


class _ForgetsLoads(AsyncUsers):
    __slots__ = ()

    def begin_load(self, ids: Sequence[Sequence[int]], event: Event) -> int:
        number = super().begin_load(ids, event)
        self._ledger.fences.end(number)
        return number


class _NeverOver(Fences):
    __slots__ = ()

    def end(self, number: int) -> None:
        pass


class _OneGroupAhead(HostTier):
    def order_forward(self, stream: Stream, names: Sequence[str], layer_group: int) -> None:
        super().order_forward(stream, names, max(0, layer_group - 1))


class _OverOnceAForwardWaited(HostTier):
    def order_forward(self, stream: Stream, names: Sequence[str], layer_group: int) -> None:
        super().order_forward(stream, names, layer_group)
        if layer_group == self._groups - 1:
            for name in names:
                self._chain.ledger.fences.end(self._submitted_load(name).number)


class _ClearsBehindALoad(HostTier):
    def submit_load(self, name: str) -> tuple[Event, ...]:
        events = super().submit_load(name)
        load = self.copies[name]
        assert isinstance(load, Load)
        pages = pages_of(self._chain.bands, load.claim)[-1]
        self._device.zero_pages(Stream.SCHEDULE, len(self._chain.bands) - 1, pages[-1:])
        return events


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="hand-out-over-a-backup",
        planted="a page freed under a backup is written while the backup still reads it",
        plant=in_clearance(Toucher.HAND_OUT, InFlight.BACKUP),
        checks=("ordering",),
        scenario="host_tier",
        ablates="CLEARANCE[hand-out, backup]",
        edge="schedule <- backup",
        pair=("backup read", "zero write|move write"),
    ),
    Fault(
        id="hand-out-over-a-load",
        planted="a page freed under a load is written while the load still writes it",
        plant=in_clearance(Toucher.HAND_OUT, InFlight.LOAD),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B35",),
        ablates="CLEARANCE[hand-out, load]",
        edge="schedule <- load",
        pair=("load write", "zero write|move write"),
    ),
    Fault(
        id="move-of-a-page-being-loaded",
        planted="a copy does not wait for the load that still writes its source",
        plant=in_clearance(Toucher.MOVE_SOURCE, InFlight.LOAD),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B35",),
        ablates="CLEARANCE[move source, load]",
        edge="schedule <- load",
        pair=("load write", "move read"),
    ),
    Fault(
        id="backup-fence-by-page",
        planted="a backup is found by its pages, so a band of other pages grows over its bytes",
        plant=in_fences(_BackupsByPage),
        checks=("ordering",),
        scenario="everything",
        rows=("B35",),
        ablates="CLEARANCE[growth, backup]",
        edge="schedule <- backup|load <- backup|forward <- backup",
        pair=("backup read", "zero write|move write|load write|body write"),
    ),
    Fault(
        id="growth-over-a-load",
        planted="a band that grows looks for loads in the holes it had, not in what it gains",
        plant=in_chain(_GrowsOverLoads),
        checks=("ordering",),
        scenario="everything",
        ablates="CLEARANCE[growth, load]",
        edge="schedule <- load",
        pair=("load write", "zero write|move write"),
    ),
    Fault(
        id="unzeroed-page-over-a-backup",
        planted="a hand-out waits for backups only where it zeroes, so a forward writes the others",
        plant=in_chain(_WaitsWhereItZeroes),
        checks=("ordering",),
        scenario="everything",
        ablates="CLEARANCE[forward, backup]",
        edge="forward <- backup|load <- backup|schedule <- backup",
        pair=("backup read", "body write|load write|move write"),
    ),
    Fault(
        id="launch-over-a-load",
        planted="a forward is launched without waiting for the loads of its batch",
        plant=in_clearance(Toucher.FORWARD, InFlight.LOAD),
        checks=("ordering",),
        scenario="host_tier",
        ablates="CLEARANCE[forward, load]",
        edge="forward <- load|schedule <- load",
        pair=("load write", "body"),
    ),
    Fault(
        id="launch-one-layer-group-ahead",
        planted="the layers of a forward wait for the layer group before their own",
        plant=in_host(_OneGroupAhead),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B45",),
        edge="forward <- load|schedule <- load",
        pair=("load write", "body"),
    ),
    Fault(
        id="load-over-once-a-forward-waited",
        planted="a load counts as over once some forward has waited for it",
        plant=in_host(_OverOnceAForwardWaited),
        checks=("ledger", "ordering"),
        scenario="host_tier",
        edge="schedule <- load",
        pair=("load write", "zero write|move"),
        ahead=("ledger",),
    ),
    Fault(
        id="backup-ahead-of-its-writer",
        planted="a backup waits for the schedule stream and not for the forwards that write",
        plant=in_clearance(Toucher.BACKUP_COPY, InFlight.FORWARD),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B33",),
        ablates="CLEARANCE[backup copy, forward]",
        edge="backup <- forward",
        pair=("body write", "backup read"),
    ),
    Fault(
        id="backup-ahead-of-a-move",
        planted="a backup waits for forwards and not for the moves of the schedule stream",
        plant=in_clearance(Toucher.BACKUP_COPY, InFlight.SCHEDULE),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B09",),
        ablates="CLEARANCE[backup copy, schedule]",
        # A load that S has waited is over, and then only S has to be waited for.
        edge="backup <- schedule|backup <- load",
        pair=("move write|load write", "backup read"),
    ),
    Fault(
        id="backup-ahead-of-a-load",
        planted="a backup does not wait for the load that still fills its pages",
        plant=in_clearance(Toucher.BACKUP_COPY, InFlight.LOAD),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B35",),
        ablates="CLEARANCE[backup copy, load]",
        edge="backup <- load",
        pair=("load write", "backup read"),
    ),
    Fault(
        id="load-ahead-of-the-take",
        planted="a load waits for nothing, so it may land before the pages are handed out",
        plant=in_clearance(Toucher.LOAD_COPY, InFlight.SCHEDULE),
        checks=("ordering",),
        scenario="host_tier",
        ablates="CLEARANCE[load copy, schedule]",
        edge="load <- schedule|load <- forward|load <- backup",
        pair=("zero write|move|body|backup read", "load write"),
    ),
    Fault(
        id="load-into-pages-of-a-running-step",
        planted="a load is given pages of steps that nobody waits for",
        plant=in_chain(_LoadSettlesUnwaited),
        checks=("ledger", "ordering"),
        scenario="host_tier",
        ablates="CLEARANCE[load copy, forward]",
        edge="load <- forward|schedule <- forward",
        pair=("body", "load write|zero write|move"),
        ahead=("ledger",),
    ),
    Fault(
        id="load-into-pages-of-a-backup",
        planted="a load is given pages that a backup still reads",
        plant=in_chain(_LoadIgnoresBackups),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B35",),
        ablates="CLEARANCE[load copy, backup]",
        edge="load <- backup|schedule <- backup",
        pair=("backup read", "load write|move write"),
    ),
    Fault(
        id="load-into-pages-of-a-transfer",
        planted="a load is given pages that were freed under a transfer",
        plant=in_chain(_LoadTakesStuckPages),
        checks=("ownership", "ledger", "ordering"),
        scenario="everything",
        ablates="CLEARANCE[load copy, network]",
        edge="<- peer",
        pair=("send read|receive write", "load write|move|zero write|body write"),
        ahead=("ownership", "ledger"),
    ),
    Fault(
        id="backup-in-no-ledger",
        planted="a submitted backup is in no ledger, so pages freed under it are written at once",
        plant=in_users(_ForgetsBackups),
        checks=("ledger", "ordering"),
        scenario="host_tier",
        rows=("B41",),
        edge="<- backup",
        pair=("backup read", "zero write|move write|load write"),
        ahead=("ledger",),
    ),
    Fault(
        id="load-in-no-ledger",
        planted="a submitted load is in no ledger, so its targets are handed out under it",
        plant=in_users(_ForgetsLoads),
        checks=("ledger", "ordering"),
        scenario="host_tier",
        rows=("B39",),
        edge="<- load",
        pair=("load write", "zero write|move|backup read"),
        ahead=("ledger",),
    ),
    Fault(
        id="copy-never-over",
        planted="a copy stays in the ledger when it was waited for or acknowledged",
        plant=in_fences(_NeverOver),
        checks=("ledger",),
        scenario="host_tier",
    ),
    Fault(
        id="cleared-behind-a-load",
        planted="a page is cleared once its load is queued",
        plant=in_host(_ClearsBehindALoad),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B39",),
        edge="schedule <- load",
        pair=("load write", "zero write"),
    ),
)
