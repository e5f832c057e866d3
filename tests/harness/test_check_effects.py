"""Effects: what a call does beside its answer is reported."""

from harness.check import effects
from harness.choices import SeedChoices
from harness.faults.catalog import FAULTS
from harness.faults.parts import become
from harness.ops import Outcome, Prewarm, Relieve
from harness.setup import draw_setup
from harness.subject import Answer
from harness.unikv_subject import UnikvSubject
from harness.world import World
from tests.harness.lived_in import allocators, bands, is_busy, reports, scenario, world_when
from unikv.alloc.prewarm import prewarm_copies
from unikv.device.port import Stream
from unikv.errors import TransferError


def busy() -> World:
    """A world at a busy moment, at the start of an operation."""
    world = world_when("smoke", is_busy)
    for port in world.ports:
        port.begin_operation()
    world.books = world.subjects[0].books()
    return world


def test_a_refusal_without_effects_is_silent() -> None:
    world = busy()
    effects.after_refusal(world, "take", 0, world.books)
    assert reports(world) == []
    assert world.check_runs["effects"] > 0


def test_work_submitted_by_a_refusal_is_reported() -> None:
    world = busy()
    world.ports[0].log.append(("zero", Stream.SCHEDULE, 0, [1]))
    effects.after_refusal(world, "take", 0, world.books)
    assert ("effects", "refusal submitted work") in reports(world)


def test_a_book_changed_by_a_refusal_is_reported() -> None:
    world = busy()
    before = world.books
    for band in bands(world, world.owner_band):
        band.holes += 1
    effects.after_refusal(world, "take", 0, before)
    assert ("effects", "refusal changed books") in reports(world)


def with_pending_pages(world: World) -> bool:
    """Settling would give pages of the owner back."""
    return is_busy(world) and world.books[-1].counts[2] > 0


class _WaitsInVain(UnikvSubject):
    """Settles, and raises as a take does that no transfer makes room for."""

    def take(self, pages: int, slots: int) -> Answer:
        self.storage.chain.reclaim.settle_all()
        raise TransferError("in vain")


def test_a_take_that_waited_in_vain_and_has_settled_is_reported() -> None:
    world = world_when("smoke", with_pending_pages)
    for subject in allocators(world):
        become(subject, _WaitsInVain)
    assert world.take(1, 0) is None
    found = reports(world)
    assert ("effects", "refusal submitted work") in found
    # There is no network for whose sake anything could be refused.
    assert ("capacity", "refused for no transfer") in found


def test_a_relief_that_says_no_and_has_settled_is_reported() -> None:
    world = world_when("smoke", with_pending_pages)
    FAULTS["refused-relief-settles"].plant(world)
    assert Relieve(999, 0).apply(world) is Outcome.REFUSED
    assert "a refused relieve submitted wait" in world.truth.problems[0].what
    assert ("effects", "refusal submitted work") in reports(world)


def test_a_relief_that_says_no_and_changes_nothing_is_silent() -> None:
    world = world_when("smoke", with_pending_pages)
    assert Relieve(999, 0).apply(world) is Outcome.REFUSED
    assert world.truth.problems == []


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
    world = world_when("smoke", with_pending_pages)
    before = world.subjects[0].books()
    for subject in allocators(world):
        subject.storage.chain.reclaim.settle_all()
    effects.after_flush(world, 2, 1, before)
    assert ("effects", "flush settled") in reports(world)


# The first copies -------------------------------------------------------------------------------


def empty() -> World:
    """A world in which nothing was taken, at the start of its first operation."""
    return World(draw_setup(scenario("hybrid"), SeedChoices(1)))


def test_a_prewarm_that_copies_in_every_band_is_silent() -> None:
    world = empty()
    assert Prewarm().apply(world) is Outcome.DONE
    assert world.truth.problems == []
    assert world.check_runs["effects"] == 1


def test_a_band_that_a_prewarm_left_out_is_reported() -> None:
    world = empty()
    for subject in allocators(world):
        chain = subject.storage.chain
        prewarm_copies(chain.device, chain.bands[1:])
    effects.after_prewarm(world, 0, world.books)
    assert [problem.detail for problem in world.truth.problems] == ["prewarm left a first use"]
    assert world.layout.bands[0].name in world.truth.problems[0].what


def test_a_copy_of_a_prewarm_to_another_page_is_reported() -> None:
    world = empty()
    world.ports[0].log += [("move", Stream.SCHEDULE, band, (2,), (1,)) for band in world.band_range]
    effects.after_prewarm(world, 0, world.books)
    assert [p.detail for p in world.truth.problems] == ["prewarm wrote outside the sink"]


def test_a_book_changed_by_a_prewarm_is_reported() -> None:
    world = empty()
    before = world.books
    for subject in allocators(world):
        subject.storage.chain.prewarm()
        subject.storage.chain.take(1, 0)
    effects.after_prewarm(world, 0, before)
    assert "prewarm changed books" in [problem.detail for problem in world.truth.problems]


def test_nothing_is_prewarmed_after_the_first_take() -> None:
    assert Prewarm().apply(busy()) is Outcome.SKIPPED
