"""Mapping: ids and pages are one-to-one, the inverse agrees, and device tables equal the host's.

The device tables are taken in program order; truth's own account of who owns which page comes from
the map writes that were submitted.
"""

from __future__ import annotations

from typing import Literal

from harness.check import broken
from harness.requests import Request
from harness.violation import Site, Violation
from harness.words import joined
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Differences between the host's maps, the device's and truth's."""
    found: list[Violation] = []
    subject, program = world.subjects[0], world.device.program
    for band, part in enumerate(world.layout.bands):
        host, device = subject.page_map(band), program.maps[band]
        if host != device:
            at = _first_difference(host, device)
            text = _differing(f"the map of band {part.name!r}", at, host, device, "on the device")
            _report(world, found, "a map", text, _site("entry", band, at))
        inverse, owner = subject.inverse_map(band), world.truth.owner[band]
        if inverse != owner and inverse[: len(owner)] != owner[: len(inverse)]:
            at, where = _first_difference(inverse, owner), f"the inverse map of band {part.name!r}"
            text = _differing(where, at, inverse, owner, "by the map writes of the device")
            _report(world, found, "an inverse", text, _site("page", band, at))
    for request in world.requests.values():
        if request.row < 0:
            continue
        row, pages = request.row, request.pages
        host = subject.row(row)
        device = program.rows[row][: len(host)]
        if host != pages or device != host:
            other, whose = device, "on the device"
            if device == host:
                other, whose = pages, f"by what {request.name} holds{_sharers(world, request)}"
            where, at = f"row {row} of {request.name}", _first_difference(host, other)
            text = _differing(where, at, host, other, whose)
            _report(world, found, "a row", text, (Site("row", -1, row),))
    return found


def _sharers(world: World, request: Request) -> str:
    """Who else has a request's row, as the end of a sentence."""
    others = [
        other.name
        for other in world.requests.values()
        if other.row == request.row and other is not request
    ]
    return f"; {joined(others)} {'have' if others[1:] else 'has'} that row too" if others else ""


def _first_difference(host: list[int], other: list[int]) -> int:
    """Index of the first entry that differs; -1 where one is only longer than the other."""
    return next((i for i, (a, b) in enumerate(zip(host, other, strict=False)) if a != b), -1)


def _site(kind: Literal["entry", "page"], band: int, at: int) -> tuple[Site, ...]:
    return (Site(kind, band, at),) if at >= 0 else ()


def _differing(where: str, at: int, host: list[int], other: list[int], whose: str) -> str:
    """What two accounts of a table have at its first difference; `whose` is the other's."""
    if at < 0:
        return f"{where} has {len(host)} entries on the host and {len(other)} {whose}"
    return f"entry {at} of {where} is {host[at]} on the host and {other[at]} {whose}"


def _report(
    world: World, found: list[Violation], table: str, text: str, sites: tuple[Site, ...]
) -> None:
    detail = f"host and device differ in {table}"
    found.append(broken(world, "mapping", detail, text, sites))
