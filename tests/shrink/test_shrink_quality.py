"""How small results get and how many executions that takes, for fixed cases.

The bounds are the counts measured, with about a tenth to spare: a change that needs more has to say
why here. One execution of a real failure takes 5 to 40 ms, so a hundred are about two seconds.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pytest

from shrink import Pass, delete_pairs, delete_runs, replace_items, truncate
from tests.shrink.invented import Case, Predicate, is_subsequence, needs, reduce_case

DELETIONS: Sequence[Pass[int]] = (truncate, delete_runs, delete_pairs)
SPREAD = (31, 97, 142, 230, 311, 388)
EVERY_20TH = tuple(range(7, 400, 20))


def smaller_numbers(item: int) -> Iterable[int]:
    """Zero, then items less by ever smaller halves of the whole: binary search on the way."""
    yield from (item - (item >> shift) for shift in range(item.bit_length()))


class Goal(NamedTuple):
    """A failure of 0, 1, 2, ... and what is expected of its reduction."""

    length: int
    fails: Predicate
    result_length: int
    executions_max: int


def with_count(wanted: Sequence[int], divisor: int, at_least: int) -> Predicate:
    """Needs some items, and a number of multiples of `divisor`: a failure under pressure."""
    return lambda candidate: (
        is_subsequence(wanted, candidate)
        and sum(item % divisor == 0 for item in candidate) >= at_least
    )


def with_pairs(wanted: Sequence[int], period: int, apart: int) -> Predicate:
    """Needs some items, and that item n leaves with item n + apart, for every period-th n."""

    def fails(candidate: Sequence[int]) -> bool:
        there = set(candidate)
        opened = {item + apart for item in there if item % period == 0}
        closed = {item for item in there if item % period == apart}
        return opened == closed and is_subsequence(wanted, candidate)

    return fails


GOALS = {
    "six": Goal(400, needs(*SPREAD), 6, 80),
    "six, the run stopped there": Goal(400, needs(*SPREAD[:-1], 399), 6, 75),
    "six close together": Goal(400, needs(*range(200, 206)), 6, 60),
    "six at the end": Goal(400, needs(*range(394, 400)), 6, 54),
    "six at the beginning": Goal(400, needs(*range(6)), 6, 34),
    "two": Goal(400, needs(3, 391), 2, 28),
    "none": Goal(400, lambda candidate: True, 0, 12),
    "six of fifty": Goal(50, needs(2, 9, 20, 31, 32, 48), 6, 60),
    "twenty": Goal(400, needs(*EVERY_20TH), 20, 380),
    "four and five of a kind": Goal(400, with_count(SPREAD[:4], 3, 5), 9, 110),
    "four and adjacent pairs": Goal(400, with_pairs(SPREAD[:4], 4, 1), 5, 105),
    "four and only adjacent pairs": Goal(400, with_pairs(SPREAD[:4], 2, 1), 8, 145),
    "four and pairs further apart": Goal(40, with_pairs((3, 7, 22, 38), 8, 5), 4, 115),
}


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_results_are_this_small(goal: Goal) -> None:
    reduction = reduce_case(Case(tuple(range(goal.length)), goal.fails), DELETIONS)
    assert len(reduction.result) == goal.result_length


@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_results_come_this_soon(goal: Goal) -> None:
    reduction = reduce_case(Case(tuple(range(goal.length)), goal.fails), DELETIONS)
    assert reduction.executions <= goal.executions_max


@pytest.mark.parametrize("length", [1, 10, 100, 400])
def test_a_minimal_sequence_is_recognised_in_linear_cost(length: int) -> None:
    case = Case(tuple(range(length)), lambda candidate: len(candidate) == length)
    assert reduce_case(case, (truncate, delete_runs)).executions <= 3 * length + 10


def test_numbers_fall_to_the_least_that_fails_in_logarithmic_cost() -> None:
    case = Case((900, 70_000), lambda candidate: len(candidate) == 2 and candidate[1] >= 1234)
    reduction = reduce_case(case, (*DELETIONS, replace_items(smaller_numbers)))
    assert reduction.result == (0, 1234)
    assert reduction.executions <= 150


def test_an_item_that_gets_simpler_is_kept_at_before_the_next() -> None:
    def fails(candidate: Sequence[int]) -> bool:
        return all(low <= item for low, item in zip((4, 17, 25), candidate, strict=True))

    halves = replace_items(lambda item: (0, item // 2, item - 1) if item else ())
    reduction = reduce_case(Case((30, 40, 50), fails), [halves])
    assert reduction.result == (4, 17, 25)
    assert reduction.executions <= 31
