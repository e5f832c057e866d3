"""The one door: what is accepted, what it costs, and when it closes."""

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest

from shrink import Budget, DoesNotFail, OutOfBudget, Problem, Progress
from tests.shrink.invented import Case, Recorder, needs, problem_of, size


class Watcher:
    """Keeps what an observer is told."""

    def __init__(self) -> None:
        self.passes: list[str] = []
        self.records: list[Progress] = []

    def started(self, pass_name: str) -> None:
        self.passes.append(pass_name)

    def tried(self, progress: Progress) -> None:
        self.records.append(progress)


def test_the_given_sequence_is_the_first_best() -> None:
    assert problem_of(Case((3, 1, 2), needs(1))).best == (3, 1, 2)


def test_a_sequence_that_does_not_fail_is_refused() -> None:
    with pytest.raises(DoesNotFail, match="sequence of 2 items does not fail"):
        problem_of(Case((3, 2), needs(1)))


def test_a_smaller_failing_candidate_becomes_the_best() -> None:
    problem = problem_of(Case((3, 1, 2), needs(1)))
    assert problem.try_([1, 2])
    assert problem.best == (1, 2)


def test_a_candidate_that_does_not_fail_changes_nothing() -> None:
    problem = problem_of(Case((3, 1, 2), needs(1)))
    before = problem.best
    assert not problem.try_([3, 2])
    assert problem.best is before


@pytest.mark.parametrize("candidate", [(3, 1, 2), (3, 1, 2, 0), (4, 1, 2)])
def test_a_candidate_that_is_not_smaller_is_not_run(candidate: tuple[int, ...]) -> None:
    fails = Recorder(needs(1))
    problem = problem_of(Case((3, 1, 2), fails))
    assert not problem.try_(candidate)
    assert fails.seen == [(3, 1, 2)]


def test_a_candidate_seen_before_is_not_run() -> None:
    fails = Recorder(needs(1))
    problem = problem_of(Case((3, 1, 2), fails))
    assert not problem.try_([3, 2])
    assert not problem.try_([3, 2])
    assert fails.seen == [(3, 1, 2), (3, 2)]
    assert (problem.executions, problem.cache_hits) == (2, 1)


def test_the_key_decides_what_was_seen_before() -> None:
    fails = Recorder(lambda candidate: len(candidate) == 3)
    problem = Problem((1, 2, 3), fails, order=size, key=lambda item: item % 10, budget=Budget())
    assert not problem.try_([1, 2])
    assert not problem.try_([1, 12])
    assert fails.seen == [(1, 2, 3), (1, 2)]


def test_a_smaller_spelling_of_the_best_is_accepted_without_a_run() -> None:
    fails = Recorder(needs(11))
    problem = Problem((7, 11), fails, order=size, key=lambda item: item % 2, budget=Budget())
    assert problem.try_([5, 11])
    assert fails.seen == [(7, 11)]


def test_the_last_execution_allowed_is_made() -> None:
    problem = problem_of(Case((3, 1, 2), needs(1)), executions_max=2)
    assert problem.try_([1, 2])


def test_the_first_execution_not_allowed_is_refused() -> None:
    fails = Recorder(needs(1))
    problem = problem_of(Case((3, 1, 2), fails), executions_max=2)
    problem.try_([1, 2])
    with pytest.raises(OutOfBudget):
        problem.try_([1])
    assert problem.best == (1, 2)
    assert len(fails.seen) == 2


def test_a_known_answer_costs_no_budget() -> None:
    problem = problem_of(Case((3, 1, 2), needs(1)), executions_max=2)
    assert not problem.try_([3, 2])
    assert not problem.try_([3, 2])


def test_the_deadline_is_asked_before_each_execution_but_the_first() -> None:
    answers = iter([False, False, True])
    budget = Budget(deadline=lambda: next(answers))
    problem = Problem((3, 1, 2), needs(1), order=size, key=lambda item: item, budget=budget)
    assert problem.try_([1, 2])
    assert not problem.try_([2])
    with pytest.raises(OutOfBudget):
        problem.try_([1])


def test_a_budget_without_the_first_execution_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("executions_max is 0")):
        Budget(executions_max=0)


@pytest.mark.parametrize("executions_max", [1.5, math.nan, math.inf, "9", None])
def test_a_budget_that_is_no_number_of_executions_is_refused(executions_max: Any) -> None:
    with pytest.raises(TypeError, match=rf"executions_max is {executions_max!r}, but .* counted"):
        Budget(executions_max)


@pytest.mark.parametrize("answer", [None, 1, [2]])
def test_an_answer_that_is_no_verdict_is_refused(answer: Any) -> None:
    def fails(candidate: Sequence[int]) -> bool:
        verdict: bool = answer if len(candidate) < 3 else True
        return verdict

    problem = problem_of(Case((3, 1, 2), fails))
    with pytest.raises(TypeError, match=re.escape(f"answered {answer!r} for a sequence of 2 ")):
        problem.try_([1, 2])
    assert problem.best == (3, 1, 2)


def test_what_the_predicate_raises_leaves_the_best_alone() -> None:
    def fails(candidate: Sequence[int]) -> bool:
        if len(candidate) == 1:
            raise LookupError("one")
        return True

    problem = problem_of(Case((3, 1, 2), fails))
    assert problem.try_([1, 2])
    with pytest.raises(LookupError, match="one"):
        problem.try_([1])
    assert problem.best == (1, 2)


def test_an_observer_hears_of_each_execution() -> None:
    watcher = Watcher()
    problem = Problem(
        (3, 1, 2),
        needs(1),
        order=size,
        key=lambda item: item,
        budget=Budget(),
        observer=watcher,
    )
    problem.try_([3, 2])
    problem.try_([3, 2])
    problem.try_([1, 2])
    assert watcher.records == [
        Progress(executions=1, cache_hits=0, length=3, accepted=True),
        Progress(executions=2, cache_hits=0, length=3, accepted=False),
        Progress(executions=3, cache_hits=1, length=2, accepted=True),
    ]
