"""The device port: streams, events, and the few kernels through which the allocator touches memory.

Each kernel names the memory it reads and writes by band, page, id or row, so a device can check
every access without knowing why it was made.  The port decides nothing and knows no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable


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


class HostLayout(NamedTuple):
    """One piece of host memory and whose copies it holds.

    Attributes:
        total_bytes: its size.
        bands: index of the one band that keeps its copies there, or of two that share the bytes:
            the first from the low end, the second from the high end.
    """

    total_bytes: int
    bands: tuple[int, ...]


class StorageLayout(NamedTuple):
    """Every memory space of one storage.

    Attributes:
        sink_bytes: lowest bytes of the arena, where padding writes land.
        total_bytes: size of the arena.
        bands: from the low end to the high end; the last one mints the token ids.
        row_count: rows of the request table.
        row_pages: virtual pages that one row can name.
        slots_per_page: page size of every token band, in slots.
        layer_groups: equal pieces of every page, by layers, which a load fills one after the other.
        host: where copies of pages are kept; empty without a host tier.
    """

    sink_bytes: int
    total_bytes: int
    bands: tuple[BandLayout, ...]
    row_count: int
    row_pages: int
    slots_per_page: int
    layer_groups: int = 1
    host: tuple[HostLayout, ...] = ()


class Device(Protocol):
    """What the allocator asks of a device.

    Order: every method but `host_wait` enqueues and returns at once.  Kernels run in order on their
    stream; only `wait_event` orders one stream behind another.

    Failure: a method raises if it has failed, and has enqueued nothing then.  That is no refusal:
    the call of the allocator ends half-way.  What it enqueued before runs, and no page or host slot
    is handed out under that, as long as events can still be recorded.  Pages and ids that it had
    taken stay out of use, named to nobody, and maps may lack what the host has written, which an
    audit reports in part.  So launch and take nothing more, let what runs end, and build another
    storage.

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

        Reads and writes the arena.  Sources and targets are disjoint and equally many.  The first
        call for a band may compile or take memory; later ones must not, however many pages they
        copy, since a relief runs when there is nothing left to take.
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


@runtime_checkable
class CopyDevice(Device, Protocol):
    """A device that copies pages to host memory and back; known by having both calls.

    Order: as `Device`; a copy reads or writes host memory when it runs, not when it is enqueued.
    """

    def copy_to_host(
        self, stream: Stream, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Copy whole pages, `pages[i]` to host slot `slots[i]` of the band's pool.

        Reads the arena, writes host memory.
        """
        ...

    def copy_from_host(
        self,
        stream: Stream,
        band: int,
        layer_group: int,
        slots: Sequence[int],
        pages: Sequence[int],
    ) -> None:
        """Copy one layer group of host slots `slots[i]` into `pages[i]`.

        Reads host memory, writes the arena: of every page the bytes
        `[layer_group * piece, (layer_group + 1) * piece)`, where a page has `layer_groups` pieces.
        """
        ...


RowContent: TypeAlias = object
"""What the memory of one row held when it was saved; made by the device, a copy and never a view.

A view would show what the row's next holder writes.
"""


@runtime_checkable
class RowMemoryDevice(Device, Protocol):
    """A device that keeps memory per request row: scratch, ring cursors of a speculative state.

    It is known by having the three calls.

    Forwards read and write the memory of their batch's rows from their first kernel to their last.

    Order: as `Device`.
    """

    def reset_rows(self, stream: Stream, rows: Sequence[int]) -> None:
        """Give the memory of whole rows its first content.  Writes row memory."""
        ...

    def save_row(self, stream: Stream, row: int) -> RowContent:
        """A copy of a row's memory, taken when `stream` comes to it.  Reads row memory."""
        ...

    def restore_row(self, stream: Stream, row: int, content: RowContent) -> None:
        """Write the whole memory of `row`, which need not be the row it was saved from.

        Writes row memory.
        """
        ...
