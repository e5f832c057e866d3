"""Random chains whose pages are in many hands, judged question by question.

The chains are built by driving an allocator, because states that are poked into a band need not be
ones that it can reach.  They are small and crowded: a rule that is wrong is wrong where hardly
anything is free.
"""

from collections import Counter
from collections.abc import Callable
from itertools import product
from random import Random

import pytest

from tests.alloc.lending_engine import LendingEngine
from tests.alloc.small_chain import layout_of, states, tokens, window
from unikv.alloc.pricing import Step, feasible, plan
from unikv.device.port import StorageLayout, Stream

# Together 3,000 chains; in portions, so that each test is short and they can share the cores.
SEEDS = range(30)
CHAINS_PER_SEED = 100

# What every portion has met at least as often: silence about a rule that was never asked for is
# no evidence.
FLOORS = {
    "questions": 400,
    "refusals": 100,
    "reliefs": 15,
    "relocations": 10,
    "disturbed": 3,
}


def random_layout(rng: Random) -> StorageLayout:
    """One to four bands with pages of one to seven bytes."""
    count = rng.choice((1, 2, 3, 3, 3, 4, 4))
    largest = rng.choice((1, 2, 3, 7))
    sizes = [rng.randint(1, largest) for _ in range(count)]
    ids = rng.choice((4, 12, 12, 12))
    has_states = rng.random() < 0.5
    bands = []
    for index, size in enumerate(sizes):
        if index == count - 1:
            bands.append(tokens("full", size, ids))
        elif index == 0 and has_states:
            bands.append(states("state", size, ids))
        else:
            bands.append(window(f"window{index}", size, ids))
    sink = rng.choice((1, max(sizes)))
    return layout_of(sink + sum(sizes) * rng.choice((2, 3, 5)) + rng.randint(0, 5), sink, *bands)


class Player:
    """Draws the operations of one chain."""

    def __init__(self, rng: Random, engine: LendingEngine) -> None:
        self.rng = rng
        self.engine = engine

    def play(self, length: int) -> None:
        """A number of operations, now and then followed by an audit."""
        acts = (
            [self.take] * 6
            + [self.reserve, self.retire] * 3
            + [self.free] * 2
            + [self.send, self.hold, self.name_or_cancel] * 3
            + [self.publish, self.release, self.copy, self.acknowledge]
            + [self.step, self.process, self.flush, self.relieve]
        )
        for _ in range(length):
            self.rng.choice(acts)()
            if self.rng.random() < 0.3:
                self.engine.check()
        self.engine.check()

    def some(self, pool: list[int], most: int = 3) -> list[int]:
        """A few ids of a pool."""
        return self.rng.sample(pool, min(len(pool), self.rng.randint(1, most)))

    def idle(self) -> list[list[int]]:
        """Per band, a few ids that nobody else relies on; often none."""
        engine = self.engine
        return [
            self.some(sorted(engine.words[band].keys() - engine.busy(band)))
            if self.rng.random() < 0.5
            else []
            for band in engine.bands
        ]

    def take(self) -> None:
        slots = range(4) if self.engine.state >= 0 else range(1)
        pages, states = self.wanted(list(product(range(5), slots)), self.engine.demand)
        self.engine.take(pages, states)

    def relieve(self) -> None:
        slots = range(4) if self.engine.state >= 0 else range(1)
        pages, states = self.wanted(list(product(range(5), slots)), self.engine.demand)
        self.engine.relieve(pages, states)

    def reserve(self) -> None:
        wishes = list(product(self.engine.bands, range(1, 4)))
        band, count = self.wanted(wishes, self.engine.demand_of_band)
        self.engine.reserve(band, count)

    def wanted(
        self, wishes: list[tuple[int, int]], demand: Callable[[int, int], list[int]]
    ) -> tuple[int, int]:
        """One of the wishes, half the time one that is only served by a rearrangement."""
        self.engine.patience = self.rng.random() < 0.8
        if self.rng.random() < 0.5:
            view = self.engine.chain.relief.snapshot()
            hard = [
                wish
                for wish in wishes
                if plan(view, demand(*wish), Step.NO_MOVE) is None and feasible(view, demand(*wish))
            ]
            wishes = hard or wishes
        return self.rng.choice(wishes)

    def free(self) -> None:
        self.engine.free(self.some(sorted(self.engine.words[self.engine.owner])))

    def retire(self) -> None:
        band = self.rng.choice(self.engine.bands)
        if band != self.engine.owner:
            self.engine.retire(band, self.some(sorted(self.engine.words[band])))

    def name_or_cancel(self) -> None:
        engine = self.engine
        if not engine.reserved:
            return
        name = self.rng.choice(sorted(engine.reserved))
        band, words = engine.reserved[name]
        unnamed = sorted(engine.words[engine.owner].keys() - engine.words[band].keys())
        if band not in (engine.owner, engine.state) and len(unnamed) >= len(words):
            engine.name_reserved(name, self.rng.sample(unnamed, len(words)))
        elif self.rng.random() < 0.5:
            engine.cancel(name)

    def send(self) -> None:
        ids = self.idle()
        if any(ids):
            self.engine.send(ids)

    def hold(self) -> None:
        ids = self.idle()
        if any(ids):
            self.engine.hold(ids)

    def publish(self) -> None:
        if self.engine.holds:
            self.engine.publish(self.rng.choice(sorted(self.engine.holds)))

    def release(self) -> None:
        names = sorted([*self.engine.holds, *self.engine.transfers])
        if names:
            self.engine.release(self.rng.choice(names))

    def copy(self) -> None:
        self.engine.copy(self.idle(), self.rng.choice((Stream.BACKUP, Stream.LOAD)))

    def acknowledge(self) -> None:
        if self.engine.copies:
            self.engine.acknowledge(self.rng.choice(sorted(self.engine.copies)))

    def step(self) -> None:
        if len(self.engine.recorded) < 3:
            reads = [self.some(sorted(words)) for words in self.engine.words]
            run = self.rng.choice((self.engine.run_step,) * 3 + (self.engine.run_unknown_step,))
            run(reads, self.idle())

    def process(self) -> None:
        if self.engine.recorded:
            self.engine.process()

    def flush(self) -> None:
        self.engine.flush(self.rng.randint(1, 4))


def play_chain(number: int) -> Counter[str]:
    """One chain from its first operation to its last; what it met."""
    rng = Random(number)
    engine = LendingEngine(random_layout(rng))
    Player(rng, engine).play(rng.randint(8, 24))
    counters = engine.chain.counters
    engine.reached.update(reliefs=counters.reliefs, relocations=counters.relocations)
    return engine.reached


@pytest.mark.parametrize("seed", SEEDS)
def test_every_answer_is_true(seed: int) -> None:
    reached: Counter[str] = Counter()
    for chain in range(CHAINS_PER_SEED):
        reached += play_chain(seed * CHAINS_PER_SEED + chain)
    assert all(reached[what] >= floor for what, floor in FLOORS.items()), reached
