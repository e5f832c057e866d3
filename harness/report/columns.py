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

WAIT_MAX = 14
"""Width of a wait; never more than a launch has."""


class Columns(NamedTuple):
    """Columns of the operations from `first` on, in pixels.

    Attributes:
        first: index of the operation of the first column.
        lefts, widths: per column.
        box, wait: width of one launch, and of one wait.
        total: width of all columns.
    """

    first: int
    lefts: tuple[int, ...]
    widths: tuple[int, ...]
    box: int
    wait: int
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


class Places(NamedTuple):
    """Left edges of everything that was enqueued, in pixels, in the order of submission.

    What stands in different lanes does not share a place either, so that later is always further
    right, and a line straight down meets nothing but what it is for.

    Attributes:
        launches: by their numbers.
        waits: by their ticks; only such as put a lane behind something new.
    """

    launches: dict[int, int]
    waits: dict[int, int]


def columns_of(recording: Recording) -> Columns:
    """Columns of a replay."""
    count = len(recording.frames)
    first = max(0, count - OPERATIONS_MAX)
    box, least = (46, 50) if count - first <= ROOMY_MAX else (10, 18)
    wait = min(box, WAIT_MAX)
    launches = Counter(launch.operation for launch in recording.launches)
    waits = Counter(note.operation for note in recording.waits if note.is_new)
    widths = tuple(
        max(least, launches[at] * box + waits[at] * wait + 2 * PADDING)
        for at in range(first, count)
    )
    lefts = tuple(sum(widths[:at]) for at in range(len(widths)))
    return Columns(first, lefts, widths, box, wait, sum(widths))


def places_of(recording: Recording, columns: Columns) -> Places:
    """Where everything in the picture stands."""
    places = Places({}, {})
    enqueued = [(note.submitted, note.operation, note.number) for note in recording.launches]
    enqueued += [(note.tick, note.operation, -1) for note in recording.waits if note.is_new]
    taken: Counter[int] = Counter()
    for tick, operation, number in sorted(enqueued):
        if operation < columns.first:
            continue
        x = columns.left_of(operation) + PADDING + taken[operation]
        if number < 0:
            places.waits[tick] = x
            taken[operation] += columns.wait
        else:
            places.launches[number] = x
            taken[operation] += columns.box
    return places
