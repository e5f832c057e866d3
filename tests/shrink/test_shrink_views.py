"""Passes behind a header, and passes over the names of items."""

from collections.abc import Set

from hypothesis import given
from hypothesis import strategies as st

from shrink import Pass, behind, by_name, delete_runs, truncate
from tests.shrink.invented import Case, Recorder, problem_of, same_every_time

truncating: Pass[int] = behind(1, truncate)
deleting: Pass[int] = behind(1, delete_runs)
delete_names: Pass[int] = by_name(
    lambda item: [item % 10], lambda item, gone: _without(item, gone), delete_runs, name="names"
)


def _without(item: int, gone: Set[object]) -> int | None:
    return None if item % 10 in gone else item


def test_a_header_stays_whatever_is_deleted_behind_it() -> None:
    problem = problem_of(Case((9, 1, 2, 3), lambda candidate: True))
    deleting(problem)
    assert problem.best == (9,)


def test_no_candidate_lacks_the_header() -> None:
    fails = Recorder(lambda candidate: 3 in candidate)
    problem = problem_of(Case((9, 1, 2, 3, 4), fails))
    truncating(problem)
    deleting(problem)
    assert problem.best == (9, 3)
    assert all(candidate[0] == 9 for candidate in fails.seen)


def test_a_name_takes_all_its_items_along() -> None:
    problem = problem_of(Case((11, 22, 31, 42, 51, 63), lambda candidate: 42 in candidate))
    delete_names(problem)
    assert problem.best == (22, 42)


@given(st.lists(st.integers(0, 99), max_size=30), st.integers(0, 9))
@same_every_time
def test_few_names_cost_few_executions(items: list[int], wanted: int) -> None:
    needed = [item for item in items if item % 10 == wanted]
    fails = Recorder(lambda candidate: [i for i in candidate if i % 10 == wanted] == needed)
    problem = problem_of(Case(tuple(items), fails))
    delete_names(problem)
    assert problem.best == tuple(needed)
    assert problem.executions <= 31


def test_a_pass_keeps_its_name_behind_a_header() -> None:
    assert truncating.__name__ == "truncate"
    assert delete_names.__name__ == "names"
