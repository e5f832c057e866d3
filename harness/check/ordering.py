"""Ordering: no access overtakes its clearance, in any memory space, even if the bytes are right."""

from __future__ import annotations

from harness.device.launches import Launch, Race
from harness.violation import AccessNote, Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Every pair of conflicting accesses that nothing orders, since the last operation."""
    races = world.device.races
    return [_violation(world.device.operation, race) for race in races] if races else []


def _violation(operation: int, race: Race) -> Violation:
    earlier = _note(race.earlier, "write" if race.earlier_wrote else "read", race.holder)
    later = _note(race.later, "write" if race.later_wrote else "read", race.holder)
    verb = "overwritten" if race.later_wrote else "read"
    return Violation(
        check="ordering",
        what=f"{race.place} is {verb} by a {race.later.kind} of the {later.stream} stream while"
        f" {race.earlier.who} may still {'write' if race.earlier_wrote else 'read'} it",
        detail=f"{race.space.partition(':')[0]} race",
        operation=operation,
        accesses=(earlier, later),
        missing_edge=f"{later.stream} <- {earlier.stream}: nothing makes the {later.kind} wait for"
        f" {race.earlier.who}",
    )


def _note(launch: Launch, mode: str, holder: str) -> AccessNote:
    return AccessNote(
        kind=f"{launch.kind} {mode}",
        stream=launch.role,
        operation=launch.operation,
        step=launch.step,
        holder=holder,
    )
