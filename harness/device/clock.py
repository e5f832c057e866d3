"""Vector clocks: which access is ordered behind which, from submission order alone.

A stream's clock holds, per lane, how many of that lane's launches come before its next one.  An
event is a copy of a clock and a wait is an element-wise maximum, so one comparison of two ints
decides whether two accesses are ordered.  Nothing here knows when work really runs, which is why
one set of clocks serves every rank and every schedule.

Source: vector clocks (Fidge and Mattern, 1988); per-access epochs as in FastTrack (Flanagan and
Freund, 2009), but with the last epoch kept per lane, so that no unordered access is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

HOST = 6
PEERS = 2
LANES = HOST + 1 + PEERS
"""Streams take the lanes of `unikv.device.port.Stream`; then comes the host, then each peer."""


class Conflict(NamedTuple):
    """An earlier access that nothing orders before the one being checked.

    Attributes:
        lane: lane of the earlier access.
        epoch: its number in that lane.
        unit: first unit of the space that both touch.
        wrote: whether the earlier access was a write.
    """

    lane: int
    epoch: int
    unit: int
    wrote: bool


class Clocks:
    """The clock of every lane.

    Law: clocks only grow, and `clocks[lane][lane]` is the number of launches of that lane.
    """

    __slots__ = ("_host_joins", "_seen_host_joins", "clocks")

    def __init__(self) -> None:
        self.clocks = [[0] * LANES for _ in range(LANES)]
        self._host_joins = 0
        self._seen_host_joins = [0] * LANES

    def tick(self, lane: int) -> int:
        """Count one more launch on `lane`, submitted by the host as it stands; its epoch."""
        clock = self.clocks[lane]
        if self._seen_host_joins[lane] != self._host_joins:
            self._seen_host_joins[lane] = self._host_joins
            self.clocks[lane] = clock = _later(clock, self.clocks[HOST])
        clock[lane] += 1
        return clock[lane]

    def tick_host(self) -> int:
        """Count one more access of the host itself; whatever it submits later comes after it."""
        clock = self.clocks[HOST]
        clock[HOST] += 1
        self._host_joins += 1
        return clock[HOST]

    def covers(self, lane: int, clock: Sequence[int]) -> bool:
        """Whether `lane` is already behind everything that `clock` is behind."""
        return all(map(int.__ge__, self.clocks[lane], clock))

    def join(self, lane: int, clock: Sequence[int]) -> None:
        """Put later work of `lane` behind everything that `clock` is behind."""
        self.clocks[lane] = _later(self.clocks[lane], clock)
        if lane == HOST:
            self._host_joins += 1


def _later(one: Sequence[int], other: Sequence[int]) -> list[int]:
    """The element-wise maximum."""
    return [a if a > b else b for a, b in zip(one, other, strict=True)]


class SpaceClock:
    """Last read and last write of every unit of one memory space, per lane.

    A unit is the space's smallest piece that is accessed alone: a granule of the arena, an entry of
    a page map, a row of the request table.
    """

    __slots__ = ("_last_read", "_last_write", "_reads", "_size", "_writes", "name")

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self._size = size
        # Lanes that ever touched the space, each with one epoch per unit.
        self._reads: dict[int, list[int]] = {}
        self._writes: dict[int, list[int]] = {}
        self._last_read = [0] * LANES
        self._last_write = [0] * LANES

    def read(
        self, lane: int, epoch: int, clock: Sequence[int], units: Sequence[int]
    ) -> Conflict | None:
        """Check and record a read; the first write it is not ordered behind, if any."""
        conflict = None
        for other, last in self._writes.items():
            if other != lane and self._last_write[other] > clock[other]:
                conflict = conflict or self._newer(last, clock[other], units, other, wrote=True)
        reads = self._reads.get(lane)
        if reads is None:
            reads = self._reads[lane] = [0] * self._size
        for unit in units:
            reads[unit] = epoch
        self._last_read[lane] = epoch
        return conflict

    def write(
        self, lane: int, epoch: int, clock: Sequence[int], units: Sequence[int]
    ) -> Conflict | None:
        """Check and record a write; the first access it is not ordered behind, if any."""
        conflict = None
        for other, last in self._reads.items():
            if other != lane and self._last_read[other] > clock[other]:
                conflict = conflict or self._newer(last, clock[other], units, other, wrote=False)
        for other, last in self._writes.items():
            if other != lane and self._last_write[other] > clock[other]:
                conflict = conflict or self._newer(last, clock[other], units, other, wrote=True)
        writes = self._writes.get(lane)
        if writes is None:
            writes = self._writes[lane] = [0] * self._size
        for unit in units:
            writes[unit] = epoch
        self._last_write[lane] = epoch
        return conflict

    @staticmethod
    def _newer(
        epochs: Sequence[int], bound: int, units: Sequence[int], lane: int, *, wrote: bool
    ) -> Conflict | None:
        for unit in units:
            if epochs[unit] > bound:
                return Conflict(lane, epochs[unit], unit, wrote)
        return None


class Access(msgspec.Struct, frozen=True, gc=False):
    """Units of one space that a launch touches.

    Several are made for every launch; a struct costs a quarter of a named tuple.
    """

    space: SpaceClock
    units: Sequence[int]
    wrote: bool
