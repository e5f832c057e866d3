"""The device as one rank's allocator sees it.

The first rank's port drives the shared program.  The others only write down what they would have
submitted: the world compares these logs after every operation, and equal logs mean that the shared
program is theirs too.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.device.launches import ModeledEvent
from harness.device.modeled import ModeledDevice
from harness.device.row_memory import SavedRow
from unikv.device.port import Event, RowContent, Stream

MAY_BLOCK = frozenset({"transfer_round", "publish_receive"})
"""Calls that may let the host wait for an event: those in which physical ids leave for a peer.

Whatever else the host waits for is the engine's own, or the end of a transfer, which is no event.
"""


class RankPort:
    """One rank's door to the modeled device.

    Attributes:
        has_streams: always true.
        network: this rank's transfer engine and link to the other ranks; None without peers.
        log: submissions since it was last cleared.
        host_reads: host reads behind a stream wait since it was last cleared.
        blocked: calls that let the host wait for the device though they may not, likewise.
    """

    has_streams = True
    network: object = None

    def __init__(self, device: ModeledDevice, rank: int) -> None:
        self._device = device
        self._rank = rank
        self._waited = False
        self._call = ""
        self._recorded = 0
        self._saved_rows = 0
        self.log: list[tuple[object, ...]] = []
        self.host_reads: list[str] = []
        self.blocked: list[str] = []

    def begin_operation(self) -> None:
        """Forget what the previous operation submitted."""
        if self.log or self.host_reads:
            self._recorded = 0
            if self._rank == 0:
                self._device.events.clear()
            self.log.clear()
            self.host_reads.clear()
            self.blocked.clear()

    def begin_call(self, name: str) -> None:
        """The allocator call `name` begins: no stream wait has happened in it yet."""
        self._waited = False
        self._call = name

    def record_event(self, stream: Stream) -> Event:
        """Mark the work enqueued so far."""
        self.log.append(("record", stream))
        events = self._device.events
        if self._rank == 0:
            events.append(self._device.record_event(stream))
        self._recorded += 1
        if self._recorded > len(events):
            return self._device.record_event(stream)  # the logs differ, which ends the run
        return events[self._recorded - 1]

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Put later work of `stream` behind `event`."""
        assert isinstance(event, ModeledEvent)
        self._waited = True
        self.log.append(("wait", stream, event.stream, event.index))
        if self._rank == 0:
            self._device.wait_event(stream, event)

    def query(self, event: Event) -> bool:
        """Whether this rank has passed `event`."""
        assert isinstance(event, ModeledEvent)
        self.note_host_read("query")
        return self._device.passed(self._rank, event)

    def host_wait(self, event: Event) -> None:
        """Block the host until `event` has passed."""
        assert isinstance(event, ModeledEvent)
        self.note_host_read("host_wait")
        if self._call not in MAY_BLOCK:
            self.blocked.append(self._call)
        self.log.append(("host_wait", event.stream, event.index))
        if self._rank == 0:
            self._device.host_wait(event)

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Write zeros over whole pages."""
        self.log.append(("zero", stream, band, pages))
        if self._rank == 0:
            self._device.zero_pages(stream, band, pages)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy whole pages."""
        self.log.append(("move", stream, band, sources, targets))
        if self._rank == 0:
            self._device.move_pages(stream, band, sources, targets)

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Write page map entries."""
        self.log.append(("map", stream, band, ids, pages))
        if self._rank == 0:
            self._device.write_map(stream, band, ids, pages)

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        """Write entries of a request row."""
        self.log.append(("row", stream, row, first, ids))
        if self._rank == 0:
            self._device.write_row(stream, row, first, ids)

    def copy_to_host(
        self, stream: Stream, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Copy pages to host memory."""
        self.log.append(("backup", stream, band, pages, slots))
        if self._rank == 0:
            self._device.host.copy_to_host(stream, band, pages, slots)

    def copy_from_host(
        self,
        stream: Stream,
        band: int,
        layer_group: int,
        slots: Sequence[int],
        pages: Sequence[int],
    ) -> None:
        """Copy pages back from host memory."""
        self.log.append(("load", stream, band, layer_group, slots, pages))
        if self._rank == 0:
            self._device.host.copy_from_host(stream, band, layer_group, slots, pages)

    def reset_rows(self, stream: Stream, rows: Sequence[int]) -> None:
        """Give the memory of whole rows its first content."""
        self.log.append(("reset", stream, rows))
        if self._rank == 0:
            self._device.row_memory.reset(stream, rows)

    def save_row(self, stream: Stream, row: int) -> RowContent:
        """Copy a row's memory away; every rank names the copy alike."""
        self.log.append(("save", stream, row))
        self._saved_rows += 1
        if self._rank == 0:
            self._device.row_memory.save(stream, row, self._saved_rows)
        return SavedRow(self._saved_rows)

    def restore_row(self, stream: Stream, row: int, content: RowContent) -> None:
        """Write a row's memory whole."""
        assert isinstance(content, SavedRow)
        self.log.append(("restore", stream, row, content))
        if self._rank == 0:
            self._device.row_memory.restore(stream, row, content.number)

    def handed_over(self) -> bool:
        """Whether engines were handed something since the log was last cleared."""
        return any(entry[0] in ("send", "receive") for entry in self.log)

    def note_host_read(self, name: str) -> None:
        """A host read happens now; behind a stream wait it is kept for the check."""
        if self._waited:
            self.host_reads.append(name)
