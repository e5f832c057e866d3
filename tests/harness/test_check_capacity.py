"""Capacity: a refusal that a layout or an id contradicts is reported."""

import pytest

from harness.check import capacity
from harness.ops import Advance, Outcome, Relieve
from harness.requests import Request
from harness.world import World
from tests.harness.lived_in import is_busy, reports, running, world_when
from unikv.errors import Shortage


def room(world: World) -> bool:
    """One more page of every token band fits, and an id is free."""
    return is_busy(world) and world.subjects[0].fits(1, 0)


def refused(world: World, kind: str, pages: int) -> None:
    """The allocator has refused a take of so many pages."""
    counts = tuple(0 if band == world.state_band else pages for band in world.band_range)
    world.capacity_answers.append((Shortage(kind, "full", pages, 0), counts))


@pytest.mark.parametrize("name", ["smoke", "hybrid"])
@pytest.mark.parametrize("kind", ["ids", "bytes"])
def test_a_refusal_of_what_is_there_is_reported(name: str, kind: str) -> None:
    world = world_when(name, room)
    refused(world, kind, 1)
    assert reports(world) == [("capacity", f"refused {kind} that are there")]


@pytest.mark.parametrize("kind", ["ids", "bytes"])
def test_a_refusal_of_more_than_there_is_is_confirmed(kind: str) -> None:
    world = world_when("smoke", is_busy)
    refused(world, kind, 999)
    assert reports(world) == []
    assert world.check_runs["capacity"] > 0


def test_a_refusal_is_judged_once() -> None:
    world = world_when("smoke", room)
    refused(world, "bytes", 1)
    reports(world)
    assert reports(world) == []


def test_a_refusal_for_another_reason_is_reported() -> None:
    world = world_when("smoke", room)
    refused(world, "rows", 1)
    assert reports(world) == [("capacity", "refused rows that are there")]


# Figures ----------------------------------------------------------------------------------------


def figures(world: World, kind: str, demand: tuple[int, ...]) -> tuple[str, int, int]:
    """Band, units asked for and units free as the allocator gives them."""
    shortage = world.ask("take", demand[world.owner_band], 0)
    assert isinstance(shortage, Shortage)
    assert shortage.kind == kind
    return shortage.band, shortage.asked, shortage.free


def many_pages(world: World, kind: str) -> tuple[int, ...]:
    """More pages of every token band than there are ids, or as many as there are ids."""
    full = world.owner_band
    free = world.layout.bands[full].id_count - world.truth.held_count[full]
    pages = free + 1 if kind == "ids" else free
    return tuple(0 if band == world.state_band else pages for band in world.band_range)


def short_of_bytes(world: World) -> bool:
    """Bytes run out before ids do."""
    return is_busy(world) and not world.subjects[0].fits(many_pages(world, "bytes")[-1], 0)


@pytest.mark.parametrize("kind", ["ids", "bytes"])
def test_the_figures_of_a_refusal_are_confirmed(kind: str) -> None:
    world = world_when("smoke", short_of_bytes)
    demand = many_pages(world, kind)
    given = figures(world, kind, demand)
    capacity.after_a_shortage(world, Shortage(kind, *given), demand)
    assert world.truth.problems == []


@pytest.mark.parametrize("kind", ["ids", "bytes"])
@pytest.mark.parametrize("wrong", ["band", "asked", "free"])
def test_another_figure_of_a_refusal_is_reported(kind: str, wrong: str) -> None:
    world = world_when("smoke", short_of_bytes)
    demand = many_pages(world, kind)
    band, asked, free = figures(world, kind, demand)
    band = "nowhere" if wrong == "band" else band
    shortage = Shortage(kind, band, asked + (wrong == "asked"), free + (wrong == "free"))
    capacity.after_a_shortage(world, shortage, demand)
    assert reports(world) == [("capacity", "refusal with other figures")]


# Reliefs ----------------------------------------------------------------------------------------


def fits_after_moves_only(world: World) -> bool:
    """One more page of every token band fits, and for it something that is claimed must move."""
    subject = world.subjects[0]
    if not is_busy(world) or not subject.fits(1, 0):
        return False
    capacity.after_a_relief(world, one_page(world))
    is_in_the_way = bool(world.truth.problems)
    world.truth.problems.clear()
    return is_in_the_way


def one_page(world: World) -> tuple[int, ...]:
    """A page of every token band."""
    return tuple(int(band != world.state_band) for band in world.band_range)


def test_a_relief_that_says_yes_and_moves_nothing_is_reported() -> None:
    world = world_when("hybrid", fits_after_moves_only)
    capacity.after_a_relief(world, one_page(world))
    assert "in span" in world.truth.problems[0].what
    assert reports(world) == [("capacity", "relief made no room")]


def test_a_relief_that_has_made_the_room_is_silent() -> None:
    world = world_when("hybrid", fits_after_moves_only)
    assert Relieve(1, 0).apply(world) is Outcome.DONE
    assert world.truth.problems == []


# What admission prices --------------------------------------------------------------------------


def has_retired(world: World) -> bool:
    """A running request has given up window rows, and nothing is half done."""
    return is_busy(world) and bool(retired(world))


def retired(world: World) -> list[Request]:
    """Running requests that have given up window rows."""
    bands = world.window_bands
    return [r for r in running(world) if any(r.window_first[band] for band in bands)]


def advanced(world: World) -> Request:
    """A request that has given up all the window rows that it may."""
    request = retired(world)[0]
    Advance(request.name).apply(world)
    return request


@pytest.mark.parametrize("name", ["smoke", "rows"])
def test_a_request_that_has_given_up_its_rows_is_silent(name: str) -> None:
    world = world_when(name, has_retired)
    advanced(world)
    assert reports(world) == []


@pytest.mark.parametrize("name", ["smoke", "rows"])
def test_a_row_that_nobody_attends_is_reported(name: str) -> None:
    world = world_when(name, has_retired)
    request = advanced(world)
    band = next(band for band in world.window_bands if request.window_first[band])
    first = request.window_first[band]
    request.window_first[band] = max(0, first - 1 - world.setup.checkpoints.interval)
    capacity.after_an_advance(world, request)
    request.window_first[band] = first
    assert reports(world) == [("capacity", "window rows beyond the price")]


def on_a_grid(world: World) -> bool:
    """A request runs where states are kept on a grid."""
    return world.state_band >= 0 and world.setup.checkpoints.interval > 1 and is_busy(world)


def test_a_chunk_that_ends_between_two_checkpoints_is_reported() -> None:
    world = world_when("rows", on_a_grid)
    interval = world.setup.checkpoints.interval
    request = Request("r", 3 * interval + 1, 1, ())
    for first, tokens in ((0, interval), (interval, 2 * interval), (interval, 2 * interval + 1)):
        capacity.after_a_chunk(world, request, first, tokens)
    assert world.truth.problems == []
    capacity.after_a_chunk(world, request, 0, interval + 1)
    capacity.after_a_chunk(world, request, 0, request.prompt + 1)
    assert reports(world) == [("capacity", "chunk ends off the grid")] * 2


def test_a_chunk_may_end_anywhere_where_no_state_is_kept() -> None:
    world = world_when("smoke", is_busy)
    capacity.after_a_chunk(world, Request("r", 10, 1, ()), 0, 7)
    assert reports(world) == []
