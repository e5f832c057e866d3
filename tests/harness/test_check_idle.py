"""Idle: whatever is left over once nothing is in flight is reported."""

from harness.world import World
from tests.harness.lived_in import allocators, bands, is_busy, reports, running, world_when
from unikv.alloc.page_usage import Use


def rested() -> World:
    """A world with requests in which nothing is in flight."""
    world = world_when("smoke", is_busy)
    world.come_to_rest()
    return world


def test_a_pending_page_is_reported() -> None:
    world = rested()
    unit = running(world)[0].pages[0]
    for band in bands(world, world.owner_band):
        band.pend_live([band.ids.forward[unit]])
    assert ("idle", "pages left over") in reports(world)


def test_a_use_is_reported() -> None:
    world = rested()
    for subject in allocators(world):
        subject.storage.chain.ledger.add(Use.VACATED, 0, [1], 1)
    assert reports(world) == [("idle", "uses left over")]


def test_a_row_that_nobody_gave_back_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and world.subjects[0].free_rows() > 0)
    world.come_to_rest()
    for subject in allocators(world):
        subject.take_row()
    assert reports(world) == [("idle", "rows leaked")]


def test_a_span_without_a_page_is_reported() -> None:
    world = rested()
    for name in list(world.requests):
        if world.requests[name] in running(world):
            world.release(world.requests[name])
    for key in list(world.prefixes):
        prefix = world.prefixes.pop(key)
        world.let_go(prefix.pages, prefix.tails)
    world.come_to_rest()
    assert reports(world) == []
    for band in bands(world, 0):
        band.claim(1, 3)
    assert ("idle", "span left over") in reports(world)


def test_nothing_is_reported_while_something_is_in_flight() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and len(world.subjects[0].uses()))
    assert reports(world) == []
