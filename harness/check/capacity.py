"""Capacity: a yes is a successful take, a no is confirmed by an exhaustive layout search.

The search shares nothing with the allocator's pricing and reads only truth's counts.  Takes after a
yes are compared where they happen; refusals are judged here.  A relief that says yes has made the
room: behind it the demand fits with every span where it is.  The figures that a refusal gives are
compared with truth's where it is given.

What admission prices is asked as well: chunks end on the grid of checkpoints, and a request keeps
no window row that nobody attends, neither its next token nor who resumes at its last checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from typing import TYPE_CHECKING

from harness.check import broken
from harness.check.layout_search import layout_exists
from harness.violation import Violation, id_sites
from harness.words import counted, demand_text, joined
from unikv.errors import Shortage

if TYPE_CHECKING:
    from harness.requests import Request
    from harness.world import World

Figures = dict[str, tuple[int, int]]
"""Units asked for and units free of every band that is short, by its name."""

_HOLE = 2

_search = lru_cache(maxsize=1 << 16)(layout_exists)


def examine(world: World) -> list[Violation]:
    """Refusals that nothing justifies, and reliefs that answer wrongly."""
    if not world.capacity_answers:
        return []
    found = []
    for answer, demand in world.capacity_answers:
        world.check_runs["capacity"] += 1
        if isinstance(answer, Shortage):
            found += _judge_refusal(world, answer, demand)
        elif answer != _layout_exists(world, demand):
            text = (
                f"relieve of {_pages(world, demand)} says {answer}, and the search of all layouts"
                f" {not answer}"
            )
            found.append(broken(world, "capacity", "relief answers wrongly", text))
    world.capacity_answers.clear()
    return found


def after_a_broken_yes(
    world: World, demand: tuple[int, ...], question: str, call: str, shortage: Shortage
) -> None:
    """Note that a take was refused whose own question was answered with a yes."""
    verdict = ""
    if shortage.kind == "bytes":
        has_room = _layout_exists(world, demand)
        verdict = f"; {'one' if has_room else 'none'} of all layouts holds them, so " + (
            f"{call} is wrong" if has_room else f"{question} was wrong{_why_none(world, demand)}"
        )
    asked = _pages(world, demand)
    text = f"{question} says yes to {asked}, and {call} says: {shortage}{verdict}"
    world.truth.note("capacity", "take refused after a yes", text)


def _why_none(world: World, demand: tuple[int, ...]) -> str:
    """What bytes say about a demand that no layout holds, as the end of a sentence."""
    if not world.subjects[0].shares_bytes:
        return ""
    layout, truth = world.layout, world.truth
    sizes = [part.page_bytes for part in layout.bands]
    asked = sum(count * size for count, size in zip(demand, sizes, strict=True))
    used = sum(count * size for count, size in zip(_used(world), sizes, strict=True))
    free = layout.total_bytes - layout.sink_bytes - used
    text = f": {asked} bytes are asked and {free} are free"
    if asked > free or any(truth.reserved) or any(map(truth.transfers.kept, world.band_range)):
        return text
    return (
        f"{text}, but a page lies at a multiple of its size, and what that leaves over serves"
        " nobody"
    )


def after_a_broken_no(world: World, demand: tuple[int, ...], question: str, call: str) -> None:
    """Note that a take was served whose own question was answered with a no."""
    text = f"{question} says no to {_pages(world, demand)}, and {call} of just that is served"
    world.truth.note("capacity", "take served after a no", text)


def after_a_relief(world: World, demand: tuple[int, ...]) -> None:
    """Note that a relief said yes and left no room that a take of `demand` could grow into.

    The take may still settle, but nothing has to move for it: every page that is claimed now, a
    pending one too, stays inside its band's span.
    """
    world.check_runs["capacity"] += 1
    layout, books = world.layout, world.subjects[0].books()
    bands = [
        (part.page_bytes, used, *book.span)
        for part, used, book in zip(layout.bands, _used(world), books, strict=True)
    ]
    if not _search(layout.total_bytes, layout.sink_bytes, tuple(bands), demand):
        room = [
            f"{used} of {part.name!r} in span {low}..{high}"
            for part, (_, used, low, high) in zip(layout.bands, bands, strict=True)
        ]
        if _layout_exists(world, demand):
            verdict = "once pages may move and transfers have been waited for, one does"
        else:
            verdict = "none does once pages may move either, so the yes is wrong"
        text = (
            f"relieve of {_pages(world, demand)} says yes, but with every span kept no layout holds"
            f" them beside the pages in use, {joined(room)}; {verdict}"
        )
        world.truth.note("capacity", "relief made no room", text)


def _used(world: World) -> list[int]:
    """Pages of each band that an id names, a load was given, or a transfer was freed under."""
    truth = world.truth
    return [
        bound + len(reserved) + len(stuck)
        for bound, reserved, stuck in zip(
            truth.bound, truth.reserved, truth.transfers.stuck, strict=True
        )
    ]


def after_a_chunk(world: World, request: Request, first: int, tokens: int) -> None:
    """Note a chunk of a prompt that ends off the grid, before the prompt does.

    Args:
        request: whose prompt it is.
        first: tokens before the chunk.
        tokens: of the chunk.
    """
    end, interval = first + tokens, _interval(world)
    if end > request.prompt or (end < request.prompt and interval and end % interval):
        text = (
            f"{request.name}: a chunk of {tokens} tokens ends at {end}; allowed: a multiple of"
            f" {interval or 1} below {request.prompt}, or {request.prompt}, where the prompt ends"
        )
        world.truth.note("capacity", "chunk ends off the grid", text)


def after_an_advance(world: World, request: Request) -> None:
    """Note window rows that a request keeps although no token attends them any more.

    The last checkpoint that it can have is on the last grid position behind it, and without a grid
    at its next token; from there on, the window of whoever resumes reaches back.
    """
    interval, slots = _interval(world), world.setup.page_slots
    resumed_at = request.length - (request.length % interval if interval else 0)
    for band in world.window_bands:
        first, window = request.window_first[band], world.setup.bands[band].window
        oldest_attended = resumed_at - window + 1
        if (first + 1) * slots <= oldest_attended:
            low, unit = first * slots, request.pages[first]
            text = (
                f"{request.name} has run {counted(request.length, 'token')} and keeps its row of"
                f" tokens {low}..{low + slots - 1} in band {world.layout.bands[band].name!r} (id"
                f" {unit}); whoever goes on at token {resumed_at} attends none before"
                f" {oldest_attended}, in a window of {window}"
            )
            sites = id_sites(band, [unit])
            world.truth.note("capacity", "window rows beyond the price", text, sites)


def _interval(world: World) -> int:
    """Tokens between two positions at which a state may be kept; 0 where there is no grid."""
    return world.setup.checkpoints.interval if world.state_band >= 0 else 0


def after_a_shortage(world: World, shortage: Shortage, demand: tuple[int, ...]) -> None:
    """Note a refusal whose band, units asked for or units free are not what truth has.

    A refusal that nothing justifies has no such figures; it is judged as one.
    """
    figures = _SHORT_OF.get(shortage.kind, _nobody)(world, demand)
    given = shortage.asked, shortage.free
    if not figures or figures.get(shortage.band) == given:
        return
    allowed = " or ".join(
        f"{asked} asked of {band or 'the chain'}, {free} free"
        for band, (asked, free) in figures.items()
    )
    asked = f"a call for {_pages(world, demand)}"
    text = f"{asked} is refused with wrong figures: {shortage}; true are: {allowed}"
    world.truth.note("capacity", "refusal with other figures", text)


def _judge_refusal(world: World, shortage: Shortage, demand: tuple[int, ...]) -> list[Violation]:
    if shortage.kind == "ids" and _short_of_ids(world, demand):
        return []
    if shortage.kind == "bytes" and not _layout_exists(world, demand):
        if world.truth.transfers.isolated and _layout_exists_without_quarantine(world, demand):
            world.probes["refused_for_a_quarantine"] += 1
        return []
    if shortage.kind == "host slots" and _short_of_host_slots(world, demand):
        return []
    asked = _pages(world, demand)
    text = f"a call for {asked} is refused ({shortage}), but there is room for all of them"
    return [broken(world, "capacity", f"refused {shortage.kind} that are there", text)]


def _nobody(world: World, demand: tuple[int, ...]) -> Figures:
    """Of a kind of refusal that names no pages."""
    return {}


def _short_of_ids(world: World, demand: tuple[int, ...]) -> Figures:
    """Bands that lack ids."""
    free = [
        part.id_count - held
        for part, held in zip(world.layout.bands, world.truth.held_count, strict=True)
    ]
    return {
        part.name: (demand[band], free[band])
        for band, part in enumerate(world.layout.bands)
        if part.mints and demand[band] > free[band]
    }


def _short_of_bytes(world: World, demand: tuple[int, ...]) -> Figures:
    """The chain, and bands whose own holes are too few, each with the holes inside its spans.

    Where bands have pools of their own there are no holes that truth could count.
    """
    if not world.subjects[0].shares_bytes:
        return {}
    holes = [book.states.count(_HOLE) for book in world.books]
    short = {
        part.name: (demand[band], holes[band])
        for band, part in enumerate(world.layout.bands)
        if demand[band] > holes[band]
    }
    return {"": (sum(demand), sum(holes)), **short}


def _short_of_host_slots(world: World, demand: tuple[int, ...]) -> Figures:
    """Bands that lack host slots, counted as slots are handed out: nearest to their own end.

    Slots do not move, so the deepest slot of one end is a wall for the other.
    """
    short: Figures = {}
    for part in world.layout.host:
        wall = 0  # first byte above what the low end uses
        for band in part.bands:
            size = world.layout.bands[band].page_bytes
            used = world.truth.copies.holders[band]
            slots = range(-(-wall // size), part.total_bytes // size)
            if len(part.bands) == 2 and band == part.bands[0]:
                other = part.bands[1]
                width = world.layout.bands[other].page_bytes
                # Bytes above the last slot that the other end could have are this end's while the
                # other is empty.
                above = world.truth.copies.holders[other]
                slots = range((min(above) * width if above else part.total_bytes) // size)
            free = [slot for slot in slots if slot not in used]
            if len(free) < demand[band]:
                short[world.layout.bands[band].name] = demand[band], len(free)
                break
            wall = (max([*used, *free[: demand[band]]], default=-1) + 1) * size
    return short


_SHORT_OF: Mapping[str, Callable[[World, tuple[int, ...]], Figures]] = {
    "ids": _short_of_ids,
    "bytes": _short_of_bytes,
    "host slots": _short_of_host_slots,
}
"""What truth has of every band that may be named in a refusal, by its kind."""


def _pages(world: World, demand: tuple[int, ...]) -> str:
    return demand_text(world.layout.bands, demand)


def _layout_exists(world: World, demand: tuple[int, ...]) -> bool:
    truth = world.truth
    if not world.subjects[0].shares_bytes:
        return all(
            truth.bound[band] + demand[band] <= pool
            for band, pool in enumerate(world.subjects[0].pool_pages())
        )
    kept = [truth.transfers.kept(band) for band in world.band_range]
    return layout_with_pins(world, demand, kept)


def layout_with_pins(world: World, demand: tuple[int, ...], pinned: Sequence[Set[int]]) -> bool:
    """Whether a layout holds `demand` and leaves, per band, these and reserved pages alone."""
    layout, reserved = world.layout, world.truth.reserved
    bands = tuple(
        _band(world, band, own | reserved[band].keys()) for band, own in enumerate(pinned)
    )
    return bool(_search(layout.total_bytes, layout.sink_bytes, bands, demand))


def _layout_exists_without_quarantine(world: World, demand: tuple[int, ...]) -> bool:
    layout = world.layout
    bands = tuple(_band(world, band, own.keys()) for band, own in enumerate(world.truth.reserved))
    return bool(_search(layout.total_bytes, layout.sink_bytes, bands, demand))


def _band(world: World, band: int, pinned: Set[int]) -> tuple[int, int, int, int]:
    """What the search must know of a band in which these pages may not move."""
    truth = world.truth
    # Whoever froze a page that nobody owns any more still needs it.
    stuck = truth.transfers.stuck[band].keys() & pinned
    used = truth.bound[band] + len(truth.reserved[band]) + len(stuck)
    size = world.layout.bands[band].page_bytes
    return size, used, min(pinned, default=0), max(pinned, default=-1) + 1
