"""Translations that an engine keeps for a while, as operations of a lending world.

What a step looks up at its launch cannot be stale.  An engine that translates ahead of a launch can
hold ids across a move, and then the allocator has to refuse them.
"""

from __future__ import annotations

from harness.check import translation
from harness.faults.lending import Kept, LendingWorld
from harness.ops.base import Op, Outcome
from harness.requests import Phase
from harness.world import World
from unikv.errors import StaleIdsError
from unikv.ids.runner_ids import RunnerIds


class Translate(Op, frozen=True, tag="translate"):
    """The pages of every running request are translated ahead of a launch."""

    def apply(self, world: World) -> Outcome:
        """Keep what every rank answers."""
        if not isinstance(world, LendingWorld):
            return Outcome.SKIPPED
        running = [r for r in world.requests.values() if r.phase is Phase.RUNNING]
        rows = [list(request.pages) for request in running]
        if not rows:
            return Outcome.SKIPPED
        ids = [storage.ids.reads(rows, []) for storage in world.storages()]
        world.kept = Kept(rows, ids, world.frees)
        return Outcome.DONE


class UseTranslation(Op, frozen=True, tag="use_translation"):
    """What was translated ahead is handed to kernels, unless the allocator refuses it."""

    def apply(self, world: World) -> Outcome:
        """Compare with the device map; an engine that has freed since knows that it may not."""
        if not isinstance(world, LendingWorld) or world.kept is None:
            return Outcome.SKIPPED
        kept, world.kept = world.kept, None
        if kept.frees != world.frees:
            return Outcome.SKIPPED
        used = [_use(world, kept, ids, band) for ids in kept.ids for band in world.token_bands]
        return Outcome.DONE if any(used) else Outcome.REFUSED


def _use(world: LendingWorld, kept: Kept, ids: RunnerIds, band: int) -> bool:
    """Compare one band of one rank; False where its ids are refused."""
    try:
        tables = ids.tables(band)
    except StaleIdsError:
        return False
    for row, table in zip(kept.rows, tables, strict=True):
        # What a window had retired reads the sink.
        bound = {unit: page for unit, page in zip(row, table, strict=True) if page}
        translation.compare(world, band, list(bound), list(bound.values()))
    return True
