"""What one forward reads: the page tables of its batch, in every band.

Translated once per band and forward, on the host, from the rows that name virtual pages.  A page
that a window has retired reads as page 0, the sink, and so does padding.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, pairwise

from unikv.errors import OwnershipError, listed
from unikv.ids.move_epochs import MoveEpochs
from unikv.ids.unit_ids import UnitIds


class RunnerIds:
    """Physical page tables to be read, valid until a page of their band moves.

    It is made by `unikv.ids.translation.Translation.reads`.  Iterating gives every band's tables.
    """

    __slots__ = ("_epochs", "_tables")

    def __init__(self, epochs: MoveEpochs, tables: Sequence[Sequence[memoryview[int]]]) -> None:
        self._epochs = epochs
        self._tables = [tuple(of_band) for of_band in tables]

    def tables(self, band: int) -> tuple[memoryview[int], ...]:
        """Physical pages of one band, request by request.  Each (n,) int64, read-only.

        Raises:
            StaleIdsError: if pages of the band have moved since they were translated.
        """
        self._epochs.check(band)
        return self._tables[band]

    def __iter__(self) -> Iterator[tuple[memoryview[int], ...]]:
        return (self.tables(band) for band in range(len(self._tables)))


class Batch:
    """Rows of ids, side by side: what a batch asks of every band that it translates.

    Attributes:
        ids: of all rows, in order.
    """

    __slots__ = ("_ends", "_padding", "ids")

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        self.ids = [*chain.from_iterable(rows)]
        self._ends = [0, *accumulate(map(len, rows))]
        self._padding = self.ids.count(0)

    def pages(self, units: UnitIds) -> array[int]:
        """Physical page of every id in one band; 0 where an id is 0 or unbound."""
        return array("q", map(units.forward.__getitem__, self.ids))

    def owned_pages(self, units: UnitIds) -> array[int]:
        """As `pages`, in a band that mints the ids: no row of it retires, so all are bound.

        Raises:
            OwnershipError: naming band and ids, if one is not.
        """
        pages = self.pages(units)
        if pages.count(0) != self._padding:
            lost = sorted({unit for unit in self.ids if unit and not units.forward[unit]})
            raise OwnershipError(
                f"band {units.name!r}: ids {listed(lost)} are to be read, but they name no page of"
                " it: they were freed or never taken; leave their requests out of the batch"
            )
        return pages

    def tables(self, pages: array[int]) -> list[memoryview[int]]:
        """The pages of each row."""
        view = memoryview(pages).toreadonly()
        return [view[start:end] for start, end in pairwise(self._ends)]
