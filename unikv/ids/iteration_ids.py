"""What one iteration writes: the physical slot of every new token, in every band.

Translated once per band and iteration, on the host.  A token's slot in a band is
`page * page_slots + offset`, with the same offset in every band: bands whose pages differ in bytes
share the slots of a page.  Padding, slot 0, is slot 0 of the sink.  A token that a band has no page
for may be read, as the sink; written it must never be, since its KV would be lost without a word.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from operator import add

from unikv.errors import OwnershipError, listed
from unikv.ids.move_epochs import MoveEpochs
from unikv.ids.unit_ids import UnitIds


class IterationIds:
    """Physical slots to be written, valid until a page of their band moves.

    It is made by `unikv.ids.translation.Translation.writes`.  Iterating gives every band's slots.
    """

    __slots__ = ("_epochs", "_slots")

    def __init__(self, epochs: MoveEpochs, slots: Sequence[array[int]]) -> None:
        self._epochs = epochs
        self._slots = [memoryview(part).toreadonly() for part in slots]

    def slots(self, band: int) -> memoryview[int]:
        """Physical slots of one band, in the order of the tokens.  (n,) int64, read-only.

        Raises:
            StaleIdsError: if pages of the band have moved since they were translated.
        """
        self._epochs.check(band)
        return self._slots[band]

    def __iter__(self) -> Iterator[memoryview[int]]:
        return (self.slots(band) for band in range(len(self._slots)))


def write_slots(
    units: UnitIds,
    tokens: Sequence[int],
    pages: Sequence[int],
    named: Collection[int],
    page_slots: int,
) -> array[int]:
    """Physical slots of one band.

    Args:
        units: the band's map.
        tokens: virtual slot of each token, 0 for padding.
        pages: virtual page of each, `token // page_slots`.
        named: each of these once; page 0 among them is padding's.
        page_slots: slots of one page.

    Raises:
        OwnershipError: naming band and ids, if a token has no page in this band.
    """
    forward = units.forward
    distance = {page: (forward[page] - page) * page_slots for page in named}
    lost = sorted(page for page in distance if page and not forward[page])
    if lost:
        raise OwnershipError(
            f"band {units.name!r}: ids {listed(lost)} are to be written, but they name no page of"
            " it, and what is written to the sink is lost; take pages or bind rows first, and leave"
            " out tokens behind the window"
        )
    return array("q", map(add, tokens, map(distance.__getitem__, pages)))
