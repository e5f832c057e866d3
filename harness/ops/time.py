"""Time: device work ends, the host waits, the system comes to rest."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from harness.device.clock import LANES
from harness.ops.base import Op, Outcome
from harness.ops.host_tier import acknowledge
from harness.ops.network import hold_round
from harness.world import World
from unikv.device.port import Stream

StreamNumber = Annotated[int, Meta(ge=0, lt=len(Stream))]
Lane = Annotated[int, Meta(ge=0, lt=LANES)]


ROUNDS_TO_REST = 6
"""Rounds after which a transfer that can end has ended: parts start, end, fail and are proved."""


class Complete(Op, frozen=True, tag="complete"):
    """Up to `count` launches at the head of a stream, or of a peer's work, end on one rank."""

    rank: Annotated[int, Meta(ge=0, le=7)]
    stream: Lane
    count: Annotated[int, Meta(ge=1, le=64)]
    counted: ClassVar[bool] = False
    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """End them."""
        if self.rank >= world.setup.ranks:
            return Outcome.SKIPPED
        if world.network is not None and world.network.is_stalled(self.stream):
            return Outcome.SKIPPED
        ended = world.device.complete(self.rank, self.stream, self.count)
        return Outcome.DONE if ended else Outcome.SKIPPED


class HostSync(Op, frozen=True, tag="host_sync"):
    """The host waits for a whole stream on every rank."""

    stream: StreamNumber
    counted: ClassVar[bool] = False
    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Wait for it."""
        world.device.host_wait(world.device.record_event(self.stream))
        return Outcome.DONE


class IdleCheck(Op, frozen=True, tag="idle_check"):
    """Everything in flight is processed, drained and acknowledged; nothing may be left over."""

    counted: ClassVar[bool] = False
    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Come to rest; the idle check looks afterwards."""
        world.relay.through(world, world.step_count)
        world.come_to_rest()
        for copy in world.host.submitted():
            acknowledge(world, copy)
        if world.network is None:
            return Outcome.DONE
        world.network.stalled.clear()
        for _ in range(ROUNDS_TO_REST):
            hold_round(world)
            world.device.drain()
            if not world.transfers.names():
                break
        return Outcome.DONE
