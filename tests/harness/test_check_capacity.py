"""Capacity: a refusal that a layout or an id contradicts is reported."""

import pytest

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
