"""A planted fault: what was broken, how, and which check has to see it.

A fault is planted in one world after that world was built: a part becomes a subclass of itself that
does one thing wrong, or is given a changed clearance table.  No module is changed, so nothing is
left behind for the next world.  How a fault is hunted is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from harness.faults.incidents import INCIDENTS
from harness.violation import Violation
from harness.world import World

Plant = Callable[[World], None]
"""Breaks one world."""


class Ground(Enum):
    """What has to happen in a world before a fault can show."""

    OPERATIONS = "operations"  # what `harness.ops` does
    CALLS = "calls"  # also what no operation does: ids translated ahead, and an engine's mistakes


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One bug, and what a report about it has to say.

    Attributes:
        id: its name on the command line.
        planted: what was broken, in one sentence.
        plant: breaks a world, on every rank unless the bug is that ranks differ.
        checks: promises that may report it, by the names in `harness.check.PROMISES`.
        ground: what has to happen for it to show.
        scenario: name of the scenario in which to look for it first.
        rows: ids of the public incidents it is modeled on; empty where it follows from a rule.
        ablates: the clearance cell or ordering edge that it removes; empty where it removes none.
        edge: for an ordering fault, what the missing edge of the report must contain.
        pair: for an ordering fault, what the kinds of the earlier and of the later access must
            contain.  Here and in `edge` alternatives are separated by `|`.
        ahead: for an ordering fault, promises that may see it before two accesses collide.  Where
            nobody looks at them, `ordering` reports `pair` and `edge`.
        together: the promise that it proves against a lie, because it corrupts the state and the
            allocator's own account of that state alike; empty where one would give it away.
    """

    id: str
    planted: str
    plant: Plant
    checks: tuple[str, ...]
    ground: Ground = Ground.OPERATIONS
    scenario: str = "smoke"
    rows: tuple[str, ...] = ()
    ablates: str = ""
    edge: str = ""
    pair: tuple[str, str] = ("", "")
    ahead: tuple[str, ...] = ()
    together: str = ""

    @property
    def reports(self) -> tuple[str, ...]:
        """Public addresses of the incidents in `rows`."""
        return tuple(INCIDENTS[row] for row in self.rows)

    def explains(self, violation: Violation) -> bool:
        """Whether a violation is this fault, seen by a check that may see it.

        For an ordering fault the report must also name the right two accesses and the right edge.
        """
        if violation.check not in self.checks:
            return False
        if not self.edge or violation.check != "ordering":
            return not self.edge or violation.check in self.ahead
        return _holds_one_of(self.edge, violation.missing_edge) and all(
            _holds_one_of(wanted, access.kind)
            for wanted, access in zip(self.pair, violation.accesses, strict=True)
        )


def _holds_one_of(alternatives: str, text: str) -> bool:
    return any(wanted in text for wanted in alternatives.split("|"))
