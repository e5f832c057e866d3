"""Ordering: no access overtakes its clearance, in any memory space, even if the bytes are right."""

from __future__ import annotations

from harness.device.modeled import Launch, Race
from harness.violation import AccessNote, Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Every pair of conflicting accesses that nothing orders, since the last operation."""
    races = world.device.races
    return [_violation(world, race) for race in races] if races else []


def _violation(world: World, race: Race) -> Violation:
    holder, place = _place(world, race)
    earlier = _note(race.earlier, "write" if race.earlier_wrote else "read", holder)
    later = _note(race.later, "write" if race.later_wrote else "read", holder)
    verb = "overwritten" if race.later_wrote else "read"
    return Violation(
        check="ordering",
        what=f"{place} is {verb} by a {race.later.kind} of the {later.stream} stream while"
        f" {_who(race.earlier)} may still {'write' if race.earlier_wrote else 'read'} it",
        detail=f"{race.space.partition(':')[0]} race",
        operation=world.device.operation,
        accesses=(earlier, later),
        missing_edge=f"{later.stream} <- {earlier.stream}: nothing makes the {later.kind} wait for"
        f" {_who(race.earlier)}",
    )


def _note(launch: Launch, mode: str, holder: str) -> AccessNote:
    return AccessNote(
        kind=f"{launch.kind} {mode}",
        stream=launch.role,
        operation=launch.operation,
        step=launch.step,
        holder=holder,
    )


def _who(launch: Launch) -> str:
    if launch.step:
        return f"the {launch.kind} of step {launch.step} on the {launch.role} stream"
    return f"the {launch.kind} of operation {launch.operation} on the {launch.role} stream"


def _place(world: World, race: Race) -> tuple[str, str]:
    """How the bytes are held, and a name for them."""
    if race.space != "arena":
        kind, _, name = race.space.partition(":")
        if kind == "rows":
            return "row", f"request row {race.unit}"
        if kind == "staging":
            return "staging", f"staging buffer {race.unit}"
        return "map", f"page map entry {race.unit} of band {name!r}"
    low = race.unit * world.device.granule
    owner = world.truth.owner_of_granule(race.unit)
    if owner is not None:
        band, unit = owner
        part = world.layout.bands[band]
        return "live", f"page {low // part.page_bytes} of band {part.name!r} (id {unit})"
    pending = world.truth.pending_at_granule(race.unit)
    if pending is not None:
        band, page = pending
        return "pending", f"freed page {page} of band {world.layout.bands[band].name!r}"
    return "free", f"free arena byte {low}"
