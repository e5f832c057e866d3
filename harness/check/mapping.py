"""Mapping: ids and pages are one-to-one, the inverse agrees, and device tables equal the host's.

The device tables are taken in program order; truth's own account of who owns which page comes from
the map writes that were submitted.
"""

from __future__ import annotations

from msgspec.structs import replace

from harness.violation import Site, Violation
from harness.world import World

_ARTICLES = {"map": "a map", "inverse": "an inverse", "row": "a row"}


def examine(world: World) -> list[Violation]:
    """Differences between the host's maps, the device's and truth's."""
    found: list[Violation] = []
    subject, program = world.subjects[0], world.device.program
    for band, part in enumerate(world.layout.bands):
        host = subject.page_map(band)
        if host != program.maps[band]:
            where = f"map of band {part.name!r}"
            _report(world, found, where, Site("entry", band, 0), host, program.maps[band])
        inverse, owner = subject.inverse_map(band), world.truth.owner[band]
        if inverse != owner and inverse[: len(owner)] != owner[: len(inverse)]:
            where = f"inverse map of band {part.name!r}"
            _report(world, found, where, Site("page", band, 0), inverse, owner)
    for request in world.requests.values():
        if request.row < 0:
            continue
        row, pages = request.row, request.pages
        host = subject.row(row)
        device = program.rows[row][: len(host)]
        if host != pages or device != host:
            where = f"row {row} of {request.name}"
            table = pages if device == host else device
            _report(world, found, where, Site("row", -1, row), host, table)
    return found


def _report(
    world: World,
    found: list[Violation],
    where: str,
    table: Site,
    host: list[int],
    device: list[int],
) -> None:
    """What differs first; `table` is a row, or the first entry of another table."""
    at = next((i for i, (a, b) in enumerate(zip(host, device, strict=False)) if a != b), -1)
    values = f"{host[at]}, the device {device[at]}" if at >= 0 else "another length"
    found.append(
        Violation(
            check="mapping",
            what=f"{where}: at {at} the host says {values}",
            detail=f"host and device differ in {_ARTICLES[where.split()[0]]}",
            operation=world.device.operation,
            sites=(table if table.kind == "row" else replace(table, first=max(0, at)),),
        )
    )
