"""Room for a demand: the least rearrangement that serves it, from settling to relocating floats.

The planned spans are the contract.  A plan fixes both boundaries of every band before anything is
taken, and nothing after the plan looks at a gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.alloc.band import Band
from unikv.alloc.clearance import Clearance, InFlight, Toucher
from unikv.alloc.compaction import PageMover, plan_relocation
from unikv.alloc.parts import ChainParts
from unikv.alloc.pricing import Spans, Step, feasible, first_plan, move_order, plan
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.signals import HOLDS, TRANSFERS, TransferWaiter
from unikv.alloc.snapshot import BandView, ChainView
from unikv.alloc.use import Use

NOTHING: frozenset[Use] = frozenset()
# What a named tuple does when it is called, without the call of ours that it makes.
_named_tuple = tuple.__new__


class Relief:
    """Answers whether a demand fits and lays the chain out so that it does."""

    __slots__ = (
        "_arena",
        "_bands",
        "_careful",
        "_clearance",
        "_counters",
        "_kept",
        "_ledger",
        "_mover",
        "_nowhere",
        "_reclaim",
        "_revisions",
        "_sizes_and_walls",
        "_steps",
        "_unpinned",
        "_views",
        "_waiter",
    )

    def __init__(
        self, parts: ChainParts, reclaim: Reclaim, mover: PageMover, waiter: TransferWaiter
    ) -> None:
        self._arena = parts.arena
        self._bands = parts.bands
        self._steps = parts.steps
        self._ledger = parts.ledger
        self._clearance = parts.clearance
        self._counters = parts.counters
        self._reclaim = reclaim
        self._mover = mover
        self._waiter = waiter
        last = len(self._bands) - 1
        sizes = [band.layout.page_bytes for band in self._bands]
        walls = [0] * last + [self._arena.end_page(sizes[last])]
        if last:
            walls[0] = self._arena.first_page(sizes[0])
        self._sizes_and_walls = list(zip(sizes, walls, strict=True))
        self._unpinned = (NOTHING,) * len(self._bands)
        self._careful = (HOLDS,) * len(self._bands)
        self._nowhere = ((0, 0),) * len(self._bands)
        self._views = list(map(self._view, self._bands, self._unpinned))
        self._revisions = [band.revision for band in self._bands]
        self._kept = self._snapshot(self._unpinned)

    def snapshot(self, pinned: Sequence[frozenset[Use]] = ()) -> ChainView:
        """Counts, spans and pins of every band, as the frozen input of a plan.

        Args:
            pinned: per band, which holds keep their pages where they are; none by default, which
                is the view of a yes or no.  Fixed pages and isolated transfers always stay.
        """
        held = self._ledger.held
        if held.isolated:
            # Seldom, and in no revision of a band: such a view is made afresh and not kept.
            return self._snapshot(pinned or list(self._unpinned))
        if pinned and held:
            return self._snapshot(pinned)
        revisions = self._revisions
        for index, band in enumerate(self._bands):
            if band.revision != revisions[index]:
                self._kept = self._snapshot(self._unpinned)
                break
        return self._kept

    def _snapshot(self, pinned: Sequence[frozenset[Use]]) -> ChainView:
        if pinned is self._unpinned:
            views, revisions = self._views, self._revisions
            for index, band in enumerate(self._bands):
                if band.revision != revisions[index]:
                    revisions[index] = band.revision
                    if band.fixed:
                        views[index] = self._view(band, NOTHING)
                        continue
                    # In place, because a question costs little more than these lines.
                    page_bytes, wall = self._sizes_and_walls[index]
                    low, high = band.axis.pages_of_span(band.low, band.high)
                    view = (page_bytes, wall, low, high, band.live, 0, 0)
                    views[index] = _named_tuple(BandView, view)
            seen = tuple(views)
        else:
            seen = tuple(map(self._view, self._bands, pinned))
        return _named_tuple(ChainView, (self._arena.sink_bytes, self._arena.total_bytes, seen))

    def _view(self, band: Band, uses: frozenset[Use]) -> BandView:
        # Unlike `span`, this keeps an empty end at its wall, where a plan looks for it.
        low, high = band.axis.pages_of_span(band.low, band.high)
        index, fixed = band.index, band.fixed
        page_bytes, wall = self._sizes_and_walls[index]
        used, pin_low, pin_high = band.live + fixed, 0, 0
        held = self._ledger.held
        if uses or fixed or held.isolated:
            kept = held.kept(index, uses)
            # A page freed under a transfer that is left alone stays, so it counts as used.
            used += len(held.stuck(index) & kept)
            pins = kept.union(band.fixed_pages())
            if pins:
                pin_low, pin_high = min(pins), max(pins) + 1
        return _named_tuple(BandView, (page_bytes, wall, low, high, used, pin_low, pin_high))

    def fits(self, demand: Sequence[int]) -> bool:
        """Whether a take of `demand` pages per band succeeds now."""
        if self._holes_cover(demand):
            return True
        return feasible(self.snapshot(), demand)

    def lay_out(self, demand: Sequence[int]) -> Spans | None:
        """Spans in which `demand` pages per band can be taken; None when no layout holds them.

        Where the holes cover the demand nobody has to grow, and every pair is `(0, 0)`.

        Order: may enqueue waits, copies and map writes on the schedule stream.  Blocks the host
        only where no layout leaves the pages of every transfer alone.  A refusal changes nothing.

        Raises:
            TransferError: if a transfer that has to be waited for does not end; nothing has changed
                then.
        """
        if self._holes_cover(demand):
            return self._nowhere
        spans = plan(self.snapshot(self._careful), demand, Step.NO_MOVE)
        if spans is not None:
            return spans
        if not feasible(self.snapshot(), demand):
            return None
        # Settling moves no pin, so which transfers are in the way is known before it.  The wait for
        # them comes first: the host never blocks behind a stream wait, and a wait in vain has
        # changed nothing.
        pinned = [TRANSFERS] * len(self._bands)
        if self._ledger.held and not feasible(self.snapshot(pinned), demand):
            self._end_transfers(demand)
        self._counters.reliefs += 1
        self._reclaim.settle_all()
        # Settling changes spans, so nothing planned before it may be used after it.
        least = self._least_plan(demand)
        assert least is not None, "feasible and first_plan disagree"
        view, step, spans = least
        if step is not Step.NO_MOVE:
            self._realize(view, spans)
        return spans

    def _least_plan(self, demand: Sequence[int]) -> tuple[ChainView, Step, Spans] | None:
        """The view that pins most and still has a plan, and the least plan of it."""
        for uses in (HOLDS, TRANSFERS):
            view = self.snapshot([uses] * len(self._bands))
            first = first_plan(view, demand)
            if first is not None:
                return view, *first
        return None

    def _end_transfers(self, demand: Sequence[int]) -> None:
        """Wait for the transfers of the bands that cannot stay as they are."""
        pinned: list[frozenset[Use]] = [frozenset()] * len(self._bands)
        for index in range(len(pinned)):
            careful = [*pinned[:index], TRANSFERS, *pinned[index + 1 :]]
            if feasible(self.snapshot(careful), demand):
                pinned = careful
        moving = [index for index, uses in enumerate(pinned) if not uses]
        names = self._ledger.held.transfers(moving)
        if self._clearance[Toucher.MOVE_SOURCE, InFlight.NETWORK] is Clearance.WAIT_HOST:
            self._waiter.wait(names)
            self._counters.host_waits += 1
        for name in names:
            self._reclaim.release_early(name)

    def _holes_cover(self, demand: Sequence[int]) -> bool:
        for index, band in enumerate(self._bands):
            if band.holes < demand[index]:
                break
        else:
            return True
        return False

    def _realize(self, view: ChainView, spans: Spans) -> None:
        plans = [plan_relocation(band, span) for band, span in zip(self._bands, spans, strict=True)]
        # Sources stay pending while an unretired step may read them, and then the copies free no
        # byte.  So the wait is for the newest step, whether or not it has a batch.
        if any(plan.sources for plan in plans) and self._steps.wait(self._steps.newest):
            self._reclaim.writes_retired()
        last = len(self._bands) - 1
        for index in move_order(view, spans):
            band, moves = self._bands[index], plans[index]
            if index in (0, last) and not self._ends_earlier(band, spans[index]):
                continue  # an end that grows does so when it takes, behind every copy
            if moves.sources:
                self._mover.copy(band, moves)
                self._counters.relocations += index not in (0, last)
            band.relocate(*spans[index], moves.targets)

    @staticmethod
    def _ends_earlier(band: Band, span: tuple[int, int]) -> bool:
        return band.axis.span_of_pages(*span)[1] < band.high
