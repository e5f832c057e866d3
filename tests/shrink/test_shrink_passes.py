"""Each pass by itself, on cases small enough to check by hand."""

from collections.abc import Iterable, Sequence
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrink import (
    PAIRS_MAX,
    Pass,
    delete_pairs,
    delete_runs,
    largest_working,
    replace_items,
    truncate,
)
from tests.shrink.invented import (
    Case,
    Recorder,
    cases,
    is_subsequence,
    needs,
    problem_of,
    same_every_time,
    without,
)


def halves(item: int) -> Iterable[int]:
    """Zero, half, one less."""
    return (0, item // 2, item - 1) if item else ()


PASSES = (truncate, delete_runs, delete_pairs, replace_items(halves))


@pytest.mark.parametrize("run", PASSES)
@given(case=cases())
@same_every_time
def test_a_pass_keeps_the_failure(run: Pass[int], case: Case) -> None:
    problem = problem_of(case)
    run(problem)
    assert case.fails(problem.best)


@pytest.mark.parametrize("run", PASSES[:-1])
@given(case=cases())
@same_every_time
def test_a_deletion_leaves_a_subsequence(run: Pass[int], case: Case) -> None:
    problem = problem_of(case)
    run(problem)
    assert is_subsequence(problem.best, case.sequence)


@pytest.mark.parametrize("run", PASSES)
@given(case=cases())
@same_every_time
def test_a_pass_asks_nothing_twice_of_a_sequence_it_cannot_improve(
    run: Pass[int], case: Case
) -> None:
    problem = problem_of(case)
    before = None
    while problem.best is not before:
        before = problem.best
        run(problem)
    executions = problem.executions
    run(problem)
    assert problem.executions == executions


@pytest.mark.parametrize("run", PASSES)
@pytest.mark.parametrize("sequence", [(), (1,)])
def test_a_pass_copes_with_the_smallest_sequences(
    run: Pass[int], sequence: tuple[int, ...]
) -> None:
    problem = problem_of(Case(sequence, lambda candidate: True))
    run(problem)
    assert problem.best in ((), (0,), (1,))


@given(st.integers(0, 30), st.integers(0, 30))
@same_every_time
def test_truncate_finds_the_shortest_prefix_of_a_lasting_failure(shortest: int, after: int) -> None:
    sequence = tuple(range(shortest + after))
    problem = problem_of(Case(sequence, lambda candidate: len(candidate) >= shortest))
    truncate(problem)
    assert problem.best == sequence[:shortest]


def test_truncate_accepts_only_failing_prefixes_where_failure_comes_and_goes() -> None:
    problem = problem_of(Case(tuple(range(30)), lambda candidate: len(candidate) in (7, 29, 30)))
    truncate(problem)
    assert len(problem.best) in (7, 29)


def test_truncate_gives_up_at_once_where_the_last_item_is_needed() -> None:
    problem = problem_of(Case(tuple(range(1000)), needs(999)))
    truncate(problem)
    assert problem.executions == 2


def test_runs_can_be_deleted_down_to_nothing() -> None:
    problem = problem_of(Case(tuple(range(20)), lambda candidate: True))
    delete_runs(problem)
    assert problem.best == ()


@pytest.mark.parametrize("needed", range(12))
def test_runs_leave_one_needed_item_wherever_it_is(needed: int) -> None:
    problem = problem_of(Case(tuple(range(12)), needs(needed)))
    delete_runs(problem)
    assert problem.best == (needed,)


@pytest.mark.parametrize("pair", list(pairwise(range(9))))
def test_runs_leave_two_needed_neighbours_wherever_they_are(pair: tuple[int, int]) -> None:
    problem = problem_of(Case(tuple(range(9)), needs(*pair)))
    delete_runs(problem)
    assert problem.best == pair


@pytest.mark.parametrize("low", [0, 4, 8, 12])
def test_a_run_that_only_goes_as_a_whole_is_deleted(low: int) -> None:
    rest = without(range(16), *range(low, low + 4))
    problem = problem_of(Case(tuple(range(16)), lambda c: needs(*rest)(c) and len(c) in (12, 16)))
    delete_runs(problem)
    assert problem.best == rest


@given(cases())
@same_every_time
def test_runs_that_cannot_be_improved_need_every_item(case: Case) -> None:
    problem = problem_of(case)
    before = None
    while problem.best is not before:
        before = problem.best
        delete_runs(problem)
    indices = range(len(problem.best))
    assert not any(case.fails(without(problem.best, index)) for index in indices)


@pytest.mark.parametrize("pair", list(combinations(range(7), 2)))
def test_any_two_items_that_go_together_are_deleted(pair: tuple[int, int]) -> None:
    def fails(candidate: Sequence[int]) -> bool:
        others = set(range(7)) - set(pair)
        return others <= set(candidate) and len(candidate) in (5, 7)

    problem = problem_of(Case(tuple(range(7)), fails))
    delete_pairs(problem)
    assert problem.best == without(range(7), *pair)


@pytest.mark.parametrize("apart", range(1, 7))
def test_overlapping_pairs_are_deleted_in_one_go(apart: int) -> None:
    def fails(candidate: Sequence[int]) -> bool:
        return all((low in candidate) == (low + apart in candidate) for low in range(apart))

    problem = problem_of(Case(tuple(range(2 * apart)), fails))
    delete_pairs(problem)
    assert problem.best == ()


@given(cases())
@same_every_time
def test_pairs_that_cannot_be_improved_leave_no_pair_to_delete(case: Case) -> None:
    problem = problem_of(case)
    before = None
    while problem.best is not before:
        before = problem.best
        delete_pairs(problem)
    pairs = combinations(range(len(problem.best)), 2)
    assert len(problem.best) > 20 or not any(
        case.fails(without(problem.best, *pair)) for pair in pairs
    )


@pytest.mark.parametrize("length", [2, 3, 19, 20])
def test_every_pair_of_up_to_twenty_items_is_tried(length: int) -> None:
    problem = problem_of(Case(tuple(range(length)), lambda candidate: len(candidate) == length))
    delete_pairs(problem)
    assert problem.executions == 1 + length * (length - 1) // 2


@pytest.mark.parametrize(("length", "farthest"), [(21, 14), (40, 5), (191, 1), (192, 0)])
def test_only_near_pairs_of_longer_sequences_are_tried(length: int, farthest: int) -> None:
    fails = Recorder(lambda candidate: len(candidate) == length)
    delete_pairs(problem_of(Case(tuple(range(length)), fails)))
    tried = {tuple(sorted(set(range(length)) - set(candidate))) for candidate in fails.seen[1:]}
    assert tried == {
        (low, high) for low, high in combinations(range(length), 2) if high - low <= farthest
    }
    assert len(tried) <= PAIRS_MAX


def test_an_item_is_replaced_by_the_first_variant_that_fails() -> None:
    fails = Recorder(lambda candidate: sum(candidate) >= 4)
    problem = problem_of(Case((9,), fails))
    replace_items(lambda item: (0, 4, 5) if item == 9 else ())(problem)
    assert fails.seen == [(9,), (0,), (4,)]
    assert problem.best == (4,)


def test_items_are_replaced_until_no_variant_helps() -> None:
    problem = problem_of(Case((50, 60, 70), lambda candidate: candidate[1] >= 7))
    replace_items(halves)(problem)
    assert problem.best == (0, 7, 0)


def test_an_item_is_looked_at_again_when_another_has_changed() -> None:
    def fails(candidate: Sequence[int]) -> bool:
        first, last = candidate
        return first <= last <= first + 1

    problem = problem_of(Case((8, 8), fails))
    replace_items(lambda item: (item - 1,) if item else ())(problem)
    assert problem.best == (0, 0)


def test_behind_a_variant_that_was_taken_come_those_that_were_not_tried_yet() -> None:
    def cleared(item: int) -> Iterable[int]:
        return (item & ~(1 << bit) for bit in range(4) if item >> bit & 1)

    fails = Recorder(lambda candidate: candidate[0] & 0b0101 == 0b0101)
    problem = problem_of(Case((0b1111,), fails))
    replace_items(cleared)(problem)
    first = [(0b1111,), (0b1110,), (0b1101,), (0b1001,), (0b0101,)]
    assert fails.seen == [*first, (0b0100,), (0b0001,)]


def test_a_variant_that_is_not_smaller_is_passed_over() -> None:
    fails = Recorder(lambda candidate: True)
    problem = problem_of(Case((1,), fails))
    replace_items(lambda item: (2, 1))(problem)
    assert fails.seen == [(1,)]


def test_a_replacing_pass_bears_the_name_given_to_it() -> None:
    assert replace_items(halves, name="smaller_numbers").__name__ == "smaller_numbers"


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 80))
@same_every_time
def test_the_largest_working_number_is_found(largest: int, above: int, guess: int) -> None:
    limit = largest + above
    assert largest_working(lambda n: n <= largest, limit=limit, guess=guess) == largest


@given(st.sets(st.integers(1, 40)), st.integers(0, 40), st.integers(1, 50))
@same_every_time
def test_the_number_found_works_while_the_next_does_not(
    working: set[int], limit: int, guess: int
) -> None:
    found = largest_working(lambda n: n in working, limit=limit, guess=guess)
    assert found == 0 or found in working
    assert found == limit or found + 1 not in working


@given(st.sets(st.integers(1, 40)), st.integers(0, 40), st.integers(1, 50))
@same_every_time
def test_each_number_asked_for_exceeds_all_that_worked(
    working: set[int], limit: int, guess: int
) -> None:
    asked: list[int] = []

    def works(number: int) -> bool:
        assert all(number > earlier for earlier in asked if earlier in working)
        assert number not in asked
        assert 1 <= number <= limit
        asked.append(number)
        return number in working

    largest_working(works, limit=limit, guess=guess)
