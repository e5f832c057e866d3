"""What there is to see in a world, as tables: bands, pages, requests, steps, copies, transfers.

It reads and asks nothing of the allocator but its accounts, so looking changes nothing.  How a
table is drawn is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from harness.device.clock import HOST, LANES
from harness.device.launches import ModeledEvent
from harness.engine import Step
from harness.errors import InputError
from harness.world import World
from unikv.device.port import Stream

STATES: Mapping[int, tuple[str, str]] = {
    0: (".", "unclaimed"),
    1: ("L", "live"),
    2: ("o", "hole"),
    3: ("p", "pending"),
    4: ("f", "fixed"),
}
"""A letter and a name for every state of a page in a subject's books."""

VALUE_WIDTH = 120
"""Longer values are cut; a list of pages is no use on a screen."""

Row = tuple[str, ...]


class Table(NamedTuple):
    """Rows under headers, with a title."""

    title: str
    headers: Row
    rows: Sequence[Row]


def bands(world: World) -> Table:
    """Every band: its span, its counts and a letter for every page."""
    rows = []
    for band, book in zip(world.setup.bands, world.books, strict=True):
        letters = "".join(STATES[state][0] for state in book.states)
        counts = map(str, book.counts)
        rows.append((band.name, f"{book.span[0]}..{book.span[1]}", *counts, letters))
    legend = ", ".join(f"{letter} {name}" for letter, name in STATES.values())
    headers = ("band", "span", "live", "holes", "pending", "fixed", "pages")
    return Table(f"bands ({legend}; spans are half-open)", headers, rows)


def band(world: World, name: str) -> Table:
    """The claimed pages of one band.

    Raises:
        InputError: if there is no such band.
    """
    index = _band(world, name)
    book = world.books[index]
    rows = [
        (str(page), STATES[book.states[page]][1], *_held(world, index, page))
        for page in range(*book.span)
    ]
    span = f"[{book.span[0]}, {book.span[1]})"
    return Table(f"band {name}, span {span}", ("page", "state", "id", "holders"), rows)


def page(world: World, name: str, number: int) -> Table:
    """Everything that is known of one page.

    Raises:
        InputError: if there is no such band or page.
    """
    index = _band(world, name)
    book = world.books[index]
    if not 0 <= number < len(book.states):
        raise InputError(f"page: {number}: band {name!r} has pages 0 to {len(book.states) - 1}")
    size = world.layout.bands[index].page_bytes
    unit, holders = _held(world, index, number)
    low, high = number * size, number * size + size
    rows = [
        ("state in the allocator's books", STATES[book.states[number]][1]),
        ("bytes of the arena", f"[{low}, {high})"),
        ("id", unit),
        ("holders", holders),
        ("waits for step", str(world.truth.pending[index].get(number, "none"))),
    ]
    uses = [use for use in world.subjects[0].uses() if use.band == index and number in use.pages]
    rows += [("use in its ledger", f"{use.kind} of step {use.step}") for use in uses]
    if world.host_subject is not None:
        rows += [
            ("copy in its ledger", f"{copy.kind} of bytes [{begin}, {end})")
            for copy in world.host_subject.copies()
            for begin, end in copy.ranges
            if begin < high and low < end
        ]
    if world.network_subject is not None:
        rows += [
            ("hold in its ledger", f"{hold.kind}{', given up' if hold.isolated else ''}")
            for hold in world.network_subject.holds()
            if hold.band == index and number in hold.pages
        ]
    return Table(f"page {number} of band {name}", ("what", "value"), rows)


def requests(world: World) -> Table:
    """Every request."""
    rows = [
        (
            request.name,
            request.phase.value,
            f"{request.length} + {request.prepared} of {request.prompt} + {request.output}",
            str(request.row),
            str(len(request.pages)),
            str(world.states.slot_of(world, request) or "none"),
        )
        for request in world.requests.values()
    ]
    headers = ("request", "phase", "tokens + prepared of prompt + output", "row", "pages", "slot")
    return Table("requests", headers, rows)


def request(world: World, name: str) -> Table:
    """One request, with where its pages are.  Raises: InputError, if there is none."""
    found = _named("request", name, world.requests)
    table = _record(world, f"request {name}", found)
    places = []
    for index in world.token_bands:
        mapped = world.subjects[0].page_map(index)
        pages = ", ".join(str(mapped[unit]) for unit in found.pages)
        places.append((f"pages in band {world.setup.bands[index].name}", pages or "none"))
    return table._replace(rows=[*table.rows, *places])


def steps(world: World) -> Table:
    """Every step that is not processed."""
    rows = []
    for step in _steps(world).values():
        end = "not recorded" if step.event is None else _event(world, step.event)
        rows.append((str(step.number), ", ".join(step.requests), end))
    return Table("steps that are not processed", ("step", "requests", "end"), rows)


def step(world: World, number: str) -> Table:
    """One step that is not processed.  Raises: InputError, if there is none."""
    return _record(world, f"step {number}", _named("step", number, _steps(world)))


def copies(world: World) -> Table:
    """Every copy between arena and host memory that is not over."""
    host = world.host
    rows = [(name, "backup", _value(world, part.event)) for name, part in host.backups.items()]
    rows += [(name, "load", _value(world, part.events)) for name, part in host.loads.items()]
    return Table("copies that are not over", ("copy", "kind", "end"), rows)


def copy(world: World, name: str) -> Table:
    """One copy that is not over.  Raises: InputError, if there is none."""
    found = _named("copy", name, {**world.host.backups, **world.host.loads})
    return _record(world, f"{type(found).__name__.lower()} {name}", found)


def transfers(world: World) -> Table:
    """Every transfer that is not over."""
    state = world.transfers
    rows = [
        (name, kind, part.request or "given up", "yes" if name in state.isolated else "no")
        for kind, parts in (("send", state.sends), ("receive", state.receives))
        for name, part in _items(parts)
    ]
    return Table("transfers that are not over", ("transfer", "kind", "request", "isolated"), rows)


def transfer(world: World, name: str) -> Table:
    """One transfer that is not over.  Raises: InputError, if there is none."""
    state = world.transfers
    found = _named("transfer", name, {**state.sends, **state.receives})
    return _record(world, f"{type(found).__name__.lower()} {name}", found)


def prefixes(world: World) -> Table:
    """Every cached prefix, least recently used first."""
    rows = [
        (
            _value(world, blocks),
            _value(world, part.pages),
            str(part.slot or "none"),
            str(part.locks),
        )
        for blocks, part in world.prefixes.items()
    ]
    return Table("cached prefixes", ("blocks", "ids", "slot", "locks"), rows)


def streams(world: World) -> Table:
    """What runs on every rank."""
    rows = []
    for rank, state in enumerate(world.device.ranks):
        for lane in range(LANES):
            if lane != HOST and (state.position[lane] or state.started[lane]):
                runs = "runs" if state.started[lane] else "idle, or waits"
                rows.append((str(rank), _lane(lane), str(state.position[lane]), runs))
    return Table("streams", ("rank", "stream", "items passed", "head"), rows)


def _items(parts: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return parts.items()


def _band(world: World, name: str) -> int:
    names = [part.name for part in world.setup.bands]
    if name not in names:
        raise InputError(f"band: {name!r}: no such band; there are {', '.join(names)}")
    return names.index(name)


def _named(kind: str, name: str, things: Mapping[str, Any]) -> Any:
    if name not in things:
        there = ", ".join(things) or "none now"
        raise InputError(f"{kind}: {name!r}: no such {kind} here; there are {there}")
    return things[name]


def _steps(world: World) -> Mapping[str, Step]:
    """Every step that is not processed, by its number."""
    found = [*world.steps, world.unsynced_step, world.unordered_step, world.open_step]
    return {str(part.number): part for part in found if part is not None}


def _held(world: World, index: int, page: int) -> tuple[str, str]:
    """The id that names a page, and who holds that id."""
    truth = world.truth
    load = truth.reserved[index].get(page)
    unit = truth.owner[index][page]
    if load is not None:
        return "none", f"reserved by {load}"
    if not unit:
        return "none", ""
    state = index == world.state_band
    holders = [
        part.name
        for part in world.requests.values()
        if unit in (world.states.held(world, part) if state else part.pages)
    ]
    holders += [
        f"prefix {blocks}"
        for blocks, part in world.prefixes.items()
        if (unit == part.slot if state else unit in part.pages)
    ]
    return str(unit), ", ".join(holders) or "nobody"


def _lane(lane: int) -> str:
    return Stream(lane).name.lower() if lane < len(Stream) else f"peer {lane - HOST - 1}"


def _event(world: World, event: ModeledEvent) -> str:
    ranks = range(world.setup.ranks)
    waiting = [str(rank) for rank in ranks if not world.device.passed(rank, event)]
    where = f"not over on rank {', '.join(waiting)}" if waiting else "over"
    return f"{where} ({_lane(event.stream)} stream, item {event.index})"


def _record(world: World, title: str, thing: object) -> Table:
    """The fields of a record, one a row."""
    assert is_dataclass(thing)
    rows = [(part.name, _value(world, getattr(thing, part.name))) for part in fields(thing)]
    return Table(title, ("what", "value"), rows)


def _value(world: World, value: object) -> str:
    """A value in words, cut where it is long."""
    text = _words(world, value)
    return text if len(text) <= VALUE_WIDTH else f"{text[: VALUE_WIDTH - 4]} ..."


def _words(world: World, value: object) -> str:
    match value:
        case None:
            return "none yet"
        case ModeledEvent():
            return _event(world, value)
        case tuple() | list() | set():
            return ", ".join(_words(world, part) for part in value) or "none"
    return str(value)


Shown = Callable[[World], Table]
ShownOne = Callable[[World, str], Table]

LISTS: Mapping[str, Shown] = {
    "bands": bands,
    "requests": requests,
    "steps": steps,
    "copies": copies,
    "transfers": transfers,
    "prefixes": prefixes,
    "streams": streams,
}
"""Tables that need no argument, by the command that shows them."""

RECORDS: Mapping[str, ShownOne] = {
    "band": band,
    "request": request,
    "step": step,
    "copy": copy,
    "transfer": transfer,
}
"""Tables about one thing, which is named."""
