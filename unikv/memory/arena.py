"""The arena's geometry: one run of bytes, a padding sink at its bottom, a wall for each end.

Bands view the whole arena with their own page stride, so bands of different strides meet with an
unusable remainder.  All rounding of bytes to pages is here and in `unikv.alloc.pricing`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arena:
    """One byte region shared by every band.

    Attributes:
        sink_bytes: `[0, sink_bytes)` takes the writes of dummy tokens; nothing reads it.
        total_bytes: end of the region.
    """

    sink_bytes: int
    total_bytes: int

    def first_page(self, page_bytes: int) -> int:
        """Lowest page that lies wholly above the sink (rounds up)."""
        return -(-self.sink_bytes // page_bytes)

    def end_page(self, page_bytes: int) -> int:
        """One past the highest page that lies wholly inside the arena (rounds down)."""
        return self.total_bytes // page_bytes
