"""Layout: the first copies at start-up, closing holes, and making room without taking."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from harness import transfer_room
from harness.check import capacity, effects
from harness.ops.base import Op, Outcome
from harness.world import World
from unikv.errors import TransferError

Pages = Annotated[int, Meta(ge=0, le=100_000)]


class Prewarm(Op, frozen=True, tag="prewarm"):
    """Start-up: the copy path runs once, before anything is taken."""

    def apply(self, world: World) -> Outcome:
        """Ask for it, look at what it submitted, and wait until it is over, as an engine does."""
        if "layout" not in world.subjects[0].families or not world.untouched:
            return Outcome.SKIPPED
        submitted, before = len(world.ports[0].log), world.books
        world.ask("prewarm")
        effects.after_prewarm(world, submitted, before)
        world.device.drain()
        return Outcome.DONE


class Flush(Op, frozen=True, tag="flush"):
    """Opportunistic compaction of both ends, bounded in moves."""

    limit: Pages

    def apply(self, world: World) -> Outcome:
        """Move pages into holes."""
        if "layout" not in world.subjects[0].families:
            return Outcome.SKIPPED
        world.order_tables()
        before = world.books
        moved = world.ask("flush", self.limit)
        effects.after_flush(world, self.limit, moved, before)
        if moved and world.steps:
            world.probes["moved_under_a_running_step"] += 1
        if not moved and world.truth.newest_unknown > world.truth.retired_through:
            world.probes["unknown_writes_kept_pages_still"] += 1
        return Outcome.DONE if moved else Outcome.SKIPPED


class Relieve(Op, frozen=True, tag="relieve"):
    """Room for a later take: settle, compact and relocate, but hand nothing out."""

    pages: Pages
    slots: Pages

    def apply(self, world: World) -> Outcome:
        """Lay the chain out for the demand."""
        if "layout" not in world.subjects[0].families:
            return Outcome.SKIPPED
        world.order_tables()
        slots = self.slots if world.state_band >= 0 else 0
        counts = (slots if band == world.state_band else self.pages for band in world.band_range)
        demand = tuple(counts)
        answer = transfer_room.ask(world, demand, ("relieve", self.pages, slots))
        if isinstance(answer, TransferError):
            return Outcome.REFUSED
        world.capacity_answers.append((answer, demand))
        if answer is True:
            capacity.after_a_relief(world, demand)
        return Outcome.DONE if answer else Outcome.REFUSED
