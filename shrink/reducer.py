"""From a failing sequence to a minimal one: the order in which passes run.

The insight: passes are sorted by cost, and after any progress the cheapest runs again. A costly
pass so only ever sees what the cheap ones could not improve, and the end is reached by one sweep
in which no pass helped: a proof that the result is minimal for all of them at once. Candidates
of an earlier sweep are remembered, so that proof costs little more than its new candidates.

Since passes depend on the best sequence alone, so does the rest of a reduction that begins anew at
its first pass: whoever comes to a sequence where an earlier reduction has been ends where that did.

Not known here: what a pass does.
"""

from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from shrink.ahead import ALONE, Ahead, Comparable
from shrink.problem import SILENT, Budget, Observer, OutOfBudget, Pass, Problem

T = TypeVar("T")

Ends: TypeAlias = MutableMapping[tuple[Hashable, ...], tuple[T, ...]]
"""What complete reductions ended with, by the keys of each sequence they went through."""


@dataclass(frozen=True, slots=True)
class Reduction(Generic[T]):
    """A smaller failing sequence, what it cost, and whether it is proved minimal."""

    result: tuple[T, ...]
    executions: int  # of the predicate, the first on the given sequence included
    cache_hits: int  # candidates answered without an execution
    passes_run: tuple[str, ...]  # names, in the order run; the last may have been cut short
    complete: bool  # no pass can improve the result; False if the budget ended first


def reduce(
    sequence: Sequence[T],
    fails: Callable[[Sequence[T]], bool],
    *,
    order: Callable[[Sequence[T]], Comparable],
    key: Callable[[T], Hashable],
    passes: Sequence[Pass[T]],
    budget: Budget,
    observer: Observer = SILENT,
    ahead: Ahead[T] = ALONE,
    ends: Ends[T] | None = None,
) -> Reduction[T]:
    """Make a failing sequence as small as the passes can.

    `fails` should mean "fails in the same way", or the reduction slips to another failure. A
    predicate that meets a failure of another kind has the candidate in its hands: it can keep
    it before it answers False, so nothing is needed here for that. Likewise the last candidate
    for which it answered True is the best so far, should an exception end the reduction.

    Args:
        sequence: a sequence for which `fails` is true.
        fails: the predicate; deterministic. What it raises is not caught.
        order: the size of a sequence; smaller is better.
        key: identity of an item, for never running the same candidate twice.
        passes: cheapest first, such as `(truncate, delete_runs, delete_pairs)`.
        budget: when to stop with the best so far; to go on, reduce the result.
        observer: told of each pass and each execution.
        ahead: where candidates can run before they are asked for; the result is the same.
        ends: of earlier reductions by the same predicate, order, key and passes; this one's are
            added.  The result is the same; an end counts only if it fails when it is run.

    Returns:
        The smallest sequence found. If it is complete and `delete_runs` is among the passes,
        no single item can be left out of it.

    Raises:
        DoesNotFail: if `fails(sequence)` is false.
        TypeError: if a pass has no name, or `fails` answers anything but True or False.
    """
    _check(passes)
    problem = Problem(
        sequence, fails, order=order, key=key, budget=budget, observer=observer, ahead=ahead
    )
    passes_run: list[str] = []
    known: Ends[T] = {} if ends is None else ends
    way: list[tuple[Hashable, ...]] = []
    index = 0
    try:
        while index < len(passes):
            before = problem.best
            if index == 0:
                way.append(problem.keys(before))
                end = known.get(way[-1])
                if end is not None and (end == before or problem.try_(end)):
                    break
            passes_run.append(passes[index].__name__)
            problem.run(passes[index])
            index = index + 1 if problem.best is before else 0
        complete = True
    except OutOfBudget:
        complete = False  # The best so far still fails; it is only not proved minimal.
    if complete:
        known.update(dict.fromkeys(way, problem.best))
    return Reduction(
        result=problem.best,
        executions=problem.executions,
        cache_hits=problem.cache_hits,
        passes_run=tuple(passes_run),
        complete=complete,
    )


def _check(passes: Sequence[Pass[T]]) -> None:
    if not isinstance(passes, Sequence):
        raise TypeError(
            f"reduce: passes is {passes!r}, but passes run again after any progress; give them as "
            f"a list or a tuple"
        )
    for index, run in enumerate(passes):
        if not hasattr(run, "__name__"):
            raise TypeError(
                f"reduce: passes[{index}] is {run!r}, which has no __name__ for progress and "
                f"results; give it one, or wrap it in a function"
            )
