"""Effects: what a call does beside its answer is reported."""

from harness.check import effects
from harness.world import World
from tests.harness.lived_in import allocators, bands, is_busy, reports, world_when
from unikv.device.port import Stream


def busy() -> World:
    """A world at a busy moment, at the start of an operation."""
    world = world_when("smoke", is_busy)
    for port in world.ports:
        port.begin_operation()
    world.books = world.subjects[0].books()
    return world


def test_a_refusal_without_effects_is_silent() -> None:
    world = busy()
    effects.after_refusal(world, 0, world.books)
    assert reports(world) == []
    assert world.check_runs["effects"] > 0


def test_work_submitted_by_a_refusal_is_reported() -> None:
    world = busy()
    world.ports[0].log.append(("zero", Stream.SCHEDULE, 0, [1]))
    effects.after_refusal(world, 0, world.books)
    assert ("effects", "refusal submitted work") in reports(world)


def test_a_book_changed_by_a_refusal_is_reported() -> None:
    world = busy()
    before = world.books
    for band in bands(world, world.owner_band):
        band.holes += 1
    effects.after_refusal(world, 0, before)
    assert ("effects", "refusal changed books") in reports(world)


def test_a_wait_of_a_free_is_reported() -> None:
    world = busy()
    world.ports[0].log.append(("wait", Stream.SCHEDULE, Stream.FORWARD, 1))
    effects.after_free(world, "free", 0)
    assert ("effects", "free waited") in reports(world)


def test_a_wait_before_a_free_is_not_its_own() -> None:
    world = busy()
    world.ports[0].log.append(("wait", Stream.SCHEDULE, Stream.FORWARD, 1))
    effects.after_free(world, "free", 1)
    assert not [problem for problem in world.truth.problems if problem.check == "effects"]


def test_a_flush_over_its_limit_is_reported() -> None:
    world = busy()
    effects.after_flush(world, 2, 3, world.books)
    assert reports(world) == [("effects", "flush over its limit")]


def test_a_flush_that_waits_and_moves_nothing_is_reported() -> None:
    world = busy()
    world.ports[0].log.append(("wait", Stream.SCHEDULE, Stream.FORWARD, 1))
    effects.after_flush(world, 2, 0, world.books)
    assert ("effects", "flush waited for nothing") in reports(world)


def test_a_page_that_a_flush_returned_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and world.books[-1].counts[2] > 0)
    before = world.subjects[0].books()
    for subject in allocators(world):
        subject.storage.chain.reclaim.settle_all()
    effects.after_flush(world, 2, 1, before)
    assert ("effects", "flush settled") in reports(world)
