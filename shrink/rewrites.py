"""Rewrites: passes that change items or the order of items, instead of deleting some.

The insight: deletions leave as many results as there were ways to fail, and most differ only in
what does not matter. A rewrite needs no promise that it keeps the failure, because it is tried
like everything else; what makes different results meet is that all rewrites agree on one order.

Not known here: which variants are worth a try.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import TypeVar

from shrink.problem import Pass, Reducible

T = TypeVar("T")

EXCHANGES_MAX = 150
"""Most exchanges of one sequence that `exchange_items` tries at each of two places."""

STEPS_MAX = 18
"""Most single steps of which `replace_pairs` takes two."""


def rewrite(propose: Callable[[Sequence[T]], Iterable[Sequence[T]]], *, name: str) -> Pass[T]:
    """A pass that tries variants of the whole sequence, over and over until none is taken.

    Args:
        propose: variants of a sequence, the most ambitious first. Those that are no smaller by
            the order cost nothing but the making.
        name: what progress and results call the pass.

    No progress means: no variant of the sequence can take its place.

    Cost: one execution for every smaller variant to find nothing.
    """

    def run(problem: Reducible[T]) -> None:
        before: tuple[T, ...] = ()
        while problem.best is not before:
            before = problem.best
            any(problem.try_(variant) for variant in propose(before))

    run.__name__ = name
    return run


def merge_items(merge: Callable[[T, T], Iterable[T]], *, name: str = "merge_items") -> Pass[T]:
    """A pass that puts one item in the place of two, at the place of either.

    Args:
        merge: what could stand for two items, the earlier given first; nothing where they do
            not go together.
        name: what progress and results call the pass.

    No progress means: no two items can be merged.

    Cost: two executions for each two items that go together to find nothing.
    """

    def variants(best: Sequence[T]) -> Iterable[Sequence[T]]:
        for late in range(len(best) - 1, 0, -1):
            for early in range(late - 1, -1, -1):
                for merged in merge(best[early], best[late]):
                    between = best[early + 1 : late]
                    yield (*best[:early], *between, merged, *best[late + 1 :])
                    yield (*best[:early], merged, *between, *best[late + 1 :])

    return rewrite(variants, name=name)


def replace_pairs(lower: Callable[[T], Iterable[T]], *, name: str = "replace_pairs") -> Pass[T]:
    """A pass that replaces two items at once, or two things about one item.

    It serves numbers that only fall together: a demand and the supply that it is short of.

    Args:
        lower: variants of an item that are a little smaller in one respect.
        name: what progress and results call the pass.

    No progress means: no two such steps can be taken at once, of the first `STEPS_MAX`.

    Cost: at most `STEPS_MAX` ** 2 / 2 executions to find nothing.
    """

    def variants(best: Sequence[T]) -> Iterable[Sequence[T]]:
        steps = [(i, variant) for i, item in enumerate(best) for variant in lower(item)]
        for (early, one), (late, other) in combinations(steps[:STEPS_MAX], 2):
            if early < late:
                yield (*best[:early], one, *best[early + 1 : late], other, *best[late + 1 :])
            else:
                for both in lower(one):
                    yield (*best[:early], both, *best[early + 1 :])

    return rewrite(variants, name=name)


def exchange_items(
    others: Callable[[Sequence[T]], Sequence[T]], *, name: str = "exchange_items"
) -> Pass[T]:
    """A pass that deletes an item and puts something else in the place of another.

    It finds the shorter way to the same state, which no deletion leads to: opening and closing
    twice where once is enough, or two items that one of another sort could stand for.

    Args:
        others: what could be put anywhere in a sequence.
        name: what progress and results call the pass.

    No progress means: no such exchange helps, of those that were tried.

    Cost: at most 2 * `EXCHANGES_MAX` executions to find nothing, for items that are not neighbours
    are two places to put another at; the nearest items come first.
    """

    def variants(best: Sequence[T]) -> Iterable[Sequence[T]]:
        fresh = others(best)
        tries = 0
        for distance in range(1, len(best)):
            for early in range(len(best) - distance - 1, -1, -1):
                between = best[early + 1 : early + distance]
                behind = best[early + distance + 1 :]
                if tries + len(fresh) > EXCHANGES_MAX:
                    return
                tries += len(fresh)
                for item in fresh:
                    yield (*best[:early], item, *between, *behind)
                    if between:
                        yield (*best[:early], *between, item, *behind)

    return rewrite(variants, name=name)


def move_items(problem: Reducible[T]) -> None:
    """Move items towards the front, where the order has it that this is smaller.

    No progress means: no item can move ahead of others. Sequences that only differ in the order
    of items which do not depend on each other mostly end as one.

    Cost: at most length * (length - 1) / 2 executions to find nothing, and those alone that are
    smaller by the order.
    """
    place = 1
    while place < len(problem.best):
        best = problem.best
        item, rest = best[place], (*best[:place], *best[place + 1 :])
        any(problem.try_((*rest[:to], item, *rest[to:])) for to in range(place))
        place += 1
