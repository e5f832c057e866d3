"""Ownership: no byte has two owners, nothing is freed twice, no page is lost.

Double owners and refused frees are seen while an operation runs; here every id that somebody holds
must be bound, and every bound id held.
"""

from __future__ import annotations

from harness.violation import Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Ids that are held and not bound, or bound and not held."""
    truth = world.truth
    found = []
    for band, part in enumerate(world.layout.bands):
        if not part.mints or truth.held_count[band] == truth.bound[band]:
            continue
        bound = {unit for unit in truth.owner[band] if unit}
        held = {unit for unit, is_held in enumerate(truth.held[band]) if is_held}
        found.append(
            Violation(
                check="ownership",
                what=f"band {part.name!r}: ids {sorted(held - bound)} are held by nobody's page,"
                f" ids {sorted(bound - held)} are bound and held by nobody",
                detail="held and bound ids differ",
                operation=world.device.operation,
            )
        )
    for band, holds in world.row_holds.items():
        if holds.held != truth.bound[band]:
            part = world.layout.bands[band]
            found.append(
                Violation(
                    check="ownership",
                    what=f"band {part.name!r}: {truth.bound[band]} rows are bound, the engine"
                    f" holds {holds.held}",
                    detail="held and bound rows differ",
                    operation=world.device.operation,
                )
            )
    return found
