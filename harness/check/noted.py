"""Problems that were seen while an operation ran, as violations of the promise they belong to."""

from __future__ import annotations

from harness.check import broken
from harness.violation import Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Everything truth noted since the last operation."""
    problems = world.truth.problems
    if not problems:
        return []
    return [broken(world, *problem) for problem in problems]
