"""Faults of copying live pages: no wait, no copy, the wrong page, the wrong order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.faults.fault import Fault
from harness.faults.parts import both, in_clearance, in_ledger, in_mover, in_relief
from unikv.alloc.band import HOLE, LIVE, Band, EndBand
from unikv.alloc.clearance import InFlight, Toucher
from unikv.alloc.compaction import MovePlan, PageMover, plan_relocation
from unikv.alloc.page_usage import PageLedger, Use
from unikv.alloc.pricing import Spans, move_order
from unikv.alloc.relief import Relief
from unikv.alloc.snapshot import ChainView
from unikv.device.port import Stream


class _WaitsForTheOldestWriter(PageLedger):
    __slots__ = ()

    def newest_writer(self, band: int, pages: Collection[int]) -> int:
        writers = [
            use.step
            for use in self.uses()
            if use.use is Use.FORWARD_WRITE and use.band == band and not use.pages.isdisjoint(pages)
        ]
        return min(writers, default=0)


class _WaitsForTheFirstSourceOnly(PageMover):
    __slots__ = ()

    def _wait_writers(self, band: Band, sources: Sequence[int]) -> None:
        super()._wait_writers(band, sources[:1])


class _WaitsInEndsOnly(PageMover):
    __slots__ = ()

    def _wait_writers(self, band: Band, sources: Sequence[int]) -> None:
        if isinstance(band, EndBand):
            super()._wait_writers(band, sources)


class _ForgetsTheCopy(PageMover):
    __slots__ = ()

    def copy(self, band: Band, plan: MovePlan) -> None:
        self._wait_writers(band, plan.sources)
        self._rebind(band, plan)

    def _rebind(self, band: Band, plan: MovePlan) -> None:
        ids = band.ids.rebind(plan.sources, plan.targets)
        self._device.write_map(Stream.SCHEDULE, band.index, ids, plan.targets)
        self._ledger.held.moved(band.index, plan.sources, plan.targets)
        self._counters.moved_pages += len(plan.sources)


class _CopiesTheNeighbour(_ForgetsTheCopy):
    __slots__ = ()

    def copy(self, band: Band, plan: MovePlan) -> None:
        self._wait_writers(band, plan.sources)
        turned = plan.sources[1:] + plan.sources[:1]
        self._device.move_pages(Stream.SCHEDULE, band.index, turned, plan.targets)
        self._rebind(band, plan)


class _ForgetsTheMap(PageMover):
    __slots__ = ()

    def copy(self, band: Band, plan: MovePlan) -> None:
        self._wait_writers(band, plan.sources)
        self._device.move_pages(Stream.SCHEDULE, band.index, plan.sources, plan.targets)
        band.ids.rebind(plan.sources, plan.targets)


class _ZerosItsSource(PageMover):
    __slots__ = ()

    def copy(self, band: Band, plan: MovePlan) -> None:
        self._device.zero_pages(Stream.SCHEDULE, band.index, plan.sources[:1])
        super().copy(band, plan)


@dataclass(frozen=True, slots=True)
class _Shift(MovePlan):
    def __post_init__(self) -> None:
        assert len(self.sources) == len(self.targets)


class _ShiftsInOneBatch(PageMover):
    __slots__ = ()

    def compact(self, band: Band, limit: int) -> int:
        states, page_at = band.states, band.axis.page_at
        first = states.find(HOLE, band.low, band.high)
        if first < 0:
            return 0
        live = [depth for depth in range(first, band.high) if states[depth] == LIVE][:limit]
        free = [depth for depth in range(first, band.high) if states[depth] in (LIVE, HOLE)]
        plan = _Shift(tuple(map(page_at, live)), tuple(map(page_at, free[: len(live)])))
        if live:
            self.copy(band, plan)
            band.occupy_holes([page for page in plan.targets if page not in plan.sources])
            self._reclaim.vacate(band, [page for page in plan.sources if page not in plan.targets])
        return len(live)


class RealizesUnwaited(Relief):
    """Carries a layout out without a wait; what is built on it waits, and does something else."""

    __slots__ = ()

    def _realize(self, view: ChainView, spans: Spans) -> None:
        self.carry_out(spans, move_order(view, spans))

    def wait_for_steps(self) -> None:
        """Put the schedule stream behind every step."""
        if self._steps.wait(self._steps.newest):
            self._reclaim.writes_retired()

    def carry_out(self, spans: Spans, order: Sequence[int]) -> None:
        """Copy band by band in this order, and let each have its new span."""
        plans = [plan_relocation(band, span) for band, span in zip(self._bands, spans, strict=True)]
        last = len(self._bands) - 1
        for index in order:
            band, moves = self._bands[index], plans[index]
            if index in (0, last) and not self._ends_earlier(band, spans[index]):
                continue
            if moves.sources:
                self._mover.copy(band, moves)
                self._counters.relocations += index not in (0, last)
            band.relocate(*spans[index], moves.targets)


class _RealizesBackwards(RealizesUnwaited):
    __slots__ = ()

    def _realize(self, view: ChainView, spans: Spans) -> None:
        self.wait_for_steps()
        self.carry_out(spans, tuple(reversed(move_order(view, spans))))


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="move-over-writer",
        planted="a copy does not wait for the forward that still writes its source",
        plant=in_clearance(Toucher.MOVE_SOURCE, InFlight.FORWARD),
        checks=("ordering",),
        ablates="CLEARANCE[move source, forward]",
        edge="schedule <- forward",
        pair=("body write", "move read"),
    ),
    Fault(
        id="move-under-unknown-writes",
        planted="pages move while a step may write any of them",
        plant=in_clearance(Toucher.MOVE_SOURCE, InFlight.UNKNOWN_FORWARD),
        checks=("ordering", "ledger"),
        ablates="CLEARANCE[move source, unknown forward]",
        edge="schedule <- forward",
        pair=("body write", "move read"),
    ),
    Fault(
        id="move-behind-oldest-writer",
        planted="a copy waits for the oldest forward that writes its sources, not the newest",
        plant=in_ledger(_WaitsForTheOldestWriter),
        checks=("ordering",),
        ablates="edge S <- newest writer (move)",
        edge="schedule <- forward",
        pair=("body write", "move read"),
    ),
    Fault(
        id="move-waits-for-first-source",
        planted="a batch of copies waits for the writers of its first source only",
        plant=in_mover(_WaitsForTheFirstSourceOnly),
        checks=("ordering",),
        ablates="edge S <- newest writer (move)",
        edge="schedule <- forward",
        pair=("body write", "move read"),
    ),
    Fault(
        id="relocation-without-wait",
        planted="relocating a float waits neither for its writers nor for the newest step",
        plant=both(in_mover(_WaitsInEndsOnly), in_relief(RealizesUnwaited)),
        checks=("ordering", "ledger"),
        scenario="hybrid",
        rows=("B05",),
        ablates="edge S <- newest writer (move)",
        edge="schedule <- forward",
        pair=("body write", "move read"),
    ),
    Fault(
        id="relief-copies-without-wait",
        planted="a relief copies without waiting for the newest step, so that its sources are"
        " claimed while a forward still reads them",
        plant=in_relief(RealizesUnwaited),
        checks=("ordering", "ledger"),
        scenario="hybrid",
        ablates="edge S <- newest recorded step (relief)",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
    ),
    Fault(
        id="move-order-reversed",
        planted="a relief carries its moves out in reverse, so that a float lands on pages that its"
        " neighbour has yet to leave",
        plant=in_relief(_RealizesBackwards),
        checks=("ownership", "content", "conservation"),
        scenario="hybrid",
    ),
    Fault(
        id="copy-forgotten",
        planted="a move rebinds its pages and copies nothing",
        plant=in_mover(_ForgetsTheCopy),
        checks=("content", "initialised"),
    ),
    Fault(
        id="copy-of-the-neighbour",
        planted="every copy of a batch takes the next one's source",
        plant=in_mover(_CopiesTheNeighbour),
        checks=("content", "initialised"),
    ),
    Fault(
        id="source-zeroed-before-copy",
        planted="the first source of a batch is zeroed as if it were free before it is copied",
        plant=in_mover(_ZerosItsSource),
        checks=("content", "ordering"),
        edge="schedule <- forward",
        pair=("body", "zero write"),
        ahead=("content",),
    ),
    Fault(
        id="shift-in-one-batch",
        planted="compaction shifts pages down in order, so that sources of a batch are its targets",
        plant=in_mover(_ShiftsInOneBatch),
        checks=("content", "ordering", "ledger"),
        edge="schedule <- forward",
        pair=("body", "move"),
        ahead=(
            "content",
            "ledger",
        ),
    ),
    Fault(
        id="map-write-lost-in-a-move",
        planted="a move rebinds on the host and never tells the device's page map",
        plant=in_mover(_ForgetsTheMap),
        checks=("mapping",),
    ),
)
