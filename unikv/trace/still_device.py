"""A device on which nothing happens, for questions that no kernel can change.

No decision of the allocator reads the device, so its answers are the same on a device without
memory.  Whether the orders it enqueues are safe cannot be seen here, nor whether a peer would have
kept the host waiting: a recorded wait in vain shows as a difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.device.port import Event, StorageLayout, Stream
from unikv.storage import KVStorage


class StillDevice:
    """Takes every kernel and runs none; its events are marks without a time.

    Attributes:
        has_streams: always true, since it keeps no order that an event could break.
    """

    __slots__ = ("has_streams",)

    def __init__(self) -> None:
        self.has_streams = True

    def record_event(self, stream: Stream) -> Event:
        """A fresh mark."""
        return object()

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Nothing runs, so nothing waits."""

    def query(self, event: Event) -> bool:
        """Whatever was enqueued is over."""
        return True

    def host_wait(self, event: Event) -> None:
        """Whatever was enqueued is over."""

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

    def copy_to_host(
        self, stream: Stream, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        """There are no bytes."""

    def copy_from_host(
        self,
        stream: Stream,
        band: int,
        layer_group: int,
        slots: Sequence[int],
        pages: Sequence[int],
    ) -> None:
        """There are no bytes."""


class StillPeers:
    """Transfers that are over whenever somebody asks."""

    def wait(self, names: Sequence[str]) -> None:
        """There is no peer, so nothing is left to wait for."""


def build_still(layout: StorageLayout) -> KVStorage:
    """An empty storage of this package, on a still device and with still peers."""
    return KVStorage(layout, StillDevice(), waiter=StillPeers())
