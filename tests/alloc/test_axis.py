"""The mirror between depths and pages: literal pages, then the laws in both directions."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unikv.alloc.axis import Axis

UP, DOWN = Axis(3, 1), Axis(9, -1)
STEPS: tuple[Literal[1, -1], ...] = (1, -1)

axes = st.builds(Axis, st.integers(0, 50), st.sampled_from(STEPS))
spans = st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], sum(pair)))


def test_a_band_that_grows_up_counts_pages_from_its_base() -> None:
    assert [UP.page_at(depth) for depth in range(4)] == [3, 4, 5, 6]


def test_a_band_that_grows_down_counts_pages_backwards() -> None:
    assert [DOWN.page_at(depth) for depth in range(4)] == [9, 8, 7, 6]


@pytest.mark.parametrize(("axis", "pages"), [(UP, (4, 6)), (DOWN, (7, 9))])
def test_a_span_of_depths_is_a_run_of_pages(axis: Axis, pages: tuple[int, int]) -> None:
    assert axis.pages_of_span(1, 3) == pages


@pytest.mark.parametrize(("axis", "wall"), [(UP, 3), (DOWN, 10)])
def test_an_empty_span_at_the_origin_lies_at_the_wall(axis: Axis, wall: int) -> None:
    assert axis.pages_of_span(0, 0) == (wall, wall)


@given(axes, st.integers(0, 60))
def test_a_page_leads_back_to_its_depth(axis: Axis, depth: int) -> None:
    assert axis.depth_of(axis.page_at(depth)) == depth


@given(axes, spans)
def test_a_run_of_pages_leads_back_to_its_span(axis: Axis, span: tuple[int, int]) -> None:
    assert axis.span_of_pages(*axis.pages_of_span(*span)) == span


@given(axes, spans)
def test_a_run_of_pages_holds_exactly_the_pages_of_its_depths(
    axis: Axis, span: tuple[int, int]
) -> None:
    assert set(range(*axis.pages_of_span(*span))) == {axis.page_at(d) for d in range(*span)}
