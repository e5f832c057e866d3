"""Commits that another stage relays: late, of their own step, and where things are by then."""

import pytest

from harness.ops import (
    Abort,
    Admit,
    Arrive,
    CachePrefix,
    Chunk,
    Decode,
    Finish,
    Flush,
    IdleCheck,
    Launch,
    Operation,
    Outcome,
    Pause,
    Process,
    Record,
    RelayCommit,
    Retract,
)
from harness.runner import Run
from harness.scenario import Commit
from tests.harness.backed import apply, ends_empty, run_of, setup_of, slot_of, start, tracked
from unikv.cache.checkpoint_policy import CheckpointStrategy

SETUP = setup_of(row_memory=True, commit=Commit.RELAYED)


def state_of(run: Run, name: str) -> bytes:
    """What lies in a request's state slot, in program order."""
    world = run.world
    page = world.device.program.maps[world.state_band][slot_of(run, name)]
    size = world.setup.bands[world.state_band].page_bytes
    return bytes(world.device.program.arena[page * size : page * size + size])


def made_up(run: Run) -> int:
    """Commits that were enqueued because something could not go on without."""
    return run.world.probes["relayed_commit_made_up"]


def test_a_body_leaves_states_and_rows_as_they_were_until_the_commit() -> None:
    run = run_of(SETUP, *start("r0"))
    before, row = state_of(run, "r0"), run.world.requests["r0"].row
    assert run.world.device.program.row_memory[row] == 2
    apply(run, RelayCommit())
    assert state_of(run, "r0") != before
    assert run.world.device.program.row_memory[row] == 5
    slot = run.world.states.slot_of(run.world, run.world.requests["r0"])
    content = run.world.truth.content[run.world.state_band][slot]
    assert content is not None
    assert bytes(content) == state_of(run, "r0")


def test_a_commit_is_a_step_of_its_own_that_takes_no_upload() -> None:
    run = run_of(SETUP, *start("r0"), RelayCommit())
    body, commit = run.world.steps
    state = run.world.state_band
    assert (body.number, commit.number) == (1, 2)
    assert not body.writes[state]
    assert commit.writes[state] == [slot_of(run, "r0")]
    assert commit.staging == -1
    assert [use.step for use in run.world.subjects[0].uses() if use.band == state] == [2]


def test_commits_count_for_no_forward_in_flight() -> None:
    run = run_of(SETUP, *start("r0"), RelayCommit(), *start("r1"), RelayCommit())
    assert len(run.world.steps) == 4
    assert run.execute(Launch(("r0",))) is Outcome.SKIPPED
    apply(run, Process(), Process(), Decode(("r0",)), Launch(("r0",)), Record())


def test_there_is_no_commit_where_nothing_is_left() -> None:
    run = run_of(SETUP, *start("r0"), RelayCommit())
    assert run.execute(RelayCommit()) is Outcome.SKIPPED
    plain = run_of(setup_of(commit=Commit.IN_STEP), *start("r0"))
    assert plain.execute(RelayCommit()) is Outcome.SKIPPED


def test_commits_come_in_the_order_of_their_steps() -> None:
    run = run_of(SETUP, *start("r0"), *start("r1"), RelayCommit())
    assert run.world.steps[-1].requests == ("r0",)
    apply(run, RelayCommit())
    assert run.world.steps[-1].requests == ("r1",)


@pytest.mark.parametrize(("moves", "moved"), [((), 0), ((Flush(8),), 1)])
def test_a_commit_goes_where_its_slot_is_by_then(moves: tuple[Operation, ...], moved: int) -> None:
    run = run_of(SETUP, *start("r0"), RelayCommit(), Process(), Process())
    apply(run, Arrive("r1", 8, 8), Admit("r1", 8), Abort("r0"), Launch(("r1",)), Record())
    apply(run, *moves, RelayCommit())
    assert run.world.probes["moved_before_its_relayed_commit"] == moved
    apply(run, Process(), Decode(("r1",)), Launch(("r1",)), Record())
    assert ends_empty(run)


@pytest.mark.parametrize(
    "operations",
    [
        (Process(),),
        (Chunk("r0", 4), Launch(("r0",))),
        (Pause("r0"),),
        (Retract("r0"),),
        (Abort("r0"),),
        (IdleCheck(),),
    ],
    ids=lambda operations: type(operations[-1]).__name__,
)
@pytest.mark.parametrize("pipeline", [False, True])
def test_who_cannot_go_on_without_it_makes_the_commit_up(
    operations: tuple[Operation, ...], pipeline: bool
) -> None:
    setup = setup_of(row_memory=True, commit=Commit.RELAYED, pipeline=pipeline)
    run = run_of(setup, Arrive("r0", 12, 4, (0, 1, 2)), Admit("r0", 8), Launch(("r0",)), Record())
    apply(run, *operations)
    assert made_up(run) == 1
    assert ends_empty(run)


def test_a_finished_request_has_got_what_was_left_to_it() -> None:
    run = run_of(SETUP, *start("r0"), Process(), Decode(("r0",)), Launch(("r0",)), Record())
    apply(run, Finish("r0"))
    assert made_up(run) == 2
    assert ends_empty(run)


def test_the_cache_takes_a_state_that_is_there() -> None:
    setup = setup_of(commit=Commit.RELAYED, strategy=CheckpointStrategy.EXTRA_BUFFER)
    run = run_of(setup, Arrive("r0", 8, 4, (0, 1)), Admit("r0", 8), Launch(("r0",)), Record())
    checkpoint = tracked(run).slots.held("r0").tracking
    assert checkpoint not in run.world.truth.state_tokens
    apply(run, CachePrefix("r0"))
    assert made_up(run) == 1
    assert run.world.truth.state_tokens[checkpoint] == ((0, 1), 8)


def test_tables_may_change_behind_the_look_ups_of_a_commit() -> None:
    run = run_of(SETUP, *start("r0"), RelayCommit(), *start("r1"), RelayCommit())
    apply(run, Abort("r0"))
    assert run.world.probes["relayed_commit"] == 2
    assert made_up(run) == 0
    assert ends_empty(run)


def test_the_commit_is_the_newest_step_that_uses_its_rows() -> None:
    run = run_of(SETUP, *start("r0"), RelayCommit())
    (_, commit) = run.world.steps
    assert run.world.rows.last_step[run.world.requests["r0"].row] == commit.number
