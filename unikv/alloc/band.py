"""One band's pages by depth: which are live, free inside the span, pending, fixed or unclaimed.

A band knows its own span and nothing of its neighbours, streams or requests.  `EndBand` keeps its
origin for ever; its sibling with two moving edges is `unikv.alloc.float_band.FloatBand`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unikv.alloc.axis import Axis
from unikv.alloc.pending import PendingPages
from unikv.device.port import BandLayout
from unikv.ids.unit_ids import UnitIds

UNCLAIMED, LIVE, HOLE, PENDING, FIXED = range(5)

# One byte per state, for what `bytes` does faster than a loop.
_BYTE = tuple(bytes([state]) for state in range(5))
_LIVE, _HOLE = _BYTE[LIVE], _BYTE[HOLE]
# So many pages or more, at most so many times as far apart, are marked as one piece.
_MANY, _DENSE = 16, 4
# Most retreats are short, so the first piece that is looked at is no longer.
_NEAR = 16
# The longest piece that one look at a run of holes copies.
_PIECE = 256


class BandCounts(NamedTuple):
    """Claimed pages by state: `live + holes + pending + fixed == high - low`."""

    live: int
    holes: int
    pending: int
    fixed: int


class Band:
    """Page states of one band.

    Law: `live + holes + pending + fixed == high - low`, and no page outside `[low, high)` is
    claimed.  Only the methods of this class and its `retreat` write the states.

    Attributes:
        states: one state per page, by depth.
        low, high: the span `[low, high)`, in depth.
        ids: which virtual id names which page.
        revision: changes with every count and with the span, so that answers may be kept.
        pending_pages: freed pages that wait for a forward, by batch.
    """

    __slots__ = (
        "_hint",
        "axis",
        "fixed",
        "high",
        "holes",
        "ids",
        "index",
        "layout",
        "live",
        "low",
        "pending",
        "pending_pages",
        "revision",
        "states",
    )

    def __init__(self, index: int, layout: BandLayout, axis: Axis, page_count: int) -> None:
        self.index = index
        self.layout = layout
        self.axis = axis
        self.states = bytearray(page_count)
        self.low = self.high = 0
        self.live = self.holes = self.pending = self.fixed = 0
        # Every hole lies at this depth or deeper, so the lowest one is found without a scan.
        self._hint = 0
        self.revision = 0
        _, page_end = axis.pages_of_span(0, page_count)
        self.ids = UnitIds(layout.name, layout.id_count, page_end)
        self.pending_pages = PendingPages()

    @property
    def counts(self) -> BandCounts:
        """Claimed pages by state."""
        return BandCounts(self.live, self.holes, self.pending, self.fixed)

    def span(self) -> tuple[int, int]:
        """The claimed pages `[low, high)` as page ids; `(0, 0)` when there are none."""
        if self.low == self.high:
            return (0, 0)
        return self.axis.pages_of_span(self.low, self.high)

    def take_holes(self, count: int) -> list[int]:
        """Up to `count` pages that were holes and are live from now on, lowest depth first."""
        if not count:
            return []
        states, high, axis = self.states, self.high, self.axis
        base, step, missing = axis.base, axis.step, count
        taken: list[int] = []
        depth = states.find(HOLE, self._hint, high)
        while depth >= 0:
            end = depth + 1
            if end == high or states[end] != HOLE:
                states[depth] = LIVE
                taken.append(base + step * depth)
                missing -= 1
            else:
                # Past the span nothing is a hole, so no piece has to end there.
                piece = states[depth : depth + (missing if missing < _PIECE else _PIECE)]
                run = len(piece) - len(piece.lstrip(_HOLE))
                end = depth + run
                states[depth:end] = _LIVE * run
                taken += range(base + step * depth, base + step * end, step)
                missing -= run
            if not missing:
                high = end
                break
            depth = states.find(HOLE, end, high)
        # Without another hole the first is wherever the span grows next.
        self._hint = high
        self.revision += 1
        self.holes -= count - missing
        self.live += count - missing
        return taken

    def release_live(self, pages: Sequence[int]) -> None:
        """Live pages become holes at once: no forward in flight can touch them."""
        self._mark(pages, LIVE, HOLE)
        self.live -= len(pages)
        self.holes += len(pages)

    def pend_live(self, pages: Sequence[int]) -> None:
        """Live pages become pending: claimed, not free, until their forwards are over."""
        self._mark(pages, LIVE, PENDING)
        self.live -= len(pages)
        self.pending += len(pages)

    def release_pending(self, pages: Sequence[int]) -> None:
        """Pending pages become holes: every forward that could touch them is over."""
        self._mark(pages, PENDING, HOLE)
        self.pending -= len(pages)
        self.holes += len(pages)

    def occupy_holes(self, pages: Sequence[int]) -> None:
        """Holes become live as the targets of a move."""
        self._mark(pages, HOLE, LIVE)
        self.holes -= len(pages)
        self.live += len(pages)

    def fix_live(self, pages: Sequence[int]) -> None:
        """Live pages, just taken, become fixed: a load will fill them where they are."""
        self._mark(pages, LIVE, FIXED)
        self.live -= len(pages)
        self.fixed += len(pages)

    def name_fixed(self, pages: Sequence[int]) -> None:
        """Fixed pages become live: ids name them, so they may move."""
        self._mark(pages, FIXED, LIVE)
        self.fixed -= len(pages)
        self.live += len(pages)

    def release_fixed(self, pages: Sequence[int]) -> None:
        """Fixed pages become holes: their load was cancelled before it was submitted."""
        self._mark(pages, FIXED, HOLE)
        self.fixed -= len(pages)
        self.holes += len(pages)

    def fixed_pages(self) -> list[int]:
        """Pages reserved by loads."""
        if not self.fixed:
            return []
        pages: list[int] = []
        depth = self.states.find(FIXED, self.low, self.high)
        while depth >= 0:
            pages.append(self.axis.page_at(depth))
            depth = self.states.find(FIXED, depth + 1, self.high)
        return pages

    def claim(self, low_page: int, high_page: int) -> None:
        """Grow the span to pages `[low_page, high_page)`; what is new becomes holes."""
        low, high = self.axis.span_of_pages(low_page, high_page)
        if self.low == self.high:
            # An empty band has no hole, so its hint may point anywhere.
            self.low = self.high = self._hint = low
        assert low <= self.low, "a claim only grows the span"
        assert self.high <= high, "a claim only grows the span"
        if low < self.low:
            self.states[low : self.low] = _HOLE * (self.low - low)
            self._hint = low
        else:
            self._hint = min(self._hint, self.high)
        self.states[self.high : high] = _HOLE * (high - self.high)
        self.holes += (high - low) - (self.high - self.low)
        self.low, self.high = low, high
        self.revision += 1

    def grow(self, low_page: int, high_page: int, count: int) -> list[int]:
        """`claim`, and take `count` pages of what is new, lowest depth first, as `take_holes`.

        For a band without a hole: what is taken is a run at the edge, so no page is looked for.
        """
        low, high = self.axis.span_of_pages(low_page, high_page)
        was_high, end = self.high, self.high + count
        if self.holes or low != self.low or high < end or low == was_high:
            self.claim(low_page, high_page)
            return self.take_holes(count)
        self.states[was_high:high] = _LIVE * count + _HOLE * (high - end)
        self.high, self._hint = high, end
        self.live += count
        self.holes = high - end
        self.revision += 1
        axis = self.axis
        base, step = axis.base, axis.step
        return list(range(base + step * was_high, base + step * end, step))

    def relocate(self, low_page: int, high_page: int, moved: Sequence[int]) -> None:
        """Take pages `[low_page, high_page)` as the span, with `moved` live in their new places.

        The live pages that stay are those of the old span inside the new one, with every fixed and
        every pending page, none of which may lie outside; everything else inside becomes a hole.
        """
        low, high = self.axis.span_of_pages(low_page, high_page)
        states, was_low, was_high = self.states, self.low, self.high
        given_up = ((was_low, min(was_high, low)), (max(was_low, high), was_high))
        gained = ((low, min(high, was_low)), (max(low, was_high), high))
        live, pending, fixed = (
            sum(states.count(state, start, end) for start, end in given_up if start < end)
            for state in (LIVE, PENDING, FIXED)
        )
        # What a relief cannot settle is under a transfer, and the span is planned around that.
        assert not pending, "a relief settles every batch before it relocates"
        assert not fixed, "a relocation lost a fixed page"
        assert live == len(moved), "a relocation lost or doubled a live page"
        for pieces, state in ((given_up, UNCLAIMED), (gained, HOLE)):
            for start, end in pieces:
                if start < end:
                    states[start:end] = _BYTE[state] * (end - start)
        self.low, self.high = low, high
        self._mark(moved, HOLE, LIVE)
        self._hint = low
        self.holes = high - low - self.live - self.fixed - self.pending

    def retreat(self) -> int:
        """Give up holes at the moving frontier; returns how many pages left the span."""
        raise NotImplementedError

    def _mark(self, pages: Sequence[int], before: int, after: int) -> None:
        self.revision += 1
        states, base, step, count = self.states, self.axis.base, self.axis.step, len(pages)
        if count >= _MANY and abs(pages[-1] - pages[0]) < _DENSE * count:
            low, high = self.axis.span_of_pages(min(pages), max(pages) + 1)
            piece = states[low:high]
            # The pages are distinct, so if no others of the piece are in this state, all that are
            # in it change.
            if piece.count(before) == count:
                states[low:high] = piece.replace(_BYTE[before], _BYTE[after])
                if after == HOLE and low < self._hint:
                    self._hint = low
                return
        lowest = len(states)
        for page in pages:
            depth = (page - base) * step
            assert states[depth] == before
            states[depth] = after
            if depth < lowest:
                lowest = depth
        if after == HOLE and lowest < self._hint:
            self._hint = lowest

    def _holes_end(self, low: int, high: int) -> int:
        """Depth from which on `[low, high)` has nothing but holes."""
        states, width = self.states, _NEAR
        while low < high:
            start = high - width if high - width > low else low
            kept = len(states[start:high].rstrip(_HOLE))
            if kept:
                return start + kept
            high = start
            width *= 4
        return low


class EndBand(Band):
    """A band that starts at a wall: depth 0 stays its origin and only the far edge moves."""

    __slots__ = ()

    def retreat(self) -> int:
        """Give up the holes that the frontier touches."""
        states, high = self.states, self.high
        if not high or states[high - 1] != HOLE:
            return 0
        start = high - _NEAR if high > _NEAR else 0
        end = start + len(states[start:high].rstrip(_HOLE))
        if end == start:
            end = self._holes_end(0, start)
        left = high - end
        states[end:high] = bytes(left)
        self.high = end
        self.revision += left
        self.holes -= left
        return left
