"""Faults of page states: pages doubled, lost, miscounted, or claimed where nobody may claim."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault
from harness.faults.maps import BindsUnchecked
from harness.faults.parts import become, become_band, chains, in_bands, in_chain, in_reclaim
from harness.unikv_subject import UnikvSubject
from harness.world import World
from unikv.alloc.axis import Axis
from unikv.alloc.band import FIXED, HOLE, LIVE, PENDING, UNCLAIMED, Band, EndBand
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.float_band import FloatBand
from unikv.alloc.reclaim import Reclaim
from unikv.memory.arena import Arena


class _HoleStays(Band):
    __slots__ = ()

    def take_holes(self, count: int) -> list[int]:
        taken = super().take_holes(count)
        if taken:
            # Taken, and free at the same time.
            self._mark(taken[:1], LIVE, HOLE)
        return taken


class _HoleStaysEnd(_HoleStays, EndBand):
    __slots__ = ()


class _HoleStaysFloat(_HoleStays, FloatBand):
    __slots__ = ()


class _TakesALivePage(Band):
    __slots__ = ()

    def take_holes(self, count: int) -> list[int]:
        taken = super().take_holes(count)
        owned = [page for page, unit in enumerate(self.ids.inverse) if unit]
        if taken and owned:
            self.release_live(taken[-1:])
            taken[-1] = owned[0]
        return taken


class _TakesALivePageEnd(_TakesALivePage, EndBand):
    __slots__ = ()


class _TakesALivePageFloat(_TakesALivePage, FloatBand):
    __slots__ = ()


class _CountsDrift(Band):
    __slots__ = ()

    def release_pending(self, pages: Sequence[int]) -> None:
        super().release_pending(pages)
        if pages:
            self.holes += 1


class _CountsDriftEnd(_CountsDrift, EndBand):
    __slots__ = ()


class _CountsDriftFloat(_CountsDrift, FloatBand):
    __slots__ = ()


class _FixesAHole(Reclaim):
    __slots__ = ()

    def process(self, number: int) -> None:
        super().process(number)
        for band in self._bands:
            depth = band.states.find(HOLE, band.low, band.high)
            if depth >= 0:
                band._mark([band.axis.page_at(depth)], HOLE, FIXED)
                band.holes -= 1
                band.fixed += 1


class _FrontierStaysEnd(EndBand):
    __slots__ = ()

    def retreat(self) -> int:
        return 0


class _FrontierStaysFloat(FloatBand):
    __slots__ = ()

    def retreat(self) -> int:
        return 0


class _EmptyFloatStays(FloatBand):
    __slots__ = ()

    def retreat(self) -> int:
        return super().retreat() if self.live else 0


class _RetreatsTooFar(EndBand):
    __slots__ = ()

    def retreat(self) -> int:
        left = super().retreat()
        if left and self.states[self.high - 1] == LIVE and self.high:
            self.high -= 1
            self.states[self.high] = UNCLAIMED
            self.live -= 1
        return left


class _RetreatsOverPending(EndBand):
    __slots__ = ()

    def retreat(self) -> int:
        left = super().retreat()
        while self.high and self.states[self.high - 1] == PENDING:
            self.high -= 1
            self.states[self.high] = UNCLAIMED
            self.pending -= 1
            left += 1
        return left

    def release_pending(self, pages: Sequence[int]) -> None:
        depth_of, states = self.axis.depth_of, self.states
        super().release_pending([page for page in pages if states[depth_of(page)] == PENDING])


class _GrowsOverPending(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        low, end = band.span()
        if band is not self.bands[0] or band is self.owner or low == end or band.holes >= count:
            return super()._acquire(band, count, span)
        # Cheaper than settling, it seems: the neighbour is not using these bytes any more.
        above = self.bands[band.index + 1]
        first, last = above.span()
        states = {above.axis.page_at(depth): state for depth, state in enumerate(above.states)}
        edge = first
        while first < last and states[first] == PENDING:
            first += 1
        reach = first * above.layout.page_bytes // band.layout.page_bytes
        if first == edge or reach < end + count:
            return super()._acquire(band, count, span)
        band.claim(low, reach)
        pages = list(range(reach - count, reach))
        band.occupy_holes(pages)
        return pages


class _KeepsTheLastPage(Reclaim):
    __slots__ = ()

    def free(self, band: Band, pages: Sequence[int]) -> None:
        super().free(band, pages[:-1] or pages)


class _FreesTheSink(ChainAllocator):
    def free(self, ids: Sequence[int]) -> None:
        retired = {
            band.index: sum(not band.ids.forward[unit] for unit in ids) for band in self.token_bands
        }
        super().free(ids)
        for band in self.token_bands:
            # One hole more for each row that was retired before: the page they name is the sink.
            band.holes += retired[band.index]


def _start_in_the_sink(world: World) -> None:
    for subject, chain in zip(world.subjects, chains(world), strict=True):
        assert isinstance(subject, UnikvSubject)
        low = chain.bands[0]
        # The report follows: it would put the pages where the low end started before.
        subject._bands[0] = (low, b"")
        end = low.axis.page_at(len(low.states))
        low.axis = Axis(0, 1)
        low.states = bytearray(end)
        chain.relief._arena = Arena(0, chain.layout.total_bytes)
        chain.relief._sizes_and_walls[0] = (low.layout.page_bytes, 0)
        low.revision += 1


def _take_a_live_page(world: World) -> None:
    for chain in chains(world):
        for band in chain.bands:
            become_band(band, _TakesALivePageEnd, _TakesALivePageFloat)
            become(band.ids, BindsUnchecked)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="hole-stays-in-the-span",
        planted="the first page of a take stays in the free list",
        plant=in_bands(_HoleStaysEnd, _HoleStaysFloat),
        checks=("conservation", "ownership"),
        rows=("B73",),
    ),
    Fault(
        id="live-page-handed-out",
        planted="a take hands out a page that somebody owns, and states, counts and maps agree"
        " with it",
        plant=_take_a_live_page,
        checks=("ownership",),
        rows=("B73", "B77"),
        together="ownership",
    ),
    Fault(
        id="origin-in-the-sink",
        planted="the low end starts at byte 0, inside the padding sink",
        plant=_start_in_the_sink,
        checks=("ownership", "conservation"),
        rows=("B135",),
    ),
    Fault(
        id="counts-drift",
        planted="every batch that returns is counted as one hole more than it has",
        plant=in_bands(_CountsDriftEnd, _CountsDriftFloat),
        checks=("conservation",),
    ),
    Fault(
        id="sink-freed-as-a-page",
        planted="freeing ids counts a hole for each window row that was retired before",
        plant=in_chain(_FreesTheSink),
        checks=("conservation",),
        rows=("B71",),
    ),
    Fault(
        id="freed-page-kept-live",
        planted="the last page of a free is unbound and stays live",
        plant=in_reclaim(_KeepsTheLastPage),
        checks=("conservation",),
        rows=("B77",),
    ),
    Fault(
        id="freed-page-stays-fixed",
        planted="processing a step leaves one hole fixed; states, counts and report agree on it",
        plant=in_reclaim(_FixesAHole),
        checks=("capacity", "idle", "ledger"),
        rows=("B91",),
        together="idle",
    ),
    Fault(
        id="frontier-never-retreats",
        planted="holes at a moving edge stay in the span",
        plant=in_bands(_FrontierStaysEnd, _FrontierStaysFloat),
        checks=("conservation",),
    ),
    Fault(
        id="empty-float-stays",
        planted="an empty float keeps its span",
        plant=in_bands(EndBand, _EmptyFloatStays),
        checks=("conservation", "idle"),
        scenario="hybrid",
    ),
    Fault(
        id="retreat-over-a-live-page",
        planted="a retreating frontier gives up a live page too, in state, count and report alike",
        plant=in_bands(_RetreatsTooFar, FloatBand),
        checks=("conservation",),
        together="conservation",
    ),
    Fault(
        id="retreat-over-pending",
        planted="a retreating frontier gives up pages that a running forward still reads",
        plant=in_bands(_RetreatsOverPending, FloatBand),
        checks=("ledger", "ordering"),
        ablates="CLEARANCE[growth, forward]",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
    Fault(
        id="growth-over-pending",
        planted="a take that is short grows over the pending pages of its neighbour instead of"
        " settling its own",
        plant=in_chain(_GrowsOverPending),
        checks=("ordering", "assertion", "conservation", "ownership"),
        ablates="CLEARANCE[growth, forward]",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
    ),
)
