"""A device that knows which bytes unfinished work still uses, and lets nothing overtake it.

Kernels still run when they are enqueued.  One that touches bytes too early is an error there and
then, whatever the bytes turn out to be.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.search.diary_device import DiaryDevice
from unikv.device.port import Event, StorageLayout, Stream


@dataclass(frozen=True, slots=True)
class Work:
    """A step or a copy that nobody has waited for, and the bytes that it uses, a bit each.

    `step` is 0 for a copy; `is_known` says whether the allocator was told what it writes.
    """

    event: Event
    reads: int
    writes: int
    step: int = 0
    is_known: bool = True


class GuardedDevice(DiaryDevice):
    """A device on which the schedule stream may overtake neither running work nor a peer.

    Attributes:
        work: steps and copies that neither the schedule stream nor the host has waited for.
        lent: the bytes of each transfer, a bit each; no wait of a stream ends one.
    """

    def __init__(self, layout: StorageLayout) -> None:
        super().__init__(layout)
        self.work: list[Work] = []
        self.lent: dict[str, int] = {}
        self._sink = (1 << layout.sink_bytes) - 1

    def wait_event(self, stream: Stream, event: Event) -> None:
        """The work before the event is behind the schedule stream."""
        super().wait_event(stream, event)
        self.finish(event)

    def finish(self, event: Event) -> None:
        """The work that ends with `event` is over, and with a step every earlier one."""
        ended = [work for work in self.work if work.event is event]
        assert ended, f"the work before {event} is over already"
        step = ended[0].step
        self.work = [w for w in self.work if w.event is not event and not 0 < w.step <= step]

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Zeroing writes."""
        self.check_writes(band, pages)
        super().zero_pages(stream, band, pages)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """A move reads its sources and writes its targets."""
        moved = self.mask(band, sources)
        for work in self.work:
            assert work.is_known, "pages move while a step may write any of them"
            assert not moved & work.writes, "a move overtakes a write"
        for name, lent in self.lent.items():
            assert not moved & lent, f"a move takes pages from under {name}"
        self.check_writes(band, targets)
        super().move_pages(stream, band, sources, targets)

    def check_writes(self, band: int, pages: Sequence[int]) -> None:
        """The schedule stream, or whoever is behind it, may write these pages."""
        written = self.mask(band, pages)
        assert not written & self._sink, "the sink is overwritten"
        for work in self.work:
            assert not written & (work.reads | work.writes), "bytes in use are overwritten"
        for name, lent in self.lent.items():
            assert not written & lent, f"bytes of {name} are overwritten"

    def mask(self, band: int, pages: Iterable[int]) -> int:
        """Every byte of some pages, a bit each."""
        size = self.layout.bands[band].page_bytes
        used = 0
        for page in pages:
            used |= ((1 << size) - 1) << page * size
        return used
