"""Building one forward step: which tables it looks up, which pages it reads and what it writes.

The metadata phase reads rows and maps, the body reads every page its tokens attend and writes the
new slots.  Both are submitted at launch; reads are checked against truth in program order here, and
against the bytes of each rank when the work runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from harness import late
from harness.batch import Batch, new_batch, piece_of
from harness.check import content as content_check
from harness.device.clock import Access
from harness.device.memory import PageBytes, ReadTables, RunBody, Together
from harness.engine import Step
from harness.forward_states import gather_states, translate
from harness.requests import Request
from harness.scenario import CELL_BYTES, Commit
from harness.violation import Site
from harness.windows import first_attended_page
from harness.world import World


def launch_step(world: World, requests: Sequence[Request]) -> Step:
    """Launch one step for requests with prepared tokens.

    Order: the forward stream waits the schedule stream, then runs metadata and body.  Without
    overlap both run on the schedule stream, and the allocator does not hear of the step.
    """
    world.step_count += 1
    number = world.step_count
    batch = new_batch(len(world.setup.bands), world.layout.layer_groups)
    for band in world.token_bands:
        _gather_tokens(world, batch, band, requests)
    if world.state_band >= 0:
        gather_states(world, batch, requests)
    device, stream = world.device, world.forward_stream
    world.engine.order_launch()
    beside = late.begin(world, number, requests, batch)
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
    tables_in_body = [] if world.setup.read_end else touched
    _submit_body(world, beside, batch, tables_in_body, _loads_of(world, requests))
    uses_side = late.commit(world, beside, batch)
    if world.setup.backend.commit is Commit.RELAYED:
        world.relay.leave(world, number, requests, batch.accepted)
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
        static=beside.filled.buffer,
        uses_side=uses_side,
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
    world: World, beside: late.Beside, batch: Batch, tables: list[Access], loads: list[str]
) -> None:
    """The body in one piece, or layer group by layer group, each behind that group of the loads."""
    device, stream, groups = world.device, world.forward_stream, world.layout.layer_groups
    last = groups - 1
    if loads:
        world.probes["launched_over_a_load"] += 1
    written = [
        (band, pages)
        for band, pages in enumerate(batch.written_pages)
        if not late.is_left_to_commit(world, band)
    ]
    if not loads or not last:
        if loads:
            world.ask("order_forward", stream, loads, last)
        writes = batch.writes[0] if groups == 1 else [w for part in batch.writes for w in part]
        body = RunBody(batch.before, batch.kept, writes, batch.after)
        _submit(world, beside, body, device.granules, batch, written, tables)
        return
    world.probes["launched_layer_by_layer"] += 1
    for group in range(groups):
        world.ask("order_forward", stream, loads, group)
        body = RunBody(
            piece_of(batch.before, group, groups),
            piece_of(batch.kept, group, groups),
            batch.writes[group],
            piece_of(batch.after, group, groups),
        )
        units = partial(device.group_granules, group=group)
        _submit(world, beside, body, units, batch, written, tables)


def _submit(
    world: World,
    beside: late.Beside,
    body: RunBody,
    granules: Callable[[int, list[int]], Sequence[int]],
    batch: Batch,
    written: list[tuple[int, list[int]]],
    tables: list[Access],
) -> None:
    """One launch of the body, with what it does beside."""
    arena = world.device.arena
    accesses = [
        Access(arena, _units(batch.reads, granules), False),
        Access(arena, _units(written, granules), True),
        *tables,
    ]
    effects, touched = late.in_body(world, beside)
    effect = Together([body, *effects]) if effects else body
    world.device.submit(world.forward_stream, "body", beside.number, effect, accesses + touched)


def _units(
    touched: Iterable[tuple[int, list[int]]], granules: Callable[[int, list[int]], Sequence[int]]
) -> list[int]:
    """Arena units of pages of several bands."""
    return [unit for band, pages in touched for unit in granules(band, pages)]


def _gather_tokens(world: World, batch: Batch, band: int, requests: Sequence[Request]) -> None:
    setup = world.setup.bands[band]
    slots, size = world.setup.page_slots, setup.page_bytes
    ids: list[int] = []
    spans: list[tuple[Request, int, int, int]] = []
    for request in requests:
        first = 0
        if setup.window:
            first = first_attended_page(request.length, setup.window, slots)
        needed = request.pages[first:]
        spans.append((request, first, len(ids), len(needed)))
        ids += needed
    pages = translate(world, band, ids)
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


def _check_row(world: World, request: Request) -> None:
    entries = world.device.program.rows[request.row]
    if entries[: len(request.pages)] != request.pages:
        world.truth.note(
            "mapping",
            "request row differs",
            f"row {request.row} of {request.name} names {entries[: len(request.pages)]}, the"
            f" request holds {request.pages}",
            (Site("row", -1, request.row),),
        )
