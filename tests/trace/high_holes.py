"""A build that differs on purpose: of the holes it takes the highest depth, not the lowest."""

from unikv.alloc.band import HOLE, EndBand
from unikv.alloc.float_band import FloatBand
from unikv.device.port import StorageLayout
from unikv.storage import KVStorage
from unikv.trace.still_device import StillDevice


class HighEnd(EndBand):
    """An end that fills its holes from the frontier."""

    __slots__ = ()

    def take_holes(self, count: int) -> list[int]:
        """The deepest holes, the deepest first."""
        return highest(self, count)


class HighFloat(FloatBand):
    """A float that fills its holes from the frontier."""

    __slots__ = ()

    def take_holes(self, count: int) -> list[int]:
        """The deepest holes, the deepest first."""
        return highest(self, count)


def highest(band: EndBand | FloatBand, count: int) -> list[int]:
    """Take up to `count` holes of a band from its far edge."""
    depths = [depth for depth, state in enumerate(band.states) if state == HOLE]
    pages = [band.axis.page_at(depth) for depth in reversed(depths)][:count]
    band.occupy_holes(pages)
    return pages


def build_high(layout: StorageLayout) -> KVStorage:
    """A storage whose bands fill their holes from the frontier."""
    storage = KVStorage(layout, StillDevice())
    for band in storage.chain.bands:
        band.__class__ = HighFloat if isinstance(band, FloatBand) else HighEnd
    return storage
