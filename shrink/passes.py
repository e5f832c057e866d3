"""Passes: ideas for making a failing sequence smaller, cheapest first.

The insight: failures need few items, so the gaps between those are long and of similar length.
A deletion that starts from the length of the previous gap finds the next one in about log2(gap)
executions, and where needed items lie close together it costs one or two.

Median executions from 400 items of which 6 (20) are needed: 63 (175) here, against 84 (216) for
halving run lengths from the whole down, 113 (332) for halving with growth on success and 82 (186)
for growth from one item. Gaps alone would do with 57 (153), but are left with 18 items where a
third of all items come in adjacent pairs; halving afterwards takes that to 6. Truncating first is
free: 63 with and without it, or 56 where the run stopped at its failure. All these figures are
printed by `benchmarks/shrink_synthetic.py`.

Every pass is a function of a problem and keeps one promise: whether it makes progress depends on
the best sequence alone. A pass that made none has therefore proved something about that sequence.
All work from the end, since what came after the failure cannot matter.

Not known here: what items mean, and which pass runs when.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from shrink.problem import Pass, Reducible

T = TypeVar("T")

PAIRS_MAX = 190
"""Most pairs of one sequence that `delete_pairs` tries: as many as 20 items have."""


def truncate(problem: Reducible[T]) -> None:
    """Cut useless items off the end, by binary search over prefixes.

    No progress means: without its last item the sequence does not fail. The prefix found is the
    shortest where a failure, once there, stays whatever follows; elsewhere it is some failing
    prefix, as only those are accepted.

    Cost: 1 execution where the last item is needed, else 1 + log2(length).
    """
    whole = problem.best
    if not problem.try_(whole[:-1]):
        return
    # whole[:high] fails; prefixes shorter than `low` are taken not to.
    low, high = 0, len(whole) - 1
    while low < high:
        middle = (low + high) // 2
        if problem.try_(whole[:middle]):
            high = middle
        else:
            low = middle + 1


def delete_runs(problem: Reducible[T]) -> None:
    """Delete runs of neighbours of any length, down to single items.

    No progress means: the failure needs every single item; the sequence is 1-minimal.

    Cost: about needed * (log2(length / needed) + 2) executions where each item is needed or not
    whatever else is there, and at most about 3 * length to find nothing.
    """
    _delete_guessing(problem)
    _delete_halving(problem)


def delete_pairs(problem: Reducible[T]) -> None:
    """Delete two items that only go together, such as an opening and its closing.

    The nearest pairs come first, up to the distance where there are more than `PAIRS_MAX`: once
    all that can go alone is gone, related items have few others in between.

    No progress means: of a sequence of up to 20 items no two can be deleted. Of a longer one no
    two near ones can, and near means less the longer it is: of 40 items 5 places apart, of 191
    next to each other, of more nothing.

    Cost: at most `PAIRS_MAX` executions to find nothing.
    """
    distance = 1
    late = len(problem.best) - 1
    while distance <= _distance_max(len(problem.best)):
        best = problem.best
        early = late - distance
        if early < 0:
            distance += 1
            late = len(best) - 1
        elif problem.try_(best[:early] + best[early + 1 : late] + best[late + 1 :]):
            # Where pairs overlap, as in a queue, the next one has just come a step nearer.
            distance = max(1, distance - 1)
            late -= 2  # The item before `late` slid down by one, or was `early`.
        else:
            late -= 1


def replace_items(simpler: Callable[[T], Iterable[T]], *, name: str = "replace_items") -> Pass[T]:
    """A pass that replaces items by simpler variants, one at a time, to a fixed point.

    No progress means: no variant of any item can take its place.

    Args:
        simpler: variants of an item, the most ambitious first; one that still fails is taken.
            Those that make the sequence no smaller by its order are passed over.
        name: what progress and results call the pass.

    Cost: one execution per variant of each item to find nothing, and as many for all that is
    found in one sweep: behind a variant that was taken come those of the new item from there on,
    since whatever stands before them has just failed in its neighbour. Variants of a number that
    close in on it by halves (0, a half, three quarters, ..., one less) make a binary search of it.
    """

    def replace(problem: Reducible[T]) -> None:
        before: tuple[T, ...] = ()
        while problem.best is not before:
            before = problem.best
            for index in reversed(range(len(before))):
                _replace_at(problem, index, simpler)

    replace.__name__ = name
    return replace


def _delete_guessing(problem: Reducible[T]) -> None:
    """Delete the longest run before each needed item, guessing its length from the last one.

    Each search goes down to one item before it gives up, so a sweep that deletes nothing has
    tried every single item. It never starts from one, for the sake of items that leave by twos.
    """
    high = len(problem.best) - 1
    guess = len(problem.best) // 4
    # Nothing tells how long the first gap is, but often there is none: see whether the last item
    # is needed. It is settled either way, and `high` is the end of what is not.
    problem.try_(problem.best[:-1])
    while high > 0:
        deleted = _delete_before(problem, high, max(2, guess))
        high -= deleted + 1  # The item that ended the run was just seen to be needed.
        guess = deleted


def _delete_before(problem: Reducible[T], high: int, guess: int) -> int:
    """Delete a run that ends at `high`, as long as the search finds; give back its length."""
    whole = problem.best
    return largest_working(
        lambda length: problem.try_(whole[: high - length] + whole[high:]),
        limit=high,
        guess=guess,
    )


def _delete_halving(problem: Reducible[T]) -> None:
    """Delete runs side by side, of half the sequence, of a quarter, and so on down to two items."""
    length = len(problem.best) // 2
    while length >= 2:
        high = len(problem.best)
        while high >= length:
            best = problem.best
            problem.try_(best[: high - length] + best[high:])
            high -= length
        length //= 2


def _distance_max(length: int) -> int:
    """Largest distance for which all pairs so near or nearer are at most `PAIRS_MAX`."""
    distance, pairs = 0, 0
    while distance + 1 < length and pairs + length - distance - 1 <= PAIRS_MAX:
        distance += 1
        pairs += length - distance
    return distance


def _replace_at(problem: Reducible[T], index: int, simpler: Callable[[T], Iterable[T]]) -> None:
    """Take variants of one item, and of what it becomes, until the last variant has been tried."""
    place = 0
    taken = True
    while taken:
        taken = False
        best = problem.best
        for variant in islice(simpler(best[index]), place, None):
            if problem.try_((*best[:index], variant, *best[index + 1 :])):
                taken = True
                break
            place += 1


def largest_working(works: Callable[[int], bool], *, limit: int, guess: int) -> int:
    """Some n in [0, limit] that works while n + 1 does not; `limit` needs no n + 1.

    Zero is taken to work and is not asked for, nor is any number twice; each number asked for
    is larger than all that worked. If everything up to some number works and nothing above, the
    answer is that number. `guess`, at least 1, is asked first: the nearer, the fewer questions.

    Source: the galloping of Hypothesis (`find_integer`), here with a guess to start from.
    """
    assert guess >= 1
    low, high = 0, limit + 1  # `low` works and `high` does not.
    probe = min(guess, limit)
    while low + 1 < high:
        if works(probe):
            low = probe
        else:
            high = probe
        if low == 0:
            probe = high // 2  # Nothing worked yet: shorter and shorter.
        elif high > limit:
            probe = min(2 * low, limit)  # Everything worked yet: longer and longer.
        else:
            probe = (low + high) // 2
    return low
