"""Faults of capacity: a yes that cannot be taken, an untrue no, a plan that is not kept."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault
from harness.faults.parts import in_chain, in_host_pools, in_relief
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.float_band import FloatBand
from unikv.alloc.pricing import Spans, Step, plan
from unikv.alloc.relief import Relief
from unikv.alloc.snapshot import BandView, ChainView
from unikv.alloc.use import Use
from unikv.errors import Shortage
from unikv.memory.host import HostPool


class _PendingIsUsed(Relief):
    __slots__ = ()

    def _snapshot(self, pinned: Sequence[frozenset[Use]]) -> ChainView:
        view = super()._snapshot(pinned)
        return view._replace(bands=tuple(map(self._with_pending, view.bands, self._bands)))

    @staticmethod
    def _with_pending(view: BandView, band: Band) -> BandView:
        return view._replace(used=view.used + band.pending)


class _CountsBytes(Relief):
    __slots__ = ()

    def fits(self, demand: Sequence[int]) -> bool:
        view = self.snapshot()
        wanted = sum(
            (band.used + pages) * band.page_bytes
            for band, pages in zip(view.bands, demand, strict=True)
        )
        return view.sink_bytes + wanted <= view.total_bytes


class _PromisesInPlaceOnly(Relief):
    __slots__ = ()

    def fits(self, demand: Sequence[int]) -> bool:
        return self._holes_cover(demand) or plan(self.snapshot(), demand, Step.NO_MOVE) is not None


class _NeverRearranges(_PromisesInPlaceOnly):
    __slots__ = ()

    def lay_out(self, demand: Sequence[int]) -> Spans | None:
        return super().lay_out(demand) if self.fits(demand) else None


class _StateStaysInPlace(_PromisesInPlaceOnly):
    """Serves a state slot where the state band has room, and moves no token page for one."""

    __slots__ = ()

    def fits(self, demand: Sequence[int]) -> bool:
        if self._is_state(demand):
            return super().fits(demand)
        return Relief.fits(self, demand)

    def lay_out(self, demand: Sequence[int]) -> Spans | None:
        return super().lay_out(demand) if self.fits(demand) else None

    def _is_state(self, demand: Sequence[int]) -> bool:
        state = self._bands[0]
        return state is not self._bands[-1] and state.layout.mints and demand[0] > state.holes


class _ReservesOneMore(Relief):
    __slots__ = ()

    def lay_out(self, demand: Sequence[int]) -> Spans | None:
        return super().lay_out([pages + bool(pages) for pages in demand])


class _KeepsOldLayouts(Relief):
    __slots__ = ()

    def snapshot(self, pinned: Sequence[frozenset[Use]] = ()) -> ChainView:
        used = [band.live + band.fixed for band in self._bands]
        if used != [band.used for band in self._kept.bands]:
            self._kept = self._snapshot(pinned or [frozenset()] * len(self._bands))
        return self._kept


class _KeepsTheFirstAnswer(ChainAllocator):
    known: tuple[int, bool] = (-1, False)

    def fits(self, pages: int, slots: int) -> bool:
        # Keyed by what was taken: a free in between changes the answer and not the key.
        if self.known[0] != self.counters.taken_pages:
            self.known = self.counters.taken_pages, super().fits(pages, slots)
        return self.known[1]


class _PromisesBytesOnly(ChainAllocator):
    def fits(self, pages: int, slots: int) -> bool:
        return self.relief.fits(self._demand(pages, slots))


class _CountsHeldIds(ChainAllocator):
    def _short_ids(self, demand: Sequence[int]) -> Shortage | None:
        short = super()._short_ids(demand)
        if short is None:
            return None
        band = next(band.layout for band in self.bands if band.layout.name == short.band)
        return Shortage("ids", short.band, short.asked, band.id_count - short.free)


class _CountsPendingAsFree(ChainAllocator):
    def _lay_out_and_acquire(self, demand: Sequence[int]) -> list[list[int]]:
        try:
            return super()._lay_out_and_acquire(demand)
        except Shortage as short:
            if short.kind == "bytes":
                pending = sum(band.pending for band in self.bands)
                raise Shortage("bytes", short.band, short.asked, short.free + pending) from None
            raise


class _AsksForWhatIsMissing(HostPool):
    """A refusal names the slots that are missing in place of those that were asked for."""

    __slots__ = ()

    def take(self, count: int) -> list[int]:
        free = self.free_count
        if count > free:
            raise Shortage("host slots", self.name, count - free, free)
        return super().take(count)


class _GrowsUpward(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        low, high = band.span()
        if isinstance(band, FloatBand) and low < high:
            span = low, max(high, low + span[1] - span[0])
        return super()._acquire(band, count, span)


class _GrowsByWhatThePlanAdded(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        low, high = band.span()
        if band.holes < count and band.pending and low < high:
            self.reclaim.settle(band, count - band.holes)
            self.reclaim.retreat(band)
            if band.low < band.high:
                now = band.span()
                span = now[0] - (low - span[0]), now[1] + (span[1] - high)
        return super()._acquire(band, count, span)


class _EmptyFloatStartsInTheMiddle(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        if isinstance(band, FloatBand) and band.low == band.high:
            start, length = len(band.states) // 2, span[1] - span[0]
            first, _ = band.axis.pages_of_span(start, start)
            span = first, first + length
        return super()._acquire(band, count, span)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="pending-counted-as-used",
        planted="pending pages count as used, in the promise and in the take alike",
        plant=in_relief(_PendingIsUsed),
        checks=("capacity",),
        together="capacity",
    ),
    Fault(
        id="remainders-ignored",
        planted="a promise adds up bytes and forgets that they must hold whole pages",
        plant=in_relief(_CountsBytes),
        checks=("capacity",),
        scenario="hybrid",
    ),
    Fault(
        id="promise-in-place-only",
        planted="a promise looks only at what fits without rearranging",
        plant=in_relief(_PromisesInPlaceOnly),
        checks=("capacity",),
    ),
    Fault(
        id="nothing-rearranged",
        planted="a take that does not fit in place is refused although the bytes are there",
        plant=in_relief(_NeverRearranges),
        checks=("capacity",),
        rows=("B97",),
    ),
    Fault(
        id="state-shortfall-moves-no-tokens",
        planted="a state slot that does not fit in place is refused, though the bytes that could"
        " move are those of tokens",
        plant=in_relief(_StateStaysInPlace),
        checks=("capacity",),
        scenario="hybrid",
        rows=("B97",),
    ),
    Fault(
        id="growth-measured-before-the-settle",
        planted="a take grows by what the plan added to the span, after settling has let the span"
        " retreat",
        plant=in_chain(_GrowsByWhatThePlanAdded),
        checks=("assertion",),
    ),
    Fault(
        id="one-page-more-reserved",
        planted="a take lays out one page more per band than it was promised",
        plant=in_relief(_ReservesOneMore),
        checks=("capacity",),
        rows=("B103",),
    ),
    Fault(
        id="promise-without-ids",
        planted="a promise counts bytes and forgets that ids can run short",
        plant=in_chain(_PromisesBytesOnly),
        checks=("capacity",),
        scenario="full_only",
    ),
    Fault(
        id="refusal-counts-held-ids",
        planted="a refusal for lack of ids says how many are held, not how many are free",
        plant=in_chain(_CountsHeldIds),
        checks=("capacity",),
        scenario="full_only",
    ),
    Fault(
        id="refusal-counts-pending-as-free",
        planted="a refusal for lack of bytes says that pending pages are free",
        plant=in_chain(_CountsPendingAsFree),
        checks=("capacity",),
    ),
    Fault(
        id="host-refusal-asks-for-the-rest",
        planted="a refusal for lack of host slots says that only those were asked for that are"
        " missing",
        plant=in_host_pools(_AsksForWhatIsMissing),
        checks=("capacity",),
        scenario="host_tier",
    ),
    Fault(
        id="promise-kept-too-long",
        planted="a promise is kept until something is taken, whatever is asked",
        plant=in_chain(_KeepsTheFirstAnswer),
        checks=("capacity",),
        rows=("B07",),
    ),
    Fault(
        id="layout-kept-too-long",
        planted="a snapshot is kept while live counts stay the same, although spans have changed",
        plant=in_relief(_KeepsOldLayouts),
        checks=("assertion", "ownership", "conservation", "capacity", "content"),
        scenario="hybrid",
        rows=("B07",),
    ),
    Fault(
        id="float-grows-upward",
        planted="a float grows upward whatever the plan gave its neighbour",
        plant=in_chain(_GrowsUpward),
        checks=("ownership", "conservation", "assertion"),
        scenario="hybrid",
    ),
    Fault(
        id="empty-float-starts-in-the-middle",
        planted="an empty float starts in the middle of the arena whatever the plan says",
        plant=in_chain(_EmptyFloatStartsInTheMiddle),
        checks=("ownership", "conservation", "assertion"),
        scenario="hybrid",
    ),
)
