"""Running candidates before they are asked for, so that several can run at once.

The insight: nearly all candidates fail to fail. Whoever plays a pass forward as if none of them
were taken knows what it will ask next, without the pass knowing that it is played with. Which
candidate becomes the best is still decided one at a time and in order, so the result is the one
of a reduction without any of this; what was run for nothing is only lost time.

Not known here: where and how candidates run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
S = TypeVar("S", contravariant=True)


class Comparable(Protocol):
    """A value that can be ordered against others of its kind, such as an int or a tuple."""

    def __lt__(self, other: Any, /) -> bool: ...


class Ahead(Protocol[S]):
    """Runs candidates while the predicate waits for one of them."""

    def room(self) -> int:
        """How many more candidates it would take now."""
        ...

    def expect(self, candidates: Sequence[Sequence[S]], /) -> None:
        """What will be asked next, in this order, unless one of them becomes the best."""
        ...


@dataclass(frozen=True, slots=True)
class Alone:
    """One candidate at a time: the one that is asked for."""

    def room(self) -> int:
        """None."""
        return 0

    def expect(self, candidates: Sequence[object], /) -> None:
        """Nothing was asked for."""


ALONE = Alone()


class _Enough(Exception):
    """Ends a pass that is only played."""


class Foreseen(Generic[T]):
    """A problem in which every candidate that was not yet run is taken not to fail.

    Args:
        best: where the pass began.
        order: the size of a sequence.
        known: whether a candidate fails; None where it was not yet run.
        count: how many of the others are wanted.
    """

    def __init__(
        self,
        best: tuple[T, ...],
        order: Callable[[Sequence[T]], Comparable],
        known: Callable[[tuple[T, ...]], bool | None],
        count: int,
    ) -> None:
        self.best = best
        self.coming: list[tuple[T, ...]] = []
        self._size = order(best)
        self._order = order
        self._known = known
        self._count = count

    def try_(self, candidate: Sequence[T], /) -> bool:
        """As the problem would answer, if what was not yet run does not fail."""
        proposed = tuple(candidate)
        fails = self._known(proposed)
        if fails is False:
            return False  # Whatever its size, which is dearer to know than what was run before.
        size = self._order(proposed)
        if not size < self._size:
            return False
        if fails is None:
            self.coming.append(proposed)
            if len(self.coming) >= self._count:
                raise _Enough
            return False
        self.best, self._size = proposed, size
        return True

    def play(self, run: Callable[["Foreseen[T]"], None]) -> list[tuple[T, ...]]:
        """The next candidates that were not yet run; fewer where the pass ends before."""
        try:
            run(self)
        except _Enough:
            return self.coming
        return self.coming
