"""What is being reduced: one failing sequence, and the only door through which it shrinks.

The insight: if every candidate goes through one method that accepts it only when it is smaller
*and* fails, then no pass, however careless, can lose the failure, loop for ever or run the same
candidate twice. Passes are left with nothing but ideas.

Not known here: what an item is, what running a sequence means, and what time it is.
"""

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from shrink.ahead import ALONE, Ahead, Comparable, Foreseen

T = TypeVar("T")


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
        # No count of executions would ever reach `nan`.
        if not isinstance(self.executions_max, int):
            raise TypeError(
                f"Budget: executions_max is {self.executions_max!r}, but executions are counted; "
                f"give a whole number, and a time as a deadline"
            )
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


class Reducible(Protocol[T]):
    """What a pass works on: a problem, or a view of one."""

    @property
    def best(self) -> tuple[T, ...]:
        """Smallest failing sequence so far. The same object until a candidate is accepted."""
        ...

    def try_(self, candidate: Sequence[T], /) -> bool:
        """Make `candidate` the best if it is smaller and fails; say whether it now is."""
        ...


class Pass(Protocol[T]):
    """One way to propose smaller candidates, with a name for progress and results."""

    @property
    def __name__(self) -> str: ...

    def __call__(self, problem: Reducible[T], /) -> None:
        """Offer candidates to `problem` until none of this kind helps, or the budget ends."""


def _no_pass(problem: Reducible[T], /) -> None:
    """What runs before the first pass."""


class Problem(Generic[T]):
    """The best failing sequence so far, and what it cost to get there.

    Invariant: `best` fails, and each new best is smaller than the one before. Only `try_`
    changes it, and `run` what is being tried.

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
        ahead: where candidates can run before they are asked for.

    Raises:
        DoesNotFail: if `sequence` does not fail.
        TypeError: if the predicate answers anything but True or False; from `try_` as well.
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
        ahead: Ahead[T] = ALONE,
    ) -> None:
        self._fails = fails
        self._order = order
        self._key = key
        self._budget = budget
        self._observer = observer
        self._ahead = ahead
        self._run: Pass[T] = _no_pass
        self._verdicts: dict[tuple[Hashable, ...], bool] = {}
        self._cache_hits = 0
        self._best = tuple(sequence)
        self._best_size = order(self._best)
        self._begin = self._best
        if not self._execute(self._best, self.keys(self._best)):
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

    def keys(self, sequence: tuple[T, ...]) -> tuple[Hashable, ...]:
        """What a sequence is known by."""
        return tuple(self._key(item) for item in sequence)

    def run(self, run: Pass[T]) -> None:
        """Run a pass.

        Raises:
            OutOfBudget: if it needs more executions than the budget allows.
        """
        self._run, self._begin = run, self._best
        self._observer.started(run.__name__)
        run(self)

    def try_(self, candidate: Sequence[T], /) -> bool:
        """Make `candidate` the best if it is smaller and fails; say whether it now is.

        A candidate that is not smaller costs nothing, and one seen before costs no execution.

        Raises:
            OutOfBudget: if an execution is needed that the budget does not allow.
        """
        proposed = tuple(candidate)
        size = self._order(proposed)
        if not size < self._best_size:
            return False
        if not self._verdict(proposed):
            return False
        self._best, self._best_size = proposed, size
        return True

    def _verdict(self, proposed: tuple[T, ...]) -> bool:
        keys = self.keys(proposed)
        known = self._verdicts.get(keys)
        if known is not None:
            self._cache_hits += 1
            return known
        if self.executions >= self._budget.executions_max or self._budget.deadline():
            raise OutOfBudget
        room = self._ahead.room()
        if room:
            foreseen = Foreseen(self._begin, self._order, self._known, room)
            self._ahead.expect(foreseen.play(self._run))
        return self._execute(proposed, keys)

    def _known(self, proposed: tuple[T, ...]) -> bool | None:
        return self._verdicts.get(self.keys(proposed))

    def _execute(self, proposed: tuple[T, ...], keys: tuple[Hashable, ...]) -> bool:
        failed = self._fails(proposed)
        if not isinstance(failed, bool):
            raise TypeError(
                f"reduce: the predicate answered {failed!r} for a sequence of {len(proposed)} "
                f"items; only True (it fails) or False can be remembered, so return bool(...) of it"
            )
        self._verdicts[keys] = failed
        # Only smaller candidates get this far, so one that fails is certain to be accepted.
        length = len(proposed) if failed else len(self._best)
        self._observer.tried(Progress(self.executions, self._cache_hits, length, failed))
        return failed
