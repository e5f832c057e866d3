"""The built-in subject: unikv's own storage behind the harness's protocol."""

from __future__ import annotations

from collections.abc import Sequence

from harness.subject import Answer, Book, Use
from unikv.device.port import Device, Event, StorageLayout
from unikv.storage import KVStorage


class UnikvSubject:
    """A `KVStorage` on one rank's port."""

    families = frozenset({"windows", "state", "prefix", "layout"})
    shares_bytes = True

    def __init__(self, layout: StorageLayout, device: Device) -> None:
        self.storage = KVStorage(layout, device)
        # The pages below the first one that a band can claim, which every book starts with.
        self._bands = [
            (band, bytes(band.axis.pages_of_span(0, len(band.states))[0]))
            for band in self.storage.chain.bands
        ]

    def fits(self, pages: int, slots: int) -> bool:
        """Whether a take would succeed now."""
        return self.storage.chain.fits(pages, slots)

    def take(self, pages: int, slots: int) -> Answer:
        """Hand out virtual pages and state slots."""
        taken = self.storage.chain.take(pages, slots)
        return Answer(taken.ids, taken.slots)

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages everywhere."""
        self.storage.chain.free(ids)

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free the rows of one window band."""
        self.storage.chain.retire(band, ids)

    def free_slots(self, slots: Sequence[int]) -> None:
        """Free state slots."""
        self.storage.chain.free_slots(slots)

    def take_row(self) -> int:
        """Hand out an empty request row."""
        return self.storage.requests.take()

    def append_row(self, row: int, ids: Sequence[int]) -> None:
        """Write virtual pages behind what the row names."""
        self.storage.requests.append(row, ids)

    def free_row(self, row: int) -> None:
        """Return a request row."""
        self.storage.requests.give_back(row)

    def launch_step(self, number: int) -> None:
        """Open a forward step."""
        self.storage.chain.launch_step(number)

    def record_step(self, number: int, event: Event, writes: Sequence[Sequence[int]]) -> None:
        """Name the end of the open step."""
        self.storage.chain.record_step(number, event, writes)

    def record_step_of_unknown_writes(self, number: int, event: Event) -> None:
        """Name the end of the open step, which may write any page."""
        self.storage.chain.record_step_of_unknown_writes(number, event)

    def process_step(self, number: int) -> None:
        """The host has synchronized the step."""
        self.storage.chain.process_step(number)

    def flush(self, limit: int) -> int:
        """Close holes of both ends."""
        return self.storage.chain.flush(limit)

    def relieve(self, pages: int, slots: int) -> bool:
        """Make room for a later take."""
        return self.storage.chain.relieve(pages, slots)

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        """Physical pages for the kernels of one step."""
        return self.storage.chain.translate(band, ids)

    def books(self) -> list[Book]:
        """Its account of every band's pages."""
        return [
            Book(
                below + band.states[:: band.axis.step],
                band.span(),
                (band.live, band.holes, band.pending, band.fixed),
            )
            for band, below in self._bands
        ]

    def page_map(self, band: int) -> list[int]:
        """Page of every id."""
        return self.storage.chain.bands[band].ids.forward

    def inverse_map(self, band: int) -> list[int]:
        """Id of every page."""
        return self.storage.chain.bands[band].ids.inverse

    def row(self, row: int) -> list[int]:
        """What a request row names."""
        return self.storage.requests.rows[row]

    def free_rows(self) -> int:
        """Request rows that can be taken now."""
        return self.storage.requests.free_count

    def uses(self) -> list[Use]:
        """Every use that is not over."""
        return [
            Use(use.use.value, use.band, use.pages, use.step)
            for use in self.storage.chain.ledger.uses()
        ]

    def pool_pages(self) -> list[int]:
        """Pages between the walls: every band may use any free byte."""
        return [len(band.states) for band in self.storage.chain.bands]

    def statistics(self) -> dict[str, int]:
        """Running totals."""
        counters = self.storage.chain.counters
        return {
            "moves": counters.moved_pages,
            "settles": counters.settles,
            "reliefs": counters.reliefs,
            "relocations": counters.relocations,
            "retreats": counters.retreats,
        }
