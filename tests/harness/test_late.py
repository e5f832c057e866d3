"""What runs behind the metadata phase: commits, captured steps, and the buffers they read."""

import pytest

from harness.ops import Decode, Launch, Process, Record
from harness.scenario import Commit
from tests.harness.backed import apply, ends_empty, run_of, setup_of, slot_of, start
from unikv.device.port import Stream


@pytest.mark.parametrize("commit", Commit)
@pytest.mark.parametrize("captured", [False, True])
def test_every_way_of_leaving_states_runs_clean(commit: Commit, captured: bool) -> None:
    setup = setup_of(row_memory=True, commit=commit, captured=captured)
    run = run_of(setup, *start("r0"), *start("r1"), Process(), Decode(("r0", "r1")))
    apply(run, Launch(("r0", "r1")), Record())
    assert ends_empty(run)


def test_a_step_ends_behind_its_commit_on_the_side_stream() -> None:
    run = run_of(setup_of(commit=Commit.SIDE_STREAM), *start("r0"))
    (step,) = run.world.steps
    assert step.uses_side
    assert step.event is not None
    assert step.event.clock[Stream.SIDE] == 1


def test_a_commit_in_the_step_needs_no_side_stream() -> None:
    run = run_of(setup_of(commit=Commit.IN_STEP), *start("r0"))
    assert not run.world.steps[0].uses_side
    assert run.world.probes["committed_in_step"] == 1


def test_a_static_buffer_is_the_steps_until_it_is_processed() -> None:
    run = run_of(setup_of(commit=Commit.IN_STEP), *start("r0"), *start("r1"))
    statics = run.world.engine.statics
    assert [step.static for step in run.world.steps] == [0, 1]
    assert statics.free == []
    apply(run, Process())
    assert statics.free == [0]


def test_a_prefill_is_not_replayed() -> None:
    run = run_of(setup_of(captured=True), *start("r0"))
    assert run.world.steps[0].static == -1


def test_a_replay_finds_its_slots_and_then_the_sink() -> None:
    run = run_of(setup_of(captured=True), *start("r0"), Process(), Decode(("r0",)), Launch(("r0",)))
    world = run.world
    step = world.open_step
    assert step is not None
    values = world.engine.statics.read_by(step.static, step.number)
    page = world.device.program.maps[world.state_band][slot_of(run, "r0")]
    assert values == [page] + [0] * (len(values) - 1)


def test_an_engine_that_does_nothing_beside_has_no_static_buffer() -> None:
    run = run_of(setup_of(row_memory=True), *start("r0"))
    assert run.world.engine.statics.buffers == []
    assert run.world.setup.staging_buffers == run.world.setup.steps_in_flight
