"""Divergence: every rank gives equal answers, submits equal work and is in an equal logical state.

Answers are compared where the question is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.check import broken
from harness.device.submissions import first_apart
from harness.subject import Book
from harness.violation import Violation, id_sites
from harness.words import book_text
from harness.world import World

_OF_GATES = frozenset({"record", "host_wait"})
"""What a rank does to learn when ids may leave; nothing of it reaches a page."""


def examine_submissions(world: World) -> list[Violation]:
    """Ranks that submitted something else than the first in the operation just applied."""
    found: list[Violation] = []
    logs = [port.log for port in world.ports]
    if world.transfers.is_uneven(world.device.operation):
        # A rank that was asked to stop a transfer need not wait until its ids may leave.
        logs = [[entry for entry in log if entry[0] not in _OF_GATES] for log in logs]
    for rank, log in enumerate(logs):
        if log != logs[0]:
            at, own, first = first_apart(world.layout, log, logs[0])
            text = f"submission {at} of rank {rank} is {own}; of rank 0 it is {first}"
            found.append(broken(world, "divergence", "submissions differ", text))
    return found


def examine(world: World) -> list[Violation]:
    """Ranks that keep other books than the first."""
    found: list[Violation] = []
    first, bands = world.subjects[0], world.band_range
    for rank in range(1, len(world.subjects)):
        other = world.subjects[rank]
        if other.books() != world.books:
            text = _books_apart(world, rank, other.books())
            found.append(broken(world, "divergence", "books differ", text))
        if list(map(other.page_map, bands)) != list(map(first.page_map, bands)):
            for band in bands:
                own, others = other.page_map(band), first.page_map(band)
                if own == others:
                    continue
                name = world.layout.bands[band].name
                pairs = enumerate(zip(own, others, strict=False))
                apart = [unit for unit, (one, two) in pairs if one != two]
                text = f"rank {rank} has other pages for ids {apart} of band {name!r} than rank 0"
                found.append(
                    broken(world, "divergence", "maps differ", text, id_sites(band, apart))
                )
    return found


def _books_apart(world: World, rank: int, books: Sequence[Book]) -> str:
    """The first band of which two ranks keep other books, and what each has there."""
    band = next(band for band in world.band_range if books[band] != world.books[band])
    other, first = books[band], world.books[band]
    name = world.layout.bands[band].name
    if other.states != first.states:
        pages = enumerate(zip(other.states, first.states, strict=False))
        apart = [page for page, (one, two) in pages if one != two]
        return f"rank {rank} and rank 0 keep pages {apart} of band {name!r} in other states"
    return (
        f"rank {rank} keeps band {name!r} as {book_text(other.counts, other.span)}; rank 0 as"
        f" {book_text(first.counts, first.span)}"
    )
