"""Window retirement: the first page that the next token still attends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unikv.advance import first_needed_page, first_retained_page


@pytest.mark.parametrize(
    ("next_position", "first"),
    # Pages of four tokens, a window of five: the token at position 8 attends 4..8.
    [(0, 0), (4, 0), (7, 0), (8, 1), (11, 1), (12, 2)],
)
def test_a_page_is_needed_until_its_last_token_leaves_the_window(
    next_position: int, first: int
) -> None:
    assert first_needed_page(next_position, 5, 4) == first


def test_a_window_of_one_token_needs_only_the_page_of_the_token() -> None:
    assert [first_needed_page(position, 1, 2) for position in range(5)] == [0, 0, 1, 1, 2]


@given(st.integers(0, 200), st.integers(1, 50), st.integers(1, 16))
def test_exactly_the_pages_that_no_later_token_attends_may_go(
    next_position: int, window: int, slots_per_page: int
) -> None:
    attended = range(max(0, next_position - window + 1), next_position + 1)
    needed = {position // slots_per_page for position in attended}
    assert first_needed_page(next_position, window, slots_per_page) == min(needed)


@pytest.mark.parametrize(
    ("next_position", "retention_floor", "first"),
    # Pages of four tokens, a window of five: a resume at 8 attends 4..8.
    [(20, 20, 4), (20, 8, 1), (20, 16, 3), (8, 20, 1), (20, 0, 0)],
)
def test_the_window_behind_the_floor_is_kept(
    next_position: int, retention_floor: int, first: int
) -> None:
    assert first_retained_page(next_position, retention_floor, 5, 4) == first


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 50), st.integers(1, 16))
def test_a_floor_never_frees_more(
    next_position: int, retention_floor: int, window: int, slots_per_page: int
) -> None:
    first = first_retained_page(next_position, retention_floor, window, slots_per_page)
    assert first <= first_needed_page(next_position, window, slots_per_page)
    assert first <= first_needed_page(retention_floor, window, slots_per_page)
