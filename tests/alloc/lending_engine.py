"""An engine that lends its pages: to steps, copies, reservations, receive holds and transfers.

It keeps its own account of what every id, every reserved page and every page in a peer's hands must
hold, and its device knows which bytes unfinished work still uses.  Every answer of the allocator is
compared with an exhaustive search, and every rearrangement with the least one that would have done.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from harness.check.layout_search import layout_exists
from tests.alloc.guarded_device import GuardedDevice, Work
from tests.alloc.small_chain import picture
from unikv.alloc.chain import ChainAllocator, Taken
from unikv.alloc.pricing import Step, assert_plan, plan
from unikv.alloc.signals import HOLDS
from unikv.device.port import Event, StorageLayout, Stream
from unikv.errors import Shortage, TransferError

Answer = TypeVar("Answer")
Place = tuple[int, int]
"""A band and one of its pages."""


class Reservation(NamedTuple):
    """Pages of one band that a load will fill, each with the word that is in it."""

    band: int
    words: dict[int, bytes]


class Transfer(NamedTuple):
    """Pages in the hands of a peer, each with the word that is in it."""

    is_written: bool
    words: dict[Place, bytes]


class Licence(NamedTuple):
    """What a rearrangement may do: whom it has to wait for, and whether held rows may move."""

    waits: list[str]
    moves_holds: bool


NO_LICENCE = Licence([], moves_holds=False)


def books(chain: ChainAllocator) -> object:
    """Everything that an operation of the allocator can change, but its counters."""
    held, fences = chain.ledger.held, chain.ledger.fences
    stuck = [held.stuck(band.index) for band in chain.bands]
    return picture(chain), held.holds(), stuck, fences.uses()


class LendingEngine:
    """Asks the allocator for everything it offers, and holds it to its word.

    Attributes:
        words: per band, the word in the page of every bound id.
        reserved, transfers: what their names say, by name.
        holds: per receive hold and band, the ids whose pages it holds.
        copies: number of each unfinished copy with its event.
        recorded: the steps in flight, oldest first.
        patience: whether a transfer that is waited for ends.
        waited: the transfers that the last question waited for.
        reached: questions, refusals, and questions that `disturbed` a hold or a transfer.
    """

    def __init__(self, layout: StorageLayout) -> None:
        self.layout = layout
        self.device = GuardedDevice(layout)
        self.chain = ChainAllocator(layout, self.device, waiter=self)
        self.bands = range(len(layout.bands))
        self.owner = self.bands[-1]
        self.state = next((i for i, band in enumerate(layout.bands[:-1]) if band.mints), -1)
        self.words: list[dict[int, bytes]] = [{} for _ in self.bands]
        self.reserved: dict[str, Reservation] = {}
        self.transfers: dict[str, Transfer] = {}
        self.holds: dict[str, list[set[int]]] = {}
        self.copies: dict[int, Event] = {}
        self.recorded: list[tuple[int, Event]] = []
        self.patience = True
        self.waited: list[str] = []
        self.reached: Counter[str] = Counter()
        self._names = 0
        self._stamps = 0
        self._steps = 0

    # Questions, and what follows from them --------------------------------------------------

    def take(self, pages: int, slots: int) -> None:
        """Take pages and slots; they are zeroed where the layout says so, and nobody uses them."""
        demand = self.demand(pages, slots)
        promised = self.chain.fits(pages, slots)
        assert promised == (self._has_ids(demand) and self.serves(demand))
        taken = self._ask(demand, lambda: self.chain.take(pages, slots), promised=promised)
        if taken is not None:
            self._keep(taken, demand)

    def reserve(self, band: int, count: int) -> None:
        """Reserve pages of one band, in which something is then written."""
        demand = self.demand_of_band(band, count)
        promised = self.chain.relief.fits(demand)
        assert promised == self.serves(demand)
        zeroed = len(self.device.named("zero"))
        pages = self._ask(demand, lambda: self.chain.reserve(band, count), promised=promised)
        if pages is not None:
            assert len(set(pages)) == len(pages) == count
            assert len(self.device.named("zero")) == zeroed
            self.device.check_writes(band, pages)
            words = {page: self._stamp(band, page) for page in pages}
            self.reserved[self.name()] = Reservation(band, words)

    def relieve(self, pages: int, slots: int) -> None:
        """Make room, whatever ids are left; then nothing has to move for a take."""
        demand = self.demand(pages, slots)
        promised = self.serves(demand)
        if self._ask(demand, lambda: self._relieved(pages, slots), promised=promised):
            careful = self.chain.relief.snapshot([HOLDS for _ in self.bands])
            assert plan(careful, demand, Step.NO_MOVE) is not None

    def wait(self, names: Sequence[str]) -> None:
        """What the allocator calls to wait for peers, who write once more before they are done."""
        if not self.patience:
            raise TransferError(f"{names} do not end")
        self.waited += names
        for name in names:
            self.end_transfer(name)

    def demand(self, pages: int, slots: int) -> list[int]:
        """Pages per band."""
        return [slots if band == self.state else pages for band in self.bands]

    def demand_of_band(self, band: int, count: int) -> list[int]:
        """Pages per band where only one of them is asked."""
        return [count if index == band else 0 for index in self.bands]

    def _relieved(self, pages: int, slots: int) -> bool:
        if self.chain.relieve(pages, slots):
            return True
        raise Shortage("bytes", "", pages + slots, 0)

    def _ask(
        self, demand: Sequence[int], act: Callable[[], Answer], *, promised: bool
    ) -> Answer | None:
        """The answer; None, and nothing changed, for a refusal and for a wait in vain."""
        before = () if promised else books(self.chain)
        licence = self._licence(demand) if promised else NO_LICENCE
        calls, placed = len(self.device.calls), self._held_pages()
        self.waited = []
        self.reached["questions"] += 1
        try:
            answer = act()
        except Shortage:
            assert not promised
            assert books(self.chain) == before
            assert len(self.device.calls) == calls
            self.reached["refusals"] += 1
            return None
        except TransferError:
            assert not self.patience
            assert licence.waits
            assert {call[0] for call in self.device.calls[calls:]} <= {"wait"}
            assert self._held_pages() == placed
            self.reached["disturbed"] += 1
            return None
        assert promised
        assert sorted(self.waited) == sorted(licence.waits)
        assert licence.moves_holds or self._held_pages() == placed
        self.reached["disturbed"] += bool(self.waited) or self._held_pages() != placed
        return answer

    def _keep(self, taken: Taken, demand: Sequence[int]) -> None:
        for band in self.bands:
            ids = taken.slots if band == self.state else taken.ids
            assert len(set(ids)) == len(ids) == demand[band]
            assert self.words[band].keys().isdisjoint(ids)
            pages = self.chain.translate(band, ids)
            self.device.check_writes(band, pages)
            for unit, page in zip(ids, pages, strict=True):
                is_zeroed = not any(self._word(band, page))
                assert is_zeroed or not self.layout.bands[band].zeroed
                self.words[band][unit] = self._stamp(band, page)

    # What the search says ---------------------------------------------------------------------

    def _licence(self, demand: Sequence[int]) -> Licence:
        """The least that serves the demand, in the order of what disturbs others least."""
        if self.serves(demand, self.bands, self.bands):
            return Licence([], moves_holds=False)
        if self.serves(demand, self.bands):
            return Licence([], moves_holds=True)
        kept: list[int] = []
        for band in self.bands:
            if self.serves(demand, [*kept, band]):
                kept.append(band)
        waits = [
            name
            for name, transfer in self.transfers.items()
            if any(band not in kept for band, _ in transfer.words)
        ]
        return Licence(waits, moves_holds=not self.serves(demand, self.bands, self.bands, waits))

    def serves(
        self,
        demand: Sequence[int],
        lent: Collection[int] = (),
        held: Collection[int] = (),
        ended: Collection[str] = (),
    ) -> bool:
        """Whether some layout serves the demand.

        Args:
            lent: bands whose pages under transfers stay, and are used also where they were freed.
            held: bands whose pages under receive holds stay.
            ended: transfers that are over.
        """
        bands = []
        for band in self.bands:
            live = self._pages(band, self.words[band])
            stays = {p for r in self.reserved.values() if r.band == band for p in r.words}
            used = len(live) + len(stays)
            if band in lent:
                under = self._lent_pages(band, ended)
                used += len(under - live)
                stays |= under
            if band in held:
                stays |= self._pages(band, {i for ids in self.holds.values() for i in ids[band]})
            pin = (min(stays), max(stays) + 1) if stays else (0, 0)
            bands.append((self.layout.bands[band].page_bytes, used, *pin))
        return layout_exists(self.layout.total_bytes, self.layout.sink_bytes, bands, demand)

    def _has_ids(self, demand: Sequence[int]) -> bool:
        return all(
            len(words) + wanted <= band.id_count
            for band, words, wanted in zip(self.layout.bands, self.words, demand, strict=True)
            if band.mints
        )

    # Lending --------------------------------------------------------------------------------------

    def name_reserved(self, name: str, ids: Sequence[int]) -> None:
        """Ids name the pages of a reservation."""
        reserved = self.reserved.pop(name)
        self.chain.users.name_reserved(reserved.band, ids, list(reserved.words))
        self.words[reserved.band].update(zip(ids, reserved.words.values(), strict=True))

    def cancel(self, name: str) -> None:
        """Give a reservation back."""
        reserved = self.reserved.pop(name)
        self.chain.users.cancel_reservation(reserved.band, list(reserved.words))

    def copy(self, ids: Sequence[Sequence[int]], stream: Stream) -> None:
        """Submit a copy of some pages: to the host on the backup stream, else from it."""
        event = self.device.record_event(stream)
        used = self._mask(ids)
        if stream is Stream.BACKUP:
            self.device.work.append(Work(event, used, 0))
            self.copies[self.chain.users.begin_backup(ids, event)] = event
        else:
            self.device.work.append(Work(event, 0, used))
            self.copies[self.chain.users.begin_load(ids, event)] = event
            self._write(ids)

    def acknowledge(self, number: int) -> None:
        """A copy is over on every rank; the schedule stream may have waited it before."""
        event = self.copies.pop(number)
        if any(work.event is event for work in self.device.work):
            self.device.finish(event)
        self.chain.users.end_copy(number)

    def hold(self, ids: Sequence[Sequence[int]]) -> None:
        """Hold rows for a receive."""
        name = self.name()
        self.holds[name] = [set(units) for units in ids]
        self.chain.users.hold_receive(name, ids)

    def publish(self, hold: str) -> None:
        """The pages of a hold leave, and a peer may write them."""
        ids = [sorted(units) for units in self.holds.pop(hold)]
        name = self.name()
        places = {band: sorted(self._pages(band, units)) for band, units in enumerate(ids)}
        published = self.chain.users.publish(hold, name)
        assert {band: pages for band, pages in published.items() if pages} == {
            band: pages for band, pages in places.items() if pages
        }
        self._lend(name, ids, Transfer(is_written=True, words={}))

    def send(self, ids: Sequence[Sequence[int]]) -> None:
        """A peer reads the pages of some ids."""
        name = self.name()
        self._lend(name, ids, Transfer(is_written=False, words={}))
        self.chain.users.begin_send(name, ids)

    def release(self, name: str) -> None:
        """A hold or a transfer is over on every rank."""
        if name in self.holds:
            del self.holds[name]
        else:
            self.end_transfer(name)
        self.chain.users.release(name)

    def end_transfer(self, name: str) -> None:
        """A peer is done; one that writes has done so until now, also where ids were freed."""
        transfer = self.transfers.pop(name)
        del self.device.lent[name]
        if transfer.is_written:
            for band, page in transfer.words:
                word = self._stamp(band, page)
                for unit in self.words[band]:
                    if self.device.maps[band][unit] == page:
                        self.words[band][unit] = word

    def _lend(self, name: str, ids: Sequence[Sequence[int]], transfer: Transfer) -> None:
        self.device.lent[name] = self._mask(ids)
        for band, units in enumerate(ids):
            for unit in units:
                transfer.words[band, self.device.maps[band][unit]] = self.words[band][unit]
        self.transfers[name] = transfer

    # Everything else ------------------------------------------------------------------------------

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages everywhere."""
        self.chain.free(ids)
        for band in self.bands:
            if band != self.state:
                self._forget(band, ids)

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free window rows, or state slots."""
        if band == self.state:
            self.chain.free_slots(ids)
        else:
            self.chain.retire(band, ids)
        self._forget(band, ids)

    def _forget(self, band: int, ids: Sequence[int]) -> None:
        for unit in ids:
            self.words[band].pop(unit, None)
        for held in self.holds.values():
            held[band].difference_update(ids)

    def flush(self, limit: int) -> None:
        """Compact the ends, which leaves held rows alone."""
        placed = self._held_pages()
        assert self.chain.flush(limit) <= limit
        assert self._held_pages() == placed

    def run_step(self, reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]]) -> None:
        """Run a step and tell the allocator what it writes."""
        number, event = self._launch(reads, writes, is_known=True)
        self.chain.record_step(number, event, writes)

    def run_unknown_step(
        self, reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]]
    ) -> None:
        """Run a step and tell nobody what it writes."""
        number, event = self._launch(reads, writes, is_known=False)
        self.chain.record_step_of_unknown_writes(number, event)

    def _launch(
        self, reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]], *, is_known: bool
    ) -> tuple[int, Event]:
        self._steps += 1
        self.chain.launch_step(self._steps)
        event = self.device.record_event(Stream.FORWARD)
        used = Work(event, self._mask(reads), self._mask(writes), self._steps, is_known)
        self.device.work.append(used)
        self._write(writes)
        self.recorded.append((self._steps, event))
        return self._steps, event

    def process(self) -> None:
        """The host waits for the oldest step."""
        number, event = self.recorded.pop(0)
        if any(work.event is event for work in self.device.work):
            self.device.finish(event)
        self.chain.process_step(number)

    def busy(self, band: int) -> set[int]:
        """Ids whose pages somebody uses who must see or leave a certain word."""
        used = 0
        for lent in self.device.lent.values():
            used |= lent
        for work in self.device.work:
            used |= work.writes | (work.reads if not work.step else 0)
        held = {unit for ids in self.holds.values() for unit in ids[band]}
        maps = self.device.maps[band]
        return held | {
            unit for unit in self.words[band] if used & self.device.mask(band, [maps[unit]])
        }

    def name(self) -> str:
        """A name that nothing had before."""
        self._names += 1
        return f"name{self._names}"

    # The account ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Everything that must hold between operations."""
        chain, device = self.chain, self.device
        for band, (part, words) in enumerate(zip(chain.bands, self.words, strict=True)):
            assert sum(part.counts) == part.high - part.low
            assert part.counts == tuple(part.states.count(state) for state in range(1, 5))
            assert device.maps[band] == part.ids.forward
            assert {unit for unit, page in enumerate(part.ids.forward) if page} == words.keys()
            assert part.live == len(words)
            for unit, word in words.items():
                page = part.ids.forward[unit]
                assert part.ids.inverse[page] == unit
                assert part.states[part.axis.depth_of(page)] == 1
                assert self._word(band, page) == word, f"id {unit} of band {band}"
            fixed = [p for r in self.reserved.values() if r.band == band for p in r.words]
            assert sorted(part.fixed_pages()) == sorted(fixed)
            stuck = self._lent_pages(band) - self._pages(band, words)
            assert chain.ledger.held.stuck(band) == stuck
            assert all(part.states[part.axis.depth_of(page)] == 3 for page in stuck)
            assert self.recorded or part.pending == len(stuck)
            assert all(pages for _, pages in part.pending_pages.batches())
            assert part.retreat() == 0, "a hole stayed at a moving edge"
        self._check_lent()
        nothing = [0] * len(chain.bands)
        spans = plan(chain.relief.snapshot(), nothing, Step.NO_MOVE)
        assert spans is not None
        assert_plan(chain.relief.snapshot(), nothing, Step.NO_MOVE, spans)

    def _check_lent(self) -> None:
        for reserved in self.reserved.values():
            for page, word in reserved.words.items():
                assert self._word(reserved.band, page) == word, f"reserved page {page}"
        for transfer in self.transfers.values():
            for (band, page), word in transfer.words.items():
                assert self._word(band, page) == word, f"page {page} of band {band} under transfer"
        listed = self.chain.ledger.held.holds()
        for name, held in self.holds.items():
            for band, ids in enumerate(held):
                pages = {p for h in listed if (h.name, h.band) == (name, band) for p in h.pages}
                assert pages == self._pages(band, ids)

    def _held_pages(self) -> list[list[set[int]]]:
        return [
            [self._pages(band, ids) for band, ids in enumerate(held)]
            for held in self.holds.values()
        ]

    def _lent_pages(self, band: int, ended: Collection[str] = ()) -> set[int]:
        return {
            page
            for name, transfer in self.transfers.items()
            for lent, page in transfer.words
            if lent == band and name not in ended
        }

    def _pages(self, band: int, ids: Collection[int]) -> set[int]:
        maps = self.device.maps[band]
        return {maps[unit] for unit in ids}

    def _mask(self, ids: Sequence[Sequence[int]]) -> int:
        used = 0
        for band, units in enumerate(ids):
            used |= self.device.mask(band, self._pages(band, units))
        return used

    def _write(self, ids: Sequence[Sequence[int]]) -> None:
        for band, units in enumerate(ids):
            for unit in units:
                self.words[band][unit] = self._stamp(band, self.device.maps[band][unit])

    def _stamp(self, band: int, page: int) -> bytes:
        """Write a fresh word over a page; the word."""
        self._stamps = self._stamps % 255 + 1
        size = self.layout.bands[band].page_bytes
        self.device.arena[self.device.bytes_of(band, page)] = bytes([self._stamps]) * size
        return bytes([self._stamps]) * size

    def _word(self, band: int, page: int) -> bytes:
        return bytes(self.device.arena[self.device.bytes_of(band, page)])
