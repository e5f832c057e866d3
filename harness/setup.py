"""The concrete storage and engine that one seed draws, and what a stored one must be like."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.choices import Choices, between, percent
from harness.errors import InputError
from harness.scenario import (
    AT_THE_END,
    CELL_BYTES,
    PAGES_MAX,
    PLAIN,
    TABLE_ENTRIES_MAX,
    BackendSetup,
    BandSetup,
    CheckpointSetup,
    Commit,
    HostSetup,
    NetworkSetup,
    Scenario,
    Setup,
    entry_cells,
)
from unikv.cache.checkpoint_policy import CheckpointPolicy, CheckpointStrategy
from unikv.errors import ArgumentError, BuildError
from unikv.geometry import MHA
from unikv.layout_rules import check_layout, least_pair_bytes
from unikv.plan import KVStoragePlan, SubPoolKind, plan_kv_storage


def check_setup(setup: Setup, place: str) -> None:
    """Refuse a stored setup of which no world can be built, or that would not fit in memory.

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
    _check_host(setup, place)
    _check_loop(setup, place)
    _check_checkpoints(setup, place)
    if setup.rows * setup.row_pages > TABLE_ENTRIES_MAX:
        raise InputError(
            f"{place}: setup.rows {setup.rows} x row_pages {setup.row_pages} entries; at most"
            f" {TABLE_ENTRIES_MAX}"
        )
    try:
        check_layout(setup.layout())
    except BuildError as error:
        raise InputError(f"{place}: setup: {error}") from error


def draw_setup(scenario: Scenario, choices: Choices) -> Setup:
    """The concrete storage and engine of one seed."""
    plan = plan_kv_storage(scenario.model, scenario.page_slots)
    pressure = scenario.pressure
    groups = between(choices, *scenario.host.layer_groups) if scenario.host else 1
    entries = [-(-cells // groups) * groups for cells in entry_cells(scenario, plan)]
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
    setup = Setup(
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
        layer_groups=groups,
        host=_draw_host(scenario, plan, page_bytes, usable, choices),
        network=_draw_network(scenario, choices),
        backend=_draw_backend(scenario, choices),
        checkpoints=_draw_checkpoints(scenario, bands, choices),
    )
    if scenario.loop.pipeline_percent and percent(choices, scenario.loop.pipeline_percent):
        setup = msgspec.structs.replace(setup, overlap=True, pipeline=True)
    if setup.backend.commit is Commit.RELAYED and not setup.overlap:
        setup = msgspec.structs.replace(setup, overlap=True)
    return setup


def _draw_host(
    scenario: Scenario, plan: KVStoragePlan, page_bytes: list[int], usable: int, choices: Choices
) -> tuple[HostSetup, ...]:
    """Host memory by bands; the two ends share theirs where both hold MHA pages."""
    if scenario.host is None:
        return ()
    each = usable * between(choices, *scenario.host.arena_percent) // 100 // len(page_bytes)
    ends = (0, len(page_bytes) - 1)
    low, high = (plan.sub_pools[index].geometry for index in ends)
    shared = len(page_bytes) > 1 and isinstance(low, MHA) and isinstance(high, MHA)
    parts = []
    if shared:
        least = least_pair_bytes(page_bytes[0], page_bytes[-1])
        parts.append(HostSetup(total_bytes=max(2 * each, least), bands=ends))
    for band, size in enumerate(page_bytes):
        if not shared or band not in ends:
            parts.append(HostSetup(total_bytes=max(each, size), bands=(band,)))
    return tuple(parts)


def _draw_network(scenario: Scenario, choices: Choices) -> NetworkSetup | None:
    if scenario.peers is None:
        return None
    patience = between(choices, *scenario.peers.patience)
    return NetworkSetup(
        patience=patience,
        refusals=between(choices, *scenario.peers.refusals),
        publishes_at_once=percent(choices, scenario.peers.at_once_percent),
    )


def _draw_backend(scenario: Scenario, choices: Choices) -> BackendSetup:
    backend = scenario.backend
    if backend is None:
        return PLAIN
    has_row_memory = percent(choices, backend.row_memory_percent)
    draw, commit = choices.below(100), Commit.BODY
    if draw < backend.in_step_percent:
        commit = Commit.IN_STEP
    elif draw < backend.in_step_percent + backend.side_stream_percent:
        commit = Commit.SIDE_STREAM
    elif draw < backend.in_step_percent + backend.side_stream_percent + backend.relayed_percent:
        commit = Commit.RELAYED
    captured = percent(choices, backend.captured_percent)
    drawn = BackendSetup(row_memory=has_row_memory, commit=commit, captured=captured)
    # A file leaves out a default only where it is that very object.
    return PLAIN if drawn == PLAIN else drawn


def _draw_checkpoints(
    scenario: Scenario, bands: Sequence[BandSetup], choices: Choices
) -> CheckpointSetup:
    part = scenario.checkpoints
    if not any(band.kind == "state" for band in bands):
        return AT_THE_END
    strategy = part.strategies[choices.below(len(part.strategies))]
    blocks = between(choices, *part.interval_blocks)
    if strategy is CheckpointStrategy.NO_BUFFER:
        return AT_THE_END
    block_tokens = scenario.requests.block_pages * scenario.page_slots
    return CheckpointSetup(strategy=strategy, interval=blocks * block_tokens)


def _check_loop(setup: Setup, place: str) -> None:
    if setup.pipeline and not setup.overlap:
        raise InputError(
            f"{place}: setup.pipeline is true and setup.overlap false; a pipeline keeps steps in"
            " flight, so want both"
        )
    if setup.backend.commit is Commit.RELAYED and (
        not setup.overlap or setup.host or setup.network is not None
    ):
        raise InputError(
            f"{place}: setup.backend.commit is 'relayed' with overlap {setup.overlap},"
            f" {len(setup.host)} pieces of host memory and network {setup.network}; want steps in"
            " flight, and no copy that would take a state away before its commit"
        )


def _check_checkpoints(setup: Setup, place: str) -> None:
    part = setup.checkpoints
    kinds = [band.kind for band in setup.bands]
    if part != AT_THE_END and "state" not in kinds:
        raise InputError(
            f"{place}: setup.checkpoints are {part.strategy.value} with bands {kinds}; want a state"
            " band, whose slots hold them"
        )
    try:
        CheckpointPolicy(part.strategy, part.interval)
    except ArgumentError as error:
        raise InputError(f"{place}: setup.checkpoints: {error}") from error


def _check_host(setup: Setup, place: str) -> None:
    named = [band for part in setup.host for band in part.bands]
    # A backup copies pages of every band, so memory for some of them is memory for none.
    if named and sorted(named) != list(range(len(setup.bands))):
        raise InputError(
            f"{place}: setup.host names bands {named}; want each of 0..{len(setup.bands) - 1} once,"
            " or no host memory"
        )
    for part in setup.host:
        if len(part.bands) == 2 and part.bands != (0, len(setup.bands) - 1):
            raise InputError(
                f"{place}: setup.host shares memory of bands {list(part.bands)}; only the two ends"
                " share"
            )
    for index, band in enumerate(setup.bands):
        if band.entry_cells % setup.layer_groups:
            raise InputError(
                f"{place}: setup.bands[{index}].entry_cells is {band.entry_cells}; want a multiple"
                f" of layer_groups {setup.layer_groups}"
            )
