"""Mapping: ids and pages are one-to-one, the inverse agrees, and device tables equal the host's.

The device tables are taken in program order; truth's own account of who owns which page comes from
the map writes that were submitted.
"""

from __future__ import annotations

from typing import Literal

from harness.check import broken
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
            where, at = f"map of band {part.name!r}", _first_difference(host, program.maps[band])
            _report(world, found, where, at, host, program.maps[band], _site("entry", band, at))
        inverse, owner = subject.inverse_map(band), world.truth.owner[band]
        if inverse != owner and inverse[: len(owner)] != owner[: len(inverse)]:
            where, at = f"inverse map of band {part.name!r}", _first_difference(inverse, owner)
            _report(world, found, where, at, inverse, owner, _site("page", band, at))
    for request in world.requests.values():
        if request.row < 0:
            continue
        row, pages = request.row, request.pages
        host = subject.row(row)
        device = program.rows[row][: len(host)]
        if host != pages or device != host:
            where = f"row {row} of {request.name}"
            other = pages if device == host else device
            at = _first_difference(host, other)
            _report(world, found, where, at, host, other, (Site("row", -1, row),))
    return found


def _first_difference(host: list[int], device: list[int]) -> int:
    """Index of the first entry that differs; -1 where one is only longer than the other."""
    return next((i for i, (a, b) in enumerate(zip(host, device, strict=False)) if a != b), -1)


def _site(kind: Literal["entry", "page"], band: int, at: int) -> tuple[Site, ...]:
    return (Site(kind, band, at),) if at >= 0 else ()


def _report(
    world: World,
    found: list[Violation],
    where: str,
    at: int,
    host: list[int],
    device: list[int],
    sites: tuple[Site, ...],
) -> None:
    values = f"{host[at]}, the device {device[at]}" if at >= 0 else "another length"
    detail = f"host and device differ in {_ARTICLES[where.split()[0]]}"
    text = f"{where}: at {at} the host says {values}"
    found.append(broken(world, "mapping", detail, text, sites))
