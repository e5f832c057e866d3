"""Room for a demand: the least rearrangement that serves it, from settling to relocating floats.

The planned spans are the contract.  A plan fixes both boundaries of every band before anything is
taken, and nothing after the plan looks at a gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.alloc.band import Band
from unikv.alloc.compaction import PageMover, plan_relocation
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.pricing import Spans, Step, feasible, first_plan, move_order, plan
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.snapshot import BandView, ChainView
from unikv.alloc.statistics import Counters
from unikv.memory.arena import Arena


class Relief:
    """Answers whether a demand fits and lays the chain out so that it does."""

    __slots__ = (
        "_arena",
        "_bands",
        "_counters",
        "_kept",
        "_mover",
        "_reclaim",
        "_revisions",
        "_steps",
    )

    def __init__(
        self,
        arena: Arena,
        bands: Sequence[Band],
        steps: ForwardSteps,
        reclaim: Reclaim,
        mover: PageMover,
        counters: Counters,
    ) -> None:
        self._arena = arena
        self._bands = bands
        self._steps = steps
        self._reclaim = reclaim
        self._mover = mover
        self._counters = counters
        self._revisions = [band.revision for band in bands]
        self._kept = self._snapshot()

    def snapshot(self) -> ChainView:
        """Counts and spans of every band, as the frozen input of a plan; kept until one changes."""
        revisions = [band.revision for band in self._bands]
        if revisions != self._revisions:
            self._revisions = revisions
            self._kept = self._snapshot()
        return self._kept

    def _snapshot(self) -> ChainView:
        last = len(self._bands) - 1
        views = []
        for index, band in enumerate(self._bands):
            page_bytes = band.layout.page_bytes
            if index == last:
                wall = self._arena.end_page(page_bytes)
            else:
                wall = self._arena.first_page(page_bytes) if index == 0 else 0
            # Unlike `span`, this keeps an empty end at its wall, where a plan looks for it.
            low, high = band.axis.pages_of_span(band.low, band.high)
            views.append(BandView(page_bytes, wall, low, high, band.live + band.fixed, 0, 0))
        return ChainView(self._arena.sink_bytes, self._arena.total_bytes, tuple(views))

    def fits(self, demand: Sequence[int]) -> bool:
        """Whether a take of `demand` pages per band succeeds now."""
        if self._holes_cover(demand):
            return True
        return feasible(self.snapshot(), demand)

    def lay_out(self, demand: Sequence[int]) -> Spans | None:
        """Spans in which `demand` pages per band can be taken; None when no layout holds them.

        Order: may enqueue waits, copies and map writes on the schedule stream.  Does not block the
        host.  A refusal changes nothing.
        """
        if self._holes_cover(demand):
            return tuple(band.span() for band in self._bands)
        view = self.snapshot()
        spans = plan(view, demand, Step.NO_MOVE)
        if spans is not None:
            return spans
        if not feasible(view, demand):
            return None
        self._counters.reliefs += 1
        self._reclaim.settle_all()
        # Settling changes spans, so nothing planned before it may be used after it.
        view = self.snapshot()
        first = first_plan(view, demand)
        assert first is not None, "feasible and first_plan disagree"
        step, spans = first
        if step is not Step.NO_MOVE:
            self._realize(view, spans)
        return spans

    def _holes_cover(self, demand: Sequence[int]) -> bool:
        return all(band.holes >= pages for band, pages in zip(self._bands, demand, strict=True))

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
