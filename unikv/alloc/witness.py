"""A device port, and a waiter, that see what one allocator enqueues, and when it enqueues it.

State can be audited between calls, but an order is only seen while it is made: whether the stream
waited before a copy, or the host read behind a wait.  The witness passes every kernel on unchanged.
It keeps its own account of what was given up under which step and of which steps the schedule
stream waited for, and it judges by the published clearance table, whatever table the allocator
works by.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from unikv.alloc.band import Band
from unikv.alloc.band_audit import about
from unikv.alloc.chain import NO_TRANSFERS, ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.fences import IN_FLIGHT, page_ranges
from unikv.alloc.invariants import (
    HANDOUT_OF_USED_PAGE,
    MOVE_OF_WRITTEN_PAGE,
    READ_AFTER_WAIT,
    STEPS_ORDER,
    Finding,
    Invariants,
)
from unikv.alloc.signals import TRANSFERS, TransferWaiter
from unikv.alloc.use import Use
from unikv.device.port import Device, Event, Stream

HARMLESS = frozenset({Clearance.NONE, Clearance.SAME_STREAM, Clearance.AT_HAND_OUT})
"""Cells of the table that let work in flight on the bytes run on."""

RULES = {
    Toucher.HAND_OUT: HANDOUT_OF_USED_PAGE,
    Toucher.MOVE_SOURCE: MOVE_OF_WRITTEN_PAGE,
}


class Witness:
    """The device of a checked allocator.

    Laws:
        `settled_through` is the newest step whose event the schedule stream waited, as seen here.
        What an engine does with the port between calls is its own affair: a wait counts against a
        host read only inside the same call, and that is the outermost one of those that run.

    Attributes:
        has_streams: as of the device that it passes kernels on to.
        settled_through: see the law.
    """

    __slots__ = (
        "_calls",
        "_chain",
        "_device",
        "_events",
        "_given_up",
        "_has_waited",
        "_invariants",
        "_waiter",
        "has_streams",
        "settled_through",
    )

    def __init__(
        self,
        device: Device,
        chain: ChainAllocator,
        invariants: Invariants,
        waiter: TransferWaiter = NO_TRANSFERS,
    ) -> None:
        self._device = device
        self._waiter = waiter
        self.has_streams = device.has_streams
        # The chain is still being built: it is only looked at once kernels are enqueued.
        self._chain = chain
        self._invariants = invariants
        self._calls: list[str] = []
        self._has_waited = False
        self._events: list[tuple[int, Event]] = []
        self._given_up: list[tuple[int, int, int]] = []
        self.settled_through = 0

    def begin(self, call: str) -> None:
        """A call of the allocator begins, maybe inside another one: a waiter ends transfers."""
        self._calls.append(call)

    def end(self) -> None:
        """The call that began last is over."""
        self._calls.pop()
        if not self._calls:
            self._has_waited = False

    def recorded(self, number: int, event: Event) -> None:
        """Step `number` ends with `event`."""
        processed = self._chain.steps.processed_through
        self._events = [pair for pair in self._events if pair[0] > processed]
        self._events.append((number, event))

    def given_up(self, band: Band, pages: Sequence[int]) -> None:
        """`pages` were freed or vacated: every step in flight may still touch their bytes."""
        step = self._chain.steps.newest
        if step <= self._retired_through():
            return
        ranges = page_ranges(band.layout.page_bytes, pages)
        self._given_up += [(low, high, step) for low, high in ranges]

    def handed_out(self, band: Band, pages: Sequence[int]) -> list[Finding]:
        """What is wrong with giving `pages` to a new owner."""
        found = self._in_the_way(Toucher.HAND_OUT, band, pages)
        retired = self._retired_through()
        self._given_up = [entry for entry in self._given_up if entry[2] > retired]
        if self._given_up:
            size = band.layout.page_bytes
            for page in pages:
                steps = [
                    step
                    for low, high, step in self._given_up
                    if low < (page + 1) * size and page * size < high
                ]
                if steps:
                    what = (
                        f"its bytes were given up under step {max(steps)}, but only the steps"
                        f" through {retired} are processed or waited for"
                    )
                    found.append(about(HANDOUT_OF_USED_PAGE, band, what, [page]))
        return found

    def findings(self) -> list[Finding]:
        """Where the allocator believes in a wait that was never enqueued."""
        settled = self._chain.steps.settled_through
        if settled <= self.settled_through:
            return []
        what = (
            f"settled through step {settled}, but the schedule stream waited only through"
            f" {self.settled_through}"
        )
        return [Finding(STEPS_ORDER, "the steps", what)]

    def wait(self, names: Sequence[str]) -> None:
        """The host waits for transfers; a host read like any other."""
        self._host_reads("wait for transfers")
        self._waiter.wait(names)

    # The port ------------------------------------------------------------------------------

    def record_event(self, stream: Stream) -> Event:
        """Mark the work enqueued so far."""
        return self._device.record_event(stream)

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Order a stream behind an event."""
        self._has_waited = bool(self._calls)
        if stream is Stream.SCHEDULE:
            numbers = [number for number, end in self._events if end is event]
            self.settled_through = max([self.settled_through, *numbers])
        self._device.wait_event(stream, event)

    def query(self, event: Event) -> bool:
        """A host read."""
        self._host_reads("query")
        return self._device.query(event)

    def host_wait(self, event: Event) -> None:
        """A host read."""
        self._host_reads("host_wait")
        self._device.host_wait(event)

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Write zeros; the hand-out before it was judged."""
        self._device.zero_pages(stream, band, pages)

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy pages, after both ends are judged."""
        part = self._chain.bands[band]
        found = self._in_the_way(Toucher.MOVE_SOURCE, part, sources)
        self._invariants.report([*found, *self.handed_out(part, targets)])
        self._device.move_pages(stream, band, sources, targets)
        self.given_up(part, sources)

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Set entries of a page map."""
        self._device.write_map(stream, band, ids, pages)

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        """Set entries of a request row."""
        self._device.write_row(stream, row, first, ids)

    # Judging -------------------------------------------------------------------------------

    def _retired_through(self) -> int:
        return max(self._chain.steps.processed_through, self.settled_through)

    def _host_reads(self, name: str) -> None:
        if self._has_waited:
            what = f"{name} behind a stream wait: the host stands still until that work is over"
            self._invariants.report([Finding(READ_AFTER_WAIT, f"call {self._calls[0]}", what)])

    def _in_the_way(self, toucher: Toucher, band: Band, pages: Sequence[int]) -> list[Finding]:
        """The unfinished uses of `pages` that `toucher` had to be behind."""
        wanted = frozenset(pages)
        found = []
        for in_flight, reason, used in self._uses(toucher, band, wanted):
            rule = CLEARANCE[toucher, in_flight]
            touched = wanted.intersection(used)
            if touched and rule not in HARMLESS:
                what = f"{reason}, and {toucher.value} needs: {rule.value}"
                found.append(about(RULES[toucher], band, what, sorted(touched)))
        for copy in self._chain.ledger.fences.touching(page_ranges(band.layout.page_bytes, pages)):
            rule = CLEARANCE[toucher, IN_FLIGHT[copy.use]]
            if rule not in HARMLESS:
                what = f"{copy.use.value} {copy.number} runs on their bytes"
                what += f", and {toucher.value} needs: {rule.value}"
                found.append(about(RULES[toucher], band, what, pages))
        return found

    def _uses(
        self, toucher: Toucher, band: Band, wanted: frozenset[int]
    ) -> list[tuple[InFlight, str, Collection[int]]]:
        """Uses in one band as kind, words and pages; all of `wanted` where it may be any page."""
        ledger = self._chain.ledger
        found: list[tuple[InFlight, str, Collection[int]]] = []
        for use in ledger.uses():
            if use.band != band.index:
                continue
            reason = f"{use.use.value} of step {use.step} is not over"
            if use.use is not Use.UNKNOWN_WRITE:
                found.append((InFlight.FORWARD, reason, use.pages))
            elif toucher is Toucher.MOVE_SOURCE:
                # It writes pages of its batch, so a page that was free at its launch is not meant.
                found.append((InFlight.UNKNOWN_FORWARD, reason, wanted))
        for step, pages in band.pending_pages.batches():
            found.append((InFlight.FORWARD, f"the batch of step {step} is not over", pages))
        for hold in ledger.held.holds():
            # A relief may move a receive hold, whose ids nobody outside has seen.
            movable = toucher is Toucher.MOVE_SOURCE and hold.use not in TRANSFERS
            if hold.band == band.index and not movable:
                reason = f"{hold.use.value} {hold.name!r} is not over"
                found.append((InFlight.NETWORK, reason, hold.pages))
        return found
