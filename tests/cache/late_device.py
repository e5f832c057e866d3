"""A device whose copies to and from host memory run late, and which sees who is behind whom.

Kernels of the schedule and the forward stream run when they are enqueued.  Copies only run when
somebody waits for them or is told that they are over.  That is one of many schedules, so every
access is also judged by vector clocks: two that nothing orders are an error whatever was read.
"""

from collections.abc import Callable, Sequence
from hashlib import blake2b

from harness.device.clock import HOST, Clocks, Conflict, SpaceClock
from unikv.device.port import Event, StorageLayout, Stream

COPY_STREAMS = (Stream.LOAD, Stream.BACKUP)


class Race(AssertionError):
    """Two accesses to the same bytes that nothing orders."""


class Mark:
    """An event: what it is behind, and how many entries of its stream's queue come before it."""

    def __init__(self, stream: Stream, clock: Sequence[int], position: int) -> None:
        self.stream = stream
        self.clock = tuple(clock)
        self.position = position

    def __repr__(self) -> str:
        return f"{self.stream.name.lower()} {self.position}"


class LateDevice:
    """Memory of a storage, its copy queues, and the clocks of all accesses.

    Attributes:
        arena, host, maps: memory, after everything that has run; host memory by backing.
        calls: what was enqueued, in order: the stream and the kernel's name, then its arguments.
    """

    has_streams = True

    def __init__(self, layout: StorageLayout) -> None:
        self.layout = layout
        self.arena = bytearray(layout.total_bytes)
        self.host = [bytearray(backing.total_bytes) for backing in layout.host]
        self.maps = [[0] * (band.id_count + 1) for band in layout.bands]
        self.calls: list[tuple[object, ...]] = []
        self._backing = {band: i for i, part in enumerate(layout.host) for band in part.bands}
        self._clocks = Clocks()
        self._arena_clock = SpaceClock("the arena", layout.total_bytes)
        self._host_clocks = [
            SpaceClock(f"host memory {index}", backing.total_bytes)
            for index, backing in enumerate(layout.host)
        ]
        self._queues: dict[Stream, list[Callable[[], None]]] = {s: [] for s in COPY_STREAMS}
        self._done = dict.fromkeys(COPY_STREAMS, 0)

    # Events -------------------------------------------------------------------------------------

    def record_event(self, stream: Stream) -> Event:
        """A mark behind everything enqueued on the stream so far."""
        return Mark(stream, self._clocks.clocks[stream], len(self._queues.get(stream, ())))

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Order a stream behind a mark; a stream that runs at once makes the copies run."""
        assert isinstance(event, Mark)
        self.calls.append((stream, "wait", event))
        self._clocks.join(stream, event.clock)
        if stream in self._queues:
            self._queues[stream].append(lambda: self._run_through(event))
        else:
            self._run_through(event)

    def query(self, event: Event) -> bool:
        """Nothing in the library may ask this."""
        raise AssertionError(f"a decision asked whether {event} has fired")

    def host_wait(self, event: Event) -> None:
        """The host waits for a mark, and everything that it enqueues later comes behind."""
        assert isinstance(event, Mark)
        self._run_through(event)
        self._clocks.join(HOST, event.clock)

    def run(self, stream: Stream, count: int) -> None:
        """Let the device come to the next few entries of a copy queue, unasked."""
        position = min(self._done[stream] + count, len(self._queues[stream]))
        self._run_through(Mark(stream, (), position))

    def _run_through(self, event: Mark) -> None:
        if event.stream not in self._queues:
            return
        while self._done[event.stream] < event.position:
            entry = self._queues[event.stream][self._done[event.stream]]
            self._done[event.stream] += 1
            entry()

    # Kernels that run at once -------------------------------------------------------------------

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Write zeros."""
        self.calls.append((stream, "zero", band, tuple(pages)))
        for page in pages:
            where = self.where(band, page)
            self._write_arena(stream, where)
            self.arena[where.start : where.stop] = bytes(len(where))

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy pages inside the arena."""
        self.calls.append((stream, "move", band, tuple(sources), tuple(targets)))
        for source, target in zip(sources, targets, strict=True):
            here, there = self.where(band, source), self.where(band, target)
            self._read_arena(stream, here)
            self._write_arena(stream, there)
            self.arena[there.start : there.stop] = self.arena[here.start : here.stop]

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Set entries of a page map."""
        self.calls.append((stream, "map", band, tuple(ids), tuple(pages)))
        for unit, page in zip(ids, pages, strict=True):
            self.maps[band][unit] = page

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        """No request rows are looked at here."""

    def forward_reads(self, band: int, page: int, layer_group: int) -> bytes:
        """What a forward finds in one layer group of a page."""
        where = self.where(band, page, layer_group)
        self._read_arena(Stream.FORWARD, where)
        return bytes(self.arena[where.start : where.stop])

    def forward_writes(self, band: int, page: int, word: bytes) -> None:
        """A forward writes a whole page."""
        where = self.where(band, page)
        self._write_arena(Stream.FORWARD, where)
        self.arena[where.start : where.stop] = word

    # Copies, which run late ---------------------------------------------------------------------

    def copy_to_host(
        self, stream: Stream, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Copy pages to host slots when the queue comes to it."""
        self.calls.append((stream, "to host", band, tuple(pages), tuple(slots)))
        for page, slot in zip(pages, slots, strict=True):
            here, there = self.where(band, page), self.where(band, slot)
            self._read_arena(stream, here)
            self._judge(self._host_clocks[self._backing[band]].write, stream, there)
            self._queues[stream].append(self._copier(self.arena, here, self.memory(band), there))

    def copy_from_host(
        self,
        stream: Stream,
        band: int,
        layer_group: int,
        slots: Sequence[int],
        pages: Sequence[int],
    ) -> None:
        """Copy a layer group of host slots to pages when the queue comes to it."""
        self.calls.append((stream, "from host", band, layer_group, tuple(slots), tuple(pages)))
        for slot, page in zip(slots, pages, strict=True):
            here, there = (self.where(band, unit, layer_group) for unit in (slot, page))
            self._judge(self._host_clocks[self._backing[band]].read, stream, here)
            self._write_arena(stream, there)
            self._queues[stream].append(self._copier(self.memory(band), here, self.arena, there))

    def memory(self, band: int) -> bytearray:
        """The host memory that keeps a band's copies."""
        return self.host[self._backing[band]]

    def where(self, band: int, page: int, layer_group: int | None = None) -> range:
        """The bytes of a page or slot, or of one layer group of it."""
        size = self.layout.bands[band].page_bytes
        if layer_group is None:
            return range(page * size, (page + 1) * size)
        piece = size // self.layout.layer_groups
        start = page * size + layer_group * piece
        return range(start, start + piece)

    @staticmethod
    def _copier(
        source: bytearray, here: range, target: bytearray, there: range
    ) -> Callable[[], None]:
        def copy() -> None:
            target[there.start : there.stop] = source[here.start : here.stop]

        return copy

    def _read_arena(self, stream: Stream, where: range) -> None:
        self._judge(self._arena_clock.read, stream, where)

    def _write_arena(self, stream: Stream, where: range) -> None:
        assert where.start >= self.layout.sink_bytes, "the sink is overwritten"
        self._judge(self._arena_clock.write, stream, where)

    def _judge(
        self,
        access: Callable[[int, int, Sequence[int], Sequence[int]], Conflict | None],
        stream: Stream,
        where: range,
    ) -> None:
        epoch = self._clocks.tick(stream)
        conflict = access(stream, epoch, self._clocks.clocks[stream], where)
        if conflict is not None:
            other = Stream(conflict.lane).name
            raise Race(
                f"{stream.name} touches byte {conflict.unit} beside {other}: {self.calls[-1]}"
            )


def names_on(device: LateDevice, *streams: Stream) -> list[object]:
    """The kernels that were enqueued on some streams, in order."""
    return [call[1] for call in device.calls if call[0] in streams]


def word(stamp: int, size: int) -> bytes:
    """Content of a page of 1 to 64 bytes; hardly any other stamp gives the same."""
    return blake2b(stamp.to_bytes(8, "little"), digest_size=size).digest()
