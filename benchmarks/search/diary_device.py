"""Layouts small enough to write out page by page, and a device that keeps a diary.

The device applies every kernel at once, in the order it was asked, and remembers the order.  It has
no time, so what it cannot show is a race; that is what the modeled device is for.
"""

from collections.abc import Sequence

from unikv.alloc.chain import ChainAllocator
from unikv.device.port import BandLayout, Event, StorageLayout, Stream


class Mark:
    """An event; equal to nothing but itself, and printed by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


class DiaryDevice:
    """A device of plain lists.

    Attributes:
        calls: what was asked, in order, as tuples that start with the kernel's name.
        arena, maps, rows: the memory, after every call so far.
    """

    has_streams = True

    def __init__(self, layout: StorageLayout) -> None:
        self.layout = layout
        self.calls: list[tuple[object, ...]] = []
        self.arena = bytearray(layout.total_bytes)
        self.maps = [[0] * (band.id_count + 1) for band in layout.bands]
        self.rows = [[0] * layout.row_pages for _ in range(layout.row_count)]

    def bytes_of(self, band: int, page: int) -> slice:
        """Where a page lies in the arena."""
        size = self.layout.bands[band].page_bytes
        return slice(page * size, page * size + size)

    def record_event(self, stream: Stream) -> Event:
        """A fresh mark."""
        return Mark(f"{stream.name.lower()} after {len(self.calls)} calls")

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Write it down."""
        self._write_down(stream, "wait", event)

    def query(self, event: Event) -> bool:
        """Nothing in the allocator may ask this."""
        raise AssertionError(f"a decision asked whether {event} has fired")

    def host_wait(self, event: Event) -> None:
        """Nothing in the allocator may ask this."""
        raise AssertionError(f"the allocator blocked the host on {event}")

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Zero them at once."""
        self._write_down(stream, "zero", band, tuple(pages))
        for page in pages:
            where = self.bytes_of(band, page)
            self.arena[where] = bytes(where.stop - where.start)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy them at once."""
        self._write_down(stream, "move", band, tuple(sources), tuple(targets))
        for source, target in zip(sources, targets, strict=True):
            self.arena[self.bytes_of(band, target)] = self.arena[self.bytes_of(band, source)]

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Set the entries at once."""
        self._write_down(stream, "map", band, tuple(ids), tuple(pages))
        for unit, page in zip(ids, pages, strict=True):
            self.maps[band][unit] = page

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        """Set the entries at once."""
        self._write_down(stream, "row", row, first, tuple(ids))
        self.rows[row][first : first + len(ids)] = ids

    def _write_down(self, stream: Stream, name: str, *details: object) -> None:
        assert stream is Stream.SCHEDULE, f"the allocator enqueued {name} on {stream.name}"
        self.calls.append((name, *details))

    def names(self) -> list[object]:
        """The kernels that were asked for, in order."""
        return [call[0] for call in self.calls]

    def named(self, name: str) -> list[tuple[object, ...]]:
        """What was asked of one kernel, in order, without its name."""
        return [call[1:] for call in self.calls if call[0] == name]


def tokens(name: str, page_bytes: int = 4, ids: int = 99) -> BandLayout:
    """The band that owns the token ids."""
    return BandLayout(name, page_bytes, 4, ids, mints=True, zeroed=True)


def window(name: str, page_bytes: int = 4, ids: int = 99) -> BandLayout:
    """A band that binds its pages to the owner's ids."""
    return BandLayout(name, page_bytes, 4, ids, mints=False, zeroed=True)


def states(name: str, page_bytes: int = 4, ids: int = 99) -> BandLayout:
    """A band with ids of its own, whose pages are not zeroed."""
    return BandLayout(name, page_bytes, 1, ids, mints=True, zeroed=False)


def layout_of(total_bytes: int, sink_bytes: int, *bands: BandLayout) -> StorageLayout:
    """An arena and its bands from low to high, with four request rows of eight pages."""
    return StorageLayout(sink_bytes, total_bytes, bands, 4, 8, 4)


def picture(chain: ChainAllocator) -> object:
    """Everything that an operation of the allocator can change, but its counters."""
    return (
        [
            (
                bytes(band.states),
                band.span(),
                band.counts,
                list(band.ids.forward),
                list(band.ids.inverse),
                band.pending_pages.batches(),
            )
            for band in chain.bands
        ],
        chain.ledger.uses(),
        (chain.steps.launched, chain.steps.in_flight(), chain.steps.retired_through),
        {index: minted.free_count for index, minted in chain.minted.items()},
    )
