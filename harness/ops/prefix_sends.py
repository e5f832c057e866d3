"""Sends of cached prefixes: pages that no request owns go to a peer, with the state behind them."""

from __future__ import annotations

from harness import transfer_room
from harness.network import Send, queue_part
from harness.ops.base import Name, Op, Outcome
from harness.ops.host_tier import Blocks
from harness.ops.network import Peer
from harness.parked import saved_ids_of
from harness.peers import PEER_NAMES
from harness.world import World


class BeginPrefixSend(Op, frozen=True, tag="begin_prefix_send"):
    """A send of a cached prefix is announced; the cache keeps it until its pages have gone."""

    transfer: Name
    peer: Peer
    blocks: Blocks

    def apply(self, world: World) -> Outcome:
        """Announce it, or change nothing."""
        prefix = world.prefixes.get(self.blocks)
        if world.network_subject is None or prefix is None:
            return Outcome.SKIPPED
        if not world.transfers.may_begin(self.transfer):
            return Outcome.SKIPPED
        if not transfer_room.begin_send(world, self.transfer, PEER_NAMES[self.peer]):
            return Outcome.REFUSED
        world.transfers.sends[self.transfer] = Send("", PEER_NAMES[self.peer], prefix=prefix)
        prefix.locks += 1
        return Outcome.DONE


class AddPrefix(Op, frozen=True, tag="add_prefix"):
    """All pages of a cached prefix are queued for its peer, in one part."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Queue them; they may move until a round starts the part."""
        send = world.transfers.sends.get(self.transfer)
        if send is None or send.prefix is None or send.queued or send.is_closed:
            return Outcome.SKIPPED
        prefix = send.prefix
        if world.host.waits_for_submission(prefix.pages, prefix.slot):
            return Outcome.SKIPPED
        ids = saved_ids_of(world, prefix)
        # Who wrote them last is forgotten, but no step that comes later writes them.
        through = world.step_count
        if not queue_part(world, self.transfer, ids, through, prefix.pages, prefix.slot):
            return Outcome.REFUSED
        send.queued = len(prefix.pages)
        world.probes["prefix_queued_for_a_peer"] += 1
        return Outcome.DONE
