"""Divergence: every rank gives equal answers, submits equal work and is in an equal logical state.

Answers are compared where the question is asked.
"""

from __future__ import annotations

from harness.check import broken
from harness.violation import Violation
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
            text = f"rank {rank} submitted {log}, rank 0 {logs[0]}"
            found.append(broken(world, "divergence", "submissions differ", text))
    return found


def examine(world: World) -> list[Violation]:
    """Ranks that keep other books than the first."""
    found: list[Violation] = []
    first, bands = world.subjects[0], world.band_range
    for rank in range(1, len(world.subjects)):
        other = world.subjects[rank]
        if other.books() != world.books:
            text = f"rank {rank} keeps {other.books()}, rank 0 {world.books}"
            found.append(broken(world, "divergence", "books differ", text))
        if list(map(other.page_map, bands)) != list(map(first.page_map, bands)):
            differing = [band for band in bands if other.page_map(band) != first.page_map(band)]
            for band in differing:
                name = world.layout.bands[band].name
                text = f"rank {rank} has another page map of band {name!r} than rank 0"
                found.append(broken(world, "divergence", "maps differ", text))
    return found
