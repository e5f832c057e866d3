"""Simpler storages and engines: fewer ranks, bands and pages, and no part that nobody needs.

The insight: a setup is a shape (which bands, how many pages, how long a window) and bytes follow
from the shape.  Variants change the shape and work the bytes out again, so what is proposed is
mostly possible; what is not is refused by `check_setup` like a stored setup from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from msgspec.structs import replace

from harness.canonical import Item
from harness.errors import InputError
from harness.scenario import AT_THE_END, PLAIN, BandSetup, Commit, Setup
from harness.setup import check_setup
from harness.simpler import descending, lower_by_one, with_tokens_divided
from unikv.cache.checkpoint_policy import CheckpointStrategy

ENTRY_CELLS_MIN = 2
"""Stamps of a slot in one layer group: its key and its value."""


def simpler_setups(item: Item) -> Iterator[Item]:
    """Possible setups that are simpler in one respect, the most ambitious first."""
    if isinstance(item, Setup):
        yield from filter(is_possible, _variants(item))


def fewer_slots(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace on pages of fewer slots, with as many tokens fewer."""
    setup = items[0]
    if isinstance(setup, Setup) and setup.page_slots > 1:
        for slots in descending(setup.page_slots, 1):
            divisor = -(-setup.page_slots // slots)
            bands = [
                replace(band, window=-(-band.window // divisor), slots_per_page=slots)
                if band.kind != "state"
                else band
                for band in setup.bands
            ]
            slotted = replace(setup, page_slots=slots)
            if setup.checkpoints.interval:
                interval = -(-setup.checkpoints.interval // divisor)
                grid = replace(setup.checkpoints, interval=interval)
                slotted = replace(slotted, checkpoints=grid)
            smaller = _rebuilt(slotted, bands, _arena_pages(setup))
            if is_possible(smaller):
                yield (smaller, *with_tokens_divided(items[1:], divisor))


def lower(item: Item) -> Iterator[Item]:
    """A setup with a page or an id less, or an operation with a number less by one."""
    if not isinstance(item, Setup):
        yield from lower_by_one(item)
        return
    bands, pages = item.bands, _arena_pages(item)
    fewer_ids = [replace(band, id_count=max(1, band.id_count - 1)) for band in bands]
    variants = (
        _rebuilt(item, bands, pages - 1),
        _rebuilt(item, bands, pages - 2),
        _rebuilt(item, fewer_ids, pages - 1),
        replace(item, bands=tuple(fewer_ids)),
        replace(item, row_pages=max(1, item.row_pages - 1)),
    )
    yield from (smaller for smaller in variants if smaller != item and is_possible(smaller))


def with_small_pages(
    setup: Setup,
    pages: int,
    requests: int,
    *,
    slots: int = 1,
    window_pages: int = 1,
    owner_cells: int = 1,
    arena_pages: int | None = None,
) -> Setup:
    """The setup with the smallest pages of so many slots, and so many of them in every band.

    Args:
        pages: ids of every band, pages of a row and of each piece of host memory.
        requests: rows.
        slots: of a page of tokens.
        window_pages: pages of a window.
        owner_cells: how many times as large a slot of the last band is.
        arena_pages: pages of the largest band above the sink; by default all bands have room.
    """
    last = len(setup.bands) - 1
    bands = tuple(
        replace(
            band,
            entry_cells=ENTRY_CELLS_MIN * setup.layer_groups * (owner_cells if i == last else 1),
            slots_per_page=1 if band.kind == "state" else slots,
            id_count=pages,
            window=slots * window_pages if band.window else 0,
        )
        for i, band in enumerate(setup.bands)
    )
    size = max(band.page_bytes for band in bands)
    room = pages * len(bands) if arena_pages is None else arena_pages
    host = tuple(
        replace(part, total_bytes=pages * max(bands[i].page_bytes for i in part.bands))
        for part in setup.host
    )
    return replace(
        setup,
        bands=bands,
        host=host,
        sink_bytes=size,
        total_bytes=size * (1 + room),
        page_slots=slots,
        block_pages=1,
        rows=max(requests, 1),
        row_pages=pages,
    )


@lru_cache(maxsize=4096)
def is_possible(setup: Setup) -> bool:
    """Whether a world can be built of it."""
    try:
        check_setup(setup, "")
    except InputError:
        return False
    return True


def _variants(setup: Setup) -> Iterator[Setup]:
    bands, pages = setup.bands, _arena_pages(setup)
    if setup.network is not None:
        yield replace(setup, network=None)
    if setup.host:
        yield replace(setup, host=(), layer_groups=1)
    yield from _checkpoint_variants(setup)
    for index in range(len(bands) - 1):
        rest = [*bands[:index], *bands[index + 1 :]]
        fewer_bands = _host_without(setup, index)
        if bands[index].kind == "state":
            fewer_bands = replace(fewer_bands, checkpoints=AT_THE_END)
        yield _rebuilt(fewer_bands, rest, pages)
        # What held its pages may have to be held by the pages of others.
        size = max(band.page_bytes for band in rest)
        as_many_bytes = (setup.total_bytes - setup.sink_bytes) // size
        yield _rebuilt(fewer_bands, rest, as_many_bytes)
    for field in ("pipeline", "overlap", "read_end"):
        if getattr(setup, field):
            yield replace(setup, **{field: False})
    yield from _backend_variants(setup)
    for field in ("ranks", "steps_in_flight", "layer_groups", "block_pages"):
        for fewer in descending(getattr(setup, field), 1):
            yield replace(setup, **{field: fewer})
    for slots in descending(setup.page_slots, 1):
        slotted = [b if b.kind == "state" else replace(b, slots_per_page=slots) for b in bands]
        yield _rebuilt(replace(setup, page_slots=slots), slotted, pages)
    yield from _band_variants(setup, pages)
    for fewer in descending(pages, 1):
        yield _rebuilt(setup, bands, fewer)
    for field in ("rows", "row_pages"):
        for fewer in descending(getattr(setup, field), 1):
            yield replace(setup, **{field: fewer})
    yield from _host_variants(setup)


def _backend_variants(setup: Setup) -> Iterator[Setup]:
    backend = setup.backend
    if backend != PLAIN:
        yield replace(setup, backend=PLAIN)
    if backend.row_memory:
        yield replace(setup, backend=replace(backend, row_memory=False))
    if backend.captured:
        yield replace(setup, backend=replace(backend, captured=False))
    for commit in Commit:
        if commit is backend.commit:
            break
        yield replace(setup, backend=replace(backend, commit=commit))


def _checkpoint_variants(setup: Setup) -> Iterator[Setup]:
    checkpoints = setup.checkpoints
    if checkpoints == AT_THE_END:
        return
    yield replace(setup, checkpoints=AT_THE_END)
    if checkpoints.strategy is CheckpointStrategy.EXTRA_BUFFER_LAZY:
        held = replace(checkpoints, strategy=CheckpointStrategy.EXTRA_BUFFER)
        yield replace(setup, checkpoints=held)
    for interval in descending(checkpoints.interval, 1):
        yield replace(setup, checkpoints=replace(checkpoints, interval=interval))


def _band_variants(setup: Setup, pages: int) -> Iterator[Setup]:
    bands = setup.bands
    least = ENTRY_CELLS_MIN * setup.layer_groups
    if any(band.entry_cells > least for band in bands):
        yield _rebuilt(setup, [replace(band, entry_cells=least) for band in bands], pages)
    for index, band in enumerate(bands):
        for cells in descending(band.entry_cells, least):
            smaller = replace(band, entry_cells=cells)
            yield _rebuilt(setup, [*bands[:index], smaller, *bands[index + 1 :]], pages)
        for window in descending(band.window, 1):
            smaller = replace(band, window=window)
            yield replace(setup, bands=(*bands[:index], smaller, *bands[index + 1 :]))
    # Bands of tokens name the same ids, so they have equally many.
    for is_state in (False, True):
        counts = [band.id_count for band in bands if (band.kind == "state") is is_state]
        for fewer in descending(max(counts, default=1), 1):
            yield replace(
                setup,
                bands=tuple(
                    replace(b, id_count=fewer) if (b.kind == "state") is is_state else b
                    for b in bands
                ),
            )


def _host_variants(setup: Setup) -> Iterator[Setup]:
    for index, part in enumerate(setup.host):
        page = max(setup.bands[band].page_bytes for band in part.bands)
        for fewer in descending(-(-part.total_bytes // page), 1):
            smaller = replace(part, total_bytes=fewer * page)
            yield replace(setup, host=(*setup.host[:index], smaller, *setup.host[index + 1 :]))
    if setup.network is not None:
        if setup.network.publishes_at_once:
            yield replace(setup, network=replace(setup.network, publishes_at_once=False))
        for patience in descending(setup.network.patience, 1):
            yield replace(setup, network=replace(setup.network, patience=patience))
        for refusals in descending(setup.network.refusals, 0):
            yield replace(setup, network=replace(setup.network, refusals=refusals))


def _arena_pages(setup: Setup) -> int:
    """Pages of the largest band above the sink."""
    largest = max(band.page_bytes for band in setup.bands)
    return (setup.total_bytes - setup.sink_bytes) // largest


def _rebuilt(setup: Setup, bands: Sequence[BandSetup], arena_pages: int) -> Setup:
    """The setup with these bands, a sink that takes a page of each, and so many pages above it."""
    largest = max(band.page_bytes for band in bands)
    rebuilt = replace(
        setup,
        bands=tuple(bands),
        sink_bytes=largest,
        total_bytes=largest * (1 + max(1, arena_pages)),
    )
    if len(bands) < len(setup.bands):
        return rebuilt
    parts = []
    for part in setup.host:
        old, new = (max(b[index].page_bytes for index in part.bands) for b in (setup.bands, bands))
        parts.append(replace(part, total_bytes=part.total_bytes // old * new))
    return replace(rebuilt, host=tuple(parts))


def _host_without(setup: Setup, gone: int) -> Setup:
    """The setup with host memory for the other bands only; their indices move down."""
    parts = []
    for part in setup.host:
        kept = tuple(band - (band > gone) for band in part.bands if band != gone)
        if kept:
            parts.append(replace(part, bands=kept))
    return replace(setup, host=tuple(parts))
