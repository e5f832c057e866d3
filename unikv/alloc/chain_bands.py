"""Which band of a chain stands where: two ends that grow towards each other, floats between."""

from __future__ import annotations

from unikv.alloc.axis import Axis
from unikv.alloc.band import Band, EndBand
from unikv.alloc.float_band import FloatBand
from unikv.device.port import StorageLayout
from unikv.memory.arena import Arena


def build_bands(layout: StorageLayout) -> tuple[Band, ...]:
    """The bands of a layout: the first grows up, the last grows down, the others float."""
    arena = Arena(layout.sink_bytes, layout.total_bytes)
    last = len(layout.bands) - 1
    bands: list[Band] = []
    for index, part in enumerate(layout.bands):
        low, high = arena.first_page(part.page_bytes), arena.end_page(part.page_bytes)
        count = max(0, high - low)
        if index == last:
            bands.append(EndBand(index, part, Axis(high - 1, -1), count))
        elif index == 0:
            bands.append(EndBand(index, part, Axis(low, 1), count))
        else:
            bands.append(FloatBand(index, part, Axis(low, 1), count))
    return tuple(bands)
