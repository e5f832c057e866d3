"""Capacity: a yes is a successful take, a no is confirmed by an exhaustive layout search.

The search shares nothing with the allocator's pricing and reads only truth's counts.  Takes after a
yes are compared where they happen; refusals are judged here.
"""

from __future__ import annotations

from functools import lru_cache

from harness.check.layout_search import layout_exists
from harness.violation import Violation
from harness.world import World

_search = lru_cache(maxsize=1 << 16)(layout_exists)


def examine(world: World) -> list[Violation]:
    """A refusal that nothing justifies."""
    refusal, world.refusal = world.refusal, None
    if refusal is None:
        return []
    world.check_runs["capacity"] += 1
    shortage, (pages, slots) = refusal
    if shortage.kind == "ids" and _ids_are_short(world, pages, slots):
        return []
    if shortage.kind == "bytes" and not _layout_exists(world, pages, slots):
        return []
    return [
        Violation(
            check="capacity",
            what=f"{pages} pages and {slots} slots are refused ({shortage}), but a layout holds"
            " them and ids are free",
            detail=f"refused {shortage.kind} that are there",
            operation=world.device.operation,
        )
    ]


def _ids_are_short(world: World, pages: int, slots: int) -> bool:
    truth = world.truth
    owner = world.owner_band
    if truth.held_count[owner] + pages > world.layout.bands[owner].id_count:
        return True
    state = world.state_band
    return state >= 0 and truth.held_count[state] + slots > world.layout.bands[state].id_count


def _layout_exists(world: World, pages: int, slots: int) -> bool:
    truth, layout = world.truth, world.layout
    demand = tuple(
        slots if band == world.state_band else pages for band in range(len(layout.bands))
    )
    if not world.subjects[0].shares_bytes:
        return all(
            truth.bound[band] + demand[band] <= pool
            for band, pool in enumerate(world.subjects[0].pool_pages())
        )
    bands = tuple(
        (part.page_bytes, truth.bound[band], 0, 0) for band, part in enumerate(layout.bands)
    )
    return bool(_search(layout.total_bytes, layout.sink_bytes, bands, demand))
