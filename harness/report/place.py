"""Where a failure is: the pages, table entries or buffers that a reader has to follow.

A race and a wrong read know their place from the device, every other violation has sites, and where
ranks differ, the place is where they do.  What happened there is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from harness.problem import SPACE_NAMES
from harness.report.recording import STATE_MASK, Frame, Recording
from harness.violation import Site

PAGES_MAX = 4
"""Pages that a failure is followed on; a violation may be about a whole band."""

ARENA = "arena"


@dataclass(frozen=True, slots=True)
class Place:
    """Something that work touches.

    Attributes:
        title: what to call it.
        space: the memory space, by the name that accesses use.
        units: of that space.
        band: index of the band that it belongs to; -1 where it is of none.
        page: which page of the band it is; -1 where it is none.
        slot: which host slot of the band it is; -1 where it is none.
    """

    title: str
    space: str
    units: frozenset[int]
    band: int = -1
    page: int = -1
    slot: int = -1


def places(recording: Recording) -> tuple[Place, ...]:
    """Where the violation of a replay is; empty where it names no place."""
    if recording.violation is None:
        return ()
    if recording.collision is not None:
        _, _, space, unit = recording.collision
        return tuple(_at(recording, space, unit))
    if recording.wrong_read is not None:
        read = recording.wrong_read
        return tuple(_at(recording, read.space, read.unit))
    sites = recording.violation.sites
    found = dict.fromkeys(place for site in sites for place in _of_site(recording, site))
    found |= dict.fromkeys(_differing(recording))
    return tuple(found)[:PAGES_MAX]


def page_place(recording: Recording, band: int, page: int) -> Place:
    """One page."""
    part = recording.setup.bands[band]
    each = part.page_bytes // recording.granule
    units = frozenset(range(page * each, page * each + each))
    return Place(f"page {page} of band {part.name!r}", ARENA, units, band, page)


def claimed_pages(recording: Recording, frame: Frame, units: frozenset[int]) -> list[Place]:
    """Pages that some band of the first rank claims in a frame and that hold one of the units."""
    found = []
    for band, seen in enumerate(frame.ranks[0]):
        each = recording.setup.bands[band].page_bytes // recording.granule
        for page in sorted({unit // each for unit in units}):
            if page < len(seen.states) and seen.states[page] & STATE_MASK:
                found.append(page_place(recording, band, page))
    return found


def claimed_around(
    recording: Recording, operation: int, units: frozenset[int], *, wrote: bool
) -> Iterator[tuple[Frame, Place]]:
    """Pages that hold the units around an operation, each with the frame in which they are claimed.

    What an operation reads is looked up before it first, what it writes is behind it: a page that
    it gives up is claimed before, one that it takes is claimed after.  No unit is looked up twice.
    """
    left = units
    frames = recording.frames[max(0, operation - 1) : operation + 1]
    for frame in reversed(frames) if wrote else frames:
        for place in claimed_pages(recording, frame, left):
            yield frame, place
            left -= place.units


def _at(recording: Recording, space: str, unit: int) -> Iterator[Place]:
    """The pages that a granule of the arena was part of since the earlier access, or a table's."""
    if space.startswith("host:"):
        yield from _host(recording, space, unit)
        return
    if space != ARENA:
        yield _other(space, unit)
        return
    collision = recording.collision
    first = recording.launches[collision.earlier].operation if collision else 0
    found: dict[Place, None] = {}
    for frame in recording.frames[max(0, first - 1) :]:
        found |= dict.fromkeys(claimed_pages(recording, frame, frozenset((unit,))))
    # The newest owner of the bytes is what the later access is about.
    yield from reversed(found)
    if not found:
        low = unit * recording.granule
        yield Place(f"arena byte {low}", ARENA, frozenset((unit,)))


def _other(space: str, unit: int) -> Place:
    kind, _, name = space.partition(":")
    titles = {
        "map": f"page map entry {unit} of band {name!r}",
    }
    title = titles.get(kind, f"{SPACE_NAMES.get(kind, space)} {unit}")
    return Place(title, space, frozenset((unit,)))


def _host(recording: Recording, space: str, unit: int) -> Iterator[Place]:
    """The host slot that a granule of host memory was part of last, or its byte."""
    index = int(space.partition(":")[2])
    granule = recording.host_granules[index]
    for frame in reversed(recording.frames):
        for band in recording.setup.host[index].bands:
            part = recording.setup.bands[band]
            each = part.page_bytes // granule
            slot = unit // each
            if slot in frame.accounts.host[band]:
                units = frozenset(range(slot * each, slot * each + each))
                title = f"host slot {slot} of band {part.name!r}"
                yield Place(title, space, units, band, slot=slot)
                return
    yield Place(f"byte {unit * granule} of host memory {index}", space, frozenset((unit,)))


def _of_site(recording: Recording, site: Site) -> Iterator[Place]:
    """Pages where a site is, or else its entry in a table."""
    if site.kind == "byte":
        yield from _bytes(recording, site.first, site.first + site.count)
        return
    numbers = range(site.first, site.first + site.count)
    if site.kind in ("row", "row memory"):
        space = "rows" if site.kind == "row" else "row memory"
        yield from (_other(space, row) for row in numbers)
    elif not 0 <= site.band < len(recording.setup.bands):
        return  # An allocator's own account may name a band that there is not.
    elif site.kind == "page":
        yield from _pages(recording, site.band, numbers)
    elif site.kind == "id":
        yield from _ids(recording, site.band, numbers)
    else:
        name = recording.setup.bands[site.band].name
        yield from (_other(f"map:{name}", entry) for entry in numbers)


def _bytes(recording: Recording, low: int, high: int) -> Iterator[Place]:
    """Pages that some bytes of the arena belong to at the end, or did before the last operation."""
    units = frozenset(range(low // recording.granule, -(-high // recording.granule)))
    for frame in recording.frames[:-3:-1]:
        yield from claimed_pages(recording, frame, units)


def _ids(recording: Recording, band: int, units: Iterable[int]) -> Iterator[Place]:
    """The page that each id named last, or its entry in the page map where it never named one."""
    last = {bind.unit: bind.after or bind.before for bind in recording.binds if bind.band == band}
    for unit in units:
        if last.get(unit):
            yield page_place(recording, band, last[unit])
        else:
            yield _other(f"map:{recording.setup.bands[band].name}", unit)


def _pages(recording: Recording, band: int, numbers: Iterable[int]) -> Iterator[Place]:
    """Those numbers that are pages of a band."""
    count = len(recording.frames[-1].ranks[0][band].states)
    yield from (page_place(recording, band, page) for page in numbers if 0 < page < count)


def _differing(recording: Recording) -> Iterator[Place]:
    """Pages that another rank keeps in another state than the first."""
    first, *others = recording.frames[-1].ranks
    for rank in others:
        for band, (own, other) in enumerate(zip(first, rank, strict=True)):
            for page, (one, two) in enumerate(zip(own.states, other.states, strict=False)):
                if one != two:
                    yield page_place(recording, band, page)
