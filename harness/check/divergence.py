"""Divergence: every rank gives equal answers, submits equal work and is in an equal logical state.

Answers are compared where the question is asked.
"""

from __future__ import annotations

from harness.violation import Violation
from harness.world import World


def examine_submissions(world: World) -> list[Violation]:
    """Ranks that submitted something else than the first in the operation just applied."""
    found: list[Violation] = []
    log = world.ports[0].log
    for rank, port in enumerate(world.ports):
        if port.log != log:
            text = f"rank {rank} submitted {port.log}, rank 0 {log}"
            _report(world, found, "submissions differ", text)
    return found


def examine(world: World) -> list[Violation]:
    """Ranks that keep other books than the first."""
    found: list[Violation] = []
    first, bands = world.subjects[0], world.band_range
    for rank in range(1, len(world.subjects)):
        other = world.subjects[rank]
        if other.books() != world.books:
            text = f"rank {rank} keeps {other.books()}, rank 0 {world.books}"
            _report(world, found, "books differ", text)
        if list(map(other.page_map, bands)) != list(map(first.page_map, bands)):
            differing = [band for band in bands if other.page_map(band) != first.page_map(band)]
            for band in differing:
                name = world.layout.bands[band].name
                text = f"rank {rank} has another page map of band {name!r} than rank 0"
                _report(world, found, "maps differ", text)
    return found


def _report(world: World, found: list[Violation], detail: str, text: str) -> None:
    found.append(
        Violation(check="divergence", what=text, detail=detail, operation=world.device.operation)
    )
