"""The states of one forward step: which slots it reads, and what it leaves in which.

A fresh state reads nothing, whatever the slot contains; that is what a clear comes to.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.batch import Batch, piece_of
from harness.check import content as content_check
from harness.check import translation
from harness.device.memory import PageBytes
from harness.late import is_left_to_commit
from harness.relay import Accepted
from harness.requests import Request
from harness.scenario import Commit
from harness.states import StateWork
from harness.world import World


def translate(world: World, band: int, ids: list[int]) -> list[int]:
    """Physical pages as the allocator gives them for this step."""
    pages: list[int] = list(world.ask("translate", band, ids))
    translation.compare(world, band, ids, pages)
    return pages


def gather_states(world: World, batch: Batch, requests: Sequence[Request]) -> None:
    """Add what the step does with the states of its batch; it is due no more."""
    band = world.state_band
    size = world.setup.bands[band].page_bytes
    content = world.truth.content[band]
    works = [world.states.work(world, request) for request in requests]
    reads = [work.source for work in works if work.source]
    writes = [slot for work in works for slot, _ in work.outputs]
    ids = list(dict.fromkeys(reads + writes))
    page_of = dict(zip(ids, translate(world, band, ids), strict=True))
    batch.slot_pages = [page_of[unit] for unit in ids]
    batch.maps.append((band, ids, batch.slot_pages))
    arena = world.device.program.arena
    is_late = is_left_to_commit(world, band)
    for unit in reads:
        low = page_of[unit] * size
        data = arena[low : low + size]
        target = batch.before if unit in writes and not is_late else batch.kept
        target.append((low, low + size, data))
        if data != content[unit]:
            content_check.compare_page(world, band, unit, page_of[unit], data)
    for request, work in zip(requests, works, strict=True):
        _write(world, batch, request, work, page_of)
        world.states.launched(world, request)
    batch.reads.append((band, [page_of[unit] for unit in reads]))
    if not batch.accepted:
        batch.written_ids[band] = writes
        batch.written_pages[band] = [page_of[unit] for unit in writes]


def _write(
    world: World, batch: Batch, request: Request, work: StateWork, page_of: dict[int, int]
) -> None:
    """The states that one request is left with, all of the same tokens or each of its own."""
    band = world.state_band
    setup = world.setup.bands[band]
    size, content = setup.page_bytes, world.truth.content[band]
    is_late = is_left_to_commit(world, band)
    is_relayed = world.setup.backend.commit is Commit.RELAYED
    states: dict[int, bytes] = {}
    for slot, tokens in work.outputs:
        end = tokens or request.length + request.prepared
        if end not in states:
            states[end] = world.stamps(setup.entry_cells)
        state = states[end]
        blocks = request.blocks[: tokens // (world.setup.block_pages * world.setup.page_slots)]
        if is_relayed:
            batch.accepted.append(Accepted(slot, page_of[slot], state, blocks, tokens))
            continue
        if tokens:
            world.truth.state_tokens[slot] = (blocks, tokens)
        content[slot] = bytearray(state)
        low = page_of[slot] * size
        whole: list[PageBytes] = [(low, low + size, state)]
        if is_late:
            batch.committed += whole
            continue
        for group, part in enumerate(batch.writes):
            part += piece_of(whole, group, len(batch.writes))
        batch.after += whole
