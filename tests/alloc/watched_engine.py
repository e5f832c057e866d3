"""An engine on a chain allocator, with its own dictionary of what every id must hold.

The device it hands to the allocator knows which bytes every unfinished step reads and writes, and
which steps the schedule stream has waited for.  A kernel that touches bytes too early is an error
when it is enqueued, whatever the bytes turn out to be.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.check.layout_search import layout_exists
from tests.alloc.small_chain import DiaryDevice, picture
from unikv.alloc.chain import NO_TRANSFERS, ChainAllocator, Taken
from unikv.alloc.pricing import Step, assert_plan, plan
from unikv.alloc.relief import Relief
from unikv.device.port import Event, StorageLayout, Stream
from unikv.errors import Shortage


@dataclass(frozen=True, slots=True)
class Running:
    """A step whose end nobody has waited for: its end, and the bytes that it touches.

    `known` says whether the allocator was told what it writes.
    """

    number: int
    event: Event
    reads: frozenset[int]
    writes: frozenset[int]
    known: bool


class WatchedDevice(DiaryDevice):
    """A device on which the schedule stream may not overtake a running step.

    Attributes:
        running: recorded steps that neither the schedule stream nor the host has waited for.
    """

    def __init__(self, layout: StorageLayout) -> None:
        super().__init__(layout)
        self.running: list[Running] = []

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Steps up to the one that ends with `event` are behind the schedule stream."""
        super().wait_event(stream, event)
        through = next(step.number for step in self.running if step.event is event)
        self.running = [step for step in self.running if step.number > through]

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Zeroing writes."""
        self._check_writes(band, pages)
        super().zero_pages(stream, band, pages)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """A move reads its sources and writes its targets."""
        moved = self.bytes_in(band, sources)
        for step in self.running:
            assert step.known, f"pages move while step {step.number} may write any of them"
            assert moved.isdisjoint(step.writes), f"a copy overtakes a write of step {step.number}"
        self._check_writes(band, targets)
        super().move_pages(stream, band, sources, targets)

    def bytes_in(self, band: int, pages: Sequence[int]) -> frozenset[int]:
        """Every byte of some pages."""
        size = self.layout.bands[band].page_bytes
        return frozenset(byte for page in pages for byte in range(page * size, page * size + size))

    def _check_writes(self, band: int, pages: Sequence[int]) -> None:
        written = self.bytes_in(band, pages)
        assert min(written) >= self.layout.sink_bytes
        for step in self.running:
            assert written.isdisjoint(step.reads | step.writes), (
                f"bytes that step {step.number} still uses are overwritten"
            )


class WatchedEngine:
    """Takes, frees and runs steps, and compares everything with its dictionaries.

    Attributes:
        held: per band, the word that every bound id must find in its page; None before the first
            write of a page that is not zeroed.
    """

    def __init__(self, layout: StorageLayout) -> None:
        self.device = WatchedDevice(layout)
        self.chain = ChainAllocator(layout, self.device)
        self.owner = len(layout.bands) - 1
        self.held: list[dict[int, bytes | None]] = [{} for _ in layout.bands]
        self.state = next((i for i, b in enumerate(layout.bands[:-1]) if b.mints), -1)
        self.windows = [i for i, band in enumerate(layout.bands) if not band.mints]
        self.recorded: list[int] = []
        self.steps = 0
        self.words = 0

    def take(self, pages: int, slots: int) -> None:
        """Take, compare the answer with the question, and the refusal with the search."""
        slots = slots if self.state >= 0 else 0
        promised = self.chain.fits(pages, slots)
        before, calls = picture(self.chain), len(self.device.calls)
        answer = self._answer(pages, slots)
        if isinstance(answer, Taken):
            assert promised
            self._keep(answer, pages, slots)
            return
        assert not promised
        assert picture(self.chain) == before
        assert len(self.device.calls) == calls
        assert self._is_short(answer.kind, pages, slots)

    def _answer(self, pages: int, slots: int) -> Taken | Shortage:
        try:
            return self.chain.take(pages, slots)
        except Shortage as shortage:
            return shortage

    def _keep(self, taken: Taken, pages: int, slots: int) -> None:
        assert (len(set(taken.ids)), len(set(taken.slots))) == (pages, slots)
        for band in (*self.windows, self.owner):
            assert self.held[self.owner].keys().isdisjoint(taken.ids) or band != self.owner
            zeros = bytes(self.device.layout.bands[band].page_bytes)
            self.held[band].update(dict.fromkeys(taken.ids, zeros))
        if slots:
            assert self.held[self.state].keys().isdisjoint(taken.slots)
            self.held[self.state].update(dict.fromkeys(taken.slots))

    def _is_short(self, kind: str, pages: int, slots: int) -> bool:
        layout = self.device.layout
        demand = [slots if band == self.state else pages for band in range(len(layout.bands))]
        if kind == "ids":
            return any(
                band.mints and len(held) + wanted > band.id_count
                for band, held, wanted in zip(layout.bands, self.held, demand, strict=True)
            )
        used = [
            (band.page_bytes, len(held), 0, 0)
            for band, held in zip(layout.bands, self.held, strict=True)
        ]
        return not layout_exists(layout.total_bytes, layout.sink_bytes, used, demand)

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages everywhere."""
        self.chain.free(ids)
        for band in (*self.windows, self.owner):
            for unit in ids:
                self.held[band].pop(unit, None)

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free window rows, or state slots."""
        if band == self.state:
            self.chain.free_slots(ids)
        else:
            self.chain.retire(band, ids)
        for unit in ids:
            del self.held[band][unit]

    def run_step(self, chosen: int) -> None:
        """Run one step that reads about half of what is held and writes about a quarter.

        Its writes are told to the allocator, unless 3 was chosen.
        """
        self.steps += 1
        chain, device = self.chain, self.device
        reads: set[int] = set()
        written: set[int] = set()
        writes: list[list[int]] = []
        chain.launch_step(self.steps)
        for band, held in enumerate(self.held):
            batch = [unit for unit in sorted(held) if (unit * 7 + chosen) % 2]
            writes.append([unit for unit in batch if (unit * 5 + chosen) % 4 < 2])
            reads |= device.bytes_in(band, chain.translate(band, batch))
            written |= device.bytes_in(band, chain.translate(band, writes[-1]))
            for unit in writes[-1]:
                self.words += 1
                size = device.layout.bands[band].page_bytes
                word = self.words.to_bytes(2, "little").ljust(size, b"\1")
                device.arena[device.bytes_of(band, chain.translate(band, [unit])[0])] = word
                held[unit] = word
        event = device.record_event(Stream.FORWARD)
        known = chosen != 3
        if known:
            chain.record_step(self.steps, event, writes)
        else:
            chain.record_step_of_unknown_writes(self.steps, event)
        running = Running(self.steps, event, frozenset(reads), frozenset(written), known)
        device.running.append(running)
        self.recorded.append(self.steps)

    def process(self) -> None:
        """The host waits for the oldest step."""
        if self.recorded:
            number = self.recorded.pop(0)
            self.device.running = [s for s in self.device.running if s.number != number]
            self.chain.process_step(number)

    def check(self) -> None:
        """Everything that must hold between operations."""
        chain, device = self.chain, self.device
        for band, (part, held) in enumerate(zip(chain.bands, self.held, strict=True)):
            assert sum(part.counts) == part.high - part.low
            assert part.counts == tuple(part.states.count(state) for state in range(1, 5))
            assert device.maps[band] == part.ids.forward
            assert {unit for unit, page in enumerate(part.ids.forward) if page} == set(held)
            for unit, word in held.items():
                page = part.ids.forward[unit]
                assert part.ids.inverse[page] == unit
                assert part.states[part.axis.depth_of(page)] == 1
                assert word is None or device.arena[device.bytes_of(band, page)] == word
            assert part.live == len(held)
            assert self.recorded or not part.pending
            assert part.retreat() == 0, "a hole stayed at a moving edge"
        self._check_snapshot()

    def _check_snapshot(self) -> None:
        chain = self.chain
        view = chain.relief.snapshot()
        fresh = Relief(chain.parts, chain.reclaim, chain.mover, NO_TRANSFERS)
        assert view == fresh.snapshot()
        nothing = [0] * len(chain.bands)
        spans = plan(view, nothing, Step.NO_MOVE)
        assert spans is not None
        assert_plan(view, nothing, Step.NO_MOVE, spans)
