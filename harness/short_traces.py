"""Every short life of one or two requests: what a small failure most likely looks like.

The insight: deletions end where nothing can be left out, and seeds that came by different roads
end at different places.  But there are few short traces in which no operation is skipped: some two
hundred of up to seven operations.  Trying them all, the smallest first, makes roads meet that no
single step joins, and where none of them fails, it is known that no plain trace does.

Only plain lives are here: requests that arrive at once, get a page at a time, and end; steps, and a
flush.  What else a failure needs is left to the other passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import product

import msgspec

from harness.canonical import Item
from harness.ops import (
    Abort,
    Admit,
    Advance,
    Arrive,
    Chunk,
    Flush,
    Launch,
    Operation,
    Process,
    Record,
    Retract,
    SharedReadEnd,
)
from harness.scenario import AT_THE_END, Setup
from harness.simpler_setup import is_possible, with_small_pages

LENGTH_MAX = 7
"""Longest trace that is tried; there are three times as many of each further operation."""

STEPS_MAX = 2
"""Most steps in flight at once."""

PAGES_SPARE = 1
"""Arenas are tried with as many pages as there are requests, and with so many more."""


class _Life(Enum):
    """Where a request is."""

    QUEUED = 0
    PREPARED = 1  # holds a page that no step has written yet
    IDLE = 2
    GONE = 3


@dataclass(frozen=True, slots=True)
class Engine:
    """The switches of an engine that decide which operations make sense."""

    overlap: bool
    read_end: bool
    windows: bool
    steps: int


@dataclass(frozen=True, slots=True)
class _Road:
    """A trace without its arrivals, and what would be skipped behind it."""

    lives: tuple[_Life, ...]
    operations: tuple[Operation, ...] = ()
    open_step: bool = False
    unordered: bool = False
    declared: bool = False
    steps: int = 0
    has_holes: bool = False

    def then(self, operation: Operation, index: int = -1, life: _Life = _Life.GONE) -> _Road:
        """One operation further; `life` is what becomes of request `index`."""
        lives = tuple(life if i == index else old for i, old in enumerate(self.lives))
        return replace(self, lives=lives, operations=(*self.operations, operation))


@lru_cache(maxsize=64)
def short_lives(engine: Engine, requests: int, length: int) -> tuple[tuple[Operation, ...], ...]:
    """All traces of so many requests and operations in which nothing should be skipped."""
    found = []
    roads = [_Road((_Life.QUEUED,) * requests)]
    for _ in range(length - requests):
        roads = [further for road in roads for further in _steps(road, engine)]
    for road in roads:
        if _Life.QUEUED not in road.lives or _is_retracted(road):
            arrivals = [Arrive(f"r{i}", _prompt(road, f"r{i}"), 0) for i in range(requests)]
            found.append((*arrivals, *road.operations))
    return tuple(found)


def short_traces(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Short lives on a roomy enough setup that is otherwise the trace's own, the shortest first."""
    setup = items[0]
    assert isinstance(setup, Setup)
    for bare in dict.fromkeys((_plain(setup), setup)):
        engine = Engine(
            overlap=setup.overlap,
            read_end=setup.read_end,
            windows=any(band.kind == "window" for band in bare.bands),
            steps=min(setup.steps_in_flight, STEPS_MAX),
        )
        for length, requests in product(range(2, min(LENGTH_MAX, len(items) - 1) + 1), (1, 2)):
            for pages in range(requests, requests + PAGES_SPARE + 1):
                roomy = with_small_pages(bare, pages, requests)
                roomy = msgspec.structs.replace(roomy, steps_in_flight=engine.steps)
                if length >= requests and is_possible(roomy):
                    yield from ((roomy, *life) for life in short_lives(engine, requests, length))


def _steps(road: _Road, engine: Engine) -> Iterator[_Road]:
    """Every road that is one operation longer."""
    if road.unordered and engine.read_end and not road.declared:
        yield replace(road.then(SharedReadEnd()), declared=True)
    if road.open_step:
        yield replace(road.then(Record()), open_step=False, steps=road.steps + 1)
        yield replace(road.then(Process()), open_step=False)
        return
    if road.steps:
        yield replace(road.then(Process()), steps=road.steps - 1)
    prepared = [i for i, life in enumerate(road.lives) if life is _Life.PREPARED]
    if prepared and road.steps < engine.steps:
        yield replace(
            road.then(Launch(tuple(f"r{i}" for i in prepared))),
            lives=tuple(_Life.IDLE if life is _Life.PREPARED else life for life in road.lives),
            open_step=engine.overlap,
            unordered=engine.overlap,
            declared=False,
        )
    if road.has_holes:
        yield replace(road.then(Flush(1)), has_holes=False)
    for index, life in enumerate(road.lives):
        yield from _lived_on(road, index, life, engine)


def _lived_on(road: _Road, index: int, life: _Life, engine: Engine) -> Iterator[_Road]:
    """What one request does next; whatever writes tables orders them first."""
    name = f"r{index}"
    ordered = replace(road, unordered=False)
    if life is _Life.QUEUED:
        # Which of two equal requests is admitted first makes no difference.
        if _Life.QUEUED not in road.lives[:index]:
            yield ordered.then(Admit(name, 1), index, _Life.PREPARED)
        return
    if life is _Life.GONE:
        return
    if life is _Life.IDLE:
        yield ordered.then(Chunk(name, 1), index, _Life.PREPARED)
    if engine.windows:
        yield replace(ordered.then(Advance(name)), has_holes=True)
    yield replace(ordered.then(Abort(name), index, _Life.GONE), has_holes=True)
    yield replace(ordered.then(Retract(name), index, _Life.QUEUED), has_holes=True)


def _is_retracted(road: _Road) -> bool:
    """Whether every queued request was admitted once."""
    admitted = {op.request for op in road.operations if isinstance(op, Admit)}
    return len(admitted) == len(road.lives)


def _prompt(road: _Road, name: str) -> int:
    """Tokens that a request is given between two retractions, at most."""
    most = tokens = 0
    for operation in road.operations:
        if isinstance(operation, Admit | Chunk) and operation.request == name:
            tokens += 1
        elif isinstance(operation, Retract) and operation.request == name:
            tokens = 0
        most = max(most, tokens)
    return most


def _plain(setup: Setup) -> Setup:
    """The setup with its last band alone, which owns the pages."""
    return msgspec.structs.replace(
        setup,
        bands=setup.bands[-1:],
        host=(),
        network=None,
        layer_groups=1,
        checkpoints=AT_THE_END,
    )
