"""Capacity: a yes is a successful take, a no is confirmed by an exhaustive layout search.

The search shares nothing with the allocator's pricing and reads only truth's counts.  Takes after a
yes are compared where they happen; refusals are judged here.
"""

from __future__ import annotations

from functools import lru_cache

from harness.check.layout_search import layout_exists
from harness.violation import Violation
from harness.world import World
from unikv.errors import Shortage

_search = lru_cache(maxsize=1 << 16)(layout_exists)


def examine(world: World) -> list[Violation]:
    """Refusals that nothing justifies, and reliefs that answer wrongly."""
    if not world.capacity_answers:
        return []
    found = []
    for answer, (pages, slots) in world.capacity_answers:
        world.check_runs["capacity"] += 1
        if isinstance(answer, Shortage):
            found += _judge_refusal(world, answer, pages, slots)
        elif answer != _layout_exists(world, pages, slots):
            text = f"relieve({pages}, {slots}) says {answer}, the search of all layouts does not"
            found.append(_violation(world, "relief answers wrongly", text))
    world.capacity_answers.clear()
    return found


def _judge_refusal(world: World, shortage: Shortage, pages: int, slots: int) -> list[Violation]:
    if shortage.kind == "ids" and _ids_are_short(world, pages, slots):
        return []
    if shortage.kind == "bytes" and not _layout_exists(world, pages, slots):
        return []
    text = (
        f"{pages} pages and {slots} slots are refused ({shortage}), but a layout holds them and"
        " ids are free"
    )
    return [_violation(world, f"refused {shortage.kind} that are there", text)]


def _violation(world: World, detail: str, what: str) -> Violation:
    return Violation(check="capacity", what=what, detail=detail, operation=world.device.operation)


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
