"""Who holds which page of a small chain, and what must be in it: the lending engine's own account.

Pages are lent to steps, copies, reservations, receive holds and transfers.  The account knows what
every id, every reserved page and every page in a peer's hands must hold, and its device knows which
bytes unfinished work still uses.  What an answer of the allocator must be is not known here.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from benchmarks.search.diary_device import picture
from benchmarks.search.guarded_device import GuardedDevice, Work
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.pricing import Step, assert_plan, plan
from unikv.device.port import Event, StorageLayout, Stream
from unikv.errors import TransferError

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


def books(chain: ChainAllocator) -> object:
    """Everything that an operation of the allocator can change, but its counters."""
    held, fences = chain.ledger.held, chain.ledger.fences
    stuck = [held.stuck(band.index) for band in chain.bands]
    return picture(chain), held.holds(), stuck, fences.uses()


class LendingAccount:
    """Lends pages of a chain allocator, takes them back, and remembers every word.

    Invariant: what `check` asserts, between any two operations.

    Attributes:
        words: per band, the word in the page of every bound id.
        reserved, transfers: what their names say, by name.
        holds: per receive hold and band, the ids whose pages it holds.
        copies: number of each unfinished copy with its event.
        recorded: the steps in flight, oldest first.
        patience: whether a transfer that is waited for ends.
        waited: the transfers that the last question waited for.
        unreleased: transfers that a relief waited for and that nobody has released since.
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
        self.unreleased: list[str] = []
        self._names = 0
        self._stamps = 0
        self._steps = 0

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
        places = {band: sorted(self.pages_of(band, units)) for band, units in enumerate(ids)}
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
        """A hold or a transfer is over on every rank.

        Where a relief has waited for it, only its name is.
        """
        if name in self.unreleased:
            self.unreleased.remove(name)
            before = books(self.chain)
            self.chain.users.release(name)
            assert books(self.chain) == before
            return
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
                word = self.stamp(band, page)
                for unit in self.words[band]:
                    if self.device.maps[band][unit] == page:
                        self.words[band][unit] = word

    def _lend(self, name: str, ids: Sequence[Sequence[int]], transfer: Transfer) -> None:
        self.device.lent[name] = self._mask(ids)
        for band, units in enumerate(ids):
            for unit in units:
                transfer.words[band, self.device.maps[band][unit]] = self.words[band][unit]
        self.transfers[name] = transfer

    def wait(self, names: Sequence[str]) -> None:
        """What the allocator calls to wait for peers, who write once more before they are done."""
        if not self.patience:
            raise TransferError(f"{names} do not end")
        self.waited += names
        self.unreleased += names
        for name in names:
            self.end_transfer(name)

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
        placed = self.held_pages()
        assert self.chain.flush(limit) <= limit
        assert self.held_pages() == placed

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
                assert self.word_in(band, page) == word, f"id {unit} of band {band}"
            fixed = [p for r in self.reserved.values() if r.band == band for p in r.words]
            assert sorted(part.fixed_pages()) == sorted(fixed)
            stuck = self.lent_pages(band) - self.pages_of(band, words)
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
                assert self.word_in(reserved.band, page) == word, f"reserved page {page}"
        for transfer in self.transfers.values():
            for (band, page), word in transfer.words.items():
                assert self.word_in(band, page) == word, (
                    f"page {page} of band {band} under transfer"
                )
        listed = self.chain.ledger.held.holds()
        for name, held in self.holds.items():
            for band, ids in enumerate(held):
                pages = {p for h in listed if (h.name, h.band) == (name, band) for p in h.pages}
                assert pages == self.pages_of(band, ids)

    def held_pages(self) -> list[list[set[int]]]:
        return [
            [self.pages_of(band, ids) for band, ids in enumerate(held)]
            for held in self.holds.values()
        ]

    def lent_pages(self, band: int, ended: Collection[str] = ()) -> set[int]:
        return {
            page
            for name, transfer in self.transfers.items()
            for lent, page in transfer.words
            if lent == band and name not in ended
        }

    def pages_of(self, band: int, ids: Collection[int]) -> set[int]:
        maps = self.device.maps[band]
        return {maps[unit] for unit in ids}

    def _mask(self, ids: Sequence[Sequence[int]]) -> int:
        used = 0
        for band, units in enumerate(ids):
            used |= self.device.mask(band, self.pages_of(band, units))
        return used

    def _write(self, ids: Sequence[Sequence[int]]) -> None:
        for band, units in enumerate(ids):
            for unit in units:
                self.words[band][unit] = self.stamp(band, self.device.maps[band][unit])

    def stamp(self, band: int, page: int) -> bytes:
        """Write a fresh word over a page; the word."""
        self._stamps = self._stamps % 255 + 1
        size = self.layout.bands[band].page_bytes
        self.device.arena[self.device.bytes_of(band, page)] = bytes([self._stamps]) * size
        return bytes([self._stamps]) * size

    def word_in(self, band: int, page: int) -> bytes:
        return bytes(self.device.arena[self.device.bytes_of(band, page)])
