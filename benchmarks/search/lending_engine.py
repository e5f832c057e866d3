"""An engine that asks a small chain for everything it offers, and holds it to its word.

Every answer of the allocator is compared with an exhaustive search, and every rearrangement with
the least one that would have done.  A refusal must have changed nothing, and who was waited for is
exactly who had to be.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from benchmarks.search.lending_account import LendingAccount, Reservation, books
from harness.check.layout_search import layout_exists
from unikv.alloc.chain import Taken
from unikv.alloc.pricing import Step, plan
from unikv.alloc.signals import HOLDS
from unikv.device.port import StorageLayout
from unikv.errors import Shortage, TransferError

Answer = TypeVar("Answer")


class Licence(NamedTuple):
    """What a rearrangement may do: whom it has to wait for, and whether held rows may move."""

    waits: list[str]
    moves_holds: bool


NO_LICENCE = Licence([], moves_holds=False)


class LendingEngine(LendingAccount):
    """Asks questions of which it knows the answer.

    Attributes:
        reached: questions, refusals, and questions that `disturbed` a hold or a transfer.
    """

    def __init__(self, layout: StorageLayout) -> None:
        super().__init__(layout)
        self.reached: Counter[str] = Counter()

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
            words = {page: self.stamp(band, page) for page in pages}
            self.reserved[self.name()] = Reservation(band, words)

    def relieve(self, pages: int, slots: int) -> None:
        """Make room, whatever ids are left; then nothing has to move for a take."""
        demand = self.demand(pages, slots)
        promised = self.serves(demand)
        if self._ask(demand, lambda: self._relieved(pages, slots), promised=promised):
            careful = self.chain.relief.snapshot([HOLDS for _ in self.bands])
            assert plan(careful, demand, Step.NO_MOVE) is not None

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
        before = books(self.chain)
        licence = self._licence(demand) if promised else NO_LICENCE
        calls, placed = len(self.device.calls), self.held_pages()
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
            assert books(self.chain) == before
            assert len(self.device.calls) == calls
            self.reached["disturbed"] += 1
            return None
        assert promised
        assert sorted(self.waited) == sorted(licence.waits)
        assert licence.moves_holds or self.held_pages() == placed
        self.reached["disturbed"] += bool(self.waited) or self.held_pages() != placed
        return answer

    def _keep(self, taken: Taken, demand: Sequence[int]) -> None:
        for band in self.bands:
            ids = taken.slots if band == self.state else taken.ids
            assert len(set(ids)) == len(ids) == demand[band]
            assert self.words[band].keys().isdisjoint(ids)
            pages = self.chain.translate(band, ids)
            self.device.check_writes(band, pages)
            for unit, page in zip(ids, pages, strict=True):
                is_zeroed = not any(self.word_in(band, page))
                assert is_zeroed or not self.layout.bands[band].zeroed
                self.words[band][unit] = self.stamp(band, page)

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
            live = self.pages_of(band, self.words[band])
            stays = {p for r in self.reserved.values() if r.band == band for p in r.words}
            used = len(live) + len(stays)
            if band in lent:
                under = self.lent_pages(band, ended)
                used += len(under - live)
                stays |= under
            if band in held:
                stays |= self.pages_of(band, {i for ids in self.holds.values() for i in ids[band]})
            pin = (min(stays), max(stays) + 1) if stays else (0, 0)
            bands.append((self.layout.bands[band].page_bytes, used, *pin))
        return layout_exists(self.layout.total_bytes, self.layout.sink_bytes, bands, demand)

    def _has_ids(self, demand: Sequence[int]) -> bool:
        return all(
            len(words) + wanted <= band.id_count
            for band, words, wanted in zip(self.layout.bands, self.words, demand, strict=True)
            if band.mints
        )
