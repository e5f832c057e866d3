"""Executions that reductions need, for invented failures and several strategies.

Executions are what costs: running one candidate of a real failure takes 5 to 40 ms, so a table
of counts says more than one of seconds, and comes out the same on every machine. The last lines
give the time the reducer itself needs per execution, for comparison with that.

    python -m benchmarks.shrink_synthetic
"""

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from shrink import (
    Budget,
    Pass,
    Reducible,
    Reduction,
    delete_pairs,
    delete_runs,
    largest_working,
    reduce,
    truncate,
)

SEEDS = range(30)


class Item(NamedTuple):
    """One step of an invented trace; `name` is the same for both halves of a pair."""

    kind: str
    name: int


class Case(NamedTuple):
    """A failing sequence and its predicate."""

    sequence: tuple[Item, ...]
    fails: Callable[[Sequence[Item]], bool]


def needs_items(rng: random.Random, length: int, needed: int) -> Case:
    """Fails while some items, spread evenly by chance, are all there."""
    sequence = tuple(Item("plain", name) for name in range(length))
    wanted = set(rng.sample(sequence, needed))
    return Case(sequence, lambda items: wanted <= set(items))


def needs_last(rng: random.Random, length: int, needed: int) -> Case:
    """As `needs_items`, and the last item is needed: the run stopped at its failure."""
    sequence, _ = needs_items(rng, length, needed)
    wanted = {*rng.sample(sequence[:-1], needed - 1), sequence[-1]}
    return Case(sequence, lambda items: wanted <= set(items))


def needs_kinds(rng: random.Random, length: int, needed: int) -> Case:
    """Fails while certain kinds, of eight, occur in a certain order."""
    sequence = tuple(Item(rng.choice("abcdefgh"), name) for name in range(length))
    wanted = "".join(rng.choice("abcdefgh") for _ in range(needed))

    def fails(items: Sequence[Item]) -> bool:
        rest = iter(items)
        return all(any(item.kind == kind for item in rest) for kind in wanted)

    return Case(sequence, fails)


def needs_count(rng: random.Random, length: int, needed: int, count: int) -> Case:
    """Fails while some items are there and at least `count` of one kind, as under pressure."""
    kinds = ["take" if rng.random() < 0.3 else "plain" for _ in range(length)]
    sequence = tuple(Item(kind, name) for name, kind in enumerate(kinds))
    wanted = set(rng.sample(sequence, needed))

    def fails(items: Sequence[Item]) -> bool:
        return wanted <= set(items) and sum(item.kind == "take" for item in items) >= count

    return Case(sequence, fails)


def needs_pairs(rng: random.Random, length: int, needed: int, apart: int) -> Case:
    """Fails while some items are there and no pair is broken; a third of all items are paired."""
    items: list[Item] = [Item("plain", place) for place in range(length)]
    for low in range(length - apart):
        high = low + rng.randint(1, apart)
        both_free = items[low].kind == items[high].kind == "plain"
        if both_free and rng.random() < 0.2:
            items[low], items[high] = Item("open", low), Item("close", low)
    return _whole_pairs(tuple(items), set(rng.sample(items, needed)))


def needs_queue(rng: random.Random, length: int, needed: int, depth: int) -> Case:
    """As `needs_pairs`, where pairs close in the order opened, with up to `depth` open."""
    items: list[Item] = []
    opened: deque[int] = deque()
    while len(items) < length or opened:
        chance = rng.random() if len(items) < length else 0.5
        if chance < 0.35 and len(opened) < depth:
            opened.append(len(items))
            items.append(Item("open", len(items)))
        elif chance < 0.7 and opened:
            items.append(Item("close", opened.popleft()))
        else:
            items.append(Item("plain", len(items)))
    return _whole_pairs(tuple(items), set(rng.sample(items, needed)))


def _whole_pairs(sequence: tuple[Item, ...], wanted: set[Item]) -> Case:
    partner = {"open": "close", "close": "open"}

    def fails(items: Sequence[Item]) -> bool:
        there = set(items)
        whole = all(Item(partner[i.kind], i.name) in there for i in there if i.kind in partner)
        return whole and wanted <= there

    return Case(sequence, fails)


def halve(problem: Reducible[Item]) -> None:
    """The plain strategy: runs of the whole length, of half of it, and so on."""
    length = len(problem.best)
    while length >= 1:
        high = len(problem.best)
        while high > 0:
            low = max(0, high - length)
            problem.try_(problem.best[:low] + problem.best[high:])
            high = low
        length //= 2


def halve_and_grow(problem: Reducible[Item]) -> None:
    """As `halve`, but a run that could be deleted is followed by one twice as long."""
    length = len(problem.best)
    while length >= 1:
        high = len(problem.best)
        while high > 0:
            low, now = max(0, high - length), length
            while problem.try_(problem.best[:low] + problem.best[high:]) and low > 0:
                now *= 2
                low, high = max(0, low - now), low
            high = low
        length //= 2


def gallop_from_one(problem: Reducible[Item]) -> None:
    """From each item on: one item, two, four, and so on, then bisection."""
    high = len(problem.best)
    while high > 0:
        high -= 1 + _gallop(problem, high, 1)
    if problem.best:
        _singles(problem)


def gallop_from_gap(problem: Reducible[Item]) -> None:
    """As `gallop_from_one`, but starting from the length of the previous gap."""
    high = len(problem.best)
    guess = max(1, high // 4)
    while high > 0:
        found = _gallop(problem, high, guess)
        guess = max(1, found)
        high -= 1 + found
    _singles(problem)


def _gallop(problem: Reducible[Item], high: int, guess: int) -> int:
    whole = problem.best
    return largest_working(
        lambda length: problem.try_(whole[: high - length] + whole[high:]), limit=high, guess=guess
    )


def _singles(problem: Reducible[Item]) -> None:
    for high in range(len(problem.best), 0, -1):
        problem.try_(problem.best[: high - 1] + problem.best[high:])


CASES: Mapping[str, Callable[[random.Random], Case]] = {
    "6 of 400": lambda rng: needs_items(rng, 400, 6),
    "6 of 400, with the last": lambda rng: needs_last(rng, 400, 6),
    "2 of 400": lambda rng: needs_items(rng, 400, 2),
    "20 of 400": lambda rng: needs_items(rng, 400, 20),
    "6 of 50": lambda rng: needs_items(rng, 50, 6),
    "6 kinds in order of 400": lambda rng: needs_kinds(rng, 400, 6),
    "4 of 400 and 5 takes": lambda rng: needs_count(rng, 400, 4, 5),
    "4 of 400 and 20 takes": lambda rng: needs_count(rng, 400, 4, 20),
    "4 of 400, adjacent pairs": lambda rng: needs_pairs(rng, 400, 4, 1),
    "4 of 50, pairs up to 8 apart": lambda rng: needs_pairs(rng, 50, 4, 8),
    "4 of 50, queue of up to 4": lambda rng: needs_queue(rng, 50, 4, 4),
}
STRATEGIES: Mapping[str, Sequence[Pass[Item]]] = {
    "halve": [halve],
    "halve+grow": [halve_and_grow],
    "gallop 1": [gallop_from_one],
    "gallop gap": [gallop_from_gap],
    "runs": [delete_runs],
    "cut,runs": [truncate, delete_runs],
    "runs,pairs": [delete_runs, delete_pairs],
    "cut,runs,pairs": [truncate, delete_runs, delete_pairs],
}


def measure(make: Callable[[random.Random], Case], passes: Sequence[Pass[Item]]) -> str:
    """Median and worst executions, and the mean length of the results, over all seeds."""
    reductions = [_reduce(make(random.Random(seed)), passes) for seed in SEEDS]
    executions = [reduction.executions for reduction in reductions]
    length = statistics.mean(len(reduction.result) for reduction in reductions)
    return f"{statistics.median(executions):.0f}/{max(executions)} {length:.1f}"


def _reduce(case: Case, passes: Sequence[Pass[Item]]) -> Reduction[Item]:
    return reduce(
        case.sequence,
        case.fails,
        order=len,
        key=lambda item: item,
        passes=passes,
        budget=Budget(),
    )


def overhead() -> str:
    """What the reducer itself costs, with a predicate that costs next to nothing."""
    case = needs_items(random.Random(0), 400, 6)
    begin = time.perf_counter()
    executions = sum(_reduce(case, [truncate, delete_runs]).executions for _ in SEEDS)
    spent_us = (time.perf_counter() - begin) / executions * 1e6
    return f"{spent_us:.0f} us per execution, invented predicate included"


def main() -> None:
    """Print the table."""
    print(f"median/worst executions and mean result length, {len(SEEDS)} seeds")
    print(f"{'needed':30}" + "".join(f"{name:>16}" for name in STRATEGIES))
    for name, make in CASES.items():
        cells = (measure(make, passes) for passes in STRATEGIES.values())
        print(f"{name:30}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
    print(f"the reducer itself: {overhead()}")


if __name__ == "__main__":
    main()
