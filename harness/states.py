"""The state slots of requests: who holds which, and what a forward does with them.

The library keeps the slots by the policy of the setup and says what is due; here only its answers
are carried to truth and back.  A model without state has none of that, and asks nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harness.library import answer_of
from harness.requests import Phase, Prefix, Request
from harness.scenario import CheckpointSetup, Setup
from harness.violation import id_sites
from harness.words import counted
from unikv.cache.checkpoint_policy import CheckpointPolicy
from unikv.cache.state_slots import StateSlots
from unikv.cache.state_step import NO_CHECKPOINT, SINK, Checkpoint, StateStep

if TYPE_CHECKING:
    from harness.world import World


_WITHOUT_SLOTS = frozenset({Phase.QUEUED, Phase.PARKED})


class StateWork(NamedTuple):
    """What the next forward does with the state of one request.

    Attributes:
        source: the slot that it reads, 0 for a fresh state.
        outputs: slots that it writes, each with the tokens whose state it gets there.
    """

    source: int
    outputs: tuple[Checkpoint, ...]


class States(Protocol):
    """What requests of any model have of states, which may be nothing.

    Attributes:
        admission_slots: slots that a request is admitted with.
    """

    admission_slots: int

    def admit(
        self, world: World, request: Request, slots: Sequence[int], prefix: Prefix | None
    ) -> None:
        """A request gets its slots; it resumes from the prefix if that holds a state."""
        ...

    def expect(self, world: World, request: Request, slot: int, length: int) -> None:
        """A request gets the slot that a load or a peer fills with its state, if it has one."""
        ...

    def arrived(self, world: World, request: Request) -> None:
        """What a request was to get is there for every step that is launched from here on."""
        ...

    def adopt(self, world: World, prefix: Prefix) -> None:
        """The cache gets a prefix whose state, if it has one, a load fills."""
        ...

    def adopted(self, world: World, prefix: Prefix) -> None:
        """The load of that prefix is submitted."""
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

    def slot_of(self, world: World, request: Request) -> int:
        """The slot that a request runs on, 0 for none."""
        ...

    def held(self, world: World, request: Request) -> tuple[int, ...]:
        """Every slot of a request, the one that it runs on first."""
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


class Stateless:
    """Models whose requests are their pages and nothing else."""

    admission_slots = 0

    def admit(
        self, world: World, request: Request, slots: Sequence[int], prefix: Prefix | None
    ) -> None:
        """No slot."""

    def expect(self, world: World, request: Request, slot: int, length: int) -> None:
        """No slot."""

    def arrived(self, world: World, request: Request) -> None:
        """No slot."""

    def adopt(self, world: World, prefix: Prefix) -> None:
        """No slot."""

    def adopted(self, world: World, prefix: Prefix) -> None:
        """No slot."""

    def work(self, world: World, request: Request) -> StateWork:
        """Nothing to read or to write."""
        return StateWork(SINK, ())

    def launched(self, world: World, request: Request) -> None:
        """No slot."""

    def ended(self, world: World, request: Request) -> list[int]:
        """No slot."""
        return []

    def slot_of(self, world: World, request: Request) -> int:
        """None."""
        return SINK

    def held(self, world: World, request: Request) -> tuple[int, ...]:
        """No slot."""
        return ()

    def wanted(self, requests: Iterable[Request]) -> set[int]:
        """No slot."""
        return set()

    def chunk_tokens(self, first: int, limit: int, prompt: int) -> int:
        """Whatever is left."""
        return min(limit, prompt - first)

    def dropped(self, world: World, slot: int) -> None:
        """No slot."""

    def floor(self, world: World, request: Request) -> int:
        """Nobody resumes where a checkpoint lies, so a window ends behind the next token."""
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

    def expect(self, world: World, request: Request, slot: int, length: int) -> None:
        """One slot, whatever it was admitted with before."""
        answer_of(world, self.slots.admit_filling, request.name, slot, length)

    def arrived(self, world: World, request: Request) -> None:
        """It runs on from its own slot, and the cache may take what is there."""
        slot = self.slot_of(world, request)
        answer_of(world, self.slots.filled, slot)
        block_tokens = world.setup.block_pages * world.setup.page_slots
        blocks = request.blocks[: request.length // block_tokens]
        world.truth.state_tokens[slot] = (blocks, request.length)

    def adopt(self, world: World, prefix: Prefix) -> None:
        """Requests may be admitted on it from now on."""
        length = len(prefix.pages) * world.setup.page_slots
        answer_of(world, self.slots.adopt, prefix.slot, length)

    def adopted(self, world: World, prefix: Prefix) -> None:
        """Those requests may run."""
        answer_of(world, self.slots.filled, prefix.slot)
        world.probes["checkpoint_loaded"] += 1

    def work(self, world: World, request: Request) -> StateWork:
        """As the library plans it."""
        step = answer_of(world, self.slots.before_forward, request.name, request.prepared)
        self.plans[request.name] = step
        _compare_start(world, request, step)
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
            if request.came_from:
                world.probes[f"checkpoint_tracked_from_{request.came_from}"] += 1
        if self.slots.skipped_checkpoints > skipped:
            world.probes["checkpoint_skipped"] += 1
        if request.source_key:
            world.probes["resumed_over_a_load"] += bool(world.host.loads_of((), request.source))
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

    def slot_of(self, world: World, request: Request) -> int:
        """As the library has it; none while it holds no slots."""
        return next(iter(self.held(world, request)), SINK)

    def held(self, world: World, request: Request) -> tuple[int, ...]:
        """As the library has them."""
        if request.phase in _WITHOUT_SLOTS:
            return ()
        held = answer_of(world, self.slots.held, request.name)
        return tuple(slot for slot in held if slot != SINK)

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


def _compare_start(world: World, request: Request, step: StateStep) -> None:
    """Note a forward that starts from the state after other tokens than its request has run.

    Stamps say who wrote a state, not after which tokens, and a fresh one is not read at all.
    """
    _, found = world.truth.state_tokens.get(step.source, ((), 0)) if step.source else ((), 0)
    if not found == step.first == request.length:
        text = (
            f"{request.name} has run {counted(request.length, 'token')} and goes on with token"
            f" {step.first} from the state in slot {step.source}, which is that after"
            f" {counted(found, 'token')}"
        )
        known = world.truth.state_tokens.items()
        right = sorted(slot for slot, (_, tokens) in known if tokens == request.length)
        if right:
            text += f"; slots {right} have one after {request.length}, of some prompt"
        sites = id_sites(world.state_band, {step.source, *right} - {0})
        world.truth.note("content", "state of other tokens", text, sites)


def states_of(setup: Setup) -> States:
    """Those of one setup."""
    band = next((band for band in setup.bands if band.kind == "state"), None)
    return Stateless() if band is None else Tracked(setup.checkpoints, band.id_count)
