"""Building one forward step: which tables it looks up, which pages it reads and what it writes.

The metadata phase reads rows and maps, the body reads every page its tokens attend and writes the
new slots.  Both are submitted at launch; reads are checked against truth in program order here, and
against the bytes of each rank when the work runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from harness.check import content as content_check
from harness.check import translation
from harness.device.clock import Access
from harness.device.memory import PageBytes, ReadTables, RunBody
from harness.engine import Step
from harness.requests import Request
from harness.scenario import CELL_BYTES
from harness.world import World
from unikv.advance import first_needed_page


@dataclass(slots=True)
class _Batch:
    """What the body of one step touches, gathered band by band."""

    kept: list[PageBytes] = field(default_factory=list)
    before: list[PageBytes] = field(default_factory=list)
    writes: list[list[PageBytes]] = field(default_factory=list)  # per layer group
    after: list[PageBytes] = field(default_factory=list)
    reads: list[tuple[int, list[int]]] = field(default_factory=list)  # bands and pages
    maps: list[tuple[int, list[int], list[int]]] = field(default_factory=list)
    written_ids: list[list[int]] = field(default_factory=list)
    written_pages: list[list[int]] = field(default_factory=list)


def launch_step(world: World, requests: Sequence[Request]) -> Step:
    """Launch one step for requests with prepared tokens.

    Order: the forward stream waits the schedule stream, then runs metadata and body.  Without
    overlap both run on the schedule stream, and the allocator does not hear of the step.
    """
    world.step_count += 1
    number = world.step_count
    batch = _Batch()
    batch.writes = [[] for _ in range(world.layout.layer_groups)]
    for _ in world.setup.bands:
        batch.written_ids.append([])
        batch.written_pages.append([])
    for band in world.token_bands:
        _gather_tokens(world, batch, band, requests)
    if world.state_band >= 0:
        _gather_states(world, batch, requests)
    device, stream = world.device, world.forward_stream
    world.engine.order_launch()
    rows = [(request.row, list(request.pages)) for request in requests]
    for request in requests:
        _check_row(world, request)
    touched = [Access(device.rows, [row for row, _ in rows], False)]
    touched += [Access(device.maps[band], ids, False) for band, ids, _ in batch.maps]
    staging = world.engine.take_staging()
    tables = [page for _, _, pages in batch.maps for page in pages]
    device.stage(staging, tables, number)
    touched.append(Access(device.staging, (staging,), False))
    metadata = ReadTables(rows, batch.maps, (staging, tables))
    device.submit(stream, "metadata", number, metadata, touched)
    read_end = device.record_event(stream)
    # A backend that declares no end of its table reads may look tables up until it ends.
    late = [] if world.setup.read_end else touched
    _submit_body(world, number, batch, late, _loads_of(world, requests))
    for request in requests:
        request.length += request.prepared
        request.prepared = 0
        request.last_step = number
    step = Step(
        number,
        tuple(request.name for request in requests),
        tuple(batch.written_ids),
        tuple(batch.written_pages),
        staging,
        read_end,
    )
    if world.setup.overlap:
        world.ask("launch_step", number)
    return step


def _loads_of(world: World, requests: Sequence[Request]) -> list[str]:
    """Loads in flight that fill what the batch reads."""
    names: dict[str, None] = {}
    for request in requests:
        names.update(dict.fromkeys(world.host.loads_of(request.pages, request.source)))
    return list(names)


def _submit_body(
    world: World, number: int, batch: _Batch, late: list[Access], loads: list[str]
) -> None:
    """The body in one piece, or layer group by layer group, each behind that group of the loads."""
    device, stream, groups = world.device, world.forward_stream, world.layout.layer_groups
    last = groups - 1
    if loads:
        world.probes["launched_over_a_load"] += 1
    if not loads or not last:
        if loads:
            world.ask("order_forward", stream, loads, last)
        writes = batch.writes[0] if groups == 1 else [w for part in batch.writes for w in part]
        body = RunBody(batch.before, batch.kept, writes, batch.after)
        accesses = [
            Access(device.arena, _units(batch.reads, device.granules), False),
            Access(device.arena, _units(enumerate(batch.written_pages), device.granules), True),
            *late,
        ]
        device.submit(stream, "body", number, body, accesses)
        return
    world.probes["launched_layer_by_layer"] += 1
    for group in range(groups):
        world.ask("order_forward", stream, loads, group)
        body = RunBody(
            _piece(batch.before, group, groups),
            _piece(batch.kept, group, groups),
            batch.writes[group],
            _piece(batch.after, group, groups),
        )
        units = partial(device.group_granules, group=group)
        accesses = [
            Access(device.arena, _units(batch.reads, units), False),
            Access(device.arena, _units(enumerate(batch.written_pages), units), True),
            *late,
        ]
        device.submit(stream, "body", number, body, accesses)


def _units(
    touched: Iterable[tuple[int, list[int]]], granules: Callable[[int, list[int]], Sequence[int]]
) -> list[int]:
    """Arena units of pages of several bands."""
    return [unit for band, pages in touched for unit in granules(band, pages)]


def _piece(pages: Sequence[PageBytes], group: int, groups: int) -> list[PageBytes]:
    """One layer group of whole pages."""
    pieces: list[PageBytes] = []
    for low, high, data in pages:
        piece = (high - low) // groups
        start = group * piece
        pieces.append((low + start, low + start + piece, data[start : start + piece]))
    return pieces


def _translate(world: World, band: int, ids: list[int]) -> list[int]:
    """Physical pages as the allocator gives them for this step."""
    pages: list[int] = list(world.ask("translate", band, ids))
    translation.compare(world, band, ids, pages)
    return pages


def _gather_tokens(world: World, batch: _Batch, band: int, requests: Sequence[Request]) -> None:
    setup = world.setup.bands[band]
    slots, size = world.setup.page_slots, setup.page_bytes
    ids: list[int] = []
    spans: list[tuple[Request, int, int, int]] = []
    for request in requests:
        first = 0
        if setup.window:
            first = first_needed_page(request.length, setup.window, slots)
        needed = request.pages[first:]
        spans.append((request, first, len(ids), len(needed)))
        ids += needed
    pages = _translate(world, band, ids)
    batch.maps.append((band, ids, pages))
    batch.reads.append((band, pages))
    arena = world.device.program.arena
    content = world.truth.content[band]
    world.check_runs["content"] += 1
    world.check_runs["initialised"] += 1
    views: list[PageBytes] = []
    for unit, page in zip(ids, pages, strict=True):
        low = page * size
        data = arena[low : low + size]
        views.append((low, low + size, data))
        if data != content[unit]:
            content_check.compare_page(world, band, unit, page, data)
    groups = world.layout.layer_groups
    cells, piece = setup.entry_cells // groups, size // groups
    entry = cells * CELL_BYTES
    written: list[int] = []
    for request, first, start, count in spans:
        position, end = request.length, request.length + request.prepared
        index = position // slots
        batch.kept += views[start : start + index - first]
        for at in range(start + index - first, start + count):
            unit, (low, high, _) = ids[at], views[at]
            batch.before.append(views[at])
            low_slot = max(position - index * slots, 0)
            high_slot = min(end - index * slots, slots)
            index += 1
            page_content = content[unit]
            assert page_content is not None
            for group, writes in enumerate(batch.writes):
                fresh = world.stamps((high_slot - low_slot) * cells)
                head = group * piece + low_slot * entry
                tail = group * piece + high_slot * entry
                page_content[head:tail] = fresh
                writes.append((low + head, low + tail, fresh))
            batch.after.append((low, high, bytes(page_content)))
            batch.written_ids[band].append(unit)
            if band == world.owner_band:
                block = (first + at - start) // world.setup.block_pages
                world.truth.tokens[unit] = request.blocks[: block + 1]
            written.append(low // size)
    batch.written_pages[band] = written


def _gather_states(world: World, batch: _Batch, requests: Sequence[Request]) -> None:
    band = world.state_band
    setup = world.setup.bands[band]
    size, cells = setup.page_bytes, setup.entry_cells
    content = world.truth.content[band]
    reads: list[int] = []
    writes: list[int] = []
    for request in requests:
        if request.source:
            reads.append(request.source)
        elif request.stateful:
            reads.append(request.slot)
        writes.append(request.slot)
        if request.checkpoint_due:
            writes.append(request.checkpoint)
    ids = list(dict.fromkeys(reads + writes))
    page_of = dict(zip(ids, _translate(world, band, ids), strict=True))
    batch.maps.append((band, ids, [page_of[unit] for unit in ids]))
    arena = world.device.program.arena
    for unit in reads:
        low = page_of[unit] * size
        data = arena[low : low + size]
        target = batch.before if unit in writes else batch.kept
        target.append((low, low + size, data))
        if data != content[unit]:
            content_check.compare_page(world, band, unit, page_of[unit], data)
    for request in requests:
        written_state = world.stamps(cells)
        outputs = [request.slot]
        if request.checkpoint_due:
            outputs.append(request.checkpoint)
            end = request.checkpoint_length = request.length + request.prepared
            blocks = end // (world.setup.block_pages * world.setup.page_slots)
            world.truth.state_tokens[request.checkpoint] = (request.blocks[:blocks], end)
        for unit in outputs:
            content[unit] = bytearray(written_state)
            low = page_of[unit] * size
            whole: list[PageBytes] = [(low, low + size, written_state)]
            for group, part in enumerate(batch.writes):
                part += _piece(whole, group, len(batch.writes))
            batch.after += whole
        request.stateful = True
        request.checkpoint_due = False
        if request.source_key:
            world.prefixes[request.source_key].locks -= 1
        request.source, request.source_key = 0, ()
    batch.reads.append((band, [page_of[unit] for unit in reads]))
    written = [page_of[unit] for unit in writes]
    batch.written_ids[band] = writes
    batch.written_pages[band] = written


def _check_row(world: World, request: Request) -> None:
    entries = world.device.program.rows[request.row]
    if entries[: len(request.pages)] != request.pages:
        world.truth.note(
            "mapping",
            "request row differs",
            f"row {request.row} of {request.name} names {entries[: len(request.pages)]}, the"
            f" request holds {request.pages}",
        )
