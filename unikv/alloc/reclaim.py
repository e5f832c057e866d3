"""The way back: from freed or vacated to free.

A free is logical and waits for nothing; only the physical page pends.  It returns when the step it
waits for is processed, or earlier when a take needs it and settles: the schedule stream waits the
step's event, the host does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unikv.alloc.band import Band
from unikv.alloc.clearance import Clearance, InFlight, Toucher
from unikv.alloc.page_usage import Use
from unikv.alloc.parts import ChainParts
from unikv.alloc.signals import TRANSFERS


class Reclaim:
    """Owns every step from live to hole.

    Law: a page is pending exactly while a pending batch, a `VACATED` use or a stuck set names it.
    """

    __slots__ = ("_bands", "_clearance", "_counters", "_ledger", "_steps")

    def __init__(self, parts: ChainParts) -> None:
        self._bands = parts.bands
        self._steps = parts.steps
        self._ledger = parts.ledger
        self._clearance = parts.clearance
        self._counters = parts.counters

    def free(self, band: Band, pages: Sequence[int]) -> None:
        """Give up live pages: pending under the newest unprocessed step, holes without one."""
        self._counters.freed_pages += len(pages)
        if self._ledger.held:
            self._ledger.held.leave(band.index, pages)
            pages = self._stick(band, pages)
            if not pages:
                return
        step = self._steps.newest
        if step and self._never_offered():
            band.pend_live(pages)
            band.pending_pages.add(step, pages)
        else:
            band.release_live(pages)
            self.retreat(band)

    def release(self, name: str) -> None:
        """The transfer or hold `name` is over on every rank: its stuck pages return.

        A step in flight may have been launched since they were freed, so they wait for it.
        A transfer that a relief has ended has nothing left to return, once.

        Raises:
            TransferError: if nothing is held under that name.
        """
        self._return_stuck(self._ledger.held.end(name))

    def release_early(self, name: str) -> None:
        """As `release`, for a relief that waited: the protocol's own release is still to come."""
        self._return_stuck(self._ledger.held.end_early(name))

    def _return_stuck(self, freed: Mapping[int, list[int]]) -> None:
        step = self._steps.newest
        for index, pages in freed.items():
            band = self._bands[index]
            if step:
                band.pending_pages.add(step, pages)
            else:
                band.release_pending(pages)
                self.retreat(band)
        self._end_uses()

    def vacate(self, band: Band, pages: Sequence[int]) -> None:
        """Give up the sources of a move, which forwards in flight may still read."""
        step = self._steps.newest_unretired
        if step and self._never_offered():
            band.pend_live(pages)
            self._ledger.add(Use.VACATED, band.index, pages, step)
        else:
            band.release_live(pages)
        self.retreat(band)

    def settle(self, band: Band, count: int) -> None:
        """Return the oldest whole batches of `band` that cover `count` pages; all if none do.

        Order: the schedule stream waits the newest of their steps.  Does not block the host.
        """
        through = covered = 0
        waiting = [(step, len(pages)) for step, pages in band.pending_pages.batches()]
        waiting += [
            (use.step, len(use.pages))
            for use in self._ledger.uses()
            if use.use is Use.VACATED and use.band == band.index
        ]
        for step, pages in sorted(waiting):
            if covered >= count:
                break
            through = step
            covered += pages
        if through:
            self._settle_through(through)
            band.release_pending(band.pending_pages.take_through(through))

    def settle_all(self) -> None:
        """Return every pending page of every band, and let frontiers retreat."""
        newest = max(
            max(band.pending_pages.newest(), self._ledger.newest_vacated(band.index))
            for band in self._bands
        )
        if not newest:
            return
        self._settle_through(newest)
        for band in self._bands:
            band.release_pending(band.pending_pages.take_through(newest))
            self.retreat(band)

    def process(self, number: int) -> None:
        """Step `number` and every earlier one is processed: return what waited for them."""
        self._steps.process(number)
        self._end_uses()
        for band in self._bands:
            pages = band.pending_pages.take_through(number)
            if pages:
                band.release_pending(pages)
            self.retreat(band)
            if not self._steps.newest:
                stuck = len(self._ledger.held.stuck(band.index))
                assert band.pending == stuck, (
                    f"band {band.layout.name!r}: {band.pending} pages are pending with no step in"
                    f" flight, and {stuck} of them are under transfers"
                )

    def retreat(self, band: Band) -> None:
        """Let the frontier of `band` give up the holes it touches."""
        left = band.retreat()
        if left:
            self._counters.retreats += left

    def writes_retired(self) -> None:
        """The schedule stream waited past a writer: its writes are over."""
        self._ledger.end_writes(self._steps.retired_through)

    def _stick(self, band: Band, pages: Sequence[int]) -> list[int]:
        """Keep the pages that a transfer still touches; the others, in order."""
        rules = {
            self._clearance[toucher, InFlight.NETWORK]
            for toucher in (Toucher.HAND_OUT, Toucher.GROWTH)
        }
        if rules != {Clearance.NEVER_OFFERED}:
            return list(pages)
        under = self._ledger.held.pages(band.index, TRANSFERS)
        stuck = [page for page in pages if page in under]
        band.pend_live(stuck)
        self._ledger.held.stick(band.index, stuck)
        return [page for page in pages if page not in under]

    def _never_offered(self) -> bool:
        # Both rules rest on one fact: a pending page is no hole to take and no edge to give up.
        return (
            self._clearance[Toucher.HAND_OUT, InFlight.FORWARD] is Clearance.NEVER_OFFERED
            and self._clearance[Toucher.GROWTH, InFlight.FORWARD] is Clearance.NEVER_OFFERED
        )

    def _settle_through(self, step: int) -> None:
        self._counters.settles += 1
        self._steps.wait(step)
        self._end_uses()

    def _end_uses(self) -> None:
        retired = self._steps.retired_through
        self._ledger.end_writes(retired)
        if self._ledger.is_empty():
            return
        for band in self._bands:
            vacated = self._ledger.take_ready_vacated(band.index, retired)
            if vacated:
                band.release_pending(vacated)
                self.retreat(band)
