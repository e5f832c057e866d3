"""The modeled device: streams whose work starts as early and ends as late as ordering allows.

One program per stream serves every rank: ranks differ only in how far they have come and in the
bytes they hold.  A launch is checked against the clocks once, when it is submitted; it ends on a
rank only when a `complete` operation says so or a host wait forces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from harness.device.clock import HOST, LANES, Access, Clocks, Conflict, SpaceClock
from harness.device.host_memory import HostMemory
from harness.device.launches import BadRead, Launch, ModeledEvent, NoWitness, Race, Witness
from harness.device.memory import (
    ARENA,
    CopyBytes,
    Effect,
    Image,
    Mismatch,
    PageBytes,
    WriteMap,
    WritePages,
    WriteRow,
)
from harness.device.row_memory import RowMemorySpace
from unikv.device.port import StorageLayout

_NEVER = 1 << 62
"""More items than any stream's program has."""


class Rank:
    """How far one rank has come, and what its memory holds."""

    __slots__ = ("awaited", "image", "position", "started", "waits_for")

    def __init__(self, layout: StorageLayout, staging_count: int) -> None:
        streams = LANES
        self.image = Image(layout, staging_count)
        self.position = [0] * streams  # program items that have passed, per stream
        self.started = [False] * streams  # whether the launch at the head runs
        self.waits_for = [-1] * streams  # the stream that the wait at the head is about
        self.awaited = [_NEVER] * streams  # program items at which somebody waits for a stream


_NO_EFFECT = WritePages(())

Item = Launch | tuple[int, int]
"""An item of a stream's program: a launch, or a wait as (stream, index)."""


class ModeledDevice:
    """Streams, events, memory and clocks of all ranks.

    Attributes:
        program: the image after every launch so far, in program order.
        ranks: one per rank.
        races, bad_reads: what was found since they were last cleared.
        events: what the first rank's allocator recorded in this operation; the others, which do
            the same, are given the same marks.
        witness: who says how memory is held when something is found.
        operation: index of the operation that is being applied.
        page_accesses: pages and table entries named by launches so far.
    """

    def __init__(self, layout: StorageLayout, rank_count: int, staging_count: int = 1) -> None:
        self.layout = layout
        self.page_bytes = [band.page_bytes for band in layout.bands]
        self.granule = gcd(*self.page_bytes) // layout.layer_groups
        self.clocks = Clocks()
        self.program = Image(layout, staging_count)
        self.ranks = [Rank(layout, staging_count) for _ in range(rank_count)]
        self.arena = SpaceClock("arena", layout.total_bytes // self.granule)
        self.maps = [SpaceClock(f"map:{band.name}", band.id_count + 1) for band in layout.bands]
        self.rows = SpaceClock("rows", layout.row_count)
        self.staging = SpaceClock("staging", staging_count)
        self.host = HostMemory(self)
        self.row_memory = RowMemorySpace(self)
        self.races: list[Race] = []
        self.bad_reads: list[BadRead] = []
        self.events: list[ModeledEvent] = []
        self.witness: Witness = NoWitness()
        self.operation = 0
        self.page_accesses = 0
        self._items: list[list[Item]] = [[] for _ in range(LANES)]
        self._launches: list[list[Launch]] = [[] for _ in range(LANES)]
        self._zeros = [bytes(size) for size in self.page_bytes]

    def granules(self, band: int, pages: Sequence[int]) -> Sequence[int]:
        """Arena units of whole pages of one band."""
        each = self.page_bytes[band] // self.granule
        if each == 1:
            return pages
        return [unit for page in pages for unit in range(page * each, page * each + each)]

    def group_granules(self, band: int, pages: Sequence[int], group: int) -> Sequence[int]:
        """Arena units of one layer group of whole pages."""
        each, groups = self.page_bytes[band] // self.granule, self.layout.layer_groups
        low, high = group * each // groups, (group + 1) * each // groups
        return [unit for page in pages for unit in range(page * each + low, page * each + high)]

    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        """Enqueue a launch: check its accesses, apply it in program order, start it if it can."""
        launch = Launch(stream, kind, self.operation, step, effect)
        epoch = self.clocks.tick(stream)
        self._launches[stream].append(launch)
        clock = self.clocks.clocks[stream]
        for access in touched:
            space, units = access.space, access.units
            self.page_accesses += len(units)
            check = space.write if access.wrote else space.read
            conflict = check(stream, epoch, clock, units)
            if conflict is not None:
                self._report(launch, space, conflict, wrote=access.wrote)
        effect.apply(self.program)
        items = self._items[stream]
        at = len(items)
        items.append(launch)
        for index, rank in enumerate(self.ranks):
            if rank.position[stream] == at:
                self._start(index, stream, launch)

    def stage(self, buffer: int, tables: list[int], step: int) -> None:
        """The host fills a staging buffer, at once and on every rank."""
        launch = Launch(HOST, "fill", self.operation, step, _NO_EFFECT)
        epoch = self.clocks.tick_host()
        self._launches[HOST].append(launch)
        self.page_accesses += 1
        conflict = self.staging.write(HOST, epoch, self.clocks.clocks[HOST], (buffer,))
        if conflict is not None:
            self._report(launch, self.staging, conflict, wrote=True)
        for image in (self.program, *(rank.image for rank in self.ranks)):
            image.staging[buffer] = tables

    def record_event(self, stream: int) -> ModeledEvent:
        """Mark the work enqueued on `stream` so far."""
        clock = self.clocks.clocks[stream]
        return ModeledEvent(stream, len(self._items[stream]), clock[stream], tuple(clock))

    def wait_event(self, stream: int, event: ModeledEvent) -> None:
        """Put later work of `stream` behind `event`."""
        if event.stream == stream or self.clocks.covers(stream, event.clock):
            return
        self.clocks.join(stream, event.clock)
        items = self._items[stream]
        items.append((event.stream, event.index))
        for index, rank in enumerate(self.ranks):
            if rank.position[stream] == len(items) - 1:
                self._advance(index, stream)

    def passed(self, rank: int, event: ModeledEvent) -> bool:
        """Whether everything before `event` has ended on `rank`."""
        return self.ranks[rank].position[event.stream] >= event.index

    def has_ended(self, event: ModeledEvent) -> bool:
        """Whether everything before `event` has ended on every rank."""
        return all(self.passed(rank, event) for rank in range(len(self.ranks)))

    def host_wait(self, event: ModeledEvent) -> None:
        """Block the host until `event` has passed on every rank."""
        self.clocks.join(HOST, event.clock)
        stream, index = event.stream, event.index
        for rank, state in enumerate(self.ranks):
            if state.position[stream] < index:
                self._force(rank, stream, index)

    def host_saw(self, event: ModeledEvent) -> None:
        """The host has found that `event` has passed on every rank, without waiting for it."""
        self.clocks.join(HOST, event.clock)

    def complete(self, rank: int, stream: int, count: int) -> int:
        """End up to `count` launches at the head of a stream of one rank; how many ended."""
        ended = 0
        while ended < count and self.ranks[rank].started[stream]:
            self._end(rank, stream, 0)
            ended += 1
        return ended

    def started(self) -> list[tuple[int, int]]:
        """Every (rank, stream) whose head runs and could end now."""
        return [
            (rank, stream)
            for rank, state in enumerate(self.ranks)
            if True in state.started
            for stream, runs in enumerate(state.started)
            if runs
        ]

    def drain(self) -> None:
        """End everything on every rank; the host has seen it all."""
        for lane in range(LANES):
            if lane != HOST:
                self.host_wait(self.record_event(lane))

    def zero_pages(self, stream: int, band: int, pages: Sequence[int]) -> None:
        """Write zeros over whole pages."""
        size, zeros = self.page_bytes[band], self._zeros[band]
        writes: list[PageBytes] = [(page * size, page * size + size, zeros) for page in pages]
        touched = (Access(self.arena, self.granules(band, pages), True),)
        self.submit(stream, "zero", 0, WritePages(writes), touched)

    def move_pages(
        self, stream: int, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy whole pages."""
        size, arena = self.page_bytes[band], self.program.arena
        copies = [(a * size, b * size, size) for a, b in zip(sources, targets, strict=True)]
        before = [bytes(arena[a * size : a * size + size]) for a in sources]
        touched = (
            Access(self.arena, self.granules(band, sources), False),
            Access(self.arena, self.granules(band, targets), True),
        )
        self.submit(stream, "move", 0, CopyBytes(ARENA, ARENA, copies, before), touched)

    def write_map(self, stream: int, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
        """Write page map entries."""
        touched = (Access(self.maps[band], ids, True),)
        self.submit(stream, "map", 0, WriteMap(band, ids, pages), touched)

    def write_row(self, stream: int, row: int, first: int, ids: Sequence[int]) -> None:
        """Write entries of a request row."""
        touched = (Access(self.rows, (row,), True),)
        self.submit(stream, "row", 0, WriteRow(row, first, ids), touched)

    def _report(self, later: Launch, space: SpaceClock, conflict: Conflict, *, wrote: bool) -> None:
        earlier = self._launches[conflict.lane][conflict.epoch - 1]
        holder, place = self.witness.describe(space.name, conflict.unit)
        self.races.append(
            Race(space.name, conflict.unit, earlier, later, conflict.wrote, wrote, holder, place)
        )

    def _start(self, rank: int, stream: int, launch: Launch) -> None:
        self.ranks[rank].started[stream] = True
        mismatch = launch.effect.start(self.ranks[rank].image)
        if mismatch is not None:
            self._read_wrong(rank, launch, mismatch)

    def _read_wrong(self, rank: int, launch: Launch, mismatch: Mismatch) -> None:
        kind, unit, index = mismatch
        space = kind
        if kind == "arena":
            unit //= self.granule
        elif kind == "map":
            space = self.maps[index].name
        elif kind == "host":
            space = self.host.spaces[index].name
            unit //= self.host.granules[index]
        _, place = self.witness.describe(space, unit)
        self.bad_reads.append(BadRead(rank, launch, space, unit, place))

    def _end(self, rank: int, stream: int, through: int) -> None:
        """End the launch at the head, and those behind it before item `through` at one stroke.

        That is, those that would start and end with nothing in between, as nobody waits for them.
        """
        state, items = self.ranks[rank], self._items[stream]
        image, awaited = state.image, state.awaited[stream]
        at = state.position[stream]
        launch = items[at]
        assert isinstance(launch, Launch)
        mismatch = launch.effect.end(image)
        if mismatch is not None:
            self._read_wrong(rank, launch, mismatch)
        at += 1
        if awaited < through:
            through = awaited
        while at < through:
            launch = items[at]
            if not isinstance(launch, Launch):
                break
            mismatch = launch.effect.run(image)
            if mismatch is not None:
                self._read_wrong(rank, launch, mismatch)
            at += 1
        state.started[stream] = False
        state.position[stream] = at
        if at < len(items):
            self._advance(rank, stream)
        if at >= awaited:
            self._wake(rank, stream)

    def _wake(self, rank: int, stream: int) -> None:
        """Let every stream go on whose head waits for `stream`, or wait again."""
        state = self.ranks[rank]
        state.awaited[stream] = _NEVER
        for other, awaited in enumerate(state.waits_for):
            if awaited == stream:
                self._advance(rank, other)

    def _advance(self, rank: int, stream: int) -> None:
        """Pass satisfied waits at the head of an idle stream and start the launch behind them."""
        state, items = self.ranks[rank], self._items[stream]
        position = state.position
        state.waits_for[stream] = -1
        while position[stream] < len(items):
            item = items[position[stream]]
            if isinstance(item, Launch):
                self._start(rank, stream, item)
                return
            other, index = item
            if position[other] < index:
                state.waits_for[stream] = other
                state.awaited[other] = min(state.awaited[other], index)
                return
            position[stream] += 1
            # Passing a wait ends no launch, but another stream may wait for this very mark.
            if position[stream] >= state.awaited[stream]:
                self._wake(rank, stream)
                if state.started[stream]:
                    return

    def _force(self, rank: int, stream: int, index: int) -> None:
        """End work of a stream, and whatever it waits for, until `index` items have passed."""
        state, items = self.ranks[rank], self._items[stream]
        while state.position[stream] < index:
            if state.started[stream]:
                self._end(rank, stream, index)
                continue
            item = items[state.position[stream]]
            assert not isinstance(item, Launch), "a launch at the head of a stream has started"
            self._force(rank, item[0], item[1])
            # Whoever ended the awaited work has most likely woken this stream already.
            if not state.started[stream]:
                self._advance(rank, stream)
