"""Random operations on a small chain whose pages are in many hands: the one who asks.

States that are poked into a band need not be ones that an allocator can reach, so they are reached
by driving one.  The chains are small and crowded: a rule that is wrong is wrong where hardly
anything is free, and where it can be most questions are such that only a rearrangement serves them.

What a right answer is, is not known here; the engine that is asked knows it.
"""

from collections import Counter
from collections.abc import Callable
from itertools import product
from random import Random

from benchmarks.search.diary_device import layout_of, states, tokens, window
from benchmarks.search.lending_engine import LendingEngine
from unikv.alloc.pricing import Step, feasible, plan
from unikv.device.port import StorageLayout, Stream

HARD_SHARE = 0.9
"""How often a question is looked for that only a rearrangement serves."""

AUDIT_SHARE = 0.1
"""How often the whole account is audited behind an operation that rearranged nothing."""


def random_layout(rng: Random) -> StorageLayout:
    """One to five bands with pages of one to seven bytes."""
    count = rng.choice((1, 2, 3, 3, 3, 4, 4, 5))
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
        """A number of operations; every rearrangement is audited, and now and then the others."""
        acts = (
            [self.take] * 6
            + [self.reserve, self.retire, self.free] * 4
            + [self.send, self.hold, self.name_or_cancel] * 3
            + [self.publish, self.release, self.copy, self.acknowledge]
            + [self.step, self.process, self.flush, self.relieve]
        )
        counters = self.engine.chain.counters
        for _ in range(length):
            audited = counters.reliefs
            self.rng.choice(acts)()
            if counters.reliefs > audited or self.rng.random() < AUDIT_SHARE:
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
        """One of the wishes, mostly one that is only served by a rearrangement."""
        self.engine.patience = self.rng.random() < 0.8
        self.rng.shuffle(wishes)
        if self.rng.random() < HARD_SHARE:
            view = self.engine.chain.relief.snapshot()
            for wish in wishes:
                pages = demand(*wish)
                if plan(view, pages, Step.NO_MOVE) is None and feasible(view, pages):
                    return wish
        return wishes[0]

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
        engine = self.engine
        names = sorted([*engine.holds, *engine.transfers, *engine.unreleased])
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
    Player(rng, engine).play(rng.randint(24, 60))
    counters = engine.chain.counters
    engine.reached.update(reliefs=counters.reliefs, relocations=counters.relocations, chains=1)
    return engine.reached
