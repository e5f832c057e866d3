"""Conservation: a page or byte that is not accounted for is reported."""

import re

from harness.world import World
from tests.harness.lived_in import bands, is_busy, reported, reports, world_when
from unikv.alloc.band import HOLE, PENDING, UNCLAIMED


def has_inner_hole(world: World) -> bool:
    """The low end has a hole behind its frontier, and something is in flight."""
    return is_busy(world) and world.books[0].states.count(HOLE) > 0


def test_a_count_that_its_states_do_not_have_is_reported() -> None:
    world = world_when("smoke", is_busy)
    for band in bands(world, 0):
        band.holes += 1
    assert reports(world) == [("conservation", "counts")]


def test_a_page_that_is_claimed_and_not_counted_is_reported() -> None:
    world = world_when("smoke", has_inner_hole)
    for band in bands(world, 0):
        band.states[band.states.index(HOLE)] = UNCLAIMED
    assert reports(world) == [("conservation", "counts"), ("conservation", "span")]


def test_a_page_lost_from_the_span_with_its_count_is_reported() -> None:
    world = world_when("smoke", has_inner_hole)
    for band in bands(world, 0):
        band.states[band.states.index(HOLE)] = UNCLAIMED
        band.holes -= 1
    assert reports(world) == [("conservation", "span")]


def test_a_live_page_that_nobody_bound_is_reported() -> None:
    world = world_when("smoke", has_inner_hole)
    for band in bands(world, 0):
        band.take_holes(1)
    check, detail, what = reported(world)
    assert (check, detail) == ("conservation", "live pages")
    assert re.fullmatch(r"band 'window128': pages \[\d+\] have no id and are counted as live", what)


def test_a_bound_page_that_is_called_free_is_reported() -> None:
    world = world_when(
        "smoke", lambda world: is_busy(world) and world.books[0].states[1:3] == b"\1\1"
    )
    for band in bands(world, 0):
        band.release_live([1])
    assert reported(world) == (
        "conservation",
        "live pages",
        "band 'window128': pages [1] have ids and are not counted as live",
    )


def test_a_free_page_at_a_moving_edge_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and gap_pages(world) >= 1)
    for band in bands(world, 0):
        band.claim(1, max(1, band.span()[1]) + 1)
    assert reports(world) == [("conservation", "frontier")]


def test_a_free_page_at_the_edge_of_the_high_end_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and gap_pages(world) >= 1)
    for band in bands(world, 1):
        low, high = band.span()
        band.claim(low - 1, high)
    assert reports(world) == [("conservation", "frontier")]


def gap_pages(world: World) -> int:
    """Pages between the two ends, which both have a span."""
    (_, top), (bottom, _) = world.books[0].span, world.books[1].span
    return bottom - top if top and bottom else 0


def test_spans_that_cross_are_reported() -> None:
    world = world_when("smoke", is_busy)
    for band in bands(world, 1):
        low = world.books[0].span[1] - 1
        band.claim(low, band.span()[1])
        band.pend_live(band.take_holes(1))
    kinds = reports(world)
    assert ("conservation", "spans cross") in kinds
    assert {check for check, _ in kinds} <= {"conservation", "ledger"}


def test_a_pending_page_is_no_free_page_at_an_edge() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and ends_pending(world))
    assert reports(world) == []


def ends_pending(world: World) -> bool:
    """The frontier of the low end is a pending page."""
    _, high = world.books[0].span
    return high > 0 and world.books[0].states[high - 1] == PENDING


def test_a_free_page_at_the_edge_of_a_single_band_is_reported() -> None:
    world = world_when("full_only", lambda world: is_busy(world) and world.books[0].span[0] > 1)
    for band in bands(world, 0):
        low, high = band.span()
        band.claim(low - 1, high)
    assert reports(world) == [("conservation", "frontier")]
