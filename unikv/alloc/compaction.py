"""Closing holes: planned as data, committed without decisions.

A move copies live pages into holes on the schedule stream and rebinds their ids, so no request row
changes.  It waits whatever may still write a source; forwards that only read one do not delay it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from itertools import islice

from unikv.alloc.band import HOLE, LIVE, Band
from unikv.alloc.clearance import Clearance, InFlight, Toucher
from unikv.alloc.fences import Ranges, page_ranges, wait_copies
from unikv.alloc.page_search import highest, lowest
from unikv.alloc.parts import ChainParts
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.signals import HOLDS
from unikv.device.port import Stream


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Pages to copy within one band, as one batch.

    `sources` and `targets` are pages, equally many and disjoint, so the copies may run in any
    order.
    """

    sources: tuple[int, ...]
    targets: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.sources) == len(self.targets)
        assert set(self.sources).isdisjoint(self.targets)


NO_MOVES = MovePlan((), ())


def plan_compaction(band: Band, limit: int, pinned: Collection[int] = ()) -> MovePlan:
    """Plan at most `limit` moves, each of the deepest live page into the lowest hole.

    Pages in `pinned` stay where they are.
    """
    # Where the live pages would end if they lay side by side; what may not move only adds to it.
    packed = band.low + band.live
    reach = packed + band.pending + band.fixed
    targets = lowest(band, HOLE, band.low, reach, min(limit, band.holes))
    if not targets:
        return NO_MOVES
    shallowest = max(band.low, packed - len(pinned))
    sources = highest(band, LIVE, shallowest, band.high, len(targets) + len(pinned))
    if pinned:
        sources = [page for page in sources if page not in pinned]
    # Targets come from below and sources from above, so the pairs worth a move are the first.
    step = band.axis.step
    moves = min(len(targets), len(sources))
    while moves and (targets[moves - 1] - sources[moves - 1]) * step > 0:
        moves -= 1
    return MovePlan(tuple(sources[:moves]), tuple(targets[:moves]))


def plan_relocation(band: Band, span: tuple[int, int]) -> MovePlan:
    """Plan the copies that bring every live page of `band` into the pages `span`.

    Only pages outside the new span are copied: the fewest copies possible for it, and no target is
    ever a source.  Free slots are chosen lowest depth first.
    """
    low, high = band.axis.span_of_pages(*span)
    if low <= band.low and band.high <= high:
        return NO_MOVES
    sources = lowest(band, LIVE, band.low, min(low, band.high), band.live)
    sources += lowest(band, LIVE, max(high, band.low), band.high, band.live)
    if not sources:
        return NO_MOVES
    inside = lowest(band, HOLE, max(low, band.low), min(high, band.high), len(sources))
    below = band.axis.pages(low, min(high, band.low))
    above = band.axis.pages(max(low, band.high), high)
    return MovePlan(tuple(sources), tuple(islice(chained(below, inside, above), len(sources))))


class PageMover:
    """Carries out move plans; every copy of live pages goes through `copy`."""

    __slots__ = (
        "_clearance",
        "_counters",
        "_device",
        "_ledger",
        "_reclaim",
        "_steps",
    )

    def __init__(self, parts: ChainParts, reclaim: Reclaim) -> None:
        self._device = parts.device
        self._steps = parts.steps
        self._ledger = parts.ledger
        self._clearance = parts.clearance
        self._counters = parts.counters
        self._reclaim = reclaim

    def compact(self, band: Band, limit: int) -> int:
        """Close holes of `band` with at most `limit` moves; returns how many pages moved.

        Order: may enqueue one wait, one copy kernel and one map write on the schedule stream.
        Settles nothing and does not block the host.  Moves nothing while a step whose writes are
        unknown may still write the band.
        """
        rule = self._clearance[Toucher.MOVE_SOURCE, InFlight.UNKNOWN_FORWARD]
        if rule is Clearance.NO_MOVE and self._ledger.has_unknown_write(band.index):
            return 0
        plan = plan_compaction(band, limit, self._ledger.held.pages(band.index, HOLDS))
        if plan.sources:
            self.copy(band, plan)
            band.occupy_holes(plan.targets)
            self._reclaim.vacate(band, plan.sources)
        return len(plan.sources)

    def copy(self, band: Band, plan: MovePlan) -> None:
        """Copy and rebind one batch.  The caller accounts for the pages' states."""
        self._wait_writers(band, plan.sources)
        if self._ledger.fences:
            size = band.layout.page_bytes
            self._wait_copies(Toucher.MOVE_SOURCE, page_ranges(size, plan.sources))
            self._wait_copies(Toucher.HAND_OUT, page_ranges(size, plan.targets))
        self._device.move_pages(Stream.SCHEDULE, band.index, plan.sources, plan.targets)
        ids = band.ids.rebind(plan.sources, plan.targets)
        self._device.write_map(Stream.SCHEDULE, band.index, ids, plan.targets)
        self._ledger.held.moved(band.index, plan.sources, plan.targets)
        self._counters.moved_pages += len(plan.sources)

    def _wait_writers(self, band: Band, sources: Sequence[int]) -> None:
        rule = self._clearance[Toucher.MOVE_SOURCE, InFlight.FORWARD]
        if rule is Clearance.WAIT_WRITER:
            writer = self._ledger.newest_writer(band.index, sources)
            if writer and self._steps.wait(writer):
                self._reclaim.writes_retired()

    def _wait_copies(self, toucher: Toucher, ranges: Ranges) -> None:
        wait_copies(self._device, self._clearance, self._ledger.fences, toucher, ranges)
