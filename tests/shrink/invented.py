"""Failing sequences of small integers, and the means to watch how they are reduced.

The predicates are chosen to disagree with what a pass may hope for: besides those where items
are needed one by one there are some that only pairs satisfy, and one without any structure.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st

from shrink import Budget, Ends, Pass, Problem, Reduction, reduce

Predicate = Callable[[Sequence[int]], bool]

same_every_time = settings(derandomize=True, database=None, deadline=None, max_examples=40)


class Case(NamedTuple):
    """A sequence that fails, and what failing is."""

    sequence: tuple[int, ...]
    fails: Predicate


class Recorder:
    """A predicate that remembers, in order, what it was run on."""

    def __init__(self, fails: Predicate) -> None:
        self.fails = fails
        self.seen: list[tuple[int, ...]] = []

    def __call__(self, candidate: Sequence[int]) -> bool:
        self.seen.append(tuple(candidate))
        return self.fails(candidate)


def is_subsequence(short: Sequence[int], long: Sequence[int]) -> bool:
    """Whether deleting items from `long` can give `short`."""
    rest = iter(long)
    return all(any(item == other for other in rest) for item in short)


def needs(*wanted: int) -> Predicate:
    """Fails while `wanted` is a subsequence."""
    return lambda candidate: is_subsequence(wanted, candidate)


def without(sequence: Sequence[int], *indices: int) -> tuple[int, ...]:
    """The sequence less the items at some places."""
    return tuple(item for index, item in enumerate(sequence) if index not in indices)


def problem_of(case: Case, executions_max: int = 100_000) -> Problem[int]:
    """A problem ordered by length, then by value."""
    return Problem(
        *case, order=size, key=lambda item: item, budget=Budget(executions_max=executions_max)
    )


def reduce_case(
    case: Case,
    passes: Sequence[Pass[int]],
    executions_max: int = 100_000,
    ends: Ends[int] | None = None,
) -> Reduction[int]:
    """The reduction of a case, ordered by length, then by value."""
    return reduce(
        *case,
        order=size,
        key=lambda item: item,
        passes=passes,
        budget=Budget(executions_max=executions_max),
        ends=ends,
    )


def size(sequence: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Fewer items first, then smaller ones."""
    return len(sequence), tuple(sequence)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A sequence of up to 30 items of six kinds, and one of five sorts of predicate."""
    sequence = tuple(draw(st.lists(st.integers(0, 5), max_size=30)))
    kept = draw(st.lists(st.booleans(), min_size=len(sequence), max_size=len(sequence)))
    wanted = tuple(item for item, keep in zip(sequence, kept, strict=True) if keep)
    kind, modulus = draw(st.integers(0, 5)), draw(st.integers(2, 7))
    count = draw(st.integers(0, sequence.count(kind)))
    total, balance = sum(sequence) % modulus, _balance(sequence)
    predicates: tuple[Predicate, ...] = (
        needs(*wanted),
        lambda c: is_subsequence(wanted[:4], c) and list(c).count(kind) >= count,
        lambda c: sum(c) % modulus == total,
        lambda c: _balance(c) == balance and is_subsequence(wanted[:3], c),
        lambda c: tuple(c) == sequence or zlib.crc32(bytes(c)) % modulus == 0,
    )
    return Case(sequence, draw(st.sampled_from(predicates)))


def _balance(sequence: Sequence[int]) -> int:
    counts = Counter(sequence)
    return counts[0] - counts[1]
