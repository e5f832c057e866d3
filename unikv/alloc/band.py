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
# So many pages or more, at most so many times as far apart, are marked as one piece.
_MANY, _DENSE = 16, 4
# Most retreats are short.  Past so many pages holes are counted in pieces: the first so long, the
# next ones longer.
_NEAR, _PIECE = 16, 64


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
        states, high, axis = self.states, self.high, self.axis
        base, step = axis.base, axis.step
        depth = states.find(HOLE, self._hint, high)
        end = depth + count
        taken: list[int] = []
        if count > 1 and depth >= 0 and end <= high and states[depth:end] == _BYTE[HOLE] * count:
            states[depth:end] = _BYTE[LIVE] * count
            taken += axis.pages(depth, end)
            depth = end
        while 0 <= depth < high and len(taken) < count:
            if states[depth] != HOLE:
                depth = states.find(HOLE, depth, high)
                continue
            states[depth] = LIVE
            taken.append(base + step * depth)
            depth += 1
        self._hint = depth if depth >= 0 else high
        self.revision += 1
        self.holes -= len(taken)
        self.live += len(taken)
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
            self.states[low : self.low] = _BYTE[HOLE] * (self.low - low)
            self._hint = low
        else:
            self._hint = min(self._hint, self.high)
        self.states[self.high : high] = _BYTE[HOLE] * (high - self.high)
        self.holes += (high - low) - (self.high - self.low)
        self.low, self.high = low, high
        self.revision += 1

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
        states, start, width = self.states, max(low, high - _NEAR), _PIECE
        while high > start and states[high - 1] == HOLE:
            high -= 1
        while low < start == high:
            start = max(low, high - width)
            high = start + len(states[start:high].rstrip(_BYTE[HOLE]))
            width *= 4
        return high


class EndBand(Band):
    """A band that starts at a wall: depth 0 stays its origin and only the far edge moves."""

    __slots__ = ()

    def retreat(self) -> int:
        """Give up the holes that the frontier touches."""
        states, high = self.states, self.high
        if not high or states[high - 1] != HOLE:
            return 0
        self.high = self._holes_end(0, high)
        left = high - self.high
        states[self.high : high] = bytes(left)
        self.revision += left
        self.holes -= left
        return left
