"""A place in a case: how many of its operations were applied, and the world they left.

The insight: a run is a function of its input, so one step back is a new run that stops one
operation earlier.  Nothing has to be undone, and nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.case import Case
from harness.ops import Operation, Outcome
from harness.runner import Run
from harness.violation import Violation
from harness.world import World


class Walk:
    """Walks along the operations of a case.

    Invariant: the world is what `[0, at)` of the operations leave behind.  Changed by `go` alone.

    Args:
        case: what to walk along.
        plant: id of a planted fault instead of the case's own; None keeps that.

    Attributes:
        at: operations that were applied.
        outcomes: how each of them ended.
    """

    def __init__(self, case: Case, plant: str | None = None) -> None:
        self.operations: Sequence[Operation] = case.operations
        self._case = case
        self._plant = case.plant if plant is None else plant
        self._begin()

    @property
    def world(self) -> World:
        """The world as it is here."""
        return self._run.world

    @property
    def violations(self) -> list[Violation]:
        """What the last operation broke; nothing can be applied behind it."""
        return self._run.violations

    def go(self, at: int) -> None:
        """Go to where `at` operations are applied, or as far that way as there is a way."""
        if at < self.at:
            self._begin()
        goal = min(at, len(self.operations))
        while self.at < goal and not self.violations:
            self.outcomes.append(self._run.execute(self.operations[self.at]))
            self.at += 1

    def go_to_failure(self) -> None:
        """Go to where a promise is broken, or to the end."""
        self.go(len(self.operations))

    def _begin(self) -> None:
        self._run = Run(self._case.setup, self._plant)
        self.at = 0
        self.outcomes: list[Outcome] = []
