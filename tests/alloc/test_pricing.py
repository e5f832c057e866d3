"""Plans for chains small enough to lay out by hand."""

from collections.abc import Sequence
from itertools import product

import pytest

from benchmarks.search.concrete_chains import DrawnChain, careful, draw, full
from harness.check.layout_search import layout_exists
from unikv.alloc.pricing import (
    Spans,
    Step,
    assert_plan,
    feasible,
    first_plan,
    most_pages,
    move_order,
    plan,
)
from unikv.alloc.snapshot import ChainView


def assert_planned(view: ChainView, demand: Sequence[int], step: Step, spans: Spans) -> None:
    assert plan(view, demand, step) == spans
    assert_plan(view, demand, step, spans)


def assert_served_by(chain: DrawnChain, demand: Sequence[int], step: Step, spans: Spans) -> None:
    """`step` is the least that serves the demand, and it does so with `spans`."""
    view = careful(chain)
    assert feasible(full(chain), demand)
    assert first_plan(view, demand) == (step, spans)
    assert_plan(view, demand, step, spans)


def assert_impossible(view: ChainView, demand: Sequence[int]) -> None:
    assert not feasible(view, demand)
    assert first_plan(view, demand) is None
    assert not layout_exists(
        view.total_bytes,
        view.sink_bytes,
        [(band.page_bytes, band.used, band.pin_low, band.pin_high) for band in view.bands],
        demand,
    )


# Where bands lie when nothing moves.


def test_an_empty_demand_plans_what_is_there() -> None:
    chain = draw(10, 1, (1, 1, "Lh"), (2, 2, "LL"), (1, 9, "L"))
    assert_served_by(chain, (0, 0, 0), Step.NO_MOVE, ((1, 3), (2, 4), (9, 10)))


def test_a_demand_takes_holes_before_it_grows_a_span() -> None:
    chain = draw(8, 0, (1, 0, "LhL"), (1, 8, ""))
    assert_served_by(chain, (1, 0), Step.NO_MOVE, ((0, 3), (8, 8)))
    assert_served_by(chain, (2, 0), Step.NO_MOVE, ((0, 4), (8, 8)))


def test_a_float_grows_below_when_the_end_above_needs_the_larger_gap() -> None:
    # Before the high end is planned, the float's larger gap is the one above it.
    chain = draw(6, 0, (1, 0, ""), (1, 2, "L"), (1, 6, ""))
    assert_served_by(chain, (0, 2, 3), Step.NO_MOVE, ((0, 0), (0, 3), (3, 6)))


def test_an_empty_float_leaves_the_end_above_its_pages() -> None:
    chain = draw(4, 0, (1, 0, ""), (1, 0, ""), (1, 4, ""))
    assert_served_by(chain, (0, 2, 2), Step.NO_MOVE, ((0, 0), (0, 2), (2, 4)))


def test_an_empty_float_starts_in_the_middle_of_what_is_free() -> None:
    chain = draw(11, 0, (1, 0, "L"), (1, 0, ""), (1, 10, "L"))
    assert_served_by(chain, (0, 3, 0), Step.NO_MOVE, ((0, 1), (4, 7), (10, 11)))


def test_a_float_in_place_grows_into_the_larger_gap() -> None:
    above = draw(9, 0, (1, 0, "L"), (1, 3, "L"), (1, 9, ""))
    assert_served_by(above, (0, 1, 0), Step.NO_MOVE, ((0, 1), (3, 5), (9, 9)))
    below = draw(9, 0, (1, 0, "L"), (1, 6, "L"), (1, 9, ""))
    assert_served_by(below, (0, 1, 0), Step.NO_MOVE, ((0, 1), (5, 7), (9, 9)))


def test_a_float_between_equal_gaps_grows_below() -> None:
    chain = draw(7, 0, (1, 0, "L"), (1, 3, "L"), (1, 6, "L"))
    assert_served_by(chain, (0, 1, 0), Step.NO_MOVE, ((0, 1), (2, 4), (6, 7)))


def test_gaps_are_measured_from_what_is_planned_for_the_neighbours() -> None:
    # Free now: 3 bytes below, 4 above. The high end takes 2 of those above.
    chain = draw(9, 0, (1, 0, "L"), (1, 4, "L"), (1, 9, ""))
    assert_served_by(chain, (0, 1, 2), Step.NO_MOVE, ((0, 1), (3, 5), (7, 9)))


def test_a_float_in_place_grows_on_both_sides_when_neither_suffices() -> None:
    chain = draw(4, 0, (1, 0, ""), (1, 1, "L"), (1, 4, ""))
    assert_served_by(chain, (0, 3, 0), Step.NO_MOVE, ((0, 0), (0, 4), (4, 4)))


def test_the_second_gap_only_gives_what_the_first_cannot() -> None:
    # 3 bytes above and 2 below: the larger is filled, one page comes from below.
    chain = draw(6, 0, (1, 0, ""), (1, 2, "L"), (1, 6, ""))
    assert_served_by(chain, (0, 4, 0), Step.NO_MOVE, ((0, 0), (1, 6), (6, 6)))


def test_a_pending_page_keeps_its_band_in_place() -> None:
    chain = draw(2, 0, (1, 0, ""), (1, 0, "p"), (1, 2, ""))
    assert_served_by(chain, (2, 0, 0), Step.RELAYOUT, ((0, 2), (0, 0), (2, 2)))
    assert plan(careful(chain), (2, 0, 0), Step.FLUSH_ENDS) is None


# The answer does not depend on what is settled.


def test_settling_a_page_at_the_edge_keeps_a_yes() -> None:
    # Before: the span holds two of the three pages. After: one, with a gap on either side.
    before = draw(4, 0, (1, 0, ""), (1, 0, "pL"), (1, 4, ""))
    assert_served_by(before, (0, 3, 0), Step.NO_MOVE, ((0, 0), (0, 4), (4, 4)))
    after = draw(4, 0, (1, 0, ""), (1, 1, "L"), (1, 4, ""))
    assert_served_by(after, (0, 3, 0), Step.NO_MOVE, ((0, 0), (0, 4), (4, 4)))


def test_settling_next_to_a_fixed_page_keeps_a_yes() -> None:
    before = draw(4, 0, (1, 0, "p"), (1, 1, "Fp"), (1, 4, ""))
    assert_served_by(before, (0, 2, 1), Step.FLUSH_ENDS, ((0, 0), (0, 3), (3, 4)))
    after = draw(4, 0, (1, 0, ""), (1, 1, "F"), (1, 4, ""))
    assert_served_by(after, (0, 2, 1), Step.NO_MOVE, ((0, 0), (0, 3), (3, 4)))


def test_a_pending_and_a_processed_page_price_alike() -> None:
    pending = draw(4, 0, (1, 0, ""), (1, 1, "Fp"), (1, 4, ""))
    processed = draw(4, 0, (1, 0, ""), (1, 1, "F"), (1, 4, ""))
    for demand in product(range(4), repeat=3):
        assert feasible(full(pending), demand) == feasible(full(processed), demand)


# What may be moved.


def test_an_end_gives_up_a_hole_only_when_ends_may_be_flushed() -> None:
    chain = draw(2, 0, (1, 0, ""), (1, 0, "Lh"))
    assert plan(careful(chain), (1, 0), Step.NO_MOVE) is None
    assert_served_by(chain, (1, 0), Step.FLUSH_ENDS, ((0, 1), (1, 2)))


def test_a_float_gives_up_a_hole_only_in_a_relayout() -> None:
    chain = draw(3, 0, (1, 0, "L"), (1, 1, "hL"), (1, 3, ""))
    assert plan(careful(chain), (1, 0, 0), Step.FLUSH_ENDS) is None
    assert_served_by(chain, (1, 0, 0), Step.RELAYOUT, ((0, 2), (2, 3), (3, 3)))


def test_a_fixed_page_of_an_end_stops_its_flush() -> None:
    chain = draw(4, 0, (1, 0, "LhF"), (1, 4, ""))
    assert_served_by(chain, (0, 1), Step.NO_MOVE, ((0, 3), (3, 4)))
    assert_impossible(full(chain), (0, 2))


def test_a_float_closes_up_around_its_fixed_page() -> None:
    chain = draw(4, 0, (1, 0, ""), (1, 0, "LF"), (1, 4, ""))
    assert_served_by(chain, (1, 0, 0), Step.RELAYOUT, ((0, 1), (1, 3), (4, 4)))


def test_a_float_closes_up_around_a_page_under_a_transfer() -> None:
    chain = draw(4, 0, (1, 0, ""), (1, 0, "LH"), (1, 4, ""))
    assert_served_by(chain, (1, 0, 0), Step.RELAYOUT, ((0, 1), (1, 3), (4, 4)))


def test_a_float_grows_on_both_sides_of_its_fixed_page() -> None:
    chain = draw(4, 1, (1, 1, ""), (1, 2, "F"), (2, 2, ""))
    assert_served_by(chain, (0, 2, 0), Step.NO_MOVE, ((1, 1), (1, 4), (2, 2)))


def test_a_fixed_page_cannot_be_passed() -> None:
    chain = draw(4, 0, (1, 0, ""), (1, 1, "F"), (1, 4, ""))
    assert_served_by(chain, (1, 0, 2), Step.NO_MOVE, ((0, 1), (1, 2), (2, 4)))
    assert_impossible(full(chain), (2, 0, 0))
    assert_impossible(full(chain), (0, 0, 3))


def test_a_reservation_makes_a_second_take_impossible() -> None:
    together = draw(4, 0, (1, 0, ""), (1, 0, ""), (1, 4, ""))
    assert plan(full(together), (0, 2, 2), Step.NO_MOVE) is not None
    reserved = draw(4, 0, (1, 0, ""), (1, 1, "FF"), (1, 4, ""))
    assert_impossible(full(reserved), (0, 0, 2))


def test_a_stuck_page_is_used_in_the_careful_view() -> None:
    chain = draw(2, 0, (1, 0, ""), (1, 0, "Lq"), (1, 2, ""))
    assert first_plan(careful(chain), (0, 1, 0)) is None


def test_a_stuck_page_is_free_in_the_full_view() -> None:
    chain = draw(2, 0, (1, 0, ""), (1, 0, "Lq"), (1, 2, ""))
    assert feasible(full(chain), (0, 1, 0))


def test_a_page_being_sent_stays_in_the_careful_view() -> None:
    chain = draw(2, 0, (1, 0, ""), (1, 0, "Hh"))
    assert first_plan(careful(chain), (1, 0)) is None
    assert feasible(full(chain), (1, 0))


@pytest.mark.parametrize("page", [0, 2, 4, 9])
def test_an_empty_pin_pins_nothing_wherever_it_lies(page: int) -> None:
    drawn = full(draw(6, 0, (1, 0, "hL"), (1, 2, "L"), (1, 4, "hL")))
    view = drawn._replace(
        bands=tuple(band._replace(pin_low=page, pin_high=page) for band in drawn.bands)
    )
    for demand in product(range(4), repeat=3):
        assert feasible(view, demand) == (sum(demand) <= 3)
        assert first_plan(view, demand) == first_plan(drawn, demand)
        for band in range(3):
            assert most_pages(view, demand, band) == most_pages(drawn, demand, band)


# Walls and remainders.


def test_bytes_below_an_empty_end_are_nobodys() -> None:
    # The low end's first page starts at byte 3, so bytes 1 and 2 are lost to the float.
    chain = draw(6, 1, (3, 1, ""), (1, 0, ""), (1, 6, ""))
    assert_served_by(chain, (0, 3, 0), Step.NO_MOVE, ((1, 1), (3, 6), (6, 6)))
    assert_impossible(full(chain), (0, 4, 0))


def test_bytes_above_an_empty_end_are_nobodys() -> None:
    chain = draw(5, 0, (1, 0, ""), (1, 0, ""), (2, 2, ""))
    assert_served_by(chain, (0, 4, 0), Step.NO_MOVE, ((0, 0), (0, 4), (2, 2)))
    assert_impossible(full(chain), (0, 5, 0))


def test_free_bytes_across_a_page_border_hold_no_page() -> None:
    # Bytes 2, 3 and 4 are free, but pages of three bytes start at 0 and 3.
    chain = draw(5, 0, (2, 0, "L"), (3, 0, ""), (1, 5, ""))
    assert_impossible(full(chain), (0, 1, 0))


def test_the_sink_is_nobodys() -> None:
    assert_impossible(full(draw(4, 1, (1, 4, ""))), (4,))
    assert_impossible(full(draw(4, 1, (1, 1, ""), (1, 4, ""))), (2, 2))


def test_a_chain_of_one_band_is_a_high_end() -> None:
    chain = draw(7, 1, (2, 2, "L"))
    assert_served_by(chain, (1,), Step.NO_MOVE, ((1, 3),))
    assert_impossible(full(chain), (2,))


def test_one_band_gives_up_a_hole_when_flushed() -> None:
    view = full(draw(3, 0, (1, 0, "hLh")))
    assert_planned(view, (0,), Step.NO_MOVE, ((0, 3),))
    assert_planned(view, (0,), Step.FLUSH_ENDS, ((2, 3),))


# Placement.


def test_floats_share_the_free_bytes_evenly() -> None:
    view = full(draw(11, 0, (1, 0, "L"), (1, 1, "L"), (1, 2, "L"), (1, 10, "L")))
    assert_planned(view, (0, 0, 0, 0), Step.RELAYOUT, ((0, 1), (3, 4), (6, 7), (10, 11)))


def test_a_float_that_stays_empty_gets_no_share() -> None:
    view = full(draw(11, 0, (1, 0, "L"), (1, 1, "L"), (1, 0, ""), (1, 10, "L")))
    assert_planned(view, (0, 0, 0, 0), Step.RELAYOUT, ((0, 1), (5, 6), (0, 0), (10, 11)))


def test_floats_share_only_what_lies_below_a_pinned_one() -> None:
    # Four bytes are free below the fixed page, two on either side of the float there; of the
    # five free bytes above it, the other float leaves two below itself.
    view = full(draw(12, 0, (1, 0, ""), (1, 0, "L"), (1, 5, "F"), (1, 6, "L"), (1, 12, "")))
    spans = ((0, 0), (2, 3), (5, 6), (8, 9), (12, 12))
    assert_planned(view, (0, 0, 0, 0, 0), Step.RELAYOUT, spans)


def test_a_planned_span_holds_nothing_beyond_the_demand() -> None:
    view = full(draw(9, 0, (1, 0, "Lh"), (1, 3, "LhL"), (1, 7, "hL")))
    assert_planned(view, (0, 1, 0), Step.RELAYOUT, ((0, 1), (3, 6), (8, 9)))


# The most of one band.


def test_most_pages_of_a_float_counts_whole_pages_between_its_neighbours() -> None:
    view = full(draw(12, 1, (2, 1, "L"), (3, 0, ""), (1, 11, "L")))
    assert most_pages(view, (0, 0, 0), 1) == 1  # Bytes 6 to 8 of 4 to 10.
    assert most_pages(view, (1, 0, 0), 1) == 1
    assert most_pages(view, (2, 0, 0), 1) == 0


def test_most_pages_ignores_the_demand_of_the_band_asked_for() -> None:
    view = full(draw(6, 0, (1, 0, "L"), (1, 6, "")))
    assert most_pages(view, (99, 1), 0) == 4
    assert most_pages(view, (1, 99), 1) == 4


def test_most_pages_is_none_when_the_others_do_not_fit() -> None:
    view = full(draw(6, 0, (1, 0, ""), (1, 2, "F"), (1, 6, "")))
    assert most_pages(view, (3, 0, 0), 1) == 0
    assert most_pages(view, (0, 0, 4), 0) == 0
    assert most_pages(view, (3, 0, 0), 2) == 0


def test_most_pages_grow_on_both_sides_of_a_fixed_page() -> None:
    view = full(draw(6, 0, (1, 0, ""), (1, 2, "F"), (1, 6, "")))
    assert most_pages(view, (1, 0, 1), 1) == 3


# The order of moves.


def test_bands_that_stay_are_not_in_the_order() -> None:
    view = full(draw(6, 0, (1, 0, "L"), (1, 2, "L"), (1, 0, ""), (1, 5, "L")))
    assert move_order(view, ((0, 1), (2, 3), (7, 7), (5, 6))) == ()


def test_a_float_waits_for_the_one_it_would_jump_over() -> None:
    # The lower float's target is free already, but beyond the upper one.
    view = full(draw(7, 1, (1, 1, ""), (1, 1, "L"), (1, 2, "L"), (1, 7, "")))
    assert move_order(view, ((1, 2), (5, 6), (6, 7), (7, 7))) == (0, 2, 1)


def test_floats_that_move_down_go_from_the_lowest() -> None:
    view = full(draw(8, 0, (1, 0, ""), (1, 5, "L"), (1, 6, "L"), (1, 8, "")))
    assert move_order(view, ((0, 0), (0, 1), (1, 2), (8, 8))) == (1, 2)


def test_an_end_gives_way_before_a_float_moves() -> None:
    view = full(draw(6, 0, (1, 0, "hhL"), (1, 4, "L"), (1, 6, "")))
    assert move_order(view, ((0, 1), (2, 3), (6, 6))) == (0, 1)


def test_a_float_without_used_pages_gives_way_before_another_takes_its_place() -> None:
    view = full(draw(6, 0, (1, 0, ""), (1, 0, "L"), (1, 2, "pp"), (1, 6, "")))
    assert move_order(view, ((0, 0), (2, 3), (0, 0), (6, 6))) == (2, 1)


def test_an_empty_float_waits_for_neighbours_on_both_sides() -> None:
    view = full(draw(6, 0, (1, 0, ""), (1, 1, "L"), (1, 0, ""), (1, 2, "L"), (1, 6, "")))
    assert move_order(view, ((0, 0), (0, 1), (1, 3), (3, 4), (6, 6))) == (1, 3, 2)


# What `assert_plan` refuses.


@pytest.mark.parametrize(
    ("spans", "complaint"),
    [
        (((1, 3), (3, 4), (4, 5), (7, 8)), r"band 0.*exactly 1"),
        (((1, 2), (3, 4), (5, 6), (7, 8)), r"band 2.*leaves out pinned page 4"),
        (((2, 3), (3, 4), (4, 5), (7, 8)), r"band 0.*start at its wall"),
        (((1, 2), (3, 4), (4, 5), (6, 7)), r"band 3.*end at its wall"),
        (((1, 2), (1, 2), (4, 5), (7, 8)), r"band 1.*starts below byte 2"),
        (((1, 2), (4, 5), (4, 5), (7, 8)), r"band 2.*starts below byte 5"),
        (((1, 2), (3, 4), (4, 4), (7, 8)), r"band 2.*leaves out pinned page 4"),
    ],
)
def test_an_unsafe_plan_is_named(spans: Spans, complaint: str) -> None:
    view = full(draw(8, 1, (1, 1, "L"), (1, 2, "L"), (1, 4, "F"), (1, 7, "L")))
    assert_plan(view, (0, 0, 0, 0), Step.RELAYOUT, ((1, 2), (3, 4), (4, 5), (7, 8)))
    with pytest.raises(AssertionError, match=complaint):
        assert_plan(view, (0, 0, 0, 0), Step.RELAYOUT, spans)


def test_a_view_with_crossed_spans_is_refused() -> None:
    view = full(draw(8, 1, (1, 1, "LL"), (1, 2, "L"), (1, 8, "")))
    with pytest.raises(AssertionError, match=r"band 1.*starts below byte 3"):
        assert_plan(view, (0, 0, 0), Step.RELAYOUT, ((1, 3), (3, 4), (8, 8)))


def test_every_step_has_its_place() -> None:
    # The table of pinned columns is indexed by the step.
    assert [int(step) for step in Step] == [0, 1, 2]
