"""Faults that make ranks differ: each is harmless on every rank alone."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault
from harness.faults.parts import become, chains, in_chain
from harness.world import World
from unikv.alloc.band import HOLE, LIVE, Band, EndBand
from unikv.alloc.chain import ChainAllocator, Taken
from unikv.device.port import Stream
from unikv.errors import Shortage


class _FlushesWhenIdle(ChainAllocator):
    def flush(self, limit: int) -> int:
        newest = self.steps.newest
        recorded = [step.event for step in self.steps._recorded if step.number == newest]
        if all(map(self.device.query, recorded)):
            return super().flush(limit)
        return 0


class _TakesTheDeepestHole(EndBand):
    __slots__ = ()

    def take_holes(self, count: int) -> list[int]:
        taken = super().take_holes(count)
        deepest = self.states.rfind(HOLE, 0, self.high)
        if taken and deepest > self.axis.depth_of(taken[-1]):
            self._mark(taken[-1:], LIVE, HOLE)
            taken[-1] = self.axis.page_at(deepest)
            self._mark(taken[-1:], HOLE, LIVE)
        return taken


class _ZerosTwice(ChainAllocator):
    def _hand_out(self, band: Band, ids: Sequence[int], pages: Sequence[int]) -> None:
        super()._hand_out(band, ids, pages)
        if pages and band.layout.zeroed:
            self.device.zero_pages(Stream.SCHEDULE, band.index, pages)


class _KeepsTwoPagesBack(ChainAllocator):
    def take(self, pages: int, slots: int) -> Taken:
        if not self.fits(pages + 2, slots):
            raise Shortage("bytes", "", pages, 0)
        return super().take(pages, slots)


def _deepest_hole_on_last_rank(world: World) -> None:
    *_, last = chains(world)
    for band in last.bands:
        if isinstance(band, EndBand):
            become(band, _TakesTheDeepestHole)


def _zero_twice_on_last_rank(world: World) -> None:
    *_, last = chains(world)
    become(last, _ZerosTwice)


def _keep_back_on_last_rank(world: World) -> None:
    *_, last = chains(world)
    become(last, _KeepsTwoPagesBack)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="decision-by-event",
        planted="a flush moves pages only where the newest step has already ended",
        plant=in_chain(_FlushesWhenIdle),
        checks=("divergence",),
    ),
    Fault(
        id="rank-chooses-another-hole",
        planted="one rank takes the deepest hole, and its states, maps and report all agree",
        plant=_deepest_hole_on_last_rank,
        checks=("divergence",),
        rows=("B127",),
        together="divergence",
    ),
    Fault(
        id="rank-submits-more",
        planted="one rank zeroes its pages twice and keeps the same books",
        plant=_zero_twice_on_last_rank,
        checks=("divergence",),
    ),
    Fault(
        id="rank-keeps-pages-back",
        planted="one rank refuses a take for which it would have two pages less to spare",
        plant=_keep_back_on_last_rank,
        checks=("divergence",),
        rows=("B123", "B131"),
    ),
)
