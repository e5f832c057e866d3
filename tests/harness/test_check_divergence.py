"""Divergence: a rank that submits other work or keeps other books is reported."""

from tests.harness.lived_in import bands, is_busy, reports, running, world_when
from unikv.device.port import Stream


def test_a_rank_that_submits_something_more_is_reported() -> None:
    world = world_when("smoke", is_busy)
    world.ports[1].zero_pages(Stream.SCHEDULE, 0, [1])
    assert reports(world) == [("divergence", "submissions differ")]


def test_a_rank_that_keeps_other_states_is_reported() -> None:
    world = world_when("smoke", is_busy)
    _, other = bands(world, world.owner_band)
    other.pend_live([other.ids.forward[running(world)[0].pages[0]]])
    assert reports(world) == [("divergence", "books differ")]


def test_a_rank_that_has_another_map_is_reported() -> None:
    world = world_when("smoke", is_busy)
    _, other = bands(world, world.owner_band)
    other.ids.forward[running(world)[0].pages[0]] += 1
    assert reports(world) == [("divergence", "maps differ")]
