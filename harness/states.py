"""The state slots of requests: who holds which, and what a forward does with them.

There are two ways.  Where the scenario names no strategy, a checkpoint is made when an operation
asks for one, and what is due is written on the request.  Where it does, the library keeps the
slots and says what is due, and here only its answers are carried to truth and back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harness.library import answer_of
from harness.requests import Prefix, Request
from harness.scenario import CheckpointSetup, Setup
from unikv.cache.checkpoint_policy import CheckpointPolicy
from unikv.cache.state_slots import StateSlots
from unikv.cache.state_step import NO_CHECKPOINT, Checkpoint, StateStep

if TYPE_CHECKING:
    from harness.world import World


class StateWork(NamedTuple):
    """What the next forward does with the state of one request.

    Attributes:
        source: the slot that it reads, 0 for a fresh state.
        outputs: slots that it writes, each with the tokens whose state it gets there; 0 tokens
            where nobody will ask for them.
    """

    source: int
    outputs: tuple[Checkpoint, ...]


class States(Protocol):
    """Slots of requests, and the checkpoints in them.

    Attributes:
        admission_slots: slots that a request is admitted with.
    """

    admission_slots: int

    def admit(
        self, world: World, request: Request, slots: Sequence[int], prefix: Prefix | None
    ) -> None:
        """A request gets its slots; it resumes from the prefix if that holds a state."""
        ...

    def work(self, world: World, request: Request) -> StateWork:
        """What a forward over what is prepared of a request does with its state."""
        ...

    def launched(self, world: World, request: Request) -> None:
        """A forward that did all of that was launched."""
        ...

    def ended(self, world: World, request: Request) -> list[int]:
        """A request is over or loses everything: the slots to be freed."""
        ...

    def wanted(self, requests: Iterable[Request]) -> set[int]:
        """Slots that somebody holds."""
        ...

    def chunk_tokens(self, first: int, limit: int, prompt: int) -> int:
        """Tokens of a prompt's chunk from `first` on, `limit` of them at most; 0 for none now."""
        ...

    def dropped(self, world: World, slot: int) -> None:
        """The cache gives a slot up, which is freed then."""
        ...

    def floor(self, world: World, request: Request) -> int:
        """Tokens behind which a request keeps its windows."""
        ...


class OnRequest:
    """One slot a request, a second one for a checkpoint that somebody asked for."""

    def __init__(self, *, has_states: bool) -> None:
        self.admission_slots = int(has_states)

    def admit(
        self, world: World, request: Request, slots: Sequence[int], prefix: Prefix | None
    ) -> None:
        """Write it on the request."""
        request.slot = slots[0] if slots else 0
        if prefix is not None and prefix.slot:
            request.source, request.source_key = prefix.slot, prefix.blocks
            prefix.locks += 1

    def work(self, world: World, request: Request) -> StateWork:
        """A state from the prefix, from its own slot or from nowhere; a copy where one is due."""
        source = request.source or (request.slot if request.stateful else 0)
        outputs = [Checkpoint(request.slot, 0)]
        if request.checkpoint_due:
            outputs.append(Checkpoint(request.checkpoint, request.length + request.prepared))
        return StateWork(source, tuple(outputs))

    def launched(self, world: World, request: Request) -> None:
        """Nothing is due any more."""
        if request.checkpoint_due:
            request.checkpoint_length = request.length + request.prepared
        request.stateful = True
        request.checkpoint_due = False
        if request.source_key:
            world.prefixes[request.source_key].locks -= 1
        request.source, request.source_key = 0, ()

    def ended(self, world: World, request: Request) -> list[int]:
        """What is written on it."""
        return [slot for slot in (request.slot, request.checkpoint) if slot]

    def wanted(self, requests: Iterable[Request]) -> set[int]:
        """What is written on each of them."""
        return {slot for holder in requests for slot in (holder.slot, holder.checkpoint)} - {0}

    def chunk_tokens(self, first: int, limit: int, prompt: int) -> int:
        """Whatever is left."""
        return min(limit, prompt - first)

    def dropped(self, world: World, slot: int) -> None:
        """Nothing is written of it."""

    def floor(self, world: World, request: Request) -> int:
        """A checkpoint is taken only where the window behind it is still there."""
        return request.length


class Tracked:
    """Slots as the library's strategies have them.

    Attributes:
        slots: its account of them.
        plans: what the forward that is being launched does, by request.
        left: slots to be freed of requests whose checkpoint the cache has taken at their end.
    """

    def __init__(self, setup: CheckpointSetup, slot_count: int) -> None:
        self.slots = StateSlots(CheckpointPolicy(setup.strategy, setup.interval), slot_count)
        self.plans: dict[str, StateStep] = {}
        self.left: dict[str, tuple[int, ...]] = {}
        self.admission_slots = self.slots.policy.admission_slots

    def admit(
        self, world: World, request: Request, slots: Sequence[int], prefix: Prefix | None
    ) -> None:
        """Into slots just taken, from the prefix's state if it has one."""
        start = NO_CHECKPOINT
        if prefix is not None and prefix.slot:
            start = Checkpoint(prefix.slot, len(prefix.pages) * world.setup.page_slots)
            self.resume(request, prefix)
        answer_of(world, self.slots.admit, request.name, slots, start)

    def resume(self, request: Request, prefix: Prefix) -> None:
        """The next forward of a request reads the slot of a prefix, which stays until then."""
        request.source, request.source_key = prefix.slot, prefix.blocks
        prefix.locks += 1

    def work(self, world: World, request: Request) -> StateWork:
        """As the library plans it."""
        step = answer_of(world, self.slots.before_forward, request.name, request.prepared)
        self.plans[request.name] = step
        outputs = [Checkpoint(step.slot, step.first + step.tokens)]
        if step.tracked != NO_CHECKPOINT:
            outputs.append(step.tracked)
        return StateWork(step.source, tuple(outputs))

    def launched(self, world: World, request: Request) -> None:
        """The plan was carried out."""
        skipped = self.slots.skipped_checkpoints
        step = self.plans.pop(request.name)
        answer_of(world, self.slots.launched, step)
        if step.tracked != NO_CHECKPOINT:
            world.probes["checkpoint_tracked"] += 1
        if self.slots.skipped_checkpoints > skipped:
            world.probes["checkpoint_skipped"] += 1
        if request.source_key:
            world.prefixes[request.source_key].locks -= 1
        request.source, request.source_key = 0, ()

    def end_into_cache(self, world: World, request: Request) -> int:
        """The cache takes the checkpoint of a request that ends; its slot."""
        ending = answer_of(world, self.slots.end_into_tree, request.name)
        self.left[request.name] = ending.slots
        return ending.checkpoint.slot

    def ended(self, world: World, request: Request) -> list[int]:
        """Every slot of it that the cache has not taken."""
        if request.name in self.left:
            return list(self.left.pop(request.name))
        return list(answer_of(world, self.slots.end, request.name))

    def wanted(self, requests: Iterable[Request]) -> set[int]:
        """Whatever the library knows a holder of."""
        return set(self.slots.held_slots())

    def chunk_tokens(self, first: int, limit: int, prompt: int) -> int:
        """Every chunk but a prompt's last ends on the grid."""
        return self.slots.policy.chunk_tokens(first, limit, prompt)

    def dropped(self, world: World, slot: int) -> None:
        """Nobody resumes from it any more."""
        answer_of(world, self.slots.drop, slot)

    def floor(self, world: World, request: Request) -> int:
        """The checkpoint that the cache has not taken yet."""
        return answer_of(world, self.slots.retention_floor, request.name)


def states_of(setup: Setup) -> States:
    """The way of one setup."""
    band = next((band for band in setup.bands if band.kind == "state"), None)
    if setup.checkpoints is None or band is None:
        return OnRequest(has_states=band is not None)
    return Tracked(setup.checkpoints, band.id_count)
