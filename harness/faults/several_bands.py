"""Faults that are none with one float, one window band or bands of one size.

What is done for the first of several and not for the others, or in an order that only several have.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault
from harness.faults.moves import RealizesUnwaited
from harness.faults.parts import in_host, in_host_pools, in_relief
from unikv.alloc.pricing import Spans, move_order
from unikv.alloc.snapshot import ChainView
from unikv.cache.host_copies import Load
from unikv.cache.host_tier import HostTier
from unikv.memory.host import HostPool


class _MovesFloatsUpward(RealizesUnwaited):
    __slots__ = ()

    def _realize(self, view: ChainView, spans: Spans) -> None:
        self.wait_for_steps()
        self.carry_out(spans, self._in_order(move_order(view, spans)))

    def _in_order(self, moved: Sequence[int]) -> tuple[int, ...]:
        """The ends first, as they are, then the floats, which may be in each other's way."""
        floats = sorted(set(moved).difference((0, len(self._bands) - 1)))
        return (*(index for index in moved if index not in floats), *floats)


class _MovesFloatsDownward(_MovesFloatsUpward):
    __slots__ = ()

    def _in_order(self, moved: Sequence[int]) -> tuple[int, ...]:
        ordered = super()._in_order(moved)
        ends = [index for index in ordered if index in (0, len(self._bands) - 1)]
        return (*ends, *reversed(ordered[len(ends) :]))


class _NamesOneBand(HostTier):
    def _name(self, load: Load) -> None:
        first = next(iter(load.reserved), None)
        load.reserved = {band: load.reserved[band] for band in load.reserved if band == first}
        super()._name(load)


class _CancelsOneBand(HostTier):
    def cancel(self, name: str) -> None:
        copy = self.copies.get(name)
        if isinstance(copy, Load):
            first = next(iter(copy.reserved), None)
            copy.reserved = {band: copy.reserved[band] for band in copy.reserved if band == first}
        super().cancel(name)


class _SharesWholeSlots(HostPool):
    __slots__ = ()

    def _limit(self) -> int:
        _, high = self._other.span() if self._other else (0, 0)
        if self._axis.step == 1 or not high:
            return super()._limit()
        return max(0, len(self._states) - high // self.slot_bytes)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="floats-move-from-the-lowest",
        planted="a relief moves its floats upward, though one may pass another that has yet to go",
        plant=in_relief(_MovesFloatsUpward),
        checks=("ownership",),
        scenario="windows",
    ),
    Fault(
        id="floats-move-from-the-highest",
        planted="a relief moves its floats downward, though one may pass another that has yet to"
        " go",
        plant=in_relief(_MovesFloatsDownward),
        checks=("ownership",),
        scenario="windows",
    ),
    Fault(
        id="load-names-one-window",
        planted="a load names the rows of its first window band and forgets the others",
        plant=in_host(_NamesOneBand),
        checks=("ownership", "ledger", "mapping"),
        scenario="windows",
    ),
    Fault(
        id="cancel-returns-one-window",
        planted="a cancelled load gives the rows of its first window band back and no others",
        plant=in_host(_CancelsOneBand),
        checks=("ledger",),
        scenario="windows",
    ),
    Fault(
        id="shared-slots-rounded-down",
        planted="a host pool takes the slot that the last slot of its neighbour reaches into",
        plant=in_host_pools(_SharesWholeSlots),
        checks=("ownership", "capacity"),
        scenario="windows",
    ),
)
