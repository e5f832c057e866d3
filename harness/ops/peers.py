"""What peers do on their own: give a transfer up, send nothing that could be one, or stand still.

A peer's message reaches one rank, in any state of the transfer: before it is known here, while its
pages are in use, after its end.  The others hear of it in the next round.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from harness.network import tell_rank
from harness.ops.base import Name, Op, Outcome
from harness.ops.network import Peer
from harness.peers import PEER_NAMES
from harness.world import World

Rank = Annotated[int, Meta(ge=0, le=7)]


class PeerAbort(Op, frozen=True, tag="peer_abort"):
    """A peer gives a transfer up, known or not, and tells one rank, which owes it an answer."""

    transfer: Name
    peer: Peer
    rank: Rank

    def apply(self, world: World) -> Outcome:
        """Tell that rank."""
        if world.network_subject is None or self.rank >= world.setup.ranks:
            return Outcome.SKIPPED
        state = world.transfers
        if self.transfer not in state.names():
            state.vetoed.add(self.transfer)
            world.probes["aborted_while_unknown"] += 1
        elif self.transfer in world.truth.transfers.uses:
            world.probes["aborted_by_a_peer"] += 1
        else:
            world.probes["aborted_by_a_peer_before_its_start"] += 1
        tell_rank(world, self.rank, self.transfer, PEER_NAMES[self.peer])
        return Outcome.DONE


class ForgetAbort(Op, frozen=True, tag="forget_abort"):
    """No transfer of this name can come any more, so its abort need not be kept."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Tell every rank."""
        state = world.transfers
        if self.transfer in state.names() or self.transfer not in state.vetoed:
            return Outcome.SKIPPED
        world.ask("forget_abort", self.transfer)
        state.vetoed.discard(self.transfer)
        state.told.discard(self.transfer)
        state.forgotten.add(self.transfer)
        return Outcome.DONE


class StallPeer(Op, frozen=True, tag="stall_peer"):
    """A peer stands still, or gets on again; waits for it run into their deadline."""

    peer: Peer
    counted: ClassVar[bool] = False
    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Let it change."""
        if world.network is None:
            return Outcome.SKIPPED
        world.network.stalled ^= {PEER_NAMES[self.peer]}
        return Outcome.DONE
