"""Ledger: a page that is free too early or pending too long is reported, and a write not shared."""

from harness.world import World
from tests.harness.lived_in import allocators, bands, is_busy, reports, world_when
from unikv.alloc.band import HOLE, LIVE, PENDING
from unikv.alloc.page_usage import Use


def has_inner(world: World, state: int) -> bool:
    """The low end has a page in this state behind its frontier, and something is in flight."""
    if not is_busy(world):
        return False
    states = world.books[0].states
    return 0 < states.find(state) < states.rfind(LIVE)


def test_a_page_that_is_free_under_a_running_step_is_reported() -> None:
    world = world_when(
        "smoke",
        lambda world: (
            has_inner(world, PENDING)
            and world.truth.retired_through < min(world.truth.pending[0].values())
        ),
    )
    page = world.books[0].states.find(PENDING)
    for band in bands(world, 0):
        band.release_pending([page])
    assert reports(world) == [("ledger", "free too early")]


def test_a_page_that_is_free_once_its_steps_are_over_is_not_reported() -> None:
    world = world_when("smoke", lambda world: has_inner(world, PENDING))
    world.truth.settled_through = world.steps[-1].number
    page = world.books[0].states.find(PENDING)
    for band in bands(world, 0):
        band.release_pending([page])
    for subject in allocators(world):
        subject.storage.chain.ledger.end_writes(world.steps[-1].number)
    assert reports(world) == []


def test_a_page_that_pends_on_nothing_is_reported() -> None:
    world = world_when("smoke", lambda world: has_inner(world, HOLE) and not world.truth.pending[0])
    page = world.books[0].states.find(HOLE)
    for band in bands(world, 0):
        band.occupy_holes([page])
        band.pend_live([page])
    assert reports(world) == [("ledger", "kept too long")]


def test_a_write_that_no_step_makes_is_reported() -> None:
    world = world_when("smoke", is_busy)
    for subject in allocators(world):
        subject.storage.chain.ledger.add(Use.FORWARD_WRITE, 0, [1], world.steps[-1].number + 1)
    assert reports(world) == [("ledger", "writes differ")]


def test_a_write_that_the_allocator_forgot_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and len(world.subjects[0].uses()))
    for subject in allocators(world):
        subject.storage.chain.ledger.end_writes(world.steps[-1].number)
    assert reports(world) == [("ledger", "writes differ")]


def test_a_move_under_unknown_writes_is_reported() -> None:
    world = world_when(
        "smoke",
        lambda world: is_busy(world) and world.truth.newest_unknown > world.truth.retired_through,
    )
    world.truth.moved(0, [])
    assert ("ledger", "move under unknown writes") in reports(world)
