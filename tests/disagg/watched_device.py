"""A device that knows what the host has seen of it, and which bytes are in a peer's hands.

Kernels run when they are enqueued.  What a real device would still be doing is kept as positions:
the host has seen the schedule stream as far as it has waited, and no further.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from unikv.device.port import Event, StorageLayout, Stream


class Place(NamedTuple):
    """One page."""

    band: int
    page: int


class Mark:
    """An event: a position of one stream, equal to nothing but itself."""

    def __init__(self, stream: Stream, position: int) -> None:
        self.stream = stream
        self.position = position


class WatchedDevice:
    """A device of plain lists.

    Attributes:
        arena: the bytes, after every call so far.
        position: work enqueued on the schedule stream.
        seen: how much of it the host knows to be over.
        touched: the newest work on each page.
        writing: places that an unprocessed step writes, wherever they moved.
        lent: bytes that an engine or a peer may touch, a bit each, by transfer.
        host_waits: events that the host waited, oldest first.
    """

    has_streams = True

    def __init__(self, layout: StorageLayout) -> None:
        self.layout = layout
        self.arena = bytearray(layout.total_bytes)
        self.position = 0
        self.seen = 0
        self.touched: dict[Place, int] = {}
        self.writing: dict[int, set[Place]] = {}
        self.lent: dict[str, int] = {}
        self.host_waits: list[Mark] = []

    def record_event(self, stream: Stream) -> Event:
        """A fresh mark."""
        return Mark(stream, self.position)

    def wait_event(self, stream: Stream, event: Event) -> None:
        """The schedule stream has one more thing to do."""
        assert stream is Stream.SCHEDULE
        self.position += 1

    def query(self, event: Event) -> bool:
        """Nothing may ask this."""
        raise AssertionError("a decision asked whether an event has fired")

    def host_wait(self, event: Event) -> None:
        """Everything before the event is over, and the host knows it."""
        assert isinstance(event, Mark)
        assert event.stream is Stream.SCHEDULE
        self.seen = max(self.seen, event.position)
        self.host_waits.append(event)

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Zero them at once."""
        self._touch(band, pages)
        self._overwrite(band, pages)
        for page in pages:
            self.arena[self.bytes_of(band, page)] = bytes(self.layout.bands[band].page_bytes)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy them at once."""
        self.check_not_lent(band, sources, "moved away")
        self._touch(band, targets)
        self._overwrite(band, targets)
        for source, target in zip(sources, targets, strict=True):
            self.arena[self.bytes_of(band, target)] = self.arena[self.bytes_of(band, source)]
            for places in self.writing.values():
                if Place(band, source) in places:
                    places.add(Place(band, target))

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """The newest work on the pages that ids name from now on."""
        self._touch(band, [page for page in pages if page])

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        """There are no rows."""

    def check_observed(self, band: int, page: int) -> None:
        """The host has seen the newest work on a page."""
        newest = self.touched[Place(band, page)]
        assert newest <= self.seen, f"page {page} of band {band} leaves before its work has run"

    def check_written(self, band: int, page: int) -> None:
        """The host has processed every step that writes the page."""
        steps = [step for step, places in self.writing.items() if Place(band, page) in places]
        assert not steps, f"page {page} of band {band} leaves before steps {steps} are processed"

    def check_not_lent(self, band: int, pages: Iterable[int], what: str) -> None:
        """No engine may touch these pages."""
        used = self.mask(band, pages)
        for name, lent in self.lent.items():
            assert not used & lent, f"pages of {name} are {what}"

    def mask(self, band: int, pages: Iterable[int]) -> int:
        """Every byte of some pages, a bit each."""
        size = self.layout.bands[band].page_bytes
        used = 0
        for page in pages:
            used |= ((1 << size) - 1) << page * size
        return used

    def bytes_of(self, band: int, page: int) -> slice:
        """Where a page lies in the arena."""
        size = self.layout.bands[band].page_bytes
        return slice(page * size, page * size + size)

    def _overwrite(self, band: int, pages: Sequence[int]) -> None:
        # The stream has waited whoever wrote here before, so from here on its own work is what the
        # host has to see.
        for places in self.writing.values():
            places.difference_update(Place(band, page) for page in pages)

    def _touch(self, band: int, pages: Sequence[int]) -> None:
        self.position += 1
        self.check_not_lent(band, pages, "written")
        self.touched |= {Place(band, page): self.position for page in pages}
