"""Faults around pages under transfers: offered, moved or planned with while a peer may touch them.

Nothing of ours runs on the clock of a peer, so what is missing is a wait of the host, or a page
that should not have been offered.  Who says that a transfer is over is not the matter here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.faults.fault import Fault
from harness.faults.parts import (
    in_clearance,
    in_held,
    in_mover,
    in_reclaim,
    in_relief,
)
from unikv.alloc.band import Band
from unikv.alloc.clearance import InFlight, Toucher
from unikv.alloc.compaction import PageMover, plan_compaction
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.relief import Relief
from unikv.alloc.signals import TRANSFERS, HeldPages
from unikv.alloc.snapshot import ChainView
from unikv.alloc.use import Use


class _FlushesHeldPages(PageMover):
    __slots__ = ()

    def compact(self, band: Band, limit: int) -> int:
        if self._ledger.has_unknown_write(band.index):
            return 0
        moves = plan_compaction(band, limit)
        if moves.sources:
            self.copy(band, moves)
            band.occupy_holes(moves.targets)
            self._reclaim.vacate(band, moves.sources)
        return len(moves.sources)


class _HoldsStayBehind(HeldPages):
    __slots__ = ()

    def moved(self, band: int, sources: Sequence[int], targets: Sequence[int]) -> None:
        pass


class _ForgetsOtherTransfers(HeldPages):
    __slots__ = ()

    def end(self, name: str) -> dict[int, list[int]]:
        under = {hold.band: hold.pages for hold in self._holds if hold.name == name}
        freed = super().end(name)
        for band, pages in under.items():
            stuck = self.stuck(band) & pages
            if stuck:
                self._stuck[band] -= stuck
                freed[band] = sorted({*freed.get(band, ()), *stuck})
        return freed


class _UnzeroedPagesReturnAtOnce(Reclaim):
    __slots__ = ()

    def _stick(self, band: Band, pages: Sequence[int]) -> list[int]:
        return super()._stick(band, pages) if band.layout.zeroed else list(pages)


class _ReturnsUnderAStep(Reclaim):
    __slots__ = ()

    def _return_stuck(self, freed: Mapping[int, list[int]]) -> None:
        for index, pages in freed.items():
            band = self._bands[index]
            band.release_pending(pages)
            self.retreat(band)
        self._end_uses()


class _ForgetsSendsOfFreedPages(Reclaim):
    __slots__ = ()

    def _stick(self, band: Band, pages: Sequence[int]) -> list[int]:
        under = self._ledger.held.pages(band.index, TRANSFERS)
        sent = self._ledger.held.pages(band.index, {Use.NETWORK_SEND})
        loose = [page for page in pages if page in sent or page not in under]
        super()._stick(band, [page for page in pages if page not in loose])
        return loose


class _PlansWithoutStuckPages(Relief):
    __slots__ = ()

    def _snapshot(self, pinned: Sequence[frozenset[Use]]) -> ChainView:
        view = super()._snapshot(pinned)
        used = [band.live + band.fixed for band in self._bands]
        bands = [part._replace(used=count) for part, count in zip(view.bands, used, strict=True)]
        return view._replace(bands=tuple(bands))


class _FloatsIgnoreHolds(Relief):
    __slots__ = ()

    def snapshot(self, pinned: Sequence[frozenset[Use]] = ()) -> ChainView:
        ends = [0, len(self._bands) - 1]
        return super().snapshot(
            [uses if index in ends else frozenset() for index, uses in enumerate(pinned)]
        )


class _KeepsPinsByCounts(Relief):
    __slots__ = ()

    def snapshot(self, pinned: Sequence[frozenset[Use]] = ()) -> ChainView:
        # Beginning or ending a transfer changes no count, and neither does another question.
        revisions = [band.revision for band in self._bands]
        if revisions != self._revisions:
            self._revisions = revisions
            self._kept = self._snapshot(pinned or [frozenset() for _ in self._bands])
        return self._kept


class _EndsTransfersFirst(Relief):
    __slots__ = ()

    def _end_transfers(self, demand: Sequence[int]) -> None:
        names = self._ledger.held.transfers(range(len(self._bands)))
        for name in names:
            self._reclaim.release_early(name)
        self._waiter.wait(names)


class _SettlesBeforeTheHostWaits(Relief):
    __slots__ = ()

    def _end_transfers(self, demand: Sequence[int]) -> None:
        self._reclaim.settle_all()
        super()._end_transfers(demand)


class _EndsForGood(HeldPages):
    __slots__ = ()

    def end_early(self, name: str) -> dict[int, list[int]]:
        return self.end(name)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="page-offered-under-a-transfer",
        planted="a page freed under a transfer is a hole at once",
        plant=in_clearance(Toucher.HAND_OUT, InFlight.NETWORK),
        checks=("ledger", "ownership", "ordering"),
        scenario="peers",
        rows=("B55",),
        ablates="CLEARANCE[hand-out, network]",
        edge="schedule <- peer",
        pair=("send read|receive write", "zero write|move"),
        ahead=("ledger", "ownership"),
    ),
    Fault(
        id="growth-over-a-transfer",
        planted="a frontier gives up a page freed under a transfer",
        plant=in_clearance(Toucher.GROWTH, InFlight.NETWORK),
        checks=("ledger", "ownership", "ordering"),
        scenario="everything",
        ablates="CLEARANCE[growth, network]",
        edge="<- peer",
        pair=("send read|receive write", "zero write|move|load write|body write"),
        ahead=("ledger", "ownership"),
    ),
    Fault(
        id="page-offered-under-a-send",
        planted="a page freed under a send is a hole at once, as if only writers had to be feared",
        plant=in_reclaim(_ForgetsSendsOfFreedPages),
        checks=("ledger", "ownership", "ordering"),
        scenario="peers",
        rows=("B55",),
        edge="schedule <- peer",
        pair=("send read", "zero write|move"),
        ahead=("ledger", "ownership"),
    ),
    Fault(
        id="slot-offered-under-a-transfer",
        planted="a page that is not zeroed returns at once, though a transfer still touches it",
        plant=in_reclaim(_UnzeroedPagesReturnAtOnce),
        checks=("ledger", "ownership", "ordering"),
        scenario="everything",
        rows=("B57",),
        ablates="CLEARANCE[forward, network]",
        edge="<- peer",
        pair=("receive write", "body write|move write|load write|receive write|zero write"),
        ahead=("ledger", "ownership"),
    ),
    Fault(
        id="relief-moves-a-transfer",
        planted="a relief that nothing else can serve does not wait for the transfers it moves",
        plant=in_clearance(Toucher.MOVE_SOURCE, InFlight.NETWORK),
        checks=("ownership", "ledger", "ordering"),
        scenario="peers",
        ablates="CLEARANCE[move source, network]",
        edge="<- peer",
        pair=("send read|receive write", "zero write|move"),
        ahead=("ownership", "ledger"),
    ),
    Fault(
        id="flush-moves-held-pages",
        planted="an opportunistic flush moves pages under holds and transfers",
        plant=in_mover(_FlushesHeldPages),
        checks=("ownership", "assertion", "ordering"),
        scenario="peers",
        ablates="edge page held still (flush)",
        edge="schedule <- peer",
        pair=("receive write|send read", "move"),
        ahead=("ownership", "assertion"),
    ),
    Fault(
        id="float-moves-without-asking",
        planted="a relief relocates a float without asking which of its pages must stay",
        plant=in_relief(_FloatsIgnoreHolds),
        checks=("ownership", "assertion", "ordering"),
        scenario="everything",
        rows=("B05",),
        edge="schedule <- peer",
        pair=("receive write|send read", "move|zero write"),
        ahead=("ownership", "assertion"),
    ),
    Fault(
        id="pins-kept-by-counts",
        planted="a snapshot is kept while counts and spans stay the same, whatever is pinned",
        plant=in_relief(_KeepsPinsByCounts),
        checks=("capacity", "assertion", "ownership", "ordering"),
        scenario="everything",
        rows=("B07",),
        edge="<- peer",
        pair=("receive write|send read", "move|zero write"),
        ahead=("capacity", "assertion", "ownership"),
    ),
    Fault(
        id="stuck-pages-planned-as-free",
        planted="a plan that leaves transfers alone counts pages freed under them as free",
        plant=in_relief(_PlansWithoutStuckPages),
        checks=("assertion",),
        scenario="peers",
    ),
    Fault(
        id="hold-forgets-a-move",
        planted="a receive hold that a relief has moved keeps its old pages",
        plant=in_held(_HoldsStayBehind),
        checks=("ledger", "assertion"),
        scenario="everything",
        rows=("B03",),
    ),
    Fault(
        id="release-forgets-other-transfers",
        planted="a page freed under two transfers returns when the first of them is over",
        plant=in_held(_ForgetsOtherTransfers),
        checks=("ledger", "ownership", "ordering"),
        scenario="peers",
        rows=("B55",),
        edge="schedule <- peer",
        pair=("send read", "zero write|move"),
        ahead=("ledger", "ownership"),
    ),
    Fault(
        id="release-under-a-step",
        planted="a page that a release gives back is a hole, though a step in flight may touch it",
        plant=in_reclaim(_ReturnsUnderAStep),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="relief-ends-a-transfer-for-good",
        planted="a relief forgets that the release of a transfer that it waited for is to come",
        plant=in_held(_EndsForGood),
        checks=("assertion",),
        scenario="peers",
    ),
    Fault(
        id="relief-settles-before-it-waits",
        planted="a relief settles first, so that the host then waits for transfers behind a step",
        plant=in_relief(_SettlesBeforeTheHostWaits),
        checks=("host_reads", "effects"),
        scenario="peers",
    ),
    Fault(
        id="wait-in-vain-ends-transfers",
        planted="a relief ends the transfers first and then waits for them, perhaps in vain",
        plant=in_relief(_EndsTransfersFirst),
        checks=("ledger", "effects", "assertion"),
        scenario="peers",
    ),
)
