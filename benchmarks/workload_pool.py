"""The pool that every row of the workload starts from, on a device that does nothing.

Two token bands share `2 * P * s * 32` bytes: a window below, full attention above, 32 bytes a token
on each side.  Copies and kernels are free here, so that what is timed is bookkeeping alone.

The clock is the CPU time of this thread, so that neighbours on the machine are not counted, though
they still slow it through its caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from time import thread_time_ns
from typing import Generic, NamedTuple, ParamSpec, TypeVar

from unikv.alloc.chain import ChainAllocator
from unikv.device.port import BandLayout, Event, StorageLayout, Stream

P = ParamSpec("P")
Answer = TypeVar("Answer")

TOKEN_BYTES = 32
WINDOW, FULL = "window", "full"


class PoolSize(NamedTuple):
    """One column of the table.

    Attributes:
        pages: nominal pages of each side; the arena holds twice as many.
        slots: tokens of one page.
    """

    pages: int
    slots: int

    def pages_of(self, tokens: int) -> int:
        """Pages that hold `tokens` (rounds up)."""
        return -(-tokens // self.slots)

    def __str__(self) -> str:
        return f"{self.pages // 1024}k/{self.slots}"


class Measured(NamedTuple):
    """One cell of the table.

    Attributes:
        row: what was timed.
        unit: of `value`.
        value: None where the row could not be measured.
        note: why it could not be, or what a reader must know; may be empty.
    """

    row: str
    unit: str
    value: float | None
    note: str = ""


class Timed(NamedTuple, Generic[Answer]):
    """One call: its nanoseconds of CPU time, and what it answered."""

    nanoseconds: int
    answer: Answer


class FreeDevice:
    """A device on which every kernel is free and every event has passed."""

    has_streams = True

    def record_event(self, stream: Stream) -> Event:
        """A fresh object."""
        return object()

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Nothing runs, so nothing is waited for."""

    def query(self, event: Event) -> bool:
        """Every event has passed."""
        return True

    def host_wait(self, event: Event) -> None:
        """Nothing runs, so nothing is waited for."""

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """There are no bytes."""

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """There are no bytes."""

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """There is no replica."""

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        """There is no replica."""


def pool_of(size: PoolSize) -> ChainAllocator:
    """An empty pool: a window and full attention."""
    return _chain(size, (_tokens(size, WINDOW), _tokens(size, FULL)))


def pool_with_state(size: PoolSize) -> ChainAllocator:
    """An empty pool of the same bytes: state, a window, and full attention."""
    state = BandLayout("state", _page_bytes(size), 1, size.pages, mints=True, zeroed=False)
    return _chain(size, (state, _tokens(size, WINDOW), _tokens(size, FULL)))


def _chain(size: PoolSize, bands: tuple[BandLayout, ...]) -> ChainAllocator:
    page_bytes = _page_bytes(size)
    layout = StorageLayout(page_bytes, 2 * size.pages * page_bytes, bands, 1, 1, size.slots)
    return ChainAllocator(layout, FreeDevice())


def _tokens(size: PoolSize, name: str) -> BandLayout:
    # No band has a cap beyond the bytes: there are as many ids as the whole arena has pages.
    id_count = 2 * size.pages
    return BandLayout(name, _page_bytes(size), size.slots, id_count, name == FULL, zeroed=True)


def _page_bytes(size: PoolSize) -> int:
    return size.slots * TOKEN_BYTES


def timed(act: Callable[P, Answer], *arguments: P.args, **named: P.kwargs) -> Timed[Answer]:
    """Make one call and time it, without the time of reading the clock."""
    start = thread_time_ns()
    answer = act(*arguments, **named)
    return Timed(thread_time_ns() - start - _READING_NS, answer)


def _reading_ns() -> int:
    readings = [thread_time_ns() for _ in range(1000)]
    return int(median(after - before for before, after in pairwise(readings)))


_READING_NS = _reading_ns()


def median_us(nanoseconds: Sequence[int]) -> float:
    """Median in microseconds."""
    return median(nanoseconds) / 1e3
