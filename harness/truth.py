"""Our independent account: who owns which page, what every slot must hold, what is still in use.

Truth learns ids from answers and everything physical from what the allocator *submitted* to the
device: map writes, waits, moves.  It never reads the allocator's bookkeeping, so the two can be
compared.  Problems that can only be seen at a submission are noted here and reported by the checks.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from harness import memory_names
from harness.copies import CopyTruth
from harness.device.launches import ModeledEvent
from harness.device.modeled import ModeledDevice
from harness.problem import Problem, StepUse
from harness.transfers import EVERY_PART, TransferTruth
from harness.violation import Site, id_sites, page_sites
from unikv.device.port import StorageLayout

_UNKNOWN: frozenset[int] = frozenset()


class Truth:
    """What must hold now.

    Attributes:
        content: per band and id, the bytes of its page; None before the first write of a page that
            is not zeroed.
        owner: per band and page, the id bound to it, 0 for none.
        live: per band and page, 1 where an id is bound.
        bound: per band, how many ids are bound.
        bound_ids: per band and id, 1 where it is bound.
        granule_owner: per granule of the arena, `band << 32 | id` of its page, 0 for none.
        held: per band and id, 1 while handed out.
        pending: per band, page -> newest forward that may still touch what was freed there.
        steps: recorded steps that are not processed, by number.
        settled_through: newest step that the allocator let the schedule stream wait for.
        problems: what was seen since last cleared.
        tokens: owner page -> the blocks of the prompt up to its end, for pages inside such blocks.
        state_tokens: state slot -> the blocks and the length whose state was copied there.
        two_floats_moved: operations in which one float's pages moved after another's.
        reserved: per band, pages handed to loads that no id names yet, with the load's name.
        copies: what is in host memory, and the copies in flight.
        transfers: pages that peers may touch, and those that were freed under them.
        revision: changes with everything that the state checks compare with.
    """

    def __init__(self, layout: StorageLayout, device: ModeledDevice) -> None:
        self.layout = layout
        self.device = device
        self.content: list[list[bytearray | None]] = [
            [None] * (band.id_count + 1) for band in layout.bands
        ]
        self.first_page = [-(-layout.sink_bytes // band.page_bytes) for band in layout.bands]
        self.end_page = [layout.total_bytes // band.page_bytes for band in layout.bands]
        self.owner = [[0] * (end + 1) for end in self.end_page]
        self.live = [bytearray(end) for end in self.end_page]
        self.bound = [0] * len(layout.bands)
        self.bound_ids = [bytearray(band.id_count + 1) for band in layout.bands]
        self.held = [bytearray(band.id_count + 1) for band in layout.bands]
        self.held_count = [0] * len(layout.bands)
        self.pending: list[dict[int, int]] = [{} for _ in layout.bands]
        self.steps: dict[int, StepUse] = {}
        self.processed_through = 0
        self.settled_through = 0
        self.problems: list[Problem] = []
        self.tokens: dict[int, tuple[int, ...]] = {}
        self.state_tokens: dict[int, tuple[tuple[int, ...], int]] = {}
        self.two_floats_moved = 0
        self._float_moved = (-1, -1)
        self.reserved: list[dict[int, str]] = [{} for _ in layout.bands]
        self.copies = CopyTruth(layout)
        self.transfers = TransferTruth(len(layout.bands))
        self.revision = 0
        self._events: dict[ModeledEvent, int] = {}
        self._granules = [band.page_bytes // device.granule for band in layout.bands]
        self.granule_owner = [0] * (layout.total_bytes // device.granule)
        self._zeros = [bytes(band.page_bytes) for band in layout.bands]
        # The ids of the last band, the owner, name pages of every band that mints none.
        owner = len(layout.bands) - 1
        self._named_by = [
            [
                i
                for i, part in enumerate(layout.bands)
                if i == index or (index == owner and not part.mints)
            ]
            for index in range(len(layout.bands))
        ]

    @property
    def retired_through(self) -> int:
        """Every step up to this one is over for work of the schedule stream."""
        processed, settled = self.processed_through, self.settled_through
        return processed if processed > settled else settled

    @property
    def newest_recorded(self) -> int:
        """Newest recorded step that is not processed; 0 when there is none."""
        return next(reversed(self.steps)) if self.steps else 0

    @property
    def newest_unknown(self) -> int:
        """Newest recorded, unprocessed step that may write any page; 0 when there is none."""
        return max((step.number for step in self.steps.values() if not step.known), default=0)

    def handed_out(self, band: int, ids: Sequence[int]) -> None:
        """A take answered with these ids of a minting band."""
        held = self.held[band]
        for unit in ids:
            if not 1 <= unit < len(held) or held[unit]:
                text = f"{self._band(band)}: id {unit} is held"
                self.note("ownership", "id handed out twice", text, id_sites(band, [unit]))
                continue
            held[unit] = 1
            self.held_count[band] += 1
        for index in self._named_by[band]:
            self._reset_content(index, ids)

    def awaits_load(
        self, name: str, ids: Mapping[int, Sequence[int]], reserved: Mapping[int, Sequence[int]]
    ) -> None:
        """A load was handed `ids` of minting bands, whose content it brings, and bare pages."""
        self.revision += 1
        for band, units in ids.items():
            self.handed_out(band, units)
            for index in self._named_by[band]:
                for unit in units:
                    self.content[index][unit] = None
        for band, pages in reserved.items():
            for page in pages:
                if self._own(band, page, memory_names.RESERVED):
                    self.reserved[band][page] = name
                    self.pending[band].pop(page, None)

    def reservation_over(self, name: str) -> None:
        """The bare pages of a load get their ids now, or go back."""
        self.revision += 1
        for band, pages in enumerate(self.reserved):
            each = self._granules[band]
            for page in [page for page, load in pages.items() if load == name]:
                del pages[page]
                self.granule_owner[page * each : page * each + each] = [0] * each

    def remember_prefix(
        self, pages: Sequence[int], slot: int, blocks: tuple[int, ...], block_pages: int
    ) -> None:
        """A load brings back the pages, and the state, of a prefix that holds `blocks`."""
        for index, unit in enumerate(pages):
            self.tokens[unit] = blocks[: index // block_pages + 1]
        if slot:
            self.state_tokens[slot] = (blocks, len(pages) * self.layout.slots_per_page)

    def given_back(self, band: int, ids: Sequence[int]) -> None:
        """The engine freed these ids of a minting band."""
        held = self.held[band]
        for unit in ids:
            if not held[unit]:
                text = f"{self._band(band)}: id {unit} is not held"
                self.note("ownership", "freed twice", text, id_sites(band, [unit]))
                continue
            held[unit] = 0
            self.held_count[band] -= 1

    def map_written(self, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
        """The allocator submits a map write; called before the device applies it."""
        self.revision += 1
        entries = self.device.program.maps[band]
        newest = self.newest_recorded
        unretired = newest if newest > self.retired_through else 0
        for unit, page in zip(ids, pages, strict=True):
            old = entries[unit]
            if old:
                self._unbind(band, unit, old, unretired if page else newest)
                if not page and self.transfers.uses:
                    self.transfers.freed(band, old)
            if page:
                self._bind(band, unit, page)

    def backed_up(self, band: int, pages: Sequence[int], slots: Sequence[int]) -> None:
        """The allocator submits a copy of pages to host slots; called before it is applied."""
        content: list[bytes | None] = []
        size, arena = self.layout.bands[band].page_bytes, self.device.program.arena
        for page in pages:
            data = self.content[band][self._owner_of(band, page, "backup")]
            content.append(None if data is None else bytes(data))
            if data is not None and arena[page * size : page * size + size] != data:
                text = f"{self._band(band)}: a backup reads page {page}, which holds something else"
                self.note("content", "backup of wrong bytes", text, page_sites(band, [page]))
        self.copies.backed_up(band, pages, slots, content)

    def loaded(self, band: int, group: int, slots: Sequence[int], pages: Sequence[int]) -> None:
        """The allocator submits a load of one layer group; called before it is applied."""
        size = self.layout.bands[band].page_bytes
        piece = size // self.layout.layer_groups
        pieces = self.copies.loaded(band, group, slots, pages)
        for page, data in zip(pages, pieces, strict=True):
            unit = self._owner_of(band, page, "load")
            content = self.content[band][unit]
            if data is None:
                self.content[band][unit] = None
                continue
            if content is None:
                content = self.content[band][unit] = bytearray(size)
            content[group * piece : group * piece + piece] = data

    def _owner_of(self, band: int, page: int, action: str) -> int:
        unit = self.owner[band][page]
        if not unit:
            text = f"{self._band(band)}: a {action} touches page {page}, which no id names"
            detail = f"{action} of a page without a name"
            self.note("ledger", detail, text, page_sites(band, [page]))
        return unit

    def handed(self, transfer: str, kind: str, pages: Sequence[Sequence[int]]) -> None:
        """A transfer engine was handed pages, which must be what truth says of their ids."""
        self.revision += 1
        self.transfers.began(transfer, kind, pages)
        for band, units in enumerate(pages):
            size, arena = self.layout.bands[band].page_bytes, self.device.program.arena
            for page in units:
                unit = self._owner_of(band, page, "transfer") if page else 0
                data = self.content[band][unit]
                if (
                    kind == "network_send"
                    and unit
                    and arena[page * size : page * size + size] != data
                ):
                    where = self._band(band)
                    text = f"{where}: {transfer} sends page {page}, which holds something else"
                    self.note("content", "send of wrong bytes", text, page_sites(band, [page]))

    def transfer_isolated(self, transfer: str) -> None:
        """An engine was told to stop a transfer: until there is proof, its pages stay."""
        self.revision += 1
        if transfer in self.transfers.uses:
            self.transfers.isolated.add(transfer)

    def transfer_over(self, transfer: str, parts: Container[int] = EVERY_PART) -> None:
        """Parts of a transfer are over: what was stuck under them may pend on a step."""
        self.revision += 1
        for band, page in self.transfers.over(transfer, parts):
            if self.newest_recorded:
                self.pending[band][page] = self.newest_recorded

    def moved(self, band: int, sources: Sequence[int]) -> None:
        """The allocator submits a copy of pages of `band`."""
        if 0 < band < len(self.layout.bands) - 1:
            moved_at, first = self._float_moved
            self.two_floats_moved += moved_at == self.device.operation and first != band
            self._float_moved = (self.device.operation, band)
        transfer = self.transfers.moving(band, sources)
        if transfer:
            pages = f"{self._band(band)}: pages {list(sources)}"
            text = f"{pages} move while {self.transfers.told(transfer)} is not over"
            self.note("ownership", "page of a transfer moved", text, page_sites(band, sources))
        bare = sorted(self.reserved[band].keys() & set(sources))
        if bare:
            text = f"{self._band(band)}: pages {bare} are reserved by a load, and move"
            self.note("ownership", "reserved page moved", text, page_sites(band, bare))
        retired = self.retired_through
        for step in self.steps.values():
            if not step.known and step.number > retired:
                self.note(
                    "ledger",
                    "move under unknown writes",
                    f"{self._band(band)}: pages move while step {step.number}"
                    " may write any of them",
                    page_sites(band, sources),
                )

    def waited(self, event: ModeledEvent) -> None:
        """The allocator lets the schedule stream wait for `event`."""
        self.revision += 1
        self.copies.waited(event)
        step = self._events.get(event, 0)
        if step > self.settled_through:
            self.settled_through = step

    def recorded(
        self, number: int, event: ModeledEvent, writes: Sequence[Sequence[int]], *, known: bool
    ) -> None:
        """A step has its event; `writes` are, per band, the pages it writes.

        `known` says whether the allocator is told them.
        """
        self.revision += 1
        self._events[event] = number
        uses = tuple(
            (band, frozenset(pages) if known else _UNKNOWN, number)
            for band, pages in enumerate(writes)
            if pages or not known
        )
        self.steps[number] = StepUse(number, uses, known)

    def processed(self, number: int) -> None:
        """The host synchronized the step: what waited for it is free."""
        self.revision += 1
        self.steps.pop(number, None)
        self.processed_through = number
        for index, pending in enumerate(self.pending):
            if pending:
                self.pending[index] = {
                    page: step for page, step in pending.items() if step > number
                }

    def note(self, check: str, detail: str, what: str, sites: tuple[Site, ...] = ()) -> None:
        """Keep a problem for the check that owns the promise."""
        self.problems.append(Problem(check, detail, what, sites))

    def _band(self, band: int) -> str:
        return f"band {self.layout.bands[band].name!r}"

    def describe(self, space: str, unit: int) -> tuple[str, str]:
        """How a unit of a memory space is held now, in one word, and what to call it."""
        return memory_names.describe(self, space, unit)

    def _reset_content(self, band: int, ids: Sequence[int]) -> None:
        content = self.content[band]
        zeroed = self.layout.bands[band].zeroed
        for unit in ids:
            if 1 <= unit < len(content):
                content[unit] = bytearray(self._zeros[band]) if zeroed else None

    def _unbind(self, band: int, unit: int, page: int, step: int) -> None:
        """The page is no more the id's; `step` is the newest that may touch it, 0 for none."""
        if self.owner[band][page] != unit:
            return  # reported when the second owner was bound
        self.owner[band][page] = 0
        self.live[band][page] = 0
        self.bound[band] -= 1
        self.bound_ids[band][unit] = 0
        each = self._granules[band]
        if each == 1:
            self.granule_owner[page] = 0
        else:
            self.granule_owner[page * each : page * each + each] = [0] * each
        if step:
            self.pending[band][page] = step

    def _bind(self, band: int, unit: int, page: int) -> None:
        if not self._own(band, page, unit):
            return
        self.owner[band][page] = unit
        self.live[band][page] = 1
        self.bound[band] += 1
        self.bound_ids[band][unit] = 1
        self.pending[band].pop(page, None)

    def _own(self, band: int, page: int, unit: int) -> bool:
        """Give the bytes of a page to an id, unless they belong to another already."""
        if not self.first_page[band] <= page < self.end_page[band]:
            self.note(
                "ownership",
                "page outside the arena",
                f"{self._band(band)} page {page} is given to {memory_names.unit_text(unit)}; its"
                f" pages are {self.first_page[band]}..{self.end_page[band] - 1}",
                memory_names.owner_sites(band << 32 | unit),
            )
            return False
        each, owners = self._granules[band], self.granule_owner
        low = page * each
        other = owners[low] if each == 1 else next(filter(None, owners[low : low + each]), 0)
        if other:
            self.note(
                "ownership",
                "page with two owners",
                f"{self._band(band)} page {page} is given to {memory_names.unit_text(unit)}, but"
                f" its bytes belong to {memory_names.owner_text(self, other)}",
                page_sites(band, [page]) + memory_names.owner_sites(other),
            )
            return False
        if each == 1:
            owners[low] = band << 32 | unit
        else:
            owners[low : low + each] = [band << 32 | unit] * each
        transfer = self.transfers.bound(band, page) if self.transfers.uses else ""
        if transfer:
            where = f"{self._band(band)} page {page}"
            text = f"{where} is handed out while {self.transfers.told(transfer)} is not over"
            self.note("ownership", "page of a transfer handed out", text, page_sites(band, [page]))
        return True
