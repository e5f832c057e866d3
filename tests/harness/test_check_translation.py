"""Translation: an id that is looked for in the wrong page is reported when a step uses it."""

import pytest

from harness.check import translation
from harness.world import World
from tests.harness.lived_in import is_busy, reports, running, world_when


def translated(world: World) -> tuple[list[int], list[int]]:
    """The ids of a running request and their pages of full attention."""
    ids = list(running(world)[0].pages)
    return ids, world.subjects[0].translate(world.owner_band, ids)


def test_right_pages_are_not_reported() -> None:
    world = world_when("smoke", is_busy)
    translation.compare(world, world.owner_band, *translated(world))
    assert reports(world) == []
    assert world.check_runs["translation"] > 1


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_page_from_before_a_move_is_reported(wrong: int) -> None:
    world = world_when("smoke", lambda world: is_busy(world) and len(running(world)[0].pages) > 1)
    ids, pages = translated(world)
    pages[wrong] += 1
    translation.compare(world, world.owner_band, ids, pages)
    assert reports(world) == [("translation", "stale translation")]


def test_an_id_that_names_no_page_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and 0 in world.truth.held[-1][1:])
    unit = world.truth.held[world.owner_band].index(0, 1)
    translation.compare(world, world.owner_band, [unit], [0])
    assert reports(world) == [("translation", "read of an unbound page")]
