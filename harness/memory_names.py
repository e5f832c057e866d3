"""What to call a place in memory, and how it is held, by truth's account.

A granule of the arena is somebody's page, a page that was freed and may still be touched, or free;
what it is called says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.problem import SPACE_NAMES
from harness.violation import Site, id_sites
from harness.words import band_text

if TYPE_CHECKING:
    from harness.truth import Truth

RESERVED = 0xFFFFFFFF
"""Stands for an id where a page is handed out and no id names it yet."""


def owner_text(truth: Truth, owner: int) -> str:
    """Whose a granule is, by `band << 32 | id`."""
    band, unit = owner >> 32, owner & 0xFFFFFFFF
    return f"{unit_text(unit)} of {band_text(truth.layout.bands, band)}"


def owner_sites(owner: int) -> tuple[Site, ...]:
    """Where to look for it; nowhere for what has no id yet."""
    unit = owner & 0xFFFFFFFF
    return () if unit == RESERVED else id_sites(owner >> 32, [unit])


def unit_text(unit: int) -> str:
    """An id, or what stands for one."""
    return "a row that a load reserved" if unit == RESERVED else f"id {unit}"


def describe(truth: Truth, space: str, unit: int) -> tuple[str, str]:
    """How a unit of a memory space is held now, in one word, and what to call it.

    Args:
        truth: who says so.
        space, unit: as accesses name it.
    """
    kind, _, name = space.partition(":")
    if kind == "map":
        return "map", f"page map entry {unit} of band {name!r}"
    if kind == "host":
        return "host", truth.copies.place(int(name), truth.device.host.low(int(name), unit))
    if kind != "arena":
        return kind, f"{SPACE_NAMES[kind]} {unit}"
    granule = truth.device.granule
    owner, low = truth.granule_owner[unit], unit * granule
    if owner:
        part, named = truth.layout.bands[owner >> 32], owner & 0xFFFFFFFF
        whose = "reserved for a load" if named == RESERVED else f"id {named}"
        return "live", f"page {low // part.page_bytes} of band {part.name!r} ({whose})"
    for part, pending in zip(truth.layout.bands, truth.pending, strict=True):
        each = part.page_bytes // granule
        for page in pending:
            if page * each <= unit < page * each + each:
                return "pending", f"freed page {page} of band {part.name!r}"
    return "free", f"free arena byte {low}"
