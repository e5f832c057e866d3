"""State slots by strategy: what requests hold, what the cache takes, and what a shortage costs."""

import pytest

from harness.ops import (
    Abort,
    Admit,
    Advance,
    Arrive,
    CachePrefix,
    Checkpoint,
    Decode,
    EvictPrefix,
    FinishCached,
    Launch,
    Outcome,
    Process,
    Record,
    Retract,
)
from harness.scenario import Setup
from tests.harness.backed import apply, ends_empty, run_of, setup_of, start, tracked
from tests.harness.lived_in import reports
from unikv.advance import first_needed_page
from unikv.cache.checkpoint_policy import CheckpointStrategy

NO_BUFFER = setup_of(strategy=CheckpointStrategy.NO_BUFFER)
EXTRA = setup_of(strategy=CheckpointStrategy.EXTRA_BUFFER)
LAZY = setup_of(strategy=CheckpointStrategy.EXTRA_BUFFER_LAZY)
SETUPS = pytest.mark.parametrize(
    "setup", [NO_BUFFER, EXTRA, LAZY], ids=["no_buffer", "extra_buffer", "extra_buffer_lazy"]
)


@pytest.mark.parametrize(("setup", "slots"), [(NO_BUFFER, 1), (EXTRA, 2), (LAZY, 1)])
def test_a_request_is_admitted_with_the_slots_of_its_strategy(setup: Setup, slots: int) -> None:
    run = run_of(setup, Arrive("r0", 8, 4), Admit("r0", 8))
    assert len(tracked(run).slots.held_slots()) == slots


def test_a_forward_writes_the_boundary_beside_its_own_state() -> None:
    run = run_of(EXTRA, *start("r0", prompt=10))
    assert run.world.probes["checkpoint_tracked"] == 1
    assert tracked(run).slots.checkpoint("r0").length == 8


def test_every_chunk_but_the_last_ends_on_the_grid() -> None:
    run = run_of(EXTRA, Arrive("r0", 30, 4), Admit("r0", 11))
    assert run.world.requests["r0"].prepared == 8


def test_a_chunk_that_the_grid_leaves_nothing_of_is_skipped() -> None:
    run = run_of(EXTRA, Arrive("r0", 30, 4))
    assert run.execute(Admit("r0", 7)) is Outcome.SKIPPED


@SETUPS
def test_the_cache_takes_the_checkpoint_of_a_running_request(setup: Setup) -> None:
    run = run_of(setup, Arrive("r0", 8, 8, (0, 1)), Admit("r0", 8))
    if setup is LAZY:
        apply(run, Checkpoint("r0"))
    apply(run, Launch(("r0",)), Record(), CachePrefix("r0"))
    ((blocks, prefix),) = run.world.prefixes.items()
    assert blocks == (0, 1)
    assert prefix.slot in tracked(run).slots.tree_slots()
    apply(run, Decode(("r0",)), Launch(("r0",)), Record())
    assert ends_empty(run)


@SETUPS
def test_who_is_admitted_on_a_cached_prefix_resumes_from_its_state(setup: Setup) -> None:
    run = run_of(setup, Arrive("r0", 8, 8, (0, 1)), Admit("r0", 8))
    if setup is LAZY:
        apply(run, Checkpoint("r0"))
    apply(run, Launch(("r0",)), Record(), FinishCached("r0"))
    apply(run, Arrive("r1", 12, 4, (0, 1, 2)), Admit("r1", 12))
    assert run.world.requests["r1"].length == 8
    assert run.execute(EvictPrefix()) is Outcome.SKIPPED  # its slot is still to be read
    apply(run, Launch(("r1",)), Record(), EvictPrefix())
    assert ends_empty(run)


def test_a_tracking_slot_is_given_where_a_boundary_comes() -> None:
    run = run_of(LAZY, Arrive("r0", 8, 8), Admit("r0", 8), Checkpoint("r0"))
    assert run.execute(Checkpoint("r0")) is Outcome.SKIPPED
    apply(run, Launch(("r0",)), Record())
    assert tracked(run).slots.checkpoint("r0").length == 8


def test_a_boundary_without_a_slot_is_skipped() -> None:
    run = run_of(LAZY, *start("r0"))
    assert run.world.probes["checkpoint_skipped"] == 1
    assert ends_empty(run)


@SETUPS
def test_a_retracted_request_comes_back_into_slots_of_its_own(setup: Setup) -> None:
    run = run_of(setup, *start("r0"), Retract("r0"), Admit("r0", 8), Launch(("r0",)), Record())
    assert ends_empty(run)


@SETUPS
def test_a_clear_is_due_for_whoever_gets_the_slot_of_an_aborted_request(setup: Setup) -> None:
    run = run_of(setup, Arrive("r0", 8, 8), Admit("r0", 8), Abort("r0"), *start("r1"))
    assert ends_empty(run)


def test_a_window_is_kept_behind_a_checkpoint_that_nobody_has_taken() -> None:
    setup, window = EXTRA, max(band.window for band in EXTRA.bands)
    run = run_of(setup, *start("r0", prompt=8, output=40))
    world = run.world
    request = world.requests["r0"]
    for _ in range(7):
        apply(run, Decode(("r0",)), Launch(("r0",)), Record(), Process())
    floor = world.states.floor(world, request)
    assert (floor, request.length) == (8, 15)
    run.execute(Advance("r0"))
    kept = max(request.window_first)
    assert kept == first_needed_page(floor, window, setup.page_slots)
    assert kept <= first_needed_page(request.length, window, setup.page_slots)
    apply(run, CachePrefix("r0"))
    assert ends_empty(run)


def test_the_library_is_asked_and_its_refusal_is_a_violation() -> None:
    run = run_of(EXTRA, Arrive("r0", 8, 8), Admit("r0", 8))
    tracked(run).slots.end("r0")
    run.execute(Launch(("r0",)))
    assert [violation.check for violation in run.violations] == ["ownership"]


def test_a_slot_that_nobody_knows_is_leaked() -> None:
    run = run_of(EXTRA, *start("r0"))
    tracked(run).slots.end("r0")
    run.world.come_to_rest()
    assert ("idle", "ids leaked") in reports(run.world)
