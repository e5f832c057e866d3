"""Memory of request rows on the modeled device: one unit a row, whose content is one stamp.

What a forward leaves in a row tells who wrote it last, so a row that was not reset, was reset under
somebody, or got what belongs to another row shows in the next stamp that is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.device.clock import Access, SpaceClock
from harness.device.memory import NEVER_WRITTEN, Image, Mismatch

if TYPE_CHECKING:
    from harness.device.modeled import ModeledDevice

BLANK = 0
"""What a row holds after a reset."""


class SavedRow(NamedTuple):
    """A copy of a row's memory, by its number among all that were made."""

    number: int


class UseRows:
    """A forward reads the memory of its batch's rows and leaves something else there.

    `rows` are pairs of a row and what it holds; `after` is what all of them are left with.
    """

    __slots__ = ("_after", "_rows")

    def __init__(self, rows: Sequence[tuple[int, int]], after: int) -> None:
        self._rows = rows
        self._after = after

    def apply(self, image: Image) -> None:
        """Write every row."""
        for row, _ in self._rows:
            image.row_memory[row] = self._after

    def start(self, image: Image) -> Mismatch | None:
        """Read every row, then write it."""
        found = None
        for row, before in self._rows:
            if image.row_memory[row] != before and found is None:
                found = Mismatch("row memory", row)
            image.row_memory[row] = self._after
        return found

    def end(self, image: Image) -> Mismatch | None:
        """Nobody may have written one meanwhile; write it again."""
        found = None
        for row, _ in self._rows:
            if image.row_memory[row] != self._after and found is None:
                found = Mismatch("row memory", row)
            image.row_memory[row] = self._after
        return found

    run = start  # nothing comes between the two


class WriteRows:
    """Gives rows one content: a reset."""

    __slots__ = ("_rows", "_value")

    def __init__(self, rows: Sequence[int], value: int) -> None:
        self._rows = rows
        self._value = value

    def apply(self, image: Image) -> None:
        """Write every row."""
        for row in self._rows:
            image.row_memory[row] = self._value

    def start(self, image: Image) -> Mismatch | None:
        """Write every row."""
        self.apply(image)
        return None

    def end(self, image: Image) -> Mismatch | None:
        """Write every row once more."""
        self.apply(image)
        return None

    run = start  # the second write would change nothing


class SaveRow:
    """Copies a row away; `before` is what program order holds in it."""

    __slots__ = ("_before", "_number", "_row")

    def __init__(self, row: int, number: int, before: int) -> None:
        self._row = row
        self._number = number
        self._before = before

    def apply(self, image: Image) -> None:
        """Copy it."""
        image.saved_rows[self._number] = image.row_memory[self._row]

    def start(self, image: Image) -> Mismatch | None:
        """Copy it, right or wrong."""
        self.apply(image)
        is_right = image.saved_rows[self._number] == self._before
        return None if is_right else Mismatch("row memory", self._row)

    end = start  # a row overwritten meanwhile has spoiled the copy
    run = start


class RestoreRow:
    """Writes a saved copy into a row."""

    __slots__ = ("_number", "_row")

    def __init__(self, row: int, number: int) -> None:
        self._row = row
        self._number = number

    def apply(self, image: Image) -> None:
        """Write it; whoever overtakes the save finds nothing yet."""
        image.row_memory[self._row] = image.saved_rows.get(self._number, NEVER_WRITTEN)

    def start(self, image: Image) -> Mismatch | None:
        """Write it."""
        self.apply(image)
        return None

    def end(self, image: Image) -> Mismatch | None:
        """Write it once more."""
        self.apply(image)
        return None

    run = start  # the second write would change nothing


class RowMemorySpace:
    """The memory of every row of one device.

    Attributes:
        space: its clock, a unit a row.
    """

    def __init__(self, device: ModeledDevice) -> None:
        self._device = device
        self.space = SpaceClock("row memory", device.layout.row_count)

    def accesses(self, rows: Sequence[int]) -> tuple[Access, Access]:
        """What a launch that uses the memory of some rows touches."""
        return Access(self.space, rows, False), Access(self.space, rows, True)

    def reset(self, stream: int, rows: Sequence[int]) -> None:
        """Give rows their first content."""
        touched = (Access(self.space, rows, True),)
        self._device.submit(stream, "reset", 0, WriteRows(rows, BLANK), touched)

    def save(self, stream: int, row: int, number: int) -> None:
        """Copy a row away under a number."""
        before = self._device.program.row_memory[row]
        touched = (Access(self.space, (row,), False),)
        self._device.submit(stream, "save", 0, SaveRow(row, number, before), touched)

    def restore(self, stream: int, row: int, number: int) -> None:
        """Write the copy of that number into a row."""
        touched = (Access(self.space, (row,), True),)
        self._device.submit(stream, "restore", 0, RestoreRow(row, number), touched)
