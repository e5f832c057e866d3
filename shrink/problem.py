"""What is being reduced: one failing sequence, and the only door through which it shrinks.

The insight: if every candidate goes through one method that accepts it only when it is smaller
*and* fails, then no pass, however careless, can lose the failure, loop for ever or run the same
candidate twice. Passes are left with nothing but ideas.

Not known here: what an item is, what running a sequence means, and what time it is.
"""

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Comparable(Protocol):
    """A value that can be ordered against others of its kind, such as an int or a tuple."""

    def __lt__(self, other: Any, /) -> bool: ...


class DoesNotFail(ValueError):
    """The sequence given to be reduced does not fail, so no candidate can be compared with it."""


class OutOfBudget(Exception):
    """The next execution is not paid for. Passes let it through; `reduce` catches it."""


def never() -> bool:
    """A deadline that does not come."""
    return False


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent on one reduction.

    `deadline` is asked before each execution but the first and says whether time is up. It is
    the caller's clock, and also the clean way to stop early, for example on a signal.
    """

    executions_max: int = sys.maxsize
    deadline: Callable[[], bool] = never

    def __post_init__(self) -> None:
        if self.executions_max < 1:
            raise ValueError(
                f"Budget: executions_max is {self.executions_max}, but the given sequence has to "
                f"be run once to see that it fails; allow at least 1"
            )


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a reduction stands, right after one execution of the predicate."""

    executions: int
    cache_hits: int
    length: int  # items in the best sequence so far
    accepted: bool  # the candidate just executed became the best


class Observer(Protocol):
    """Watches a reduction. It cannot influence it, except by raising."""

    def started(self, pass_name: str) -> None:
        """A pass is about to run."""

    def tried(self, progress: Progress) -> None:
        """The predicate was executed once."""


@dataclass(frozen=True, slots=True)
class Silent:
    """The observer for those who only want the result."""

    def started(self, pass_name: str) -> None:
        """Ignore it."""

    def tried(self, progress: Progress) -> None:
        """Ignore it."""


SILENT = Silent()


class Problem(Generic[T]):
    """The best failing sequence so far, and what it cost to get there.

    Invariant: `best` fails, and each new best is smaller than the one before. Only `try_`
    changes anything.

    Args:
        sequence: where to start. It is run once, whatever the deadline says.
        fails: whether a candidate shows the failure sought. It must be deterministic; what it
            raises comes out of `try_` unchanged, with `best` intact.
        order: the size of a sequence; smaller is better. Chains of ever smaller sequences must
            be finite. `len` will do where items are only deleted.
        key: identity of an item. Two sequences with equal keys must run alike, since only one
            of them is ever run.
        budget: executions and time to spend.
        observer: told of each execution.

    Raises:
        DoesNotFail: if `sequence` does not fail.
    """

    def __init__(
        self,
        sequence: Sequence[T],
        fails: Callable[[Sequence[T]], bool],
        *,
        order: Callable[[Sequence[T]], Comparable],
        key: Callable[[T], Hashable],
        budget: Budget,
        observer: Observer = SILENT,
    ) -> None:
        self._fails = fails
        self._order = order
        self._key = key
        self._budget = budget
        self._observer = observer
        self._verdicts: dict[tuple[Hashable, ...], bool] = {}
        self._cache_hits = 0
        self._best = tuple(sequence)
        if not self._execute(self._best, self._keys(self._best)):
            raise DoesNotFail(
                f"reduce: the given sequence of {len(self._best)} items does not fail; only a "
                f"sequence for which the predicate is true can be reduced, so check that the "
                f"predicate asks for this failure and that running it is deterministic"
            )

    @property
    def best(self) -> tuple[T, ...]:
        """Smallest failing sequence so far. The same object until a candidate is accepted."""
        return self._best

    @property
    def executions(self) -> int:
        """Times the predicate gave an answer."""
        return len(self._verdicts)

    @property
    def cache_hits(self) -> int:
        """Candidates answered from memory."""
        return self._cache_hits

    def try_(self, candidate: Sequence[T]) -> bool:
        """Make `candidate` the best if it is smaller and fails; say whether it now is.

        A candidate that is not smaller costs nothing, and one seen before costs no execution.

        Raises:
            OutOfBudget: if an execution is needed that the budget does not allow.
        """
        proposed = tuple(candidate)
        if not self._order(proposed) < self._order(self._best):
            return False
        if not self._verdict(proposed):
            return False
        self._best = proposed
        return True

    def _verdict(self, proposed: tuple[T, ...]) -> bool:
        keys = self._keys(proposed)
        known = self._verdicts.get(keys)
        if known is not None:
            self._cache_hits += 1
            return known
        if self.executions >= self._budget.executions_max or self._budget.deadline():
            raise OutOfBudget
        return self._execute(proposed, keys)

    def _execute(self, proposed: tuple[T, ...], keys: tuple[Hashable, ...]) -> bool:
        failed = self._fails(proposed)
        self._verdicts[keys] = failed
        # Only smaller candidates get this far, so one that fails is certain to be accepted.
        length = len(proposed) if failed else len(self._best)
        self._observer.tried(Progress(self.executions, self._cache_hits, length, failed))
        return failed

    def _keys(self, sequence: tuple[T, ...]) -> tuple[Hashable, ...]:
        return tuple(self._key(item) for item in sequence)
