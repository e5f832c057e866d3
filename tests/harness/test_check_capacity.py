"""Capacity: a refusal that a layout or an id contradicts is reported."""

import pytest

from harness.check import capacity
from harness.ops import Outcome, Relieve
from harness.world import World
from tests.harness.lived_in import is_busy, reports, world_when
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
