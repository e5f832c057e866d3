"""A deliberately simple subject: one fixed pool per band, no moves, no growth, no sharing.

It keeps the protocol honest: whatever the world or a check assumes beyond the protocol shows up as
a report on this allocator, which is too simple to be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.subject import Answer, Book, Use
from unikv.device.port import Device, Event, StorageLayout, Stream
from unikv.errors import OwnershipError, Shortage, StepOrderError

_UNCLAIMED, _LIVE, _HOLE, _PENDING = range(4)


class _Pool:
    """Pages `[low, high)` of one band, cut out once.

    Law: every page is live, a hole, or pending under one step.
    """

    def __init__(self, low: int, high: int, end: int, id_count: int) -> None:
        self.low, self.high = low, high
        self.states = bytearray(low) + bytes([_HOLE]) * (high - low) + bytes(end - high)
        self.forward = [0] * (id_count + 1)
        self.inverse = [0] * (end + 1)
        self.waiting: list[tuple[int, int]] = []  # (step, page)

    def free_pages(self) -> int:
        """Holes and pending pages: what a take may have once it waited."""
        return self.states.count(_HOLE) + len(self.waiting)

    def book(self) -> Book:
        """Its pages by state, counted apart from the states."""
        size, waiting = self.high - self.low, len(self.waiting)
        live = len(self.inverse) - self.inverse.count(0)
        counts = (live, size - live - waiting, waiting, 0)
        return Book(bytes(self.states), (self.low, self.high), counts)

    def bind(self, unit: int) -> int:
        """Give `unit` the lowest hole."""
        page = self.states.index(_HOLE)
        self.states[page] = _LIVE
        self.forward[unit] = page
        self.inverse[page] = unit
        return page

    def unbind(self, name: str, units: Sequence[int], step: int) -> None:
        """Free the pages of `units`, which wait for `step` where there is one."""
        pages = [self.forward[unit] for unit in units]
        if 0 in pages or len(set(pages)) != len(pages):
            raise OwnershipError(f"pool {name!r}: ids {list(units)} are not bound once each")
        for unit, page in zip(units, pages, strict=True):
            self.forward[unit] = 0
            self.inverse[page] = 0
            self.states[page] = _PENDING if step else _HOLE
            if step:
                self.waiting.append((step, page))

    def release_through(self, step: int) -> None:
        """Return what waited for `step` or an earlier one."""
        for key, page in self.waiting:
            if key <= step:
                self.states[page] = _HOLE
        self.waiting = [(key, page) for key, page in self.waiting if key > step]


class StaticSubject:
    """Static pools in chain order, each with its planned share of the arena."""

    families = frozenset({"windows", "state", "prefix"})
    shares_bytes = False

    def __init__(self, layout: StorageLayout, device: Device) -> None:
        self._layout = layout
        self._device = device
        self._pools: list[_Pool] = []
        share = (layout.total_bytes - layout.sink_bytes) // len(layout.bands)
        for index, band in enumerate(layout.bands):
            low_byte = layout.sink_bytes + index * share
            low = -(-low_byte // band.page_bytes)
            high = max(low, (low_byte + share) // band.page_bytes)
            end = layout.total_bytes // band.page_bytes
            self._pools.append(_Pool(low, high, end, band.id_count))
        self._owner = len(layout.bands) - 1
        self._state = next((i for i, b in enumerate(layout.bands[:-1]) if b.mints), -1)
        self._free_ids = {
            index: list(range(band.id_count, 0, -1))
            for index, band in enumerate(layout.bands)
            if band.mints
        }
        self._rows: list[list[int]] = [[] for _ in range(layout.row_count)]
        self._free_rows = list(range(layout.row_count - 1, -1, -1))
        self._open = 0
        self._events: dict[int, Event] = {}  # recorded, unprocessed steps in launch order
        self._unknown: set[int] = set()
        self._writes: dict[int, list[frozenset[int]]] = {}
        self._settled = 0
        self._settles = 0

    def fits(self, pages: int, slots: int) -> bool:
        """Whether every pool and id space has what a take wants."""
        return self._shortage(pages, slots) is None

    def take(self, pages: int, slots: int) -> Answer:
        """Hand out the lowest holes; wait for the newest step when only pending pages are left."""
        self._check_closed("take")
        short = self._shortage(pages, slots)
        if short is not None:
            raise short
        for index, count in self._wanted(pages, slots):
            if self._pools[index].states.count(_HOLE) < count:
                self._settle()
                break
        units = {
            index: [ids.pop() for _ in range(count)]
            for index, ids, count in self._ids(pages, slots)
        }
        slot_ids = units.get(self._state, [])
        for index, count in self._wanted(pages, slots):
            if not count:
                continue
            names = slot_ids if index == self._state else units[self._owner]
            bound = [self._pools[index].bind(unit) for unit in names]
            if self._layout.bands[index].zeroed:
                self._device.zero_pages(Stream.SCHEDULE, index, bound)
            self._device.write_map(Stream.SCHEDULE, index, names, bound)
        return Answer(units[self._owner], slot_ids)

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages everywhere."""
        self._unbind(self._owner, ids)
        for index, band in enumerate(self._layout.bands):
            if not band.mints:
                self._unbind(index, [unit for unit in ids if self._pools[index].forward[unit]])
        self._free_ids[self._owner].extend(ids)

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free the rows of one window band."""
        self._unbind(band, ids)

    def free_slots(self, slots: Sequence[int]) -> None:
        """Free state slots."""
        self._unbind(self._state, slots)
        self._free_ids[self._state].extend(slots)

    def take_row(self) -> int:
        """Hand out an empty request row."""
        if not self._free_rows:
            raise Shortage("rows", "request table", 1, 0)
        row = self._free_rows.pop()
        self._rows[row] = []
        return row

    def append_row(self, row: int, ids: Sequence[int]) -> None:
        """Write virtual pages behind what the row names."""
        self._device.write_row(Stream.SCHEDULE, row, len(self._rows[row]), ids)
        self._rows[row].extend(ids)

    def free_row(self, row: int) -> None:
        """Return a request row."""
        self._free_rows.append(row)

    def launch_step(self, number: int) -> None:
        """Open a step."""
        self._check_closed("launch")
        self._open = number

    def record_step(self, number: int, event: Event, writes: Sequence[Sequence[int]]) -> None:
        """Name the end of the open step."""
        if number != self._open:
            raise StepOrderError(f"record of step {number}, but step {self._open} is open")
        self._open = 0
        self._events[number] = event
        self._writes[number] = [
            frozenset(pool.forward[unit] for unit in ids)
            for pool, ids in zip(self._pools, writes, strict=True)
        ]

    def record_step_of_unknown_writes(self, number: int, event: Event) -> None:
        """Name the end of the open step; nothing ever moves here, so nothing else follows."""
        self.record_step(number, event, [[] for _ in self._pools])
        self._unknown.add(number)

    def process_step(self, number: int) -> None:
        """The host has synchronized the step."""
        self._check_closed("process")
        del self._events[number]
        del self._writes[number]
        for pool in self._pools:
            pool.release_through(number)

    def prewarm(self) -> None:
        """Static pools have no copy to run."""

    def flush(self, limit: int) -> int:
        """Static pools move nothing."""
        assert limit >= 0
        return 0

    def relieve(self, pages: int, slots: int) -> bool:
        """Static pools cannot be laid out anew: only what fits now fits."""
        return self.fits(pages, slots)

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        """Physical pages for the kernels of one step."""
        forward = self._pools[band].forward
        return [forward[unit] for unit in ids]

    def books(self) -> list[Book]:
        """The pools, claimed for ever."""
        return [pool.book() for pool in self._pools]

    def page_map(self, band: int) -> list[int]:
        """Page of every id."""
        return self._pools[band].forward

    def inverse_map(self, band: int) -> list[int]:
        """Id of every page."""
        return self._pools[band].inverse

    def row(self, row: int) -> list[int]:
        """What a request row names."""
        return self._rows[row]

    def free_rows(self) -> int:
        """Request rows that can be taken now."""
        return len(self._free_rows)

    def uses(self) -> list[Use]:
        """Writes of steps that the schedule stream has not waited and the host not processed."""
        return [
            Use("forward_write", band, pages, number)
            for number, writes in self._writes.items()
            if number > self._settled
            for band, pages in enumerate(writes)
            if pages
        ] + [
            Use("unknown_write", band, frozenset(), number)
            for number in self._events
            if number in self._unknown and number > self._settled
            for band in range(len(self._pools))
        ]

    def pool_pages(self) -> list[int]:
        """Size of each pool."""
        return [pool.high - pool.low for pool in self._pools]

    def statistics(self) -> dict[str, int]:
        """Only settles happen here."""
        return {"settles": self._settles}

    def _wanted(self, pages: int, slots: int) -> list[tuple[int, int]]:
        return [
            (index, slots if index == self._state else pages) for index in range(len(self._pools))
        ]

    def _ids(self, pages: int, slots: int) -> list[tuple[int, list[int], int]]:
        return [
            (index, ids, slots if index == self._state else pages)
            for index, ids in self._free_ids.items()
        ]

    def _shortage(self, pages: int, slots: int) -> Shortage | None:
        for index, ids, count in self._ids(pages, slots):
            if count > len(ids):
                return Shortage("ids", self._layout.bands[index].name, count, len(ids))
        for index, count in self._wanted(pages, slots):
            free = self._pools[index].free_pages()
            if count > free:
                return Shortage("bytes", self._layout.bands[index].name, count, free)
        return None

    def _settle(self) -> None:
        newest = next(reversed(self._events))
        self._device.wait_event(Stream.SCHEDULE, self._events[newest])
        self._settled = newest
        self._settles += 1
        for pool in self._pools:
            pool.release_through(newest)

    def _unbind(self, band: int, units: Sequence[int]) -> None:
        self._check_closed("free")
        if not units:
            return
        step = next(reversed(self._events)) if self._events else 0
        self._pools[band].unbind(self._layout.bands[band].name, units, step)
        self._device.write_map(Stream.SCHEDULE, band, units, [0] * len(units))

    def _check_closed(self, action: str) -> None:
        if self._open:
            raise StepOrderError(f"{action} between launch and record of step {self._open}")
