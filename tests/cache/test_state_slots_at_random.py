"""State slots under random service: what holds at every moment, and that breaking it is seen."""

from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from tests.cache.stateful_engine import Pool, StatefulEngine, engine, serve
from unikv.cache.checkpoint_policy import CheckpointPolicy, CheckpointStrategy
from unikv.cache.state_slots import StateSlots
from unikv.cache.state_step import (
    NO_CHECKPOINT,
    SINK,
    Checkpoint,
    Content,
    Ending,
    HeldSlots,
    SlotState,
    StateStep,
)
from unikv.errors import UnikvError

NO_BUFFER, EXTRA, LAZY = CheckpointStrategy
SEEDS, COUNT = 12, 9
POLICIES = {
    NO_BUFFER: CheckpointPolicy(NO_BUFFER, 0),
    EXTRA: CheckpointPolicy(EXTRA, 8),
    LAZY: CheckpointPolicy(LAZY, 8),
}


def serve_all(
    strategy: CheckpointStrategy,
    kind: type[StateSlots] = StateSlots,
    make: Callable[[StateSlots, int], StatefulEngine] = engine,
) -> Counter[str]:
    """The first seeds; how often each act came to something."""
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        counts.update(serve(make(kind(POLICIES[strategy], COUNT), seed)))
    return counts


@pytest.mark.parametrize("strategy", CheckpointStrategy)
def test_everything_that_can_happen_happens_and_nothing_breaks(
    strategy: CheckpointStrategy,
) -> None:
    counts = serve_all(strategy)
    wanted = {"reset", "resume", "continue", "resumed", "taken", "ended into the tree", "evicted"}
    wanted |= {"retracted", "admission failed", "short of slots at admission"}
    wanted |= {"saved", "loaded", "load called off"}
    wanted |= {"short of slots at a take"} if strategy is not LAZY else {"skipped"}
    wanted |= {"tracked"} if strategy is not NO_BUFFER else set()
    assert {act for act in wanted if not counts[act]} == set()


class ResumeLost(StateSlots):
    """A replacement slot is run on as if it held the state already."""

    def take_checkpoint(self, name: str, slots: Sequence[int]) -> Checkpoint:
        """What was due on the new slot is forgotten."""
        taken = super().take_checkpoint(name, slots)
        self._states[slots[0]] = SlotState(Content.WRITTEN, taken.length, SINK)
        return taken


class ClearedAtThePlan(StateSlots):
    """What is due on a slot is over once a forward is planned, launched or not."""

    def before_forward(self, name: str, tokens: int) -> StateStep:
        """The plan that is dropped takes the clear with it."""
        step = super().before_forward(name, tokens)
        if step.first:
            self._states[step.slot] = SlotState(Content.WRITTEN, step.first, SINK)
        return step


class ComesBackToItsSlots(StateSlots):
    """A request that comes back goes on where it was, on bytes that are somebody else's."""

    ended: int = 0

    def end(self, name: str) -> tuple[int, ...]:
        """Remember how far it had come."""
        self.ended = self.length(name)
        return super().end(name)

    def admit(self, name: str, slots: Sequence[int], start: Checkpoint) -> None:
        """Believe that the slot still holds it."""
        super().admit(name, slots, start)
        if self.ended and start == NO_CHECKPOINT:
            self._states[slots[0]] = SlotState(Content.WRITTEN, self.ended, SINK)


class FreesTheDonated(StateSlots):
    """The slot that the tree took is freed with the rest."""

    def end_into_tree(self, name: str) -> Ending:
        """Two holders."""
        ending = super().end_into_tree(name)
        return Ending(ending.checkpoint, (*ending.slots, ending.checkpoint.slot))


class LosesTheTracking(StateSlots):
    """A request that ends gives back the slot it runs on and no other."""

    def end(self, name: str) -> tuple[int, ...]:
        """The second slot leaks."""
        return super().end(name)[:1]


class KeepsTheTaken(StateSlots):
    """The tree takes a slot that the request goes on writing its checkpoints to."""

    def take_checkpoint(self, name: str, slots: Sequence[int]) -> Checkpoint:
        """Two holders, once more."""
        held, taken = self.held(name), super().take_checkpoint(name, slots)
        self._requests[name] = HeldSlots(self.held(name).slot, held.tracking)
        return taken


class NoFloor(StateSlots):
    """Windows retire as if no checkpoint were waiting for the tree."""

    def retention_floor(self, name: str) -> int:
        """The next position."""
        return self.length(name)


class FloorStays(StateSlots):
    """The floor waits for a checkpoint at the last boundary, skipped or not, taken or not."""

    def __init__(self, policy: CheckpointPolicy, slot_count: int) -> None:
        super().__init__(policy, slot_count)
        self.floors: dict[str, int] = {}

    def retention_floor(self, name: str) -> int:
        """A stalled checkpoint holds every row behind it."""
        self.floors.setdefault(name, self.checkpoint(name).length or self.length(name))
        return self.floors[name]


class DropsUnderAReader(StateSlots):
    """A slot to resume from is dropped and handed out again."""

    def drop(self, slot: int) -> None:
        """Whether or not somebody is still to read it."""
        self._tree.discard(slot)
        del self._states[slot]


class WritesTheEnd(StateSlots):
    """The state at the end of the forward is tracked under the length of the boundary."""

    def before_forward(self, name: str, tokens: int) -> StateStep:
        """Off the grid."""
        step = super().before_forward(name, tokens)
        if step.tracked == NO_CHECKPOINT:
            return step
        return step._replace(tracked=Checkpoint(step.tracked.slot, step.first + step.tokens))

    def launched(self, step: StateStep) -> None:
        """As if it were on the grid."""
        super().launched(step)
        if step.tracked != NO_CHECKPOINT:
            boundary = self.policy.last_boundary(step.first, step.tokens)
            self._states[step.tracked.slot] = SlotState(Content.WRITTEN, boundary, SINK)


class Eager(StatefulEngine):
    """An engine that evicts whatever it likes."""

    def evict(self) -> None:
        """The first one."""
        for key, node in self.tree.items():
            self.slots.drop(node.slot)
            self.pool.give_back([node.slot])
            del self.tree[key]
            return


class Forgetful(StatefulEngine):
    """An engine whose failed admissions keep their slots."""

    def fail_admission(self, name: str) -> None:
        """Nobody holds them and nobody frees them."""
        del self.slots._requests[name]


def eager(slots: StateSlots, seed: int) -> StatefulEngine:
    """Evicts whatever it likes."""
    run = engine(slots, seed)
    return Eager(run.slots, run.pool, run.chance)


def forgetful(slots: StateSlots, seed: int) -> StatefulEngine:
    """Loses what a failed admission took."""
    run = engine(slots, seed)
    return Forgetful(run.slots, run.pool, run.chance)


def with_sink(slots: StateSlots, seed: int) -> StatefulEngine:
    """Hands the sink out like any other slot."""
    run = engine(slots, seed)
    run.pool = Pool(COUNT)
    run.pool.free.append(SINK)
    return run


@pytest.mark.parametrize(
    ("strategy", "kind", "what"),
    [
        (NO_BUFFER, ResumeLost, "r\\d+ has no state of its own at"),
        (NO_BUFFER, ClearedAtThePlan, "but due is|has no state of its own"),
        (EXTRA, ClearedAtThePlan, "starts on the state of"),
        (EXTRA, ComesBackToItsSlots, "starts on the state of"),
        (LAZY, FreesTheDonated, "a slot has no holder, or two"),
        (NO_BUFFER, FreesTheDonated, "a slot has no holder, or two"),
        (EXTRA, LosesTheTracking, "a slot has no holder, or two"),
        (LAZY, LosesTheTracking, "a slot has no holder, or two"),
        (EXTRA, KeepsTheTaken, "a slot has no holder, or two"),
        (LAZY, KeepsTheTaken, "a slot has no holder, or two"),
        (EXTRA, NoFloor, "rows behind the checkpoint of r\\d+ are gone"),
        (LAZY, NoFloor, "rows behind the checkpoint of r\\d+ are gone"),
        (EXTRA, FloorStays, "holds rows past its price"),
        (LAZY, FloorStays, "holds rows past its price"),
        (EXTRA, WritesTheEnd, "r\\d+ has no state of its own at"),
    ],
)
def test_a_planted_bug_is_seen(
    strategy: CheckpointStrategy, kind: type[StateSlots], what: str
) -> None:
    with pytest.raises((AssertionError, UnikvError), match=what):
        serve_all(strategy, kind)


def test_a_failed_admission_that_keeps_its_slots_is_seen() -> None:
    with pytest.raises(AssertionError, match="a slot has no holder"):
        serve_all(EXTRA, make=forgetful)


def test_a_slot_that_is_dropped_under_a_reader_is_seen() -> None:
    with pytest.raises(AssertionError, match="starts on the state of"):
        serve_all(NO_BUFFER, DropsUnderAReader, eager)


def test_a_drop_under_a_reader_is_refused() -> None:
    with pytest.raises(UnikvError, match=r"drop, but requests \['r\d+'\] resume from it"):
        serve_all(NO_BUFFER, make=eager)


def test_a_sink_that_is_handed_out_is_refused() -> None:
    with pytest.raises(UnikvError, match=r"state slot 0; allowed: 1\.\.9"):
        serve_all(EXTRA, make=with_sink)
