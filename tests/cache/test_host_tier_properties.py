"""Random engines with a host tier on small crowded chains, judged after every operation.

What comes back from host memory is compared byte for byte, whoever had the pages meanwhile; races
are seen by the device, and host slots are compared with an account that shares nothing with the
pools.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import pytest

from tests.alloc.small_chain import layout_of, states, tokens, window
from tests.cache.tiered_engine import Ids, TieredEngine, Words
from unikv.alloc.invariants import InvariantLevel
from unikv.cache.host_tier import HostCopy
from unikv.device.port import HostLayout, StorageLayout, Stream

Item = TypeVar("Item")

SEEDS = range(8)
CHAINS_PER_SEED = 12
OPERATIONS = 200

# What every portion has met at least as often: silence about a thing never tried is no evidence.
FLOORS = {
    "backups": 40,
    "round trips": 20,
    "moves": 20,
    "moved before submission": 2,
    "lost copies": 20,
    "cancelled loads": 6,
    "refused drops": 5,
    "full hosts": 6,
    "full chains": 20,
    "shared host memory": 2,
    "loads freed in flight": 3,
}


def random_layout(rng: Random) -> StorageLayout:
    """Two to four bands with pages of one to nine bytes, and host memory for most of them."""
    groups = rng.choice((1, 2, 3))
    count = rng.choice((2, 3, 3, 4))
    sizes = [groups * rng.randint(1, 9 // groups) for _ in range(count)]
    bands = [window(f"window{index}", size, 20) for index, size in enumerate(sizes)]
    bands[-1] = tokens("full", sizes[-1], 20)
    if rng.random() < 0.5:
        bands[0] = states("state", sizes[0], 20)
    sink = max(sizes)
    total = sink + sum(sizes) * rng.choice((3, 5, 8)) + rng.randint(0, 5)
    layout = layout_of(total, sink, *bands)
    return layout._replace(layer_groups=groups, host=random_host(rng, sizes))


def random_host(rng: Random, sizes: Sequence[int]) -> tuple[HostLayout, ...]:
    """Both ends in one piece or apart; now and then a float has nothing."""
    last = len(sizes) - 1
    slots = rng.choice((3, 8, 20))
    alone = list(range(last + 1))
    host = []
    if rng.random() < 0.6:
        total = (sizes[0] + sizes[last]) * slots + rng.randint(0, 5)
        host = [HostLayout(total, (0, last))]
        alone = alone[1:-1]
    host += [
        HostLayout(sizes[band] * slots + rng.randint(0, 3), (band,))
        for band in alone
        if rng.random() < 0.9 or band in (0, last)
    ]
    return tuple(host)


class Player:
    """Draws the operations of one engine."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.layout = random_layout(rng)
        # Few, because a strict storage looks at everything after every call.
        is_strict = rng.random() < 0.15
        level = InvariantLevel.STRICT if is_strict else InvariantLevel.OFF
        self.engine = TieredEngine(self.layout, level)
        self.met = self.engine.met

    def play(self, count: int) -> None:
        acts: list[Callable[[], None]] = []
        for act, weight in (
            (self.take, 2),
            (self.free, 2),
            (self.retire, 1),
            (self.step, 1),
            (self.process, 1),
            (self.flush, 3),
            (self.relieve, 1),
            (self.run_copies, 1),
            (self.begin_backup, 3),
            (self.submit_backup, 4),
            (self.begin_load, 4),
            (self.name_rows, 1),
            (self.submit_load, 2),
            (self.acknowledge, 4),
            (self.cancel, 1),
            (self.drop, 1),
            (self.free_early, 1),
        ):
            acts += [act] * weight
        self.met["shared host memory"] += bool(self.engine.tier.memory.pairs)
        for number in range(count):
            self.rng.choice(acts)()
            if number % 4:
                self.engine.check()
            else:
                self.engine.check_thoroughly()
        self.finish()

    def finish(self) -> None:
        """Everything ends; nothing is left of the tier, and what is bound can be read."""
        engine = self.engine
        for name in [*engine.backups, *engine.loads]:
            copy = engine.backups.get(name) or engine.loads[name]
            (engine.acknowledge if copy.event else engine.cancel)(name)
        engine.step([sorted(words) for words in engine.words], [()] * len(engine.words))
        while engine.recorded:
            engine.process()
        engine.check_thoroughly()
        while engine.kept:
            engine.drop(0)
        engine.check_thoroughly()
        fresh = TieredEngine(self.layout, InvariantLevel.OFF)
        assert [pool.free_count for pool in engine.tier.memory.pools] == [
            pool.free_count for pool in fresh.tier.memory.pools
        ]
        self.met["moves"] += engine.chain.counters.moved_pages

    def some(self, items: Sequence[Item]) -> list[Item]:
        """Up to four of the items, in any order."""
        return self.rng.sample(items, min(len(items), self.rng.randint(0, 4)))

    def some_of_each(self) -> list[list[int]]:
        return [self.some(sorted(words)) for words in self.engine.words]

    def pick(self, names: Sequence[str]) -> str | None:
        return self.rng.choice(names) if names else None

    # The chain ----------------------------------------------------------------------------------

    def take(self) -> None:
        slots = self.rng.randint(0, 2) if self.engine.state >= 0 else 0
        self.engine.take(self.rng.randint(1, 4), slots)

    def free(self) -> None:
        engine = self.engine
        band = self.rng.choice([engine.owner, engine.state if engine.state >= 0 else engine.owner])
        loading = {u for load in engine.loads.values() if load.event for u in load.ids[band]}
        held = sorted(engine.words[band])
        if loading and self.rng.random() < 0.7:
            held = sorted(loading.intersection(held)) or held
        ids = self.some(held)[:2]
        self.met["loads freed in flight"] += not loading.isdisjoint(ids)
        engine.free(band, ids)

    def retire(self) -> None:
        for band in self.some(self.engine.windows):
            self.engine.free(band, self.some(sorted(self.engine.words[band])))

    def step(self) -> None:
        if len(self.engine.recorded) < 3:
            reads = self.some_of_each()
            self.engine.step(reads, [self.some(self.engine.writable(b)) for b in self.engine.bands])

    def process(self) -> None:
        if self.engine.recorded:
            self.engine.process()

    def flush(self) -> None:
        self.engine.chain.flush(self.rng.randint(1, 5))

    def relieve(self) -> None:
        self.engine.chain.relieve(self.rng.randint(0, 4), 0)

    def run_copies(self) -> None:
        for stream in (Stream.LOAD, Stream.BACKUP):
            self.engine.device.run(stream, self.rng.randint(0, 4))

    # Copies -------------------------------------------------------------------------------------

    def begin_backup(self) -> None:
        ids = [
            self.some([unit for unit, word in sorted(words.items()) if word is not None])
            for words in self.engine.words
        ]
        if not any(ids):
            return
        name = self.engine.begin_backup(ids)
        self.met["backups"] += name is not None
        if name is None:
            self.met["full hosts"] += 1
            self.drop()

    def submit_backup(self) -> None:
        name = self.pick([n for n, backup in self.engine.backups.items() if not backup.event])
        if name:
            self.engine.submit_backup(name)
            self.give_up_lost(name, is_lost=not self.engine.backups[name].event)

    def give_up_lost(self, name: str, *, is_lost: bool) -> None:
        """What was refused once is refused again; mostly the engine learns that."""
        self.met["lost copies"] += is_lost
        if is_lost and self.rng.random() < 0.7:
            self.engine.cancel(name)

    def begin_load(self) -> None:
        source = self.source()
        if source and self.engine.begin_load(*source) is None:
            self.met["full chains"] += 1
            self.free_many()

    def free_many(self) -> None:
        """Half of everything makes room, and its pages are taken by others."""
        for band in {self.engine.owner, self.engine.state} - {-1}:
            held = sorted(self.engine.words[band])
            self.engine.free(band, self.rng.sample(held, (len(held) + 1) // 2))

    def source(self) -> tuple[HostCopy, Words] | None:
        """A kept copy, or a part of it, or two of them put together."""
        engine = self.engine
        chosen = self.rng.sample(engine.kept, min(len(engine.kept), self.rng.choice((1, 1, 2))))
        slots: list[list[int]] = [[] for _ in engine.bands]
        words: Words = [[] for _ in engine.bands]
        for copy, content in chosen:
            for band in engine.bands:
                slots[band] += copy.slots[band]
                words[band] += content[band]
        for band in engine.bands:
            most = len(slots[-1]) if band in engine.windows else len(slots[band])
            keep = min(most, len(slots[band]))
            if self.rng.random() < 0.2:
                keep = self.rng.randint(0, keep) if band != engine.owner else keep
            slots[band] = slots[band][len(slots[band]) - keep :]
            words[band] = words[band][len(words[band]) - keep :]
        return (HostCopy(frozen(slots)), words) if any(slots) else None

    def name_rows(self) -> None:
        loads = self.engine.loads
        name = self.pick(
            [n for n, load in loads.items() if not load.event and self.has_rows(load.ids)]
        )
        if name and not loads[name].is_named:
            self.engine.name_rows(name)

    def has_rows(self, ids: Ids) -> bool:
        return any(ids[band] for band in self.engine.windows)

    def submit_load(self) -> None:
        name = self.pick([n for n, load in self.engine.loads.items() if not load.event])
        if name:
            self.engine.submit_load(name)
            self.give_up_lost(name, is_lost=not self.engine.loads[name].event)

    def acknowledge(self) -> None:
        engine = self.engine
        name = self.pick(engine.submitted())
        if name:
            self.met["round trips"] += name in engine.loads
            engine.acknowledge(name)

    def cancel(self) -> None:
        engine = self.engine
        name = self.pick(
            [n for n in [*engine.backups, *engine.loads] if n not in engine.submitted()]
        )
        if name and (name in engine.loads or self.rng.random() < 0.3):
            self.met["cancelled loads"] += name in engine.loads
            engine.cancel(name)

    def drop(self) -> None:
        if self.engine.kept and self.rng.random() < 0.3:
            kept = len(self.engine.kept)
            self.engine.drop(self.rng.randrange(kept))
            self.met["refused drops"] += len(self.engine.kept) == kept

    def free_early(self) -> None:
        engine = self.engine
        name = self.pick([n for n, load in engine.loads.items() if not load.event])
        if name and self.rng.random() < 0.5:
            load = engine.loads[name]
            bands = [engine.owner, *([engine.state] if engine.state >= 0 else [])]
            if load.is_named:
                bands += engine.windows
            band = self.rng.choice(bands)
            held = engine.chain.translate(band, load.ids[band])
            ids = [u for u, page in zip(load.ids[band], held, strict=True) if page]
            if ids and not load.is_lost:
                engine.free_early(name, band, self.some(ids) or ids[:1])


def frozen(slots: Sequence[Sequence[int]]) -> Ids:
    return tuple(map(tuple, slots))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_round_trip_restores_every_byte(seed: int) -> None:
    met: Counter[str] = Counter()
    for chain in range(CHAINS_PER_SEED):
        player = Player(Random(seed * CHAINS_PER_SEED + chain))
        player.play(OPERATIONS)
        met += player.met
    assert all(met[what] >= floor for what, floor in FLOORS.items()), met
