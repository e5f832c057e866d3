"""How long a translated id holds: until the next move in its band.

A kernel is given physical pages and never translates, so a move between translation and launch
would let it touch what another owner has by then.  Each band counts its moves, its *epoch*; what
was translated under one epoch is of no use under the next.  Work that is launched already is none
of this: the ledger keeps its pages in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.errors import StaleIdsError
from unikv.ids.unit_ids import UnitIds

RULE = "ids.translated_before_a_move"
"""The name of the rule in texts and documents.

It is checked at every level: it is a mistake of the caller, like a double free, and asking costs
one comparison.
"""


class MoveEpochs:
    """The epochs of every band at the moment of a translation."""

    __slots__ = ("_epochs", "_maps")

    def __init__(self, maps: Sequence[UnitIds]) -> None:
        self._maps = tuple(maps)
        self._epochs = tuple(units.moves for units in maps)

    def __len__(self) -> int:
        """Bands that were translated."""
        return len(self._maps)

    def check(self, band: int) -> None:
        """Refuse the use of what was translated in `band`, once pages of it have moved.

        Raises:
            StaleIdsError: naming the band and both epochs.
        """
        units, epoch = self._maps[band], self._epochs[band]
        if units.moves != epoch:
            raise StaleIdsError(
                f"{RULE}: band {units.name!r}: translated under move epoch {epoch}, but pages have"
                f" moved since and it is {units.moves}; translate again, behind the last take,"
                " flush or relief before the launch"
            )
