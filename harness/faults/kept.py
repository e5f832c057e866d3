"""Translations that an engine keeps for a while, as operations of a world that remembers them.

What a step looks up at its launch cannot be stale.  An engine that translates ahead of a launch can
hold ids across a move, and then the allocator has to refuse them.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.check import translation
from harness.ops.base import Op, Outcome
from harness.requests import Phase
from harness.unikv_subject import UnikvSubject
from harness.world import World
from unikv.errors import StaleIdsError
from unikv.ids.runner_ids import RunnerIds
from unikv.storage import KVStorage


@dataclass(frozen=True, slots=True)
class Kept:
    """What an engine translated ahead of a launch.

    Attributes:
        rows: of every running request, the ids of its pages.
        ids: page tables of those rows, rank by rank.
        frees: how often anything had been freed until then.
    """

    rows: list[list[int]]
    ids: list[RunnerIds]
    frees: int


class KeepingWorld(World):
    """A world whose engine may also call the storage itself, and keep what it translated.

    Attributes:
        kept: what was translated ahead of a launch; None where nothing was.
    """

    kept: Kept | None = None

    def storages(self) -> list[KVStorage]:
        """The storage of every rank."""
        found = []
        for subject in self.subjects:
            assert isinstance(subject, UnikvSubject)
            found.append(subject.storage)
        return found


class Translate(Op, frozen=True, tag="translate"):
    """The pages of every running request are translated ahead of a launch."""

    def apply(self, world: World) -> Outcome:
        """Keep what every rank answers."""
        if not isinstance(world, KeepingWorld):
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
        if not isinstance(world, KeepingWorld) or world.kept is None:
            return Outcome.SKIPPED
        kept, world.kept = world.kept, None
        if kept.frees != world.frees:
            return Outcome.SKIPPED
        used = [_use(world, kept, ids, band) for ids in kept.ids for band in world.token_bands]
        return Outcome.DONE if any(used) else Outcome.REFUSED


def _use(world: KeepingWorld, kept: Kept, ids: RunnerIds, band: int) -> bool:
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
