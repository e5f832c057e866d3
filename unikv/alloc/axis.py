"""Depth, not direction: the one place that knows which way a band grows.

A band that grows down is a band that grows up, seen in a mirror.  All bookkeeping is in depth, so
no other module has a branch on the growth direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps depth, 0 at the band's origin and growing inward, to a page of the arena and back.

    Attributes:
        base: the page at depth 0.
        step: +1 where depth and page grow together, -1 where they oppose.
    """

    base: int
    step: Literal[1, -1]

    def page_at(self, depth: int) -> int:
        """Page at `depth`."""
        return self.base + self.step * depth

    def pages(self, low: int, high: int) -> range:
        """Pages at the depths `[low, high)`, in the order of depth."""
        base, step = self.base, self.step
        return range(base + step * low, base + step * high, step)

    def depth_of(self, page: int) -> int:
        """Depth of `page`."""
        return (page - self.base) * self.step

    def span_of_pages(self, low: int, high: int) -> tuple[int, int]:
        """Pages `[low, high)` as depths `[low, high)`; `pages_of_span` is the way back."""
        if self.step == 1:
            return low - self.base, high - self.base
        return self.base + 1 - high, self.base + 1 - low

    def pages_of_span(self, low: int, high: int) -> tuple[int, int]:
        """Depths `[low, high)` as pages `[low, high)`."""
        if self.step == 1:
            return low + self.base, high + self.base
        return self.base + 1 - high, self.base + 1 - low
