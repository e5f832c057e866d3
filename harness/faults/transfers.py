"""Faults around receive holds and transfers: pages that leave, move or return too early.

They are hunted in a lending world.  Nothing of ours runs on the clock of a transfer engine, so what
is missing is a wait of the host, or a page that should not have been offered.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.engine import Step
from harness.faults.fault import Fault, Ground
from harness.faults.lending import Courier, Ids
from harness.faults.parts import (
    in_clearance,
    in_courier,
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
from unikv.alloc.signals import HeldPages
from unikv.alloc.snapshot import ChainView
from unikv.alloc.use import Use


class _IdsLeaveAtOnce(Courier):
    def before_ids_leave(self) -> None:
        pass


class _SendsBehindNoMove(Courier):
    def before_send(self) -> None:
        pass


class _SendsWhatIsSettled(Courier):
    def may_send(self, steps: Sequence[Step], ids: Ids) -> bool:
        return True


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


class _UnzeroedPagesReturnAtOnce(Reclaim):
    __slots__ = ()

    def _stick(self, band: Band, pages: Sequence[int]) -> list[int]:
        return super()._stick(band, pages) if band.layout.zeroed else list(pages)


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


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="page-offered-under-a-transfer",
        planted="a page freed under a transfer is a hole at once",
        plant=in_clearance(Toucher.HAND_OUT, InFlight.NETWORK),
        ground=Ground.LENDING,
        checks=("ordering",),
        rows=("B55",),
        ablates="CLEARANCE[hand-out, network]",
        edge="schedule <- read_back",
        pair=("send read|receive write", "zero write|move"),
    ),
    Fault(
        id="growth-over-a-transfer",
        planted="a frontier gives up a page freed under a transfer",
        plant=in_clearance(Toucher.GROWTH, InFlight.NETWORK),
        ground=Ground.LENDING,
        checks=("ordering",),
        scenario="hybrid",
        ablates="CLEARANCE[growth, network]",
        edge="schedule <- read_back",
        pair=("send read|receive write", "zero write|move"),
    ),
    Fault(
        id="slot-offered-under-a-transfer",
        planted="a page that is not zeroed returns at once, though a transfer still reads it",
        plant=in_reclaim(_UnzeroedPagesReturnAtOnce),
        ground=Ground.LENDING,
        checks=("ordering",),
        scenario="hybrid",
        rows=("B57",),
        ablates="CLEARANCE[forward, network]",
        edge="forward <- read_back|schedule <- read_back",
        pair=("send read", "body write|move write"),
    ),
    Fault(
        id="relief-moves-a-transfer",
        planted="a relief that nothing else can serve does not wait for the transfers it moves",
        plant=in_clearance(Toucher.MOVE_SOURCE, InFlight.NETWORK),
        ground=Ground.LENDING,
        checks=("ordering",),
        ablates="CLEARANCE[move source, network]",
        edge="schedule <- read_back",
        pair=("send read|receive write", "zero write|move"),
    ),
    Fault(
        id="flush-moves-held-pages",
        planted="an opportunistic flush moves pages under holds and transfers",
        plant=in_mover(_FlushesHeldPages),
        ground=Ground.LENDING,
        checks=("ordering", "assertion"),
        ablates="edge page held still (flush)",
        edge="schedule <- read_back",
        pair=("receive write", "move read"),
    ),
    Fault(
        id="float-moves-without-asking",
        planted="a relief relocates a float without asking which of its pages must stay",
        plant=in_relief(_FloatsIgnoreHolds),
        ground=Ground.LENDING,
        checks=("ordering", "assertion"),
        scenario="hybrid",
        rows=("B05",),
        edge="schedule <- read_back",
        pair=("receive write", "move read"),
    ),
    Fault(
        id="pins-kept-by-counts",
        planted="a snapshot is kept while counts and spans stay the same, whatever is pinned",
        plant=in_relief(_KeepsPinsByCounts),
        ground=Ground.LENDING,
        checks=("capacity", "assertion", "ordering"),
        scenario="hybrid",
        rows=("B07",),
        edge="schedule <- read_back",
        pair=("receive write|send read", "move|zero write"),
        ahead=("capacity", "assertion"),
    ),
    Fault(
        id="stuck-pages-planned-as-free",
        planted="a plan that leaves transfers alone counts pages freed under them as free",
        plant=in_relief(_PlansWithoutStuckPages),
        ground=Ground.LENDING,
        checks=("assertion",),
    ),
    Fault(
        id="hold-forgets-a-move",
        planted="a receive hold that a relief has moved is published with its old pages",
        plant=in_held(_HoldsStayBehind),
        ground=Ground.LENDING,
        checks=("ordering",),
        scenario="hybrid",
        rows=("B03",),
        edge="read_back",
        pair=("receive write|body", "zero write|move|receive write|body"),
    ),
    Fault(
        id="ids-leave-before-the-take",
        planted="ids are published before the host has waited for the take of their pages",
        plant=in_courier(_IdsLeaveAtOnce),
        ground=Ground.LENDING,
        checks=("ordering",),
        ablates="edge host <- S (publication)",
        edge="read_back <- schedule|read_back <- forward",
        pair=("zero write|move|body", "receive write"),
    ),
    Fault(
        id="send-behind-no-move",
        planted="a send starts before the host has waited for the last move of its pages",
        plant=in_courier(_SendsBehindNoMove),
        ground=Ground.LENDING,
        checks=("ordering",),
        ablates="edge host <- last move (send)",
        edge="read_back <- schedule",
        pair=("move write", "send read"),
    ),
    Fault(
        id="send-before-its-writer-ended",
        planted="a send starts while a step that writes its pages is not processed",
        plant=in_courier(_SendsWhatIsSettled),
        ground=Ground.LENDING,
        checks=("ordering",),
        ablates="edge host <- writing steps (send)",
        edge="read_back <- forward",
        pair=("body write", "send read"),
    ),
)
