"""The pipeline loop: results come before the barrier of the micro-batch launched since."""

from harness.ops import Abort, Barrier, Decode, Finish, Launch, Outcome, Process, Record
from tests.harness.backed import apply, ends_empty, run_of, setup_of, start

SETUP = setup_of(pipeline=True)
TWO = (*start("r0"), *start("r1"))


def test_results_are_handed_out_before_the_barrier() -> None:
    run = run_of(SETUP, *TWO, Process(), Finish("r0"))
    assert run.world.probes["freed_before_the_barrier"] == 1
    assert run.world.unordered_step is not None
    apply(run, Barrier())
    assert ends_empty(run)


def test_who_is_in_the_newest_micro_batch_is_freed_behind_its_barrier() -> None:
    run = run_of(SETUP, *TWO, Abort("r1"))
    assert run.world.probes["freed_before_the_barrier"] == 0
    assert run.world.unordered_step is None
    assert ends_empty(run)


def test_a_micro_batch_has_had_its_barrier_when_the_next_one_is_launched() -> None:
    run = run_of(SETUP, *TWO)
    newest = run.world.unordered_step
    assert newest is not None
    assert newest.requests == ("r1",)
    # Its own micro-batch is not the newest, and has been ordered before that was launched.
    apply(run, Abort("r0"))
    assert ends_empty(run)


def test_the_next_token_waits_for_the_result_of_the_last() -> None:
    run = run_of(SETUP, *start("r0"), Barrier(), Decode(("r0",)))
    assert run.execute(Launch(("r0",))) is Outcome.SKIPPED
    apply(run, Process(), Launch(("r0",)), Record())
    assert ends_empty(run)


def test_the_overlap_loop_orders_tables_before_any_result() -> None:
    run = run_of(setup_of(), *TWO, Process(), Finish("r0"))
    assert run.world.unordered_step is None
    assert run.world.probes["freed_before_the_barrier"] == 0
