"""Rows that change hands while their requests live on: a pause, and what brings a request back.

A paused request keeps its pages and its state and gives its row up.  What a forward keeps per row
is saved behind that forward, and written whole into the row that the request gets next.
"""

from __future__ import annotations

from harness.ops.base import Name, Op, Outcome
from harness.requests import Phase
from harness.world import World


class Pause(Op, frozen=True, tag="pause"):
    """A running request gives its row up, also under a running step."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Save the memory of the row, then give the row back."""
        request = world.requests.get(self.request)
        if not world.rows.is_kept or request is None or request.phase is not Phase.RUNNING:
            return Outcome.SKIPPED
        world.relay.before(world, (request,))
        world.rows.save(world, request)
        world.rows.give_back(world, request)
        world.paused[request.name] = world.running.pop(request.name)
        request.phase = Phase.PAUSED
        return Outcome.DONE


class Resume(Op, frozen=True, tag="resume"):
    """A paused request gets a row again, which names its pages; its memory is still to come."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Take a row, or change nothing."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.PAUSED:
            return Outcome.SKIPPED
        if world.subjects[0].free_rows() == 0:
            return Outcome.REFUSED
        world.order_tables()
        world.rows.take(world, request)
        world.ask("append_row", request.row, list(request.pages))
        world.running[request.name] = world.paused.pop(request.name)
        request.phase = Phase.RUNNING
        return Outcome.DONE


class RestoreRow(Op, frozen=True, tag="restore_row"):
    """What a request saved is written into its new row, which a launch may have reset by now."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Write the row whole; only then may the request be launched."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING or request.saved is None:
            return Outcome.SKIPPED
        world.rows.restore(world, request)
        return Outcome.DONE
