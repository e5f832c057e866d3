"""Windows and recurrent state: retiring rows, taking checkpoints."""

from __future__ import annotations

from harness.check import capacity
from harness.library import answer_of
from harness.network import has_queued_parts
from harness.ops.base import Name, Op, Outcome
from harness.requests import Phase
from harness.states import Tracked
from harness.world import World
from unikv.advance import first_needed_page, first_retained_page


class Advance(Op, frozen=True, tag="advance"):
    """Window rows that no later token of a request attends are freed, also under a running step."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Free the rows in every window band."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING:
            return Outcome.SKIPPED
        if has_queued_parts(world, request.name):
            return Outcome.SKIPPED  # rows that are to be sent stay bound until the engine has them
        retired = False
        for band in world.window_bands:
            window = world.setup.bands[band].window
            floor = world.states.floor(world, request)
            first = first_retained_page(request.length, floor, window, world.setup.page_slots)
            if first < first_needed_page(request.length, window, world.setup.page_slots):
                world.probes["retention_kept_rows"] += 1
            rows = request.pages[request.window_first[band] : first]
            if rows:
                retired = True
                request.window_first[band] = first
                world.retire_rows(band, world.row_holds[band].drop(rows))
        capacity.after_an_advance(world, request)
        if retired:
            world.probes["window_retired"] += 1
        return Outcome.DONE if retired else Outcome.SKIPPED


class Checkpoint(Op, frozen=True, tag="checkpoint"):
    """A request gets a slot for the grid boundary that its next step comes to."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Take the slot, or let the step run without it, which then skips the boundary."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING or not request.prepared:
            return Outcome.SKIPPED
        if not isinstance(world.states, Tracked):
            return Outcome.SKIPPED
        slots = world.states.slots
        if not answer_of(world, slots.lacks_tracking_slot, request.name, request.prepared):
            return Outcome.SKIPPED
        answer = world.take(0, 1)
        if answer is None:
            world.probes["tracking_slot_refused"] += 1
            return Outcome.REFUSED
        answer_of(world, slots.give_tracking_slot, request.name, answer.slots[0])
        world.probes["checkpoint_taken"] += 1
        return Outcome.DONE
