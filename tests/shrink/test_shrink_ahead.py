"""Candidates that run before they are asked for change nothing but the time it takes."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrink import (
    Budget,
    Pass,
    delete_pairs,
    delete_runs,
    merge_items,
    move_items,
    reduce,
    replace_items,
    truncate,
)
from tests.shrink.invented import Case, Recorder, cases, reduce_case, same_every_time, size

PASSES: tuple[Pass[int], ...] = (
    truncate,
    delete_runs,
    delete_pairs,
    replace_items(lambda item: range(item)),
    merge_items(lambda early, late: (early,) if early == late else ()),
    move_items,
)


class Hurried:
    """Answers at once and remembers what it was told to expect."""

    def __init__(self, room: int) -> None:
        self.places = room
        self.expected: list[Sequence[int]] = []

    def room(self) -> int:
        return self.places

    def expect(self, candidates: Sequence[Sequence[int]], /) -> None:
        self.expected = list(candidates)


class Checking(Recorder):
    """A predicate that sees whether it was foreseen."""

    def __init__(self, case: Case, ahead: Hurried) -> None:
        super().__init__(case.fails)
        self.ahead = ahead
        self.unforeseen = 0

    def __call__(self, candidate: Sequence[int]) -> bool:
        if self.seen:
            self.unforeseen += tuple(candidate) != tuple(self.ahead.expected[0])
        return super().__call__(candidate)


@given(cases(), st.integers(1, 5))
@same_every_time
def test_the_result_is_that_of_a_reduction_alone(case: Case, room: int) -> None:
    alone = Recorder(case.fails)
    expected = reduce_case(Case(case.sequence, alone), PASSES)
    hurried = Hurried(room)
    fails = Checking(case, hurried)
    found = reduce(
        case.sequence,
        fails,
        order=size,
        key=lambda item: item,
        passes=PASSES,
        budget=Budget(100_000),
        ahead=hurried,
    )
    assert found == expected
    assert fails.seen == alone.seen
    assert fails.unforeseen == 0


@pytest.mark.parametrize("room", [1, 3])
def test_so_many_candidates_are_foreseen_as_there_is_room_for(room: int) -> None:
    hurried = Hurried(room)
    most: list[int] = []

    def fails(candidate: Sequence[int]) -> bool:
        most.append(len(hurried.expected))
        return len(candidate) == 12

    reduce(
        tuple(range(12)),
        fails,
        order=size,
        key=lambda item: item,
        passes=(delete_runs,),
        budget=Budget(),
        ahead=hurried,
    )
    assert max(most) == room


def test_what_is_foreseen_is_asked_in_that_order_where_nothing_helps() -> None:
    hurried = Hurried(4)
    asked: list[tuple[int, ...]] = []
    first: list[list[Sequence[int]]] = []

    def fails(candidate: Sequence[int]) -> bool:
        if asked and not first:
            first.append(hurried.expected)
        asked.append(tuple(candidate))
        return len(candidate) == 12

    reduce(
        tuple(range(12)),
        fails,
        order=size,
        key=lambda item: item,
        passes=(delete_runs,),
        budget=Budget(),
        ahead=hurried,
    )
    assert [tuple(candidate) for candidate in first[0]] == asked[1:5]
