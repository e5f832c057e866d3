"""Noted: what is seen while an operation runs is reported under the promise that it breaks.

Several promises are seen only there: that pages are initialised, that ranks answer alike, that a
legal call raises nothing.
"""

from harness.check import noted
from harness.ops import Launch
from harness.problem import BrokenSubject
from harness.requests import Request
from harness.runner import Run
from harness.world import World
from tests.harness.lived_in import (
    allocators,
    is_busy,
    may_launch,
    reports,
    run_when,
    running,
    world_when,
)


def test_a_note_is_a_violation_of_its_promise() -> None:
    world = world_when("smoke", is_busy)
    world.truth.note("ledger", "kind of break", "what happened")
    (violation,) = noted.examine(world)
    assert (violation.check, violation.detail, violation.what) == (
        "ledger",
        "kind of break",
        "what happened",
    )
    assert violation.operation == world.device.operation


def kinds(run: Run) -> list[tuple[str, str]]:
    """What a run has reported."""
    return [(violation.check, violation.detail) for violation in run.violations]


def next_slot_is_blank(world: World, request: Request) -> bool:
    """Its next token and at least one slot behind it lie on a page that it has begun."""
    slots = world.setup.page_slots
    return request.prepared == 1 and 0 < request.length % slots < slots - 1


def can_decode(world: World) -> bool:
    """Some request may go on in the middle of a page."""
    return may_launch(world) and any(next_slot_is_blank(world, r) for r in running(world))


def test_garbage_in_a_slot_that_was_promised_as_zeros_is_reported_when_it_is_read() -> None:
    run = run_when("smoke", can_decode)
    world, band = run.world, run.world.owner_band
    request = next(r for r in running(world) if next_slot_is_blank(world, r))
    (page,) = world.subjects[0].translate(band, [request.pages[-1]])
    at = (page + 1) * world.layout.bands[band].page_bytes - 1
    for image in (world.device.program, *(rank.image for rank in world.device.ranks)):
        image.arena[at] = 255
    world.order_tables()
    run.execute(Launch((request.name,)))
    assert kinds(run) == [("initialised", "slot promised as zeros")]


def is_stateful(request: Request) -> bool:
    """It has a state to go on from, and slots for more tokens."""
    return bool(request.length and request.prepared) and not request.source


def can_go_on_from_a_state(world: World) -> bool:
    """Some request may go on from its state."""
    return may_launch(world) and any(map(is_stateful, running(world)))


def test_a_state_that_was_never_written_is_reported_when_it_is_read() -> None:
    run = run_when("hybrid", can_go_on_from_a_state)
    world = run.world
    request = next(filter(is_stateful, running(world)))
    world.truth.content[world.state_band][world.states.slot_of(world, request)] = None
    world.order_tables()
    run.execute(Launch((request.name,)))
    assert kinds(run) == [("initialised", "read before the first write")]


def broken(world: World, call: str, *arguments: object) -> bool:
    """Whether the world gave its subjects up over a call."""
    try:
        world.ask(call, *arguments)
    except BrokenSubject:
        return True
    return False


def test_an_allocator_that_trips_over_its_own_assertion_is_reported() -> None:
    world = world_when("smoke", is_busy)
    for subject in allocators(world):
        subject.storage.chain.owner.states[:] = bytes(len(subject.storage.chain.owner.states))
    assert broken(world, "free", [running(world)[0].pages[0]])
    assert [note.check for note in world.truth.problems] == ["assertion"]
    assert "AssertionError in free" in world.truth.problems[0].detail


def test_an_allocator_that_refuses_a_legal_free_is_reported() -> None:
    world = world_when("smoke", is_busy)
    unit = running(world)[0].pages[0]
    for subject in allocators(world):
        subject.storage.chain.owner.ids.forward[unit] = 0
    assert broken(world, "free", [unit])
    assert [note.check for note in world.truth.problems] == ["ownership"]


def test_an_allocator_that_refuses_a_legal_step_is_reported() -> None:
    world = world_when("smoke", is_busy)
    assert broken(world, "process_step", world.steps[0].number + 1)
    assert [note.check for note in world.truth.problems] == ["ledger"]


def test_ranks_that_answer_differently_are_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and world.subjects[0].fits(1, 0))
    (_, other) = allocators(world)
    band = other.storage.chain.owner.index
    other.storage.chain.minted[band].mint(1)
    assert broken(world, "take", 1, 0)
    assert [note.check for note in world.truth.problems] == ["divergence"]


def test_a_note_is_reported_with_the_other_reports() -> None:
    world = world_when("smoke", is_busy)
    world.truth.note("assertion", "AssertionError in free", "what happened")
    assert reports(world) == [("assertion", "AssertionError in free")]
