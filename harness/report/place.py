"""Where a failure is: the pages, table entries or buffers that a reader has to follow.

A race and a wrong read know their place from the device.  Every other promise says it in its
sentence, which names bands, pages and ids; and where ranks differ, the place is where they do.
What happened there is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness.problem import SPACE_NAMES
from harness.report.recording import STATE_MASK, Frame, Recording
from harness.violation import Violation

PAGES_MAX = 4
"""Pages that a failure is followed on; a sentence may name a whole band."""

ARENA = "arena"

_NUMBERS = r"\d+|\[[\d, ]+\]"
_NUMBER = re.compile(r"(\d+)")
_BAND = re.compile(r"band '([^']*)'")
_PAGES = re.compile(rf"\bpages? ({_NUMBERS})")
_IDS = re.compile(rf"\bids? ({_NUMBERS})")
_ROW = re.compile(r"\brow (\d+)")
_STATE_SLOT = re.compile(r"\bfrom slot (\d+)")
_RANGE = re.compile(r"\((\d+), (\d+)\)")
_HOLD = re.compile(r"\('\w+', (\d+), (\d+), (?:True|False)\)")
_ENTRY = re.compile(
    r"page map entry (?P<entry>\d+) of band '(?P<band>[^']*)'"
    r"|(?P<inverse>inverse )?map of band '(?P<map>[^']*)': at (?P<at>\d+)"
)
_PAGE_OF_BAND = re.compile(
    rf"band '(?P<after>[^']*)'(?: keeps|:)? pages? (?P<of>{_NUMBERS})"
    rf"|pages? (?P<pages>{_NUMBERS}) of band '(?P<before>[^']*)'"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Something that work touches.

    Attributes:
        title: what to call it.
        space: the memory space, by the name that accesses use.
        units: of that space.
        band, page: which page it is; -1 where it is none.
    """

    title: str
    space: str
    units: frozenset[int]
    band: int = -1
    page: int = -1


def places(recording: Recording) -> tuple[Place, ...]:
    """Where the first violation of a replay is; empty where it names no place."""
    if not recording.violations:
        return ()
    if recording.collision is not None:
        _, _, space, unit = recording.collision
        return tuple(_at(recording, space, unit))
    if recording.wrong_read is not None:
        read = recording.wrong_read
        return tuple(_wrong(recording, read.space, read.unit))
    found = dict.fromkeys(_named(recording, recording.violations[0]))
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


def _at(recording: Recording, space: str, unit: int) -> Iterator[Place]:
    """The pages that a granule of the arena was part of since the earlier access, or a table's."""
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
        "host": f"granule {unit} of host memory {name}",
    }
    title = titles.get(kind, f"{SPACE_NAMES.get(kind, space)} {unit}")
    return Place(title, space, frozenset((unit,)))


def _wrong(recording: Recording, space: str, unit: int) -> Iterator[Place]:
    """Where a rank read wrong bytes, whose space has the name that memory uses."""
    if space == ARENA:
        yield from _at(recording, ARENA, unit // recording.granule)
    elif space.startswith("map"):
        band = recording.setup.bands[int(space.removeprefix("map"))]
        yield _other(f"map:{band.name}", unit)
    elif space.startswith("host"):
        # Host memory has granules of its own size: the launch knows which it read.
        name = f"host:{space.removeprefix('host')}"
        read = recording.wrong_read
        touched = recording.launches[read.launch].touched if read else ()
        units = frozenset(unit for touch in touched if touch.space == name for unit in touch.units)
        yield Place(f"host memory {space.removeprefix('host')}, byte {unit}", name, units)
    else:
        yield _other(space, unit)


def _named(recording: Recording, violation: Violation) -> Iterator[Place]:
    """Places that a sentence names: table entries, pages by band, bytes of copies, ids."""
    what = violation.what
    names = {band.name: at for at, band in enumerate(recording.setup.bands)}
    for found in _ENTRY.finditer(what):
        name, unit = found["band"] or found["map"], int(found["entry"] or found["at"])
        if found["inverse"]:
            yield from _pages(recording, names.get(name, -1), [unit])
        else:
            yield _other(f"map:{name}", unit)
    for found in _PAGE_OF_BAND.finditer(what):
        name, pages = found["after"] or found["before"], found["of"] or found["pages"]
        yield from _pages(recording, names.get(name, -1), _numbers(_NUMBER, pages))
    for band, page in _HOLD.findall(what):
        yield from _pages(recording, int(band), [int(page)])
    if "copies" in what:
        for low, high in _RANGE.findall(what)[:PAGES_MAX]:
            yield from _bytes(recording, int(low), int(high))
    mentioned = _BAND.findall(what)
    known = {names[name] for name in mentioned if name in names}
    # Ids without a band are those that requests hold.
    band = known.pop() if len(known) == 1 else -1 if mentioned else len(names) - 1
    places = list(_pages(recording, band, _numbers(_PAGES, what))) if mentioned else []
    yield from places
    if not places and band >= 0:
        # A page says more than an id, which may have lost its page.
        yield from _ids(recording, band, _numbers(_IDS, what))
    for at, part in enumerate(recording.setup.bands):
        if part.kind == "state":
            yield from _ids(recording, at, _numbers(_STATE_SLOT, what))
    for row in _numbers(_ROW, what):
        yield _other("rows", row)


def _bytes(recording: Recording, low: int, high: int) -> Iterator[Place]:
    """Pages that some bytes of the arena belong to at the end, or did before the last operation."""
    units = frozenset(range(low // recording.granule, -(-high // recording.granule)))
    for frame in recording.frames[:-3:-1]:
        yield from claimed_pages(recording, frame, units)


def _ids(recording: Recording, band: int, units: list[int]) -> Iterator[Place]:
    """The page that each id named last, or its entry in the page map where it never named one."""
    last = {bind.unit: bind.after or bind.before for bind in recording.binds if bind.band == band}
    for unit in units:
        if last.get(unit):
            yield page_place(recording, band, last[unit])
        else:
            yield _other(f"map:{recording.setup.bands[band].name}", unit)


def _pages(recording: Recording, band: int, numbers: list[int]) -> Iterator[Place]:
    """Those numbers that are pages of a band; none of no band."""
    if not 0 <= band < len(recording.setup.bands):
        return
    count = len(recording.frames[-1].ranks[0][band].states)
    yield from (page_place(recording, band, page) for page in numbers if 0 < page < count)


def _numbers(pattern: re.Pattern[str], text: str) -> list[int]:
    return [int(number) for found in pattern.findall(text) for number in re.findall(r"\d+", found)]


def _differing(recording: Recording) -> Iterator[Place]:
    """Pages that another rank keeps in another state than the first."""
    first, *others = recording.frames[-1].ranks
    for rank in others:
        for band, (own, other) in enumerate(zip(first, rank, strict=True)):
            for page, (one, two) in enumerate(zip(own.states, other.states, strict=False)):
                if one != two:
                    yield page_place(recording, band, page)
