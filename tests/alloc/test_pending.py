"""Batches of freed pages: keyed by step, returned whole, oldest first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unikv.alloc.pending import PendingPages


def pending(*batches: tuple[int, list[int]]) -> PendingPages:
    """Batches added in this order."""
    pages = PendingPages()
    for step, batch in batches:
        pages.add(step, batch)
    return pages


def test_pages_freed_under_one_step_are_one_batch() -> None:
    assert pending((3, [7]), (3, [5, 6])).batches() == ((3, (7, 5, 6)),)


def test_a_newer_step_opens_a_new_batch() -> None:
    assert pending((3, [7]), (4, [5])).batches() == ((3, (7,)), (4, (5,)))


def test_a_batch_of_an_older_step_is_a_mistake() -> None:
    pages = pending((3, [7]))
    with pytest.raises(AssertionError):
        pages.add(2, [8])


def test_a_step_returns_its_own_batch_with_the_older_ones() -> None:
    pages = pending((1, [7]), (2, [5]), (4, [6]))
    assert pages.take_through(2) == [7, 5]


def test_a_newer_batch_stays() -> None:
    pages = pending((1, [7]), (4, [6]))
    pages.take_through(3)
    assert pages.batches() == ((4, (6,)),)


def test_a_returned_batch_is_gone() -> None:
    pages = pending((1, [7]))
    pages.take_through(1)
    assert pages.take_through(9) == []


@pytest.mark.parametrize(("batches", "newest"), [((), 0), (((1, [7]), (5, [6])), 5)])
def test_the_newest_key_is_that_of_the_last_batch(
    batches: tuple[tuple[int, list[int]], ...], newest: int
) -> None:
    assert pending(*batches).newest() == newest


def test_the_list_that_was_freed_may_change_afterwards() -> None:
    freed = [7, 8]
    pages = pending((1, freed))
    freed.clear()
    assert pages.take_through(1) == [7, 8]


@given(st.lists(st.integers(1, 9)), st.integers(0, 10))
def test_every_page_returns_exactly_once(steps: list[int], through: int) -> None:
    pages = pending(*((step, [page]) for page, step in enumerate(sorted(steps))))
    first, rest = pages.take_through(through), pages.take_through(10)
    assert first + rest == list(range(len(steps)))
    assert len(first) == sum(step <= through for step in steps)
