"""Faults on the way back from live to free: wrong keys, unwaited settles, early returns."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault
from harness.faults.parts import in_clearance, in_reclaim
from unikv.alloc.band import Band
from unikv.alloc.clearance import InFlight, Toucher
from unikv.alloc.page_usage import Use
from unikv.alloc.reclaim import Reclaim


class _SettlesUnwaited(Reclaim):
    __slots__ = ()

    def _settle_through(self, step: int) -> None:
        self._counters.settles += 1
        self._steps.settled_through = max(self._steps.settled_through, step)
        self._end_uses()


class _SettlesBehindTheOldest(Reclaim):
    __slots__ = ()

    def _settle_through(self, step: int) -> None:
        self._steps.wait(min(self._steps.in_flight()))
        self._steps.settled_through = max(self._steps.settled_through, step)
        super()._settle_through(step)


class _SettlesOnePageShort(Reclaim):
    __slots__ = ()

    def settle(self, band: Band, count: int) -> None:
        super().settle(band, count - 1)


class _SettlesBatchesOnly(Reclaim):
    __slots__ = ()

    def _settle_through(self, step: int) -> None:
        self._counters.settles += 1
        self._steps.wait(step)
        self.writes_retired()


class _HandsOutPending(Reclaim):
    __slots__ = ()

    def settle(self, band: Band, count: int) -> None:
        for step, pages in band.pending_pages.batches():
            if count > 0:
                band.release_pending(band.pending_pages.take_through(step))
                count -= len(pages)


class _ProcessReturnsTheNextBatch(Reclaim):
    __slots__ = ()

    def process(self, number: int) -> None:
        super().process(number)
        for band in self._bands:
            band.release_pending(band.pending_pages.take_through(number + 1))
            self.retreat(band)


class _FreesUnderTheOldest(Reclaim):
    __slots__ = ()

    def free(self, band: Band, pages: Sequence[int]) -> None:
        running = self._steps.in_flight()
        if running:
            band.pend_live(pages)
            band.pending_pages.add(running[0], pages)
        else:
            super().free(band, pages)


class _FreesBehindASettle(Reclaim):
    __slots__ = ()

    def free(self, band: Band, pages: Sequence[int]) -> None:
        if self._steps.newest and not self._steps.newest_unretired and not self._ledger.held:
            self._counters.freed_pages += len(pages)
            band.release_live(pages)
            self.retreat(band)
        else:
            super().free(band, pages)


class _FreesWindowRowsAtOnce(Reclaim):
    __slots__ = ()

    def free(self, band: Band, pages: Sequence[int]) -> None:
        if band.layout.mints:
            super().free(band, pages)
        else:
            band.release_live(pages)
            self.retreat(band)


class _WindowBatchesStay(Reclaim):
    __slots__ = ()

    def process(self, number: int) -> None:
        self._steps.process(number)
        self._end_uses()
        for band in self._bands:
            if band.layout.mints:
                band.release_pending(band.pending_pages.take_through(number))
            self.retreat(band)


class _FreesUnderUnknownAtOnce(Reclaim):
    __slots__ = ()

    def free(self, band: Band, pages: Sequence[int]) -> None:
        if self._ledger.has_unknown_write(band.index):
            band.release_live(pages)
            self.retreat(band)
        else:
            super().free(band, pages)


class _RetreatsUnderUnknown(Reclaim):
    __slots__ = ()

    def retreat(self, band: Band) -> None:
        super().retreat(band)
        if self._ledger.has_unknown_write(band.index):
            # No write of the step is known, so none is in the way.
            for step, _ in band.pending_pages.batches():
                if step == self._steps.newest:
                    band.release_pending(band.pending_pages.take_through(step))
                    super().retreat(band)


class _VacatesAtOnce(Reclaim):
    __slots__ = ()

    def vacate(self, band: Band, pages: Sequence[int]) -> None:
        band.release_live(pages)
        self.retreat(band)


class _VacatesUnderTheOldest(Reclaim):
    __slots__ = ()

    def vacate(self, band: Band, pages: Sequence[int]) -> None:
        running = self._steps.in_flight()
        if running and running[0] > self._steps.retired_through:
            band.pend_live(pages)
            self._ledger.add(Use.VACATED, band.index, pages, running[0])
            self.retreat(band)
        else:
            super().vacate(band, pages)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="freed-page-offered",
        planted="a page freed under a running forward is a hole at once",
        plant=in_clearance(Toucher.HAND_OUT, InFlight.FORWARD),
        checks=("ledger", "ordering"),
        ablates="CLEARANCE[hand-out, forward]",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
    Fault(
        id="growth-over-freed-page",
        planted="a frontier gives up the bytes of a page that a running forward reads",
        plant=in_clearance(Toucher.GROWTH, InFlight.FORWARD),
        checks=("ledger", "ordering"),
        ablates="CLEARANCE[growth, forward]",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
    Fault(
        id="pending-page-handed-out",
        planted="a take that is short hands out pending pages, and both the pages' states and"
        " their report say that they were free",
        plant=in_reclaim(_HandsOutPending),
        checks=("ordering", "ledger"),
        rows=("B133",),
        ablates="CLEARANCE[hand-out, forward]",
        edge="schedule <- forward",
        pair=("body", "zero write"),
        together="ordering",
    ),
    Fault(
        id="settle-without-wait",
        planted="settling returns pages without letting the schedule stream wait",
        plant=in_reclaim(_SettlesUnwaited),
        checks=("ordering", "ledger"),
        ablates="edge S <- step (settle)",
        edge="schedule <- forward",
        pair=("body", "zero write|move"),
    ),
    Fault(
        id="settle-behind-the-oldest",
        planted="settling waits for the oldest step instead of the one that covers its batches",
        plant=in_reclaim(_SettlesBehindTheOldest),
        checks=("ordering", "ledger"),
        ablates="edge S <- step (settle)",
        edge="schedule <- forward",
        pair=("body", "zero write|move"),
    ),
    Fault(
        id="settle-one-page-short",
        planted="settling returns batches for one page less than the take still needs; states and"
        " report agree, and only the take that cannot be served tells",
        plant=in_reclaim(_SettlesOnePageShort),
        checks=("assertion",),
        together="assertion",
    ),
    Fault(
        id="settle-returns-no-vacated-page",
        planted="settling returns freed batches and forgets the pages that moves vacated",
        plant=in_reclaim(_SettlesBatchesOnly),
        checks=("assertion",),
        scenario="full_only",
    ),
    Fault(
        id="process-returns-next-batch",
        planted="processing a step also returns the batch of the step after it, with states and"
        " counts that agree",
        plant=in_reclaim(_ProcessReturnsTheNextBatch),
        checks=("ledger", "ordering"),
        rows=("B17", "B89"),
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
        together="ledger",
    ),
    Fault(
        id="free-under-the-oldest",
        planted="a free waits for the oldest running step instead of the newest",
        plant=in_reclaim(_FreesUnderTheOldest),
        checks=("ledger", "ordering"),
        rows=("B17",),
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
    Fault(
        id="free-behind-a-settle-at-once",
        planted="a page freed under a step that is settled and not processed is a hole at once",
        plant=in_reclaim(_FreesBehindASettle),
        checks=("ledger",),
    ),
    Fault(
        id="window-row-free-at-once",
        planted="only the window band forgets that a forward still reads the rows it frees",
        plant=in_reclaim(_FreesWindowRowsAtOnce),
        checks=("ledger", "ordering"),
        rows=("B15",),
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
    Fault(
        id="window-batch-stays",
        planted="processing a step returns no pages of the window band",
        plant=in_reclaim(_WindowBatchesStay),
        checks=("ledger", "idle"),
        rows=("B91",),
    ),
    Fault(
        id="vacated-source-offered",
        planted="the source of a move is a hole at once, though a forward still reads it",
        plant=in_reclaim(_VacatesAtOnce),
        checks=("ledger", "ordering"),
        scenario="full_only",
        ablates="CLEARANCE[hand-out, forward]",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
    Fault(
        id="vacated-under-the-oldest",
        planted="the source of a move waits for the oldest running step only",
        plant=in_reclaim(_VacatesUnderTheOldest),
        checks=("ledger",),
    ),
    Fault(
        id="free-at-once-under-unknown-writes",
        planted="a page freed under a step whose writes are unknown is a hole at once",
        plant=in_reclaim(_FreesUnderUnknownAtOnce),
        checks=("ledger", "ordering"),
        ablates="CLEARANCE[hand-out, unknown forward]",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
    Fault(
        id="retreat-under-unknown-writes",
        planted="a frontier gives up pages that a step whose writes are unknown may write",
        plant=in_reclaim(_RetreatsUnderUnknown),
        checks=("ledger", "ordering"),
        ablates="CLEARANCE[growth, unknown forward]",
        edge="schedule <- forward",
        pair=("body", "zero write|move write"),
        ahead=("ledger",),
    ),
)
