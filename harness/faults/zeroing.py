"""Faults of what a handed-out page holds: zeros forgotten, or written too early."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault
from harness.faults.parts import in_chain
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.device.port import Stream


class _ZerosNoWindowPage(ChainAllocator):
    def _hand_out(self, band: Band, ids: Sequence[int], pages: Sequence[int]) -> None:
        if band.layout.mints or not pages:
            super()._hand_out(band, ids, pages)
            return
        band.ids.bind(ids, pages)
        self.device.write_map(Stream.SCHEDULE, band.index, ids, pages)


class _ZerosTheFirstPage(ChainAllocator):
    def _hand_out(self, band: Band, ids: Sequence[int], pages: Sequence[int]) -> None:
        if not pages:
            return
        band.ids.bind(ids, pages)
        if band.layout.zeroed:
            self.device.zero_pages(Stream.SCHEDULE, band.index, pages[:1])
        self.device.write_map(Stream.SCHEDULE, band.index, ids, pages)


class _ZerosBeforeTheSettle(ChainAllocator):
    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        if band.layout.zeroed and band.holes < count:
            for _, pages in band.pending_pages.batches()[:1]:
                self.device.zero_pages(Stream.SCHEDULE, band.index, pages)
        return super()._acquire(band, count, span)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="window-page-not-zeroed",
        planted="a window page is handed out as it is; no count, state or report shows it",
        plant=in_chain(_ZerosNoWindowPage),
        checks=("initialised",),
        rows=("B133",),
        together="initialised",
    ),
    Fault(
        id="only-first-page-zeroed",
        planted="only the first page of a take is zeroed",
        plant=in_chain(_ZerosTheFirstPage),
        checks=("initialised",),
        rows=("B25",),
    ),
    Fault(
        id="zeroed-before-the-settle",
        planted="pages are zeroed before the schedule stream waits for the steps that read them",
        plant=in_chain(_ZerosBeforeTheSettle),
        checks=("ordering",),
        ablates="edge S <- step (settle)",
        edge="schedule <- forward",
        pair=("body", "zero write"),
    ),
)
