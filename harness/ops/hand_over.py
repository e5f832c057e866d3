"""A request goes on at a peer, which gets all that it has computed, its state included.

Whole pages go while their request runs, because no later token writes them.  Its last page and its
state are final only when it runs no more, so they are the last part of a send, and from then on the
request waits: for the peer to have everything, and then it is over here; or for the send to be
given up, and then it runs on.
"""

from __future__ import annotations

from harness.network import Send, leave, queue_part
from harness.ops.base import Name, Op, Outcome
from harness.parked import saved_ids
from harness.requests import Phase, Request
from harness.world import World


class HandOver(Op, frozen=True, tag="hand_over"):
    """The rest of a request is the last part of its send, and it is scheduled no more."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Queue it and close the send."""
        send = world.transfers.sends.get(self.transfer)
        request = world.requests.get(send.request) if send else None
        if send is None or request is None or not may_be_handed_over(send, request):
            return Outcome.SKIPPED
        slot = world.states.slot_of(world, request)
        is_away = self.transfer in world.transfers.isolated
        if is_away or world.host.waits_for_submission(request.pages, slot):
            return Outcome.SKIPPED
        ids = _rest_of(world, send, request)
        if not any(ids):
            return Outcome.SKIPPED
        if not queue_part(world, self.transfer, ids, request.last_step, request.pages, slot):
            return Outcome.REFUSED
        world.ask("close_send", self.transfer)
        send.is_closed = send.takes_over = True
        leave(world, request)
        return Outcome.DONE


def may_be_handed_over(send: Send, request: Request) -> bool:
    """Whether a request has run its whole prompt, and nothing of it is on its way elsewhere."""
    is_between_steps = request.phase is Phase.RUNNING and not request.prepared
    is_whole = request.length >= request.prompt and not request.source
    return not send.is_closed and is_between_steps and is_whole


def _rest_of(world: World, send: Send, request: Request) -> list[list[int]]:
    """Per band, the ids of everything that was not queued before."""
    ids = saved_ids(world, request)
    ids[world.owner_band] = ids[world.owner_band][send.queued :]
    for band in world.window_bands:
        ids[band] = ids[band][max(0, send.queued - request.window_first[band]) :]
    return ids
