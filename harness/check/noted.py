"""Problems that were seen while an operation ran, as violations of the promise they belong to."""

from __future__ import annotations

from harness.violation import Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Everything truth noted since the last operation."""
    problems = world.truth.problems
    if not problems:
        return []
    return [
        Violation(
            check=problem.check,
            what=problem.what,
            detail=problem.detail,
            operation=world.device.operation,
            sites=problem.sites,
        )
        for problem in problems
    ]
