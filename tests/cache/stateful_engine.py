"""An engine with nothing but state slots and windows: it serves prompts at random and checks bytes.

A slot contains the tokens whose state it stands for, so a slot that is run on uncleared, unwritten
or on behalf of another request shows different tokens at once.  Forwards run when they are
launched, which is their order on the stream.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from unikv.advance import first_needed_page, first_retained_page
from unikv.cache.checkpoint_policy import CheckpointPolicy
from unikv.cache.state_slots import StateSlots
from unikv.cache.state_step import (
    NO_CHECKPOINT,
    SINK,
    Checkpoint,
    Content,
    Opening,
    StateStep,
)

Tokens = tuple[int, ...]
POISON: Tokens = (-1,)
WINDOW, SLOTS_PER_PAGE, CHUNK = 10, 4, 24


class Pool:
    """State slots of an allocator: last freed first, each out at most once, poisoned when out."""

    def __init__(self, count: int) -> None:
        self.free = list(range(count, 0, -1))
        self.out: set[int] = set()
        self.content: dict[int, Tokens] = {SINK: POISON}

    def take(self, count: int) -> list[int]:
        """`count` slots, or none where they are short."""
        if len(self.free) < count:
            return []
        slots = [self.free.pop() for _ in range(count)]
        self.out.update(slots)
        self.content.update(dict.fromkeys(slots, POISON))
        return slots

    def give_back(self, slots: Sequence[int]) -> None:
        """Each just once."""
        for slot in slots:
            assert slot in self.out, f"slot {slot} is freed, but it is not out"
            self.out.remove(slot)
            self.free.append(slot)
            self.content[slot] = POISON


@dataclass(slots=True)
class Served:
    """One request: its tokens, known up to the end, and the window rows that it still holds."""

    tokens: Tokens
    prompt: int
    first_row: int = 0
    step: StateStep | None = None


@dataclass(slots=True)
class Node:
    """A prefix in the tree."""

    slot: int
    first_row: int


@dataclass(slots=True)
class StatefulEngine:
    """Requests, a flat prefix tree, and what must hold between any two acts.

    Attributes:
        counts: how often each act came to something.
    """

    slots: StateSlots
    pool: Pool
    chance: random.Random
    requests: dict[str, Served] = field(default_factory=dict)
    saved: dict[str, tuple[Served, Tokens]] = field(default_factory=dict)
    waiting: list[Served] = field(default_factory=list)
    tree: dict[Tokens, Node] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    names: int = 0

    @property
    def policy(self) -> CheckpointPolicy:
        """Where checkpoints are made."""
        return self.slots.policy

    def note(self, act: str) -> None:
        """Count an act."""
        self.counts[act] = self.counts.get(act, 0) + 1

    # Acts ------------------------------------------------------------------------------------

    def arrive(self) -> None:
        """A request of one of three families, whose prompts begin alike."""
        family = self.chance.randrange(3)
        total = self.chance.randrange(2, 70)
        prompt = self.chance.randrange(1, total)
        shared = self.chance.randrange(total)
        tail = self.chance.randrange(10, 10**6)
        tokens = tuple(family if at < shared else tail for at in range(total))
        self.waiting.append(Served(tokens, prompt))

    def admit(self) -> None:
        """The next waiting request starts behind the longest prefix, or stays where it is."""
        if not self.waiting:
            return
        served = self.waiting[0]
        key: Tokens = ()
        for cached in self.tree:
            if len(key) < len(cached) < served.prompt and served.tokens[: len(cached)] == cached:
                key = cached
        slots = self.pool.take(self.policy.admission_slots)
        if not slots:
            self.note("short of slots at admission")
            return
        start, served.first_row = NO_CHECKPOINT, 0
        if key:
            start = Checkpoint(self.tree[key].slot, len(key))
            served.first_row = self.tree[key].first_row
            self.note("resumed")
        self.names += 1
        name = f"r{self.names}"
        self.slots.admit(name, slots, start)
        if self.chance.random() < 0.2:
            # A later part of the admission fails: no row is free, no page.
            self.fail_admission(name)
            return
        self.requests[name] = self.waiting.pop(0)
        self.requests[name].step = None

    def fail_admission(self, name: str) -> None:
        """What was taken goes back."""
        self.note("admission failed")
        self.pool.give_back(self.slots.end(name))

    def tokens_of_next(self, name: str) -> int:
        """How many tokens the next forward of a request runs over; 0 if none."""
        served, length = self.requests[name], self.slots.length(name)
        if length < served.prompt:
            limit = self.chance.randrange(1, CHUNK)
            return self.policy.chunk_tokens(length, limit, served.prompt)
        return int(length < len(served.tokens))

    def prepare(self, name: str) -> None:
        """The next forward is planned; a slot for its boundary is taken if there is one."""
        count = self.tokens_of_next(name)
        if not count:
            return
        if self.slots.lacks_tracking_slot(name, count):
            for slot in self.pool.take(1):
                self.slots.give_tracking_slot(name, slot)
        self.requests[name].step = self.slots.before_forward(name, count)

    def launch(self, name: str) -> None:
        """The planned forward runs; a plan that was overtaken is made again."""
        served = self.requests[name]
        step, served.step = served.step, None
        if step is None:
            return
        step = self.slots.before_forward(name, step.tokens)
        self.run(step, served.tokens)
        self.slots.launched(step)

    def run(self, step: StateStep, tokens: Tokens) -> None:
        """The kernels of one forward on the state of one request."""
        content = self.pool.content
        self.note(step.opening.value)
        state = () if step.opening is Opening.RESET else content[step.source]
        assert state == tokens[: step.first], f"{step} starts on the state of {state}"
        content[SINK] = POISON
        content[step.slot] = tokens[: step.first + step.tokens]
        if step.tracked != NO_CHECKPOINT:
            self.note("tracked")
            content[step.tracked.slot] = tokens[: step.tracked.length]

    def advance(self, name: str) -> None:
        """Window rows that nobody attends any more are freed."""
        served, length = self.requests[name], self.slots.length(name)
        floor = self.slots.retention_floor(name)
        first = first_retained_page(length, floor, WINDOW, SLOTS_PER_PAGE)
        served.first_row = max(served.first_row, first)
        needed = first_needed_page(length, WINDOW, SLOTS_PER_PAGE)
        most = -(-self.policy.retained_tokens_max // SLOTS_PER_PAGE)
        assert needed - most <= served.first_row <= needed, f"{name} holds rows past its price"

    def take(self, name: str) -> None:
        """The tree takes a checkpoint while the request runs on."""
        checkpoint = self.slots.checkpoint(name)
        key = self.requests[name].tokens[: checkpoint.length]
        if checkpoint == NO_CHECKPOINT or key in self.tree:
            return
        slots = self.pool.take(self.policy.replacement_slots)
        if len(slots) < self.policy.replacement_slots:
            self.note("short of slots at a take")
            return
        self.insert(name, self.slots.take_checkpoint(name, slots))
        self.note("taken")

    def insert(self, name: str, checkpoint: Checkpoint) -> None:
        """A prefix with the window rows behind its end."""
        served = self.requests[name]
        first = first_needed_page(checkpoint.length, WINDOW, SLOTS_PER_PAGE)
        assert served.first_row <= first, f"rows behind the checkpoint of {name} are gone"
        self.tree[served.tokens[: checkpoint.length]] = Node(checkpoint.slot, first)

    def end(self, name: str) -> None:
        """A request ends, is aborted, or is retracted and comes back."""
        checkpoint = self.slots.checkpoint(name)
        served = self.requests[name]
        key = served.tokens[: checkpoint.length]
        if checkpoint != NO_CHECKPOINT and key not in self.tree and self.chance.random() < 0.5:
            ending = self.slots.end_into_tree(name)
            self.insert(name, ending.checkpoint)
            self.pool.give_back(ending.slots)
            self.note("ended into the tree")
        else:
            self.pool.give_back(self.slots.end(name))
        del self.requests[name]
        if self.chance.random() < 0.3:
            served.prompt = max(served.prompt, min(checkpoint.length, len(served.tokens) - 1))
            self.waiting.append(served)
            self.note("retracted")

    def save(self, name: str) -> None:
        """A request goes to host memory with the state that it runs on, and with nothing else."""
        held = self.slots.held(name)
        if self.slots.state_of(held.slot).content is not Content.WRITTEN:
            return
        self.saved[name] = (self.requests.pop(name), self.pool.content[held.slot])
        self.pool.give_back(self.slots.end(name))
        self.note("saved")

    def load(self) -> None:
        """A saved request comes back into one slot, or its load is called off."""
        if not self.saved:
            return
        name = next(iter(self.saved))
        slots = self.pool.take(1)
        if not slots:
            return
        served, state = self.saved[name]
        self.slots.admit_filling(name, slots[0], len(state))
        if self.chance.random() < 0.3:
            self.pool.give_back(self.slots.end(name))
            self.note("load called off")
            return
        self.pool.content[slots[0]] = state
        self.slots.filled(slots[0])
        served.step = None
        del self.saved[name]
        self.requests[name] = served
        self.note("loaded")

    def evict(self) -> None:
        """A prefix leaves the tree, unless a request is still to read its state."""
        readers = {self.slots.state_of(self.slots.held(name).slot).source for name in self.requests}
        for key, node in self.tree.items():
            if node.slot not in readers:
                self.slots.drop(node.slot)
                self.pool.give_back([node.slot])
                del self.tree[key]
                self.note("evicted")
                return

    def act(self) -> None:
        """One act, then every law."""
        names = list(self.requests)
        name = self.chance.choice(names) if names else ""
        match self.chance.randrange(18):
            case 0:
                self.arrive()
            case 1 | 2:
                self.admit()
            case 3 | 4 | 5 | 6 if name:
                self.prepare(name)
            case 7 | 8 | 9 | 10 if name:
                self.launch(name)
            case 11 if name:
                self.advance(name)
            case 12 | 13 if name:
                self.take(name)
            case 14 if name and (not self.tokens_of_next(name) or self.chance.random() < 0.3):
                self.end(name)
            case 15:
                self.evict()
            case 16 if name:
                self.save(name)
            case 17:
                self.load()
        self.check()

    def check(self) -> None:
        """Every slot out has one holder, and everything written is what its holder believes."""
        slots = self.slots
        holders = [slot for name in self.requests for slot in slots.held(name) if slot != SINK]
        holders += slots.tree_slots()
        assert sorted(holders) == sorted(self.pool.out), "a slot has no holder, or two"
        assert list(slots.held_slots()) == sorted(self.pool.out)
        assert {node.slot for node in self.tree.values()} == set(slots.tree_slots())
        for key, node in self.tree.items():
            assert self.pool.content[node.slot] == key, f"the tree's {node} changed"
        for name, served in self.requests.items():
            checkpoint = slots.checkpoint(name)
            if checkpoint != NO_CHECKPOINT:
                found = self.pool.content[checkpoint.slot]
                own = found == served.tokens[: checkpoint.length]
                assert own, f"{name} has no state of its own at {checkpoint}"

    def finish_all(self) -> None:
        """Everybody who was admitted finishes without one more slot; then nothing is held."""
        self.saved.clear()
        kept, self.pool.free = self.pool.free, []
        for name in list(self.requests):
            for _ in self.requests[name].tokens:
                self.prepare(name)
                self.launch(name)
                self.advance(name)
            assert self.slots.length(name) == len(self.requests[name].tokens), f"{name} is stuck"
        self.pool.free += kept
        for name in list(self.requests):
            self.pool.give_back(self.slots.end(name))
            del self.requests[name]
        while self.tree:
            self.evict()
        self.check()
        assert not self.pool.out


def engine(slots: StateSlots, seed: int, count: int = 9) -> StatefulEngine:
    """An engine with `count` state slots and nothing to do yet."""
    return StatefulEngine(slots, Pool(count), random.Random(seed))


def serve(run: StatefulEngine, acts: int = 250) -> dict[str, int]:
    """Random acts, then the end of everything; how often each act came to something."""
    for _ in range(acts):
        run.act()
    run.finish_all()
    run.counts["skipped"] = run.slots.skipped_checkpoints
    return run.counts
