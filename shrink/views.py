"""Views: the same passes, on parts of a sequence or on the names that its items go by.

The insight: what deletes items also deletes names, once a sequence of names stands for the items
that remain when all other names are gone. A pass never sees the difference, because a view too
accepts only what the problem behind it accepts.

Not known here: what a name is, and what an item is without it.

Source: the formats of Shrink Ray, which view bytes as lines or tokens and reuse every pass.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from typing import Generic, TypeVar

from shrink.problem import Pass, Reducible

T = TypeVar("T")

Name = Hashable
NamesOf = Callable[[T], Iterable[Name]]
Without = Callable[[T, Set[Name]], T | None]


class _Behind(Generic[T]):
    """All items but the first ones, which stay."""

    def __init__(self, problem: Reducible[T], count: int) -> None:
        self._problem = problem
        self._head = problem.best[:count]
        self._seen = problem.best
        self._rest = problem.best[count:]

    @property
    def best(self) -> tuple[T, ...]:
        if self._problem.best is not self._seen:
            self._seen = self._problem.best
            self._rest = self._seen[len(self._head) :]
        return self._rest

    def try_(self, candidate: Sequence[T], /) -> bool:
        return self._problem.try_((*self._head, *candidate))


class _ByName(Generic[T]):
    """The names in a sequence, in the order in which they first occur."""

    def __init__(self, problem: Reducible[T], names: NamesOf[T], without: Without[T]) -> None:
        self._problem = problem
        self._without = without
        self._items = problem.best
        self._names = tuple(dict.fromkeys(name for item in self._items for name in names(item)))

    @property
    def best(self) -> tuple[Name, ...]:
        return self._names

    def try_(self, candidate: Sequence[Name], /) -> bool:
        kept = tuple(candidate)
        gone = set(self._names).difference(kept)
        rest = (self._without(item, gone) for item in self._items)
        if not self._problem.try_([item for item in rest if item is not None]):
            return False
        self._items, self._names = self._problem.best, kept
        return True


def behind(count: int, run: Pass[T]) -> Pass[T]:
    """A pass that leaves the first `count` items alone, such as a header."""

    def run_behind(problem: Reducible[T]) -> None:
        run(_Behind(problem, count))

    run_behind.__name__ = run.__name__
    return run_behind


def by_name(names: NamesOf[T], without: Without[T], run: Pass[Name], *, name: str) -> Pass[T]:
    """A pass that deletes names instead of items.

    Args:
        names: the names of an item, in any order.
        without: an item without some of its names; None where nothing is left of it.
        run: a pass that deletes, such as `delete_runs`; it is given the names that occur.
        name: what progress and results call the pass.

    Cost: that of `run` on as many items as there are names. It pays where many items go by one
    name and few names are needed.
    """

    def run_by_name(problem: Reducible[T]) -> None:
        run(_ByName(problem, names, without))

    run_by_name.__name__ = name
    return run_by_name
