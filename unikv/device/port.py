"""The device port: streams, events, and the few kernels through which the allocator touches memory.

Each kernel names the memory it reads and writes by band, page, id or row, so a device can check
every access without knowing why it was made.  The port decides nothing and knows no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias


class Stream(IntEnum):
    """Device queues by role.  Work on one stream runs in the order it was enqueued."""

    SCHEDULE = 0
    FORWARD = 1
    LOAD = 2
    BACKUP = 3
    SIDE = 4
    READ_BACK = 5


Event: TypeAlias = object
"""Mark in a stream; made by the device, compared by identity."""


class BandLayout(NamedTuple):
    """How one band sees the arena.

    Attributes:
        name: the band's name, unique in the chain.
        page_bytes: bytes of one page; page `p` covers `[p * page_bytes, (p + 1) * page_bytes)`.
        slots_per_page: tokens per page; 1 for a state band, whose page is one slot.
        id_count: usable ids that may name its pages, 1..id_count; id 0 is the sink.
        mints: whether the ids are its own; otherwise it binds pages to the owner's ids.
        zeroed: whether its pages are zeroed when handed out.
    """

    name: str
    page_bytes: int
    slots_per_page: int
    id_count: int
    mints: bool
    zeroed: bool


class StorageLayout(NamedTuple):
    """Every memory space of one storage.

    Attributes:
        sink_bytes: lowest bytes of the arena, where padding writes land.
        total_bytes: size of the arena.
        bands: from the low end to the high end; the last one mints the token ids.
        row_count: rows of the request table.
        row_pages: virtual pages that one row can name.
        slots_per_page: page size of every token band, in slots.
    """

    sink_bytes: int
    total_bytes: int
    bands: tuple[BandLayout, ...]
    row_count: int
    row_pages: int
    slots_per_page: int


class Device(Protocol):
    """What the allocator asks of a device.

    Order: every method but `host_wait` enqueues and returns at once.  Kernels run in order on their
    stream; only `wait_event` orders one stream behind another.

    Attributes:
        has_streams: whether streams are queues of their own that events order.  A device where
            everything runs at once is refused when a storage is built.
    """

    has_streams: bool

    def record_event(self, stream: Stream) -> Event:
        """Mark the work enqueued on `stream` so far."""
        ...

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Run later work of `stream` after everything before `event`."""
        ...

    def query(self, event: Event) -> bool:
        """Whether this rank has passed `event`.  A host read: no decision may rest on it."""
        ...

    def host_wait(self, event: Event) -> None:
        """Block the host until `event` has passed.  A host read."""
        ...

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Write zeros over whole pages.  Writes the arena."""
        ...

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy whole pages, `sources[i]` to `targets[i]`, in any order.

        Reads and writes the arena.  Sources and targets are disjoint and equally many.
        """
        ...

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Set the band's device page map: `map[ids[i]] = pages[i]`; page 0 unbinds."""
        ...

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        """Set entries `[first, first + len(ids))` of a request row to virtual page ids."""
        ...
