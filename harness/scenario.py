"""Scenarios: a family of workloads as data, and the concrete setup that one seed draws from it.

A scenario states a real model and the factors that scale it down, because a bug needs a full pool
and a full pool of real size is slow.  Files come from strangers: they hold no code, unknown keys
are refused, and every figure has bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.choices import Choices, between, percent
from harness.errors import InputError
from unikv.declare import ModelDeclaration
from unikv.device.port import BandLayout, StorageLayout
from unikv.plan import KVStoragePlan, SubPoolKind, plan_kv_storage

TABLE_ENTRIES_MAX = 1 << 22
PAGES_MAX = 4096
"""Most pages of one band: a refusal is judged by trying every layout."""
ARENA_BYTES_MAX = 1 << 26
ENTRY_CELLS_MAX = 4096
CELL_BYTES = 4
"""Bytes of one stamp: what the modeled device keeps for one slot, layer group and K/V half."""

OPERATION_WEIGHTS: Mapping[str, int] = {
    "arrive": 8,
    "admit": 12,
    "chunk": 16,
    "decode": 34,
    "launch": 46,
    "process": 14,
    "finish": 10,
    "abort": 2,
    "retract": 1,
    "advance": 10,
    "checkpoint": 10,
    "cache_prefix": 5,
    "evict_prefix": 2,
    "flush": 12,
    "relieve": 2,
    "complete": 12,
    "host_sync": 1,
    "idle_check": 1,
}
"""How often each operation is tried, relative to the others; a scenario overrides by name."""

Natural = Annotated[int, Meta(ge=1, le=1_000_000)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
Percent = Annotated[int, Meta(ge=0, le=100)]
Share = Annotated[int, Meta(ge=1, le=400)]
Span = tuple[Natural, Natural]
"""Lowest and highest value, both possible; each seed draws its own."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every section: frozen, and unknown keys are errors."""


class Scale(_Part, frozen=True, kw_only=True):
    """Factors from the real model to the modeled one.

    Attributes:
        entry_bytes: real bytes that one modeled stamp stands for.
        tokens: real tokens that one modeled token stands for; windows shrink by it.
        page_ratio_max: cap on the largest page of the chain over the smallest.
    """

    entry_bytes: Natural
    tokens: Natural = 1
    page_ratio_max: Annotated[int, Meta(ge=1, le=64)] = 8


class Pressure(_Part, frozen=True, kw_only=True):
    """How tight the storage is.

    Attributes:
        arena_pages: bytes of the arena above the sink, in units of its largest page.
        id_percent: token ids, in percent of the owner pages that an empty arena holds.
        slot_percent: state ids, in percent of the slots that an empty arena holds.
        rows: request rows.
    """

    arena_pages: Span
    id_percent: tuple[Share, Share] = (100, 100)
    slot_percent: tuple[Share, Share] = (100, 100)
    rows: Span


class Requests(_Part, frozen=True, kw_only=True):
    """What arrives, in modeled tokens.

    Attributes:
        prompt_tokens, output_tokens: lengths of a request.
        chunk_tokens: longest prefill of one step.
        block_pages: whole pages of one shareable block of a prompt.
        shared_percent: how many prompts begin like an earlier one.
    """

    prompt_tokens: Span
    output_tokens: Span
    chunk_tokens: Span
    block_pages: Natural = 1
    shared_percent: Percent = 30


class Loop(_Part, frozen=True, kw_only=True):
    """The engine's overlap loop.

    Attributes:
        steps_in_flight: recorded, unprocessed steps that it allows.
        unknown_writes_percent: how many steps decide on the device what they write.
        overlap_percent: how many seeds overlap steps with scheduling; the others run the forward on
            the schedule stream and process it before anything else happens.
        read_end_percent: how many seeds have a backend that declares the end of shared reads.
    """

    steps_in_flight: tuple[Annotated[int, Meta(ge=1, le=8)], Annotated[int, Meta(ge=1, le=8)]]
    read_end_percent: Percent = 75
    unknown_writes_percent: Percent = 0
    overlap_percent: Percent = 100


class Floors(_Part, frozen=True, kw_only=True):
    """Least figures per 10,000 counted operations; a run below one says nothing about pages."""

    moves: Count = 0
    settles: Count = 0
    reliefs: Count = 0
    relocations: Count = 0
    refusals: Count = 0
    page_accesses: Count = 0


class Scenario(_Part, frozen=True, kw_only=True):
    """A workload family.

    Attributes:
        why: which hazard it provokes, and which check fires if the guard is broken.
        model: real layers and geometries.
        page_slots: page size of every token band, in slots.
        weights: how often each operation is tried, by its name; 0 leaves it out.
        floors, probes: what a healthy run must reach.
    """

    why: str
    model: ModelDeclaration
    page_slots: Annotated[int, Meta(ge=1, le=64)]
    scale: Scale
    pressure: Pressure
    requests: Requests
    loop: Loop
    ranks: Annotated[int, Meta(ge=1, le=8)] = 2
    weights: dict[str, Count] = {}
    floors: Floors = Floors()
    probes: tuple[str, ...] = ()


class BandSetup(_Part, frozen=True, kw_only=True):
    """One band of a concrete storage; `entry_cells` stamps per slot."""

    name: str
    kind: str
    window: Count
    entry_cells: Annotated[int, Meta(ge=1, le=ENTRY_CELLS_MAX)]
    slots_per_page: Annotated[int, Meta(ge=1, le=64)]
    id_count: Natural

    @property
    def page_bytes(self) -> int:
        """Bytes of one page on the modeled device."""
        return self.entry_cells * self.slots_per_page * CELL_BYTES


class Setup(_Part, frozen=True, kw_only=True):
    """Everything a trace needs beside its operations: one storage, one engine, one device."""

    ranks: Annotated[int, Meta(ge=1, le=8)]
    sink_bytes: Count
    total_bytes: Annotated[int, Meta(ge=1, le=ARENA_BYTES_MAX)]
    bands: Annotated[tuple[BandSetup, ...], Meta(min_length=1, max_length=16)]
    page_slots: Annotated[int, Meta(ge=1, le=64)]
    block_pages: Natural
    rows: Annotated[int, Meta(ge=1, le=4096)]
    row_pages: Annotated[int, Meta(ge=1, le=100_000)]
    steps_in_flight: Annotated[int, Meta(ge=1, le=8)]
    read_end: bool
    overlap: bool

    def layout(self) -> StorageLayout:
        """The storage's memory spaces, as the library wants them."""
        bands = tuple(
            BandLayout(
                band.name,
                band.page_bytes,
                band.slots_per_page,
                band.id_count,
                mints=band.kind != SubPoolKind.WINDOW.value,
                zeroed=band.kind != SubPoolKind.STATE.value,
            )
            for band in self.bands
        )
        return StorageLayout(
            self.sink_bytes, self.total_bytes, bands, self.rows, self.row_pages, self.page_slots
        )


def page_cells(scenario: Scenario, plan: KVStoragePlan) -> dict[str, int]:
    """Stamps per page of each band, by its name."""
    return {
        pool.name: cells * (1 if pool.kind is SubPoolKind.STATE else scenario.page_slots)
        for pool, cells in zip(plan.sub_pools, entry_cells(scenario, plan), strict=True)
    }


def entry_cells(scenario: Scenario, plan: KVStoragePlan) -> list[int]:
    """Stamps per slot of each band: scaled, at least K and V, page ratios kept up to the cap."""
    slots = [
        1 if pool.kind is SubPoolKind.STATE else scenario.page_slots for pool in plan.sub_pools
    ]
    cells = [
        max(2, round(pool.entry_bytes / scenario.scale.entry_bytes)) for pool in plan.sub_pools
    ]
    smallest = min(cell * slot for cell, slot in zip(cells, slots, strict=True))
    most = smallest * scenario.scale.page_ratio_max
    return [min(cell, max(2, most // slot)) for cell, slot in zip(cells, slots, strict=True)]


def check_setup(setup: Setup, place: str) -> None:
    """Refuse a stored setup whose parts do not fit together or that would not fit in memory.

    Raises:
        InputError: with place, value and what is allowed.
    """
    kinds = [band.kind for band in setup.bands]
    for index, band in enumerate(setup.bands):
        here = f"{place}: setup.bands[{index}]"
        last = index == len(setup.bands) - 1
        if (band.kind == "full") != last or band.kind not in ("full", "window", "state"):
            raise InputError(
                f"{here}.kind is {band.kind!r}; the last band is 'full', the others are 'window'"
                " or 'state'"
            )
        slots = 1 if band.kind == "state" else setup.page_slots
        if band.slots_per_page != slots:
            raise InputError(f"{here}.slots_per_page is {band.slots_per_page}; want {slots}")
        if (band.window > 0) != (band.kind == "window"):
            raise InputError(f"{here}.window is {band.window}; only window bands have one")
        if band.kind == "window" and band.id_count != setup.bands[-1].id_count:
            raise InputError(f"{here}.id_count is {band.id_count}; want that of the last band")
    if kinds.count("state") > 1 or "state" in kinds[1:]:
        raise InputError(f"{place}: setup.bands are {kinds}; a state band is the first, and alone")
    largest = max(band.page_bytes for band in setup.bands)
    if not largest <= setup.sink_bytes < setup.total_bytes:
        raise InputError(
            f"{place}: setup.sink_bytes is {setup.sink_bytes}; want one page of the largest band"
            f" ({largest}) or more, and less than total_bytes {setup.total_bytes}"
        )
    for band in setup.bands:
        pages = setup.total_bytes // band.page_bytes
        first = -(-setup.sink_bytes // band.page_bytes)
        if not first < pages <= PAGES_MAX or band.id_count > 4 * PAGES_MAX:
            raise InputError(
                f"{place}: band {band.name!r} has pages {first}..{pages} and {band.id_count} ids;"
                f" at least one page above the sink, at most {PAGES_MAX} pages and"
                f" {4 * PAGES_MAX} ids"
            )
    if setup.total_bytes % CELL_BYTES or setup.sink_bytes % CELL_BYTES:
        raise InputError(f"{place}: setup bytes must be multiples of {CELL_BYTES}, one stamp")
    if setup.rows * setup.row_pages > TABLE_ENTRIES_MAX:
        raise InputError(
            f"{place}: setup.rows {setup.rows} x row_pages {setup.row_pages} entries; at most"
            f" {TABLE_ENTRIES_MAX}"
        )


def draw_setup(scenario: Scenario, choices: Choices) -> Setup:
    """The concrete storage and engine of one seed."""
    plan = plan_kv_storage(scenario.model, scenario.page_slots)
    entries = entry_cells(scenario, plan)
    pressure = scenario.pressure
    slots = [
        1 if pool.kind is SubPoolKind.STATE else scenario.page_slots for pool in plan.sub_pools
    ]
    page_bytes = [cell * slot * CELL_BYTES for cell, slot in zip(entries, slots, strict=True)]
    largest = max(page_bytes)
    # The sink takes a dummy page of every band, so it is as large as the largest.
    usable = between(choices, *pressure.arena_pages) * largest
    id_percent = between(choices, *pressure.id_percent)
    slot_percent = between(choices, *pressure.slot_percent)
    owner_pages = usable // page_bytes[-1]
    token_ids = max(1, owner_pages * id_percent // 100)
    bands = []
    for pool, cells, page_slots, size in zip(
        plan.sub_pools, entries, slots, page_bytes, strict=True
    ):
        state = pool.kind is SubPoolKind.STATE
        ids = max(1, usable // size * slot_percent // 100) if state else token_ids
        window = max(1, pool.window // scenario.scale.tokens) if pool.window else 0
        bands.append(
            BandSetup(
                name=pool.name,
                kind=pool.kind.value,
                window=window,
                entry_cells=cells,
                slots_per_page=page_slots,
                id_count=ids,
            )
        )
    return Setup(
        ranks=scenario.ranks,
        sink_bytes=largest,
        total_bytes=largest + usable,
        bands=tuple(bands),
        page_slots=scenario.page_slots,
        block_pages=scenario.requests.block_pages,
        rows=between(choices, *pressure.rows),
        row_pages=token_ids,
        steps_in_flight=between(choices, *scenario.loop.steps_in_flight),
        read_end=percent(choices, scenario.loop.read_end_percent),
        overlap=percent(choices, scenario.loop.overlap_percent),
    )
