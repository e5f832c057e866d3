"""Ownership: no byte has two owners, nothing is freed twice, no page is lost.

Double owners and refused frees are seen while an operation runs; here every id that somebody holds
must be bound, and every bound id held.
"""

from __future__ import annotations

from harness.check import broken
from harness.violation import Violation, id_sites
from harness.words import apart
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Ids that are held and not bound, or bound and not held."""
    truth = world.truth
    found = []
    for band, part in enumerate(world.layout.bands):
        if not part.mints or truth.held[band] == truth.bound_ids[band]:
            continue
        bound = {unit for unit, is_bound in enumerate(truth.bound_ids[band]) if is_bound}
        held = {unit for unit, is_held in enumerate(truth.held[band]) if is_held}
        said = apart(
            ("ids", held - bound, "are handed out and name no page"),
            ("ids", bound - held, "name pages and are handed out to nobody"),
        )
        text = f"band {part.name!r}: {said}"
        sites = id_sites(band, held ^ bound)
        found.append(broken(world, "ownership", "held and bound ids differ", text, sites))
    for band, holds in world.row_holds.items():
        if holds.held != truth.bound_ids[band]:
            name = world.layout.bands[band].name
            pairs = enumerate(zip(truth.bound_ids[band], holds.held, strict=True))
            wrong = [(unit, is_bound) for unit, (is_bound, is_held) in pairs if is_bound != is_held]
            said = apart(
                (
                    "ids",
                    [unit for unit, is_bound in wrong if is_bound],
                    "have a row that nobody wants",
                ),
                (
                    "ids",
                    [unit for unit, is_bound in wrong if not is_bound],
                    "have no row, and somebody wants it",
                ),
            )
            text = f"band {name!r}: {said}"
            sites = id_sites(band, [unit for unit, _ in wrong])
            found.append(broken(world, "ownership", "held and bound rows differ", text, sites))
    return found
