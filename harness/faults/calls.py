"""Faults of calls that are seldom made: the first copies, kept translations, mistakes."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault, Ground, Plant
from harness.faults.parts import (
    become,
    chains,
    in_chain,
    in_maps,
    in_steps,
)
from harness.world import World
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.prewarm import prewarm_copies
from unikv.device.port import Stream
from unikv.ids.iteration_ids import IterationIds
from unikv.ids.translation import Translation
from unikv.ids.unit_ids import UnitIds


class _PrewarmsOneBand(ChainAllocator):
    def prewarm(self) -> None:
        prewarm_copies(self.device, self.bands[:1])


class _PrewarmKeepsItsScratch(ChainAllocator):
    def prewarm(self) -> None:
        super().prewarm()
        self.take(1, 0)


class _PrewarmsBetweenPages(ChainAllocator):
    def prewarm(self) -> None:
        for band in self.bands:
            first, second = band.axis.page_at(0), band.axis.page_at(1)
            self.device.move_pages(Stream.SCHEDULE, band.index, [first], [second])


class _MovesUncounted(UnitIds):
    __slots__ = ()

    def rebind(self, sources: Sequence[int], targets: Sequence[int]) -> list[int]:
        ids = super().rebind(sources, targets)
        self.moves -= 1
        return ids


class _TakesWhatWorks(ChainAllocator):
    def free(self, ids: Sequence[int]) -> None:
        super().free([int(unit) for unit in ids])


class _LooksUpFromTheEnd(ChainAllocator):
    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        page_of = self.bands[band].ids.forward
        return [page_of[unit] for unit in ids]


class _LaunchesAnyNumber(ForwardSteps):
    __slots__ = ()

    def launch(self, number: int) -> None:
        self.launched = number


class _WritesToTheSink(Translation):
    __slots__ = ()

    def writes(self, tokens: Sequence[int], slots: Sequence[int]) -> IterationIds:
        maps = [self._maps[-1], *self._maps[-2:-1]]
        size = self._page_slots
        bound = [t if all(units.forward[t // size] for units in maps) else 0 for t in tokens]
        return super().writes(bound, slots)


def _in_translation(broken: type[Translation]) -> Plant:
    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.ids, broken)

    return plant


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="prewarm-of-one-band",
        planted="the copy path is run once for the lowest band, so the others compile in a relief",
        plant=in_chain(_PrewarmsOneBand),
        checks=("effects",),
    ),
    Fault(
        id="prewarm-keeps-its-scratch",
        planted="a prewarm takes a page to copy with and never gives it back",
        plant=in_chain(_PrewarmKeepsItsScratch),
        checks=("effects", "ownership"),
    ),
    Fault(
        id="prewarm-outside-the-sink",
        planted="a prewarm copies onto a page of its band instead of the sink",
        plant=in_chain(_PrewarmsBetweenPages),
        checks=("effects",),
    ),
    Fault(
        id="move-epoch-stands-still",
        planted="a move is not counted, so ids translated before it are given out as if they held",
        plant=in_maps(_MovesUncounted),
        ground=Ground.CALLS,
        checks=("translation",),
        rows=("B03",),
    ),
    Fault(
        id="ids-taken-by-value",
        planted="a free takes whatever has the value of an id",
        plant=in_chain(_TakesWhatWorks),
        ground=Ground.CALLS,
        checks=("effects",),
    ),
    Fault(
        id="ids-counted-from-the-end",
        planted="a translation looks up a negative id from the end of the map",
        plant=in_chain(_LooksUpFromTheEnd),
        ground=Ground.CALLS,
        checks=("effects",),
    ),
    Fault(
        id="step-without-an-order",
        planted="a step is launched under any number, NaN included",
        plant=in_steps(_LaunchesAnyNumber),
        ground=Ground.CALLS,
        checks=("effects",),
    ),
    Fault(
        id="write-to-a-retired-row",
        planted="a token whose window row is retired is written to the sink",
        plant=_in_translation(_WritesToTheSink),
        ground=Ground.CALLS,
        checks=("effects",),
    ),
)
