"""What may happen to a receive between its take and its end: published at once, rows retired."""

from __future__ import annotations

from harness.ops.base import Name, Op, Outcome
from harness.world import World


class PublishReceive(Op, frozen=True, tag="publish_receive"):
    """The ids of a held receive leave at once: the engine has no later iteration to wait for."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Publish it on every rank, unless some rank was asked to stop it."""
        network, state = world.network, world.transfers
        if network is None or not network.publishes_at_once:
            return Outcome.SKIPPED
        if self.transfer not in state.receives or self.transfer not in world.truth.transfers.held:
            return Outcome.SKIPPED
        world.ask("publish_receive", self.transfer)
        left = self.transfer in world.truth.transfers.uses
        world.probes["published_at_once" if left else "publication_held_back"] += 1
        return Outcome.DONE


class RetireReceived(Op, frozen=True, tag="retire_received"):
    """Rows of a receive that no token behind its prompt attends are freed, published or not."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Free them in every window band."""
        receive = world.transfers.receives.get(self.transfer)
        request = world.requests.get(receive.request) if receive else None
        if request is None:
            return Outcome.SKIPPED
        retired = 0
        for band in world.window_bands:
            window = world.setup.bands[band].window
            first = world.retirement.first_needed(request.prompt, window, world.setup.page_slots)
            rows = request.pages[request.window_first[band] : first]
            request.window_first[band] = max(first, request.window_first[band])
            world.retire_rows(band, world.row_holds[band].drop(rows))
            retired += len(rows)
        if not retired:
            return Outcome.SKIPPED
        is_held = self.transfer in world.truth.transfers.held
        world.probes["retired_before_publication" if is_held else "retired_under_a_receive"] += 1
        return Outcome.DONE
