"""Checkpoints, cached prefixes and rows that change hands: the generator's choices about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.choices import Choices, one_of
from harness.ops import (
    CachePrefix,
    Checkpoint,
    EvictPrefix,
    FinishCached,
    Operation,
    Pause,
    RelayCommit,
    RestoreRow,
    Resume,
)
from harness.ops.prefix import checkpoint_blocks
from harness.requests import Request
from harness.states import Tracked
from harness.world import World

ROW_NAMES = frozenset({"pause", "resume", "restore_row"})
TRACKED_NAMES = frozenset({"finish_cached"})
RELAYED_NAMES = frozenset({"relay_commit"})


class StateMakers:
    """Draws what concerns states, the prefixes that keep them, and rows."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    def by_name(self) -> Mapping[str, Callable[[World], Operation | None]]:
        """A maker for each name; it gives None where its operation makes no sense now."""
        return {
            "checkpoint": self._checkpoint,
            "cache_prefix": self._cache_prefix,
            "evict_prefix": lambda world: EvictPrefix() if world.prefixes else None,
            "finish_cached": self._finish_cached,
            "pause": self._pause,
            "resume": self._resume,
            "restore_row": self._restore_row,
            "relay_commit": lambda world: RelayCommit() if world.relay.left else None,
        }

    def _checkpoint(self, world: World) -> Operation | None:
        if not isinstance(world.states, Tracked):
            return None
        slots, running = world.states.slots, world.running.values()
        lacking = [
            r for r in running if r.prepared and slots.lacks_tracking_slot(r.name, r.prepared)
        ]
        request = one_of(self._choices, _from_elsewhere(lacking) or lacking)
        return Checkpoint(request.name) if request else None

    def _cache_prefix(self, world: World) -> Operation | None:
        if isinstance(world.states, Tracked):
            ready = _with_a_checkpoint(world)
            request = one_of(self._choices, _from_elsewhere(ready) or ready)
            return CachePrefix(request.name) if request else None
        block_tokens = world.setup.block_pages * world.setup.page_slots
        ready = [
            r
            for r in world.running.values()
            if block_tokens <= r.length
            and r.blocks
            and r.blocks[: r.length // block_tokens] not in world.prefixes
        ]
        request = one_of(self._choices, ready)
        return CachePrefix(request.name) if request else None

    def _finish_cached(self, world: World) -> Operation | None:
        if not isinstance(world.states, Tracked):
            return None
        ready = [r for r in _with_a_checkpoint(world) if r.length >= r.prompt]
        request = one_of(self._choices, ready)
        return FinishCached(request.name) if request else None

    def _pause(self, world: World) -> Operation | None:
        if not world.rows.is_kept:
            return None
        # Mostly between two steps; now and then what is prepared has to wait for another row.
        running, is_rash = world.running.values(), self._choices.below(4) == 0
        request = one_of(self._choices, [r for r in running if is_rash or not r.prepared])
        return Pause(request.name) if request else None

    def _resume(self, world: World) -> Operation | None:
        if len(world.running) >= world.setup.rows:
            return None
        name = one_of(self._choices, list(world.paused))
        return Resume(name) if name else None

    def _restore_row(self, world: World) -> Operation | None:
        ready = [r for r in world.running.values() if r.saved is not None]
        request = one_of(self._choices, ready)
        return RestoreRow(request.name) if request else None


def launchable(choices: Choices, world: World) -> list[str]:
    """Requests that the next step could be over, mostly without those that wait for a commit."""
    ready = [r.name for r in world.running.values() if r.prepared and r.saved is None]
    if not world.relay.left or choices.below(4) == 0:
        return ready
    # The longer another stage takes, the more may move meanwhile.
    return world.relay.without_those_left(ready)


def _from_elsewhere(requests: list[Request]) -> list[Request]:
    """Those whose first state came with a load or from a peer: there are few, and soon gone."""
    return [request for request in requests if request.came_from]


def _with_a_checkpoint(world: World) -> list[Request]:
    """Running requests whose checkpoint the cache could take and does not hold."""
    return [r for r in world.running.values() if checkpoint_blocks(world, r)]
