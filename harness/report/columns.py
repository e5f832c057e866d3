"""Where operations stand from left to right, the same in every picture of one page.

A column is as wide as the launches of its operation need, so that what one operation enqueued can
be read, and a moment inside an operation has a place inside its column.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from harness.report.recording import Recording

OPERATIONS_MAX = 300
"""Operations in a picture; of a longer trace, the last ones."""

ROOMY_MAX = 60
"""Up to so many operations, launches are wide enough to carry their names."""

PADDING = 4


class Columns(NamedTuple):
    """Columns of the operations from `first` on, in pixels.

    Attributes:
        first: index of the operation of the first column.
        lefts, widths: per column.
        box: width of one launch.
        total: width of all columns.
    """

    first: int
    lefts: tuple[int, ...]
    widths: tuple[int, ...]
    box: int
    total: int

    def left_of(self, operation: int) -> int:
        """Where the column of an operation begins."""
        return self.lefts[operation - self.first]

    def right_of(self, operation: int) -> int:
        """Where it ends."""
        return self.left_of(operation) + self.widths[operation - self.first]

    def at_tick(self, recording: Recording, tick: int) -> int:
        """Where a moment is; the left edge for one before the first column."""
        operation = recording.operation_at(tick)
        if operation < self.first:
            return 0
        low, high = recording.frames[operation].ticks
        width = self.widths[operation - self.first]
        return self.left_of(operation) + width * (tick - low) // max(1, high - low)


def columns_of(recording: Recording) -> Columns:
    """Columns of a replay."""
    count = len(recording.frames)
    first = max(0, count - OPERATIONS_MAX)
    box, least = (46, 50) if count - first <= ROOMY_MAX else (10, 18)
    launches = Counter(launch.operation for launch in recording.launches)
    widths = tuple(max(least, launches[at] * box + 2 * PADDING) for at in range(first, count))
    lefts = tuple(sum(widths[:at]) for at in range(len(widths)))
    return Columns(first, lefts, widths, box, sum(widths))


def places_of(recording: Recording, columns: Columns) -> dict[int, int]:
    """Left edge of every launch in the picture, by its number, in the order of submission.

    Launches of different lanes do not share a place either, so that later is always further right.
    """
    taken: Counter[int] = Counter()
    lefts = {}
    for launch in recording.launches:
        operation = launch.operation
        if operation >= columns.first:
            left = columns.left_of(operation) + PADDING
            lefts[launch.number] = left + taken[operation] * columns.box
            taken[operation] += 1
    return lefts
