"""States that a load or a peer brings: who holds their slots, and from when on they are run on."""

from harness.host import Load
from harness.ops import BeginResume, BeginSave, CancelCopy, IdleCheck, SubmitCopy
from harness.requests import Phase, Request
from harness.runner import Run
from harness.world import World
from tests.harness.backed import ends_empty, tracked
from tests.harness.lived_in import run_when
from tests.harness.test_parked import apply, may_save, whole
from unikv.cache.state_step import Content


def with_a_checkpoint(world: World) -> list[Request]:
    """Requests that can be saved and hold a slot for checkpoints."""
    return [r for r in whole(world) if len(world.states.held(world, r)) == 2]


def may_save_one_with_a_checkpoint(world: World) -> bool:
    """The first request that can be saved now is such a one."""
    return may_save(world) and whole(world)[:1] == with_a_checkpoint(world)[:1]


def has_just_been_received(world: World) -> bool:
    """A request runs whose prompt a peer has written, and has not run yet."""
    return any(
        r.came_from == "peer" and r.phase is Phase.RUNNING and r.length == r.prompt
        for r in world.running.values()
    )


def unsubmitted_loads(world: World) -> list[tuple[str, Load]]:
    """Loads of prefixes on whose pages nobody was admitted."""
    return [
        (name, load)
        for name, load in world.host.loads.items()
        if not load.parked and not load.events and load.prefix.locks == 1
    ]


def begins_a_load(world: World) -> bool:
    """There is such a load, and no step is in the way."""
    return bool(unsubmitted_loads(world)) and world.open_step is None


def content(run: Run, slot: int) -> Content:
    """What is in a slot, as the library has it."""
    return tracked(run).slots.state_of(slot).content


def test_a_request_goes_with_two_slots_and_comes_back_with_one() -> None:
    run = run_when("everything", may_save_one_with_a_checkpoint)
    world, request = run.world, whole(run.world)[0]
    length = request.length
    apply(run, BeginSave("save", request.name), SubmitCopy("save"))
    assert world.states.held(world, request) == ()
    run.execute(IdleCheck())
    apply(run, BeginResume("back", request.name))
    (slot,) = world.states.held(world, request)
    assert content(run, slot) is Content.FILLING
    apply(run, SubmitCopy("back"))
    assert content(run, slot) is Content.WRITTEN
    assert tracked(run).slots.length(request.name) == length
    assert ends_empty(run)


def test_a_received_state_is_that_of_the_whole_prompt() -> None:
    run = run_when("everything", has_just_been_received)
    world = run.world
    request = next(r for r in world.running.values() if r.came_from == "peer")
    slot = world.states.slot_of(world, request)
    assert tracked(run).slots.length(request.name) == request.prompt
    assert world.truth.state_tokens[slot][1] == request.prompt
    assert ends_empty(run)


def test_a_loaded_checkpoint_is_the_trees_before_it_is_there() -> None:
    run = run_when("everything", begins_a_load)
    ((name, load), *_) = unsubmitted_loads(run.world)
    slot = load.prefix.slot
    assert slot in tracked(run).slots.tree_slots()
    assert content(run, slot) is Content.FILLING
    apply(run, SubmitCopy(name))
    assert content(run, slot) is Content.WRITTEN
    assert ends_empty(run)


def test_a_load_that_is_called_off_takes_its_checkpoint_with_it() -> None:
    run = run_when("everything", begins_a_load)
    ((name, load), *_) = unsubmitted_loads(run.world)
    slot = load.prefix.slot
    apply(run, CancelCopy(name))
    assert slot not in tracked(run).slots.held_slots()
    assert ends_empty(run)
