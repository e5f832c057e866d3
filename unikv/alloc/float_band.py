"""A band with two moving edges, between two neighbours.

An empty float is transparent: it keeps no span, so its neighbours see through it.
"""

from __future__ import annotations

from unikv.alloc.band import HOLE, UNCLAIMED, Band


class FloatBand(Band):
    """Sibling of `EndBand` whose span may leave both edges."""

    __slots__ = ()

    def retreat(self) -> int:
        """Give up the holes that either frontier touches; an empty float gives up its span."""
        states, low, high = self.states, self.low, self.high
        if low == high or (states[low] != HOLE and states[high - 1] != HOLE):
            return 0
        high = self._holes_end(low, high)
        states[high : self.high] = bytes(self.high - high)
        while low < high and states[low] == HOLE:
            states[low] = UNCLAIMED
            low += 1
        left = (self.high - self.low) - (high - low)
        self.revision += left
        self.low, self.high = low, high
        self.holes -= left
        return left
