"""Passes that change items or their order."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given

from shrink import (
    EXCHANGES_MAX,
    Pass,
    exchange_items,
    merge_items,
    move_items,
    replace_pairs,
    rewrite,
)
from tests.shrink.invented import Case, cases, problem_of, same_every_time


def one_less(item: int) -> Iterable[int]:
    """The next smaller number."""
    return (item - 1,) if item else ()


def added(early: int, late: int) -> Iterable[int]:
    """Both together, where they are of one parity."""
    return (early + late,) if (early - late) % 2 == 0 else ()


def halved(sequence: Sequence[int]) -> Iterable[Sequence[int]]:
    """All items halved."""
    yield [item // 2 for item in sequence]


REWRITES: tuple[Pass[int], ...] = (
    rewrite(halved, name="halved"),
    merge_items(added),
    move_items,
    replace_pairs(one_less),
    exchange_items(lambda sequence: [0, 1]),
)


@pytest.mark.parametrize("run", REWRITES, ids=[run.__name__ for run in REWRITES])
@given(case=cases())
@same_every_time
def test_a_rewrite_keeps_the_failure(run: Pass[int], case: Case) -> None:
    problem = problem_of(case)
    run(problem)
    assert case.fails(problem.best)


@pytest.mark.parametrize("run", REWRITES, ids=[run.__name__ for run in REWRITES])
@given(case=cases())
@same_every_time
def test_a_rewrite_asks_nothing_twice_of_what_it_cannot_improve(run: Pass[int], case: Case) -> None:
    problem = problem_of(case)
    before = None
    while problem.best is not before:
        before = problem.best
        run(problem)
    executions = problem.executions
    run(problem)
    assert problem.executions == executions


def test_a_rewrite_goes_on_until_nothing_helps() -> None:
    problem = problem_of(Case((64, 64), lambda candidate: min(candidate) >= 3))
    rewrite(halved, name="halved")(problem)
    assert problem.best == (4, 4)


def test_two_items_become_one() -> None:
    problem = problem_of(Case((2, 1, 4), lambda candidate: sum(candidate) == 7))
    merge_items(added)(problem)
    assert problem.best == (1, 6)


def test_items_come_in_the_order_that_is_smallest() -> None:
    problem = problem_of(Case((3, 1, 2, 0), lambda candidate: sorted(candidate) == [0, 1, 2, 3]))
    move_items(problem)
    assert problem.best == (0, 1, 2, 3)


def test_an_order_that_matters_stays() -> None:
    problem = problem_of(Case((3, 1, 2), lambda candidate: list(candidate).index(3) == 0))
    move_items(problem)
    assert problem.best == (3, 1, 2)


def test_numbers_that_only_fall_together_fall() -> None:
    def fails(candidate: Sequence[int]) -> bool:
        return len(candidate) == 2 and candidate[0] - candidate[1] == 2

    problem = problem_of(Case((9, 7), fails))
    replace_pairs(one_less)(problem)
    assert problem.best == (2, 0)


def test_one_other_item_takes_the_place_of_two() -> None:
    problem = problem_of(Case((5, 5, 8), lambda candidate: tuple(candidate) in {(5, 5, 8), (1, 8)}))
    exchange_items(lambda sequence: [1])(problem)
    assert problem.best == (1, 8)


def test_exchanges_are_few_however_long_the_sequence() -> None:
    case = Case(tuple(range(200)), lambda candidate: len(candidate) == 200)
    problem = problem_of(case)
    exchange_items(lambda sequence: [0, 1, 2])(problem)
    assert problem.executions <= 2 * EXCHANGES_MAX + 1


def test_an_exchange_has_two_places_where_something_is_between() -> None:
    case = Case(tuple(range(10, 16)), lambda candidate: len(candidate) == 6)
    problem = problem_of(case)
    exchange_items(lambda sequence: list(range(9)))(problem)
    # Five neighbours and ten others, nine items each, and the given sequence itself.
    assert problem.executions == 9 * (5 + 2 * 10) + 1
    assert EXCHANGES_MAX < problem.executions <= 2 * EXCHANGES_MAX + 1
