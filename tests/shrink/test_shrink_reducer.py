"""What a reduction promises, whatever the predicate, and what it does when it may not finish."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import combinations, count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrink import (
    Budget,
    DoesNotFail,
    Progress,
    Reducible,
    delete_pairs,
    delete_runs,
    reduce,
    replace_items,
    truncate,
)
from tests.shrink.invented import (
    Case,
    Recorder,
    cases,
    is_subsequence,
    needs,
    reduce_case,
    same_every_time,
    size,
    without,
)

DELETIONS = (truncate, delete_runs, delete_pairs)
ALL = (*DELETIONS, replace_items(lambda item: range(item)))


class Watcher:
    """Keeps what an observer is told, in order."""

    def __init__(self) -> None:
        self.heard: list[str | Progress] = []

    def started(self, pass_name: str) -> None:
        self.heard.append(pass_name)

    def tried(self, progress: Progress) -> None:
        self.heard.append(progress)


@given(cases())
@same_every_time
def test_the_result_fails(case: Case) -> None:
    assert case.fails(reduce_case(case, ALL).result)


@given(cases())
@same_every_time
def test_deletions_give_a_subsequence(case: Case) -> None:
    assert is_subsequence(reduce_case(case, DELETIONS).result, case.sequence)


@given(cases())
@same_every_time
def test_the_result_needs_every_item(case: Case) -> None:
    result = reduce_case(case, DELETIONS).result
    assert not any(case.fails(without(result, index)) for index in range(len(result)))


@given(cases())
@same_every_time
def test_a_short_result_needs_one_of_every_two_items(case: Case) -> None:
    result = reduce_case(case, DELETIONS).result
    pairs = combinations(range(len(result)), 2)
    assert len(result) > 20 or not any(case.fails(without(result, *pair)) for pair in pairs)


@given(cases())
@same_every_time
def test_no_item_of_the_result_can_be_replaced(case: Case) -> None:
    result = reduce_case(case, ALL).result
    variants = (
        (*result[:index], smaller, *result[index + 1 :])
        for index, item in enumerate(result)
        for smaller in range(item)
    )
    assert not any(case.fails(variant) for variant in variants)


@given(cases())
@same_every_time
def test_the_same_case_is_reduced_the_same_way(case: Case) -> None:
    first, second = Recorder(case.fails), Recorder(case.fails)
    one = reduce_case(Case(case.sequence, first), ALL)
    other = reduce_case(Case(case.sequence, second), ALL)
    assert (one, first.seen) == (other, second.seen)


@given(cases())
@same_every_time
def test_no_candidate_is_run_twice(case: Case) -> None:
    fails = Recorder(case.fails)
    reduce_case(Case(case.sequence, fails), ALL)
    assert len(fails.seen) == len(set(fails.seen))


@given(cases())
@same_every_time
def test_every_run_is_counted(case: Case) -> None:
    fails = Recorder(case.fails)
    assert reduce_case(Case(case.sequence, fails), ALL).executions == len(fails.seen)


@given(cases(), st.integers(1, 60))
@same_every_time
def test_a_budget_is_never_exceeded(case: Case, executions_max: int) -> None:
    fails = Recorder(case.fails)
    reduce_case(Case(case.sequence, fails), ALL, executions_max)
    assert len(fails.seen) <= executions_max


@given(cases(), st.integers(1, 60))
@same_every_time
def test_a_reduction_cut_short_gives_the_best_so_far(case: Case, executions_max: int) -> None:
    fails = Recorder(case.fails)
    reduction = reduce_case(Case(case.sequence, fails), ALL, executions_max)
    failed = [candidate for candidate in fails.seen if case.fails(candidate)]
    assert reduction.result == min(failed, key=size)


@given(cases(), st.integers(0, 5))
@same_every_time
def test_only_a_budget_below_the_whole_cost_cuts_short(case: Case, missing: int) -> None:
    whole = reduce_case(case, ALL)
    allowed = max(1, whole.executions - missing)
    cut = reduce_case(case, ALL, allowed)
    assert whole.complete
    assert cut.complete == (allowed == whole.executions)


def test_a_deadline_cuts_short() -> None:
    asked = count(1)
    fails = Recorder(needs(3, 17))
    reduction = reduce(
        tuple(range(40)),
        fails,
        order=len,
        key=lambda item: item,
        passes=DELETIONS,
        budget=Budget(deadline=lambda: next(asked) > 9),
    )
    assert not reduction.complete
    assert reduction.executions == len(fails.seen) == 10
    assert needs(3, 17)(reduction.result)
    assert len(reduction.result) < 40


def test_a_reduction_cut_short_can_be_continued_from_its_result() -> None:
    case = Case(tuple(range(100)), needs(5, 50, 95))
    cut = reduce_case(case, DELETIONS, executions_max=15)
    assert not cut.complete
    assert reduce_case(Case(cut.result, case.fails), DELETIONS).result == (5, 50, 95)


def test_what_the_predicate_raises_comes_out_unchanged() -> None:
    error = LookupError("the trace is broken")

    def fails(candidate: Sequence[int]) -> bool:
        if len(candidate) < 10:
            raise error
        return True

    with pytest.raises(LookupError) as caught:
        reduce_case(Case(tuple(range(40)), fails), DELETIONS)
    assert caught.value is error


def test_a_sequence_that_does_not_fail_is_refused() -> None:
    with pytest.raises(DoesNotFail):
        reduce_case(Case((1, 2), needs(3)), DELETIONS)


def test_a_predicate_can_keep_the_other_failures_it_meets() -> None:
    others: list[tuple[int, ...]] = []

    def fails(candidate: Sequence[int]) -> bool:
        if 7 not in candidate and 3 in candidate:
            others.append(tuple(candidate))
        return 7 in candidate

    assert reduce_case(Case(tuple(range(10)), fails), DELETIONS).result == (7,)
    assert (0, 1, 2, 3) in others


def test_no_passes_prove_nothing_against_the_sequence() -> None:
    reduction = reduce_case(Case((1, 2), needs(1)), ())
    assert (reduction.result, reduction.executions, reduction.complete) == ((1, 2), 1, True)


def test_progress_of_a_costly_pass_brings_back_the_cheaper_ones() -> None:
    # 1 may only go once 3 has become 2.
    def fails(candidate: Sequence[int]) -> bool:
        return needs(2)(candidate) or needs(1, 3)(candidate)

    passes = (delete_runs, replace_items(lambda item: (2,) if item == 3 else (), name="three"))
    reduction = reduce_case(Case((1, 3), fails), passes)
    assert reduction.result == (2,)
    assert reduction.passes_run == (
        "delete_runs",
        "three",
        "delete_runs",
        "delete_runs",
        "three",
    )


def test_an_observer_hears_of_passes_and_executions_in_order() -> None:
    watcher = Watcher()
    reduce(
        (1, 2),
        needs(1, 2),
        order=len,
        key=lambda item: item,
        passes=DELETIONS,
        budget=Budget(),
        observer=watcher,
    )
    assert watcher.heard == [
        Progress(executions=1, cache_hits=0, length=2, accepted=True),
        "truncate",
        Progress(executions=2, cache_hits=0, length=2, accepted=False),
        "delete_runs",
        Progress(executions=3, cache_hits=1, length=2, accepted=False),
        "delete_pairs",
        Progress(executions=4, cache_hits=1, length=2, accepted=False),
    ]


def test_a_pass_that_proposes_nonsense_does_no_harm() -> None:
    def nonsense(problem: Reducible[int]) -> None:
        for candidate in ((), (9, 9, 9, 9), (2, 1), problem.best):
            problem.try_(candidate)

    reduction = reduce_case(Case((1, 2), needs(1)), (nonsense, delete_runs))
    assert reduction.result == (1,)


@pytest.mark.parametrize("order", [len, size, sum])
def test_any_order_that_deletion_lowers_will_do(order: Callable[[Sequence[int]], int]) -> None:
    reduction = reduce(
        tuple(range(1, 30)),
        needs(4, 20),
        order=order,
        key=lambda item: item,
        passes=DELETIONS,
        budget=Budget(),
    )
    assert reduction.result == (4, 20)


@given(cases(), cases())
@same_every_time
def test_ends_that_are_known_change_no_result(one: Case, other: Case) -> None:
    ends: dict[tuple[Hashable, ...], tuple[int, ...]] = {}
    both = (*one.sequence, *other.sequence)
    if one.fails(both):
        reduce_case(Case(both, one.fails), ALL, ends=ends)
    again = reduce_case(one, ALL, ends=ends)
    assert again.result == reduce_case(one, ALL).result
    assert again.complete


def test_a_reduction_ends_where_an_earlier_one_did_that_was_there() -> None:
    ends: dict[tuple[Hashable, ...], tuple[int, ...]] = {}
    fails = needs(3, 5)
    first = reduce_case(Case(tuple(range(9)), fails), ALL, ends=ends)
    recorder = Recorder(fails)
    again = reduce_case(Case(tuple(range(9)), recorder), ALL, ends=ends)
    assert again.result == first.result
    assert recorder.seen == [tuple(range(9)), first.result]


def test_an_end_that_does_not_fail_is_not_taken() -> None:
    begin = tuple(range(9))
    ends: dict[tuple[Hashable, ...], tuple[int, ...]] = {begin: (1,)}
    case = Case(begin, needs(3, 5))
    assert reduce_case(case, ALL, ends=ends).result == reduce_case(case, ALL).result


def test_a_reduction_that_was_cut_short_is_no_end() -> None:
    ends: dict[tuple[Hashable, ...], tuple[int, ...]] = {}
    case = Case(tuple(range(9)), needs(3, 5))
    assert not reduce_case(case, ALL, executions_max=4, ends=ends).complete
    assert not ends


@pytest.mark.parametrize(
    ("passes", "words"),
    [
        (iter(DELETIONS), "reduce: passes is <tuple_iterator"),
        (
            (truncate, partial(delete_runs)),
            r"reduce: passes\[1\] is functools.partial.* no __name__",
        ),
    ],
)
def test_passes_that_cannot_be_named_or_run_again_are_refused(passes: Any, words: str) -> None:
    recorder = Recorder(needs(3))
    with pytest.raises(TypeError, match=words):
        reduce_case(Case(tuple(range(9)), recorder), passes)
    assert recorder.seen == []
