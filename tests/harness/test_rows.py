"""Memory of request rows: reset by the next forward, saved at a pause, restored whole."""

from harness.device.row_memory import BLANK
from harness.ops import (
    Abort,
    Admit,
    Arrive,
    Decode,
    Launch,
    Outcome,
    Pause,
    Process,
    Record,
    RestoreRow,
    Resume,
)
from harness.scenario import Commit
from tests.harness.backed import apply, ends_empty, run_of, setup_of, start
from tests.harness.lived_in import reports

SETUP = setup_of(row_memory=True)


def test_a_row_is_reset_by_the_launch_after_its_hand_out() -> None:
    run = run_of(SETUP, Arrive("r0", 4, 4), Admit("r0", 4))
    assert run.world.probes["row_reset"] == 0
    apply(run, Launch(("r0",)))
    assert run.world.probes["row_reset"] == 1


def test_every_launch_finds_what_the_one_before_has_left() -> None:
    run = run_of(SETUP, *start("r0"), Process(), Decode(("r0",)), Launch(("r0",)))
    row = run.world.requests["r0"].row
    assert run.world.device.program.row_memory[row] == run.world.rows.expected[row] == 4


def test_a_commit_leaves_another_stamp_than_the_body() -> None:
    run = run_of(setup_of(row_memory=True, commit=Commit.IN_STEP), *start("r0"))
    assert run.world.device.program.row_memory[run.world.requests["r0"].row] == 3


def test_a_row_may_be_handed_out_under_the_last_forward_of_its_holder() -> None:
    run = run_of(SETUP, *start("r0"), Abort("r0"), *start("r1"))
    assert run.world.probes["row_reused_under_its_last_forward"] == 1
    assert ends_empty(run)


def test_a_paused_request_keeps_its_pages_and_no_row() -> None:
    run = run_of(SETUP, *start("r0"), Pause("r0"))
    request = run.world.requests["r0"]
    assert (request.row, len(request.pages)) == (-1, 2)
    assert run.world.subjects[0].free_rows() == SETUP.rows


def test_what_was_saved_is_in_the_row_that_comes_next() -> None:
    run = run_of(SETUP, *start("r0"), Pause("r0"), *start("r1"), Resume("r0"), RestoreRow("r0"))
    request = run.world.requests["r0"]
    assert request.row != run.world.requests["r1"].row
    assert run.world.device.program.row_memory[request.row] == 2
    apply(run, Decode(("r0",)), Process(), Launch(("r0",)), Record())
    assert ends_empty(run)


def test_a_restored_row_is_not_reset() -> None:
    run = run_of(SETUP, *start("r0"), Pause("r0"), Resume("r0"), RestoreRow("r0"))
    apply(run, Decode(("r0",)), Launch(("r0",)))
    assert run.world.probes["row_reset"] == 1


def test_a_row_that_a_launch_of_others_has_reset_is_restored_all_the_same() -> None:
    run = run_of(SETUP, *start("r0"), Pause("r0"), Resume("r0"), *start("r1"))
    apply(run, RestoreRow("r0"), Decode(("r0",)), Process(), Launch(("r0",)))
    assert run.world.probes["row_restored_after_a_reset"] == 1


def test_a_request_is_not_launched_before_its_row_is_restored() -> None:
    run = run_of(SETUP, *start("r0"), Pause("r0"), Resume("r0"), Decode(("r0",)))
    assert run.execute(Launch(("r0",))) is Outcome.SKIPPED


def test_a_request_that_was_never_launched_saves_nothing() -> None:
    run = run_of(SETUP, Arrive("r0", 4, 4), Admit("r0", 4), Pause("r0"))
    assert run.world.requests["r0"].saved is None
    assert run.world.probes["paused_before_its_first_launch"] == 1
    apply(run, Resume("r0"), Launch(("r0",)), Record())
    assert ends_empty(run)


def test_a_second_pause_before_the_restore_keeps_the_first_copy() -> None:
    run = run_of(SETUP, *start("r0"), Pause("r0"), Resume("r0"), *start("r1"), Pause("r0"))
    apply(run, Resume("r0"), RestoreRow("r0"))
    assert run.world.probes["row_saved"] == 1
    assert run.world.device.program.row_memory[run.world.requests["r0"].row] == 2


def test_a_paused_request_may_be_aborted() -> None:
    run = run_of(SETUP, *start("r0"), Pause("r0"), Abort("r0"))
    assert ends_empty(run)


def test_nobody_is_paused_where_rows_have_no_memory() -> None:
    run = run_of(setup_of(), *start("r0"))
    assert run.execute(Pause("r0")) is Outcome.SKIPPED


def test_memory_of_an_earlier_holder_is_reported() -> None:
    run = run_of(SETUP, Arrive("r0", 4, 4), Admit("r0", 4))
    world = run.world
    world.rows.use(world, [world.requests["r0"]], 1)
    assert "what was there before anybody wrote it" in world.truth.problems[0].what
    assert reports(world) == [("initialised", "row memory of an earlier holder")]


def test_memory_of_another_step_is_reported() -> None:
    run = run_of(SETUP, *start("r0"))
    world = run.world
    world.device.program.row_memory[world.requests["r0"].row] = BLANK
    world.rows.use(world, [world.requests["r0"]], 2)
    assert ("content", "row memory of another step") in reports(world)
