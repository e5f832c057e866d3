"""Windows and recurrent state: retiring rows, taking checkpoints."""

from __future__ import annotations

from harness.check import capacity
from harness.library import answer_of
from harness.network import has_queued_parts
from harness.ops.base import Name, Op, Outcome
from harness.requests import Phase, Request
from harness.states import Tracked
from harness.violation import id_sites
from harness.windows import first_attended_page, first_kept_page
from harness.world import World


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
        length, slots = request.length, world.setup.page_slots
        for band in world.window_bands:
            window = world.setup.bands[band].window
            floor = world.states.floor(world, request)
            first = world.retirement.first_retained(length, floor, window, slots)
            if first < first_attended_page(length, window, slots):
                world.probes["retention_kept_rows"] += 1
            _compare_retained(world, request, band, first, floor)
            rows = request.pages[request.window_first[band] : first]
            if rows:
                retired = True
                request.window_first[band] = first
                world.retire_rows(band, world.row_holds[band].drop(rows))
        capacity.after_an_advance(world, request)
        if retired:
            world.probes["window_retired"] += 1
        return Outcome.DONE if retired else Outcome.SKIPPED


def _compare_retained(world: World, request: Request, band: int, first: int, floor: int) -> None:
    """Note rows that stay for nobody, and rows that go though a checkpoint needs them.

    A row that goes though the request itself attends it is seen when its forward reads it.

    Args:
        first: page index in the request from which on the engine keeps rows of the band.
        floor: where whoever resumes at the checkpoint begins.
    """
    window, slots = world.setup.bands[band].window, world.setup.page_slots
    needed = first_kept_page(request.length, floor, window, slots)
    if first == needed:
        return
    if first < needed:
        detail, rows = "window row kept for nobody", request.pages[first:needed]
        why = f"which no token from {min(request.length, floor)} on attends"
    elif first <= first_attended_page(request.length, window, slots):
        detail, rows = "window row of a checkpoint given up", request.pages[needed:first]
        why = f"which whoever resumes at token {floor} attends"
    else:
        return
    name = world.layout.bands[band].name
    text = (
        f"band {name!r}: {request.name} keeps its rows from page {first} on, expected is from page"
        f" {needed} on, for ids {rows}, {why}"
    )
    world.truth.note("ledger", detail, text, id_sites(band, rows))


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
