"""State slots: what a forward does, what the tree takes, what goes back, and what is refused."""

from collections.abc import Callable

import pytest

from unikv.cache.checkpoint_policy import CheckpointPolicy, CheckpointStrategy
from unikv.cache.state_slots import StateSlots
from unikv.cache.state_step import (
    NO_CHECKPOINT,
    SINK,
    Checkpoint,
    Content,
    Ending,
    HeldSlots,
    Opening,
    SlotState,
    StateStep,
)
from unikv.errors import ArgumentError, OwnershipError, StepOrderError

NO_BUFFER, EXTRA, LAZY = CheckpointStrategy
SLOTS = {NO_BUFFER: [1], EXTRA: [1, 2], LAZY: [1]}


def slots_of(strategy: CheckpointStrategy) -> StateSlots:
    """Nine slots, a grid of eight tokens, and request `a` with its slots from 1 on."""
    policy = CheckpointPolicy(strategy, 8 * (strategy is not NO_BUFFER))
    slots = StateSlots(policy, 9)
    slots.admit("a", SLOTS[strategy], NO_CHECKPOINT)
    return slots


def in_the_tree(slots: StateSlots, slot: int, length: int) -> Checkpoint:
    """A slot of the tree that a load has filled."""
    checkpoint = slots.adopt(slot, length)
    slots.filled(slot)
    return checkpoint


def forward(slots: StateSlots, name: str, tokens: int) -> StateStep:
    """One forward, planned and launched."""
    step = slots.before_forward(name, tokens)
    slots.launched(step)
    return step


# What a forward has to do ----------------------------------------------------------------------


def test_the_first_forward_of_a_fresh_request_resets_its_slot() -> None:
    step = slots_of(NO_BUFFER).before_forward("a", 5)
    assert step == StateStep("a", 0, 5, SINK, 1, NO_CHECKPOINT)
    assert step.opening is Opening.RESET


def test_the_next_forward_continues() -> None:
    slots = slots_of(NO_BUFFER)
    forward(slots, "a", 5)
    step = slots.before_forward("a", 1)
    assert (step.first, step.source, step.opening) == (5, 1, Opening.CONTINUE)


def test_what_is_due_stays_due_until_a_forward_is_launched() -> None:
    slots = slots_of(NO_BUFFER)
    dropped = slots.before_forward("a", 5)
    assert slots.before_forward("a", 5) == dropped
    assert slots.state_of(1).content is Content.STALE


def test_a_forward_tracks_the_last_boundary_it_comes_to() -> None:
    slots = slots_of(EXTRA)
    assert forward(slots, "a", 21).tracked == Checkpoint(2, 16)
    assert slots.checkpoint("a") == Checkpoint(2, 16)
    assert slots.length("a") == 21


def test_a_forward_without_a_boundary_leaves_the_checkpoint_as_it_is() -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 8)
    assert forward(slots, "a", 7).tracked == NO_CHECKPOINT
    assert slots.checkpoint("a") == Checkpoint(2, 8)


def test_a_checkpoint_that_nobody_took_is_written_over_at_the_next_boundary() -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 8)
    forward(slots, "a", 8)
    assert slots.checkpoint("a") == Checkpoint(2, 16)


def test_a_step_that_was_overtaken_by_an_exchange_of_slots_is_refused() -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 8)
    step = slots.before_forward("a", 8)
    slots.take_checkpoint("a", [3])
    with pytest.raises(StepOrderError, match="ask before_forward again"):
        slots.launched(step)
    assert forward(slots, "a", 8).tracked == Checkpoint(3, 16)


def test_a_step_is_launched_once() -> None:
    slots = slots_of(NO_BUFFER)
    step = forward(slots, "a", 5)
    with pytest.raises(StepOrderError):
        slots.launched(step)


@pytest.mark.parametrize("tokens", [0, -1])
def test_a_forward_without_tokens_is_refused(tokens: int) -> None:
    with pytest.raises(ArgumentError, match=f"{tokens} tokens of 'a'; allowed: 1 or more"):
        slots_of(NO_BUFFER).before_forward("a", tokens)


# A slot for tracking that is taken late --------------------------------------------------------


def test_a_lazy_request_asks_for_a_slot_when_a_boundary_comes() -> None:
    slots = slots_of(LAZY)
    assert not slots.lacks_tracking_slot("a", 7)
    assert slots.lacks_tracking_slot("a", 8)
    slots.give_tracking_slot("a", 4)
    assert not slots.lacks_tracking_slot("a", 8)
    assert forward(slots, "a", 8).tracked == Checkpoint(4, 8)


def test_a_boundary_without_a_slot_is_skipped_and_holds_nothing_back() -> None:
    slots = slots_of(LAZY)
    assert forward(slots, "a", 12).tracked == NO_CHECKPOINT
    assert slots.skipped_checkpoints == 1
    assert slots.checkpoint("a") == NO_CHECKPOINT
    assert slots.retention_floor("a") == 12


def test_the_boundary_after_a_skipped_one_asks_again() -> None:
    slots = slots_of(LAZY)
    forward(slots, "a", 8)
    assert slots.lacks_tracking_slot("a", 8)


def test_only_who_lacks_a_slot_is_given_one() -> None:
    slots = slots_of(EXTRA)
    with pytest.raises(OwnershipError, match="tracks into slot 2 already"):
        slots.give_tracking_slot("a", 3)
    with pytest.raises(ArgumentError, match="no_buffer tracks no boundary"):
        slots_of(NO_BUFFER).give_tracking_slot("a", 3)


# What the tree takes ---------------------------------------------------------------------------


def test_without_a_grid_the_tree_takes_the_slot_itself() -> None:
    slots = slots_of(NO_BUFFER)
    forward(slots, "a", 5)
    assert slots.take_checkpoint("a", [7]) == Checkpoint(1, 5)
    assert slots.tree_slots() == (1,)
    assert slots.held("a") == HeldSlots(7, SINK)


def test_a_replacement_is_started_from_the_slot_that_the_tree_took() -> None:
    slots = slots_of(NO_BUFFER)
    forward(slots, "a", 5)
    slots.take_checkpoint("a", [7])
    assert slots.state_of(7) == SlotState(Content.RESUMING, 5, 1)
    step = forward(slots, "a", 3)
    assert (step.first, step.source, step.slot, step.opening) == (5, 1, 7, Opening.RESUME)
    assert forward(slots, "a", 1).opening is Opening.CONTINUE


def test_a_slot_that_is_only_started_from_another_is_no_checkpoint() -> None:
    slots = slots_of(NO_BUFFER)
    forward(slots, "a", 5)
    slots.take_checkpoint("a", [7])
    assert slots.checkpoint("a") == NO_CHECKPOINT
    with pytest.raises(OwnershipError, match="no checkpoint at 5 tokens"):
        slots.take_checkpoint("a", [8])


def test_with_a_second_slot_the_tree_takes_that_and_the_request_goes_on_as_it_was() -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 11)
    assert slots.take_checkpoint("a", [7]) == Checkpoint(2, 8)
    assert slots.held("a") == HeldSlots(1, 7)
    assert forward(slots, "a", 1).opening is Opening.CONTINUE


def test_a_lazy_request_is_given_no_replacement() -> None:
    slots = slots_of(LAZY)
    slots.give_tracking_slot("a", 4)
    forward(slots, "a", 8)
    assert slots.take_checkpoint("a", []) == Checkpoint(4, 8)
    assert slots.held("a") == HeldSlots(1, SINK)


@pytest.mark.parametrize(("strategy", "offered"), [(NO_BUFFER, []), (EXTRA, []), (EXTRA, [7, 8])])
def test_a_take_without_the_right_number_of_replacements_changes_nothing(
    strategy: CheckpointStrategy, offered: list[int]
) -> None:
    slots = slots_of(strategy)
    forward(slots, "a", 8)
    with pytest.raises(ArgumentError, match=f"{len(offered)} slots; allowed: 1 with"):
        slots.take_checkpoint("a", offered)
    assert slots.checkpoint("a").length == 8
    assert slots.tree_slots() == ()


@pytest.mark.parametrize(
    ("strategy", "ending"),
    [
        (NO_BUFFER, Ending(Checkpoint(1, 9), ())),
        (EXTRA, Ending(Checkpoint(2, 8), (1,))),
        (LAZY, Ending(Checkpoint(2, 8), (1,))),
    ],
)
def test_a_request_that_ends_leaves_one_slot_to_the_tree(
    strategy: CheckpointStrategy, ending: Ending
) -> None:
    slots = slots_of(strategy)
    if slots.lacks_tracking_slot("a", 9):
        slots.give_tracking_slot("a", 2)
    forward(slots, "a", 9)
    assert slots.end_into_tree("a") == ending
    assert slots.held_slots() == slots.tree_slots() == (ending.checkpoint.slot,)


# Resuming from the tree ------------------------------------------------------------------------


def test_a_prefix_is_resumed_from_the_trees_slot_into_the_requests_own() -> None:
    slots = slots_of(EXTRA)
    slots.admit("b", [5, 6], in_the_tree(slots, 3, 16))
    step = forward(slots, "b", 10)
    assert step == StateStep("b", 16, 10, 3, 5, Checkpoint(6, 24))
    assert slots.state_of(3) == SlotState(Content.WRITTEN, 16, SINK)


def test_a_slot_that_somebody_is_still_to_resume_from_stays_in_the_tree() -> None:
    slots = slots_of(EXTRA)
    slots.admit("b", [5, 6], in_the_tree(slots, 3, 16))
    with pytest.raises(OwnershipError, match=r"slot 3: drop, but requests \['b'\] resume from it"):
        slots.drop(3)
    forward(slots, "b", 1)
    slots.drop(3)
    assert slots.tree_slots() == ()


def test_who_ends_before_resuming_reads_nothing() -> None:
    slots = slots_of(EXTRA)
    slots.admit("b", [5, 6], in_the_tree(slots, 3, 16))
    assert slots.end("b") == (5, 6)
    slots.drop(3)


@pytest.mark.parametrize("start", [Checkpoint(3, 8), Checkpoint(1, 5), Checkpoint(4, 16)])
def test_only_what_is_in_the_tree_is_resumed(start: Checkpoint) -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 5)
    slots.adopt(3, 16)
    with pytest.raises(OwnershipError, match="match again"):
        slots.admit("b", [5, 6], start)
    assert slots.held_slots() == (1, 2, 3)


def test_the_tree_gives_up_only_what_it_holds() -> None:
    with pytest.raises(OwnershipError, match="slot 1: drop, but the tree does not hold it"):
        slots_of(EXTRA).drop(1)


def test_the_tree_adopts_only_state_after_some_tokens() -> None:
    with pytest.raises(ArgumentError, match="state after 0 tokens"):
        slots_of(EXTRA).adopt(3, 0)


# State that comes from elsewhere ---------------------------------------------------------------


@pytest.mark.parametrize("strategy", CheckpointStrategy)
def test_a_request_runs_on_from_the_state_that_a_load_has_filled(
    strategy: CheckpointStrategy,
) -> None:
    slots = slots_of(strategy)
    slots.admit_filling("b", 5, 13)
    slots.filled(5)
    step = slots.before_forward("b", 2)
    assert (step.first, step.source, step.slot) == (13, 5, 5)
    assert step.opening is Opening.CONTINUE


def test_nobody_runs_on_a_slot_that_is_still_to_be_filled() -> None:
    slots = slots_of(EXTRA)
    slots.admit_filling("b", 5, 13)
    with pytest.raises(StepOrderError, match="'b' starts from slot 5, which is being filled"):
        slots.before_forward("b", 2)
    assert slots.checkpoint("b") == NO_CHECKPOINT


def test_nobody_resumes_from_a_checkpoint_that_is_still_to_be_filled() -> None:
    slots = slots_of(EXTRA)
    slots.admit("b", [5, 6], slots.adopt(3, 16))
    with pytest.raises(StepOrderError, match="'b' starts from slot 3, which is being filled"):
        slots.before_forward("b", 2)
    slots.filled(3)
    assert slots.before_forward("b", 2).source == 3


@pytest.mark.parametrize("strategy", [EXTRA, LAZY])
def test_who_comes_back_asks_for_a_slot_at_its_next_boundary(strategy: CheckpointStrategy) -> None:
    slots = slots_of(strategy)
    slots.admit_filling("b", 5, 13)
    slots.filled(5)
    assert not slots.lacks_tracking_slot("b", 2)
    assert slots.lacks_tracking_slot("b", 3)
    slots.give_tracking_slot("b", 6)
    assert forward(slots, "b", 3).tracked == Checkpoint(6, 16)


def test_a_state_that_came_from_elsewhere_is_the_trees_to_take() -> None:
    slots = slots_of(NO_BUFFER)
    slots.admit_filling("b", 5, 13)
    slots.filled(5)
    assert slots.take_checkpoint("b", [6]) == Checkpoint(5, 13)


def test_a_load_that_is_called_off_leaves_nothing() -> None:
    slots = slots_of(EXTRA)
    slots.admit_filling("b", 5, 13)
    slots.adopt(3, 16)
    assert slots.end("b") == (5,)
    slots.drop(3)
    assert slots.held_slots() == (1, 2)


def test_a_slot_is_filled_once() -> None:
    slots = slots_of(EXTRA)
    slots.adopt(3, 16)
    slots.filled(3)
    with pytest.raises(OwnershipError, match="filled: state slot 3 is written"):
        slots.filled(3)


@pytest.mark.parametrize("wrong", [1.0, True])
@pytest.mark.parametrize("call", [StateSlots.filled, StateSlots.drop, StateSlots.state_of])
def test_what_only_compares_like_a_slot_is_none(
    call: Callable[[StateSlots, object], object], wrong: object
) -> None:
    slots = StateSlots(CheckpointPolicy(NO_BUFFER, 0), 8)
    slots.adopt(1, 4)
    with pytest.raises(ArgumentError, match=f"the slot is {wrong}, a .*; allowed: an int"):
        call(slots, wrong)
    assert slots.state_of(1) == SlotState(Content.FILLING, 4, SINK)
    assert slots.tree_slots() == (1,)


def test_who_holds_slots_gets_none_filled() -> None:
    slots = slots_of(EXTRA)
    with pytest.raises(OwnershipError, match=r"'a' holds slots .* already"):
        slots.admit_filling("a", 5, 13)
    with pytest.raises(ArgumentError, match="state after 0 tokens"):
        slots.admit_filling("b", 5, 0)
    assert slots.held_slots() == (1, 2)


# Ending and coming back ------------------------------------------------------------------------


def test_slots_go_back_once() -> None:
    slots = slots_of(EXTRA)
    assert slots.end("a") == (1, 2)
    with pytest.raises(OwnershipError, match="'a' holds no state slots"):
        slots.end("a")


def test_a_retracted_request_comes_back_into_slots_that_are_reset() -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 12)
    slots.end("a")
    slots.admit("b", [1, 2], NO_CHECKPOINT)
    forward(slots, "b", 12)
    slots.admit("a", [5, 6], NO_CHECKPOINT)
    assert slots.before_forward("a", 12).opening is Opening.RESET
    assert slots.length("a") == 0


def test_a_request_that_is_not_admitted_after_all_gives_back_what_it_was_given() -> None:
    slots = slots_of(EXTRA)
    slots.admit("b", [5, 6], in_the_tree(slots, 3, 16))
    assert slots.end("b") == (5, 6)
    assert slots.held_slots() == (1, 2, 3)


# What is refused at the door -------------------------------------------------------------------


@pytest.mark.parametrize("offered", [[0, 5], [5, 0], [5, 10], [-1, 5], [5, 5], [5, 1]])
def test_the_sink_and_slots_that_are_held_or_unknown_are_refused(offered: list[int]) -> None:
    slots = slots_of(EXTRA)
    with pytest.raises(OwnershipError, match="admit: state slot"):
        slots.admit("b", offered, NO_CHECKPOINT)
    assert slots.held_slots() == (1, 2)
    with pytest.raises(OwnershipError, match="'b' holds no state slots"):
        slots.held("b")


def test_the_sink_is_refused_whichever_way_it_is_offered() -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 8)
    with pytest.raises(OwnershipError, match="0 is the sink"):
        slots.take_checkpoint("a", [0])
    with pytest.raises(OwnershipError, match="0 is the sink"):
        slots.adopt(0, 8)
    with pytest.raises(OwnershipError, match="0 is the sink"):
        slots.admit_filling("b", 0, 8)
    lazy = slots_of(LAZY)
    with pytest.raises(OwnershipError, match="0 is the sink"):
        lazy.give_tracking_slot("a", 0)


def test_a_request_is_admitted_once() -> None:
    slots = slots_of(EXTRA)
    with pytest.raises(OwnershipError, match=r"'a' holds slots .* already; end it first"):
        slots.admit("a", [5, 6], NO_CHECKPOINT)


def test_slots_are_ints() -> None:
    with pytest.raises(ArgumentError, match=r"True \(bool\)"):
        slots_of(EXTRA).admit("b", [True, 5], NO_CHECKPOINT)


def test_a_slot_that_nobody_holds_has_no_state() -> None:
    with pytest.raises(OwnershipError, match=r"slot 3: nobody holds it; held are 2 of 1\.\.9"):
        slots_of(EXTRA).state_of(3)


# The retention floor ---------------------------------------------------------------------------


def test_a_checkpoint_holds_windows_back_until_the_tree_takes_it() -> None:
    slots = slots_of(EXTRA)
    forward(slots, "a", 5)
    assert slots.retention_floor("a") == 5
    forward(slots, "a", 6)
    assert slots.retention_floor("a") == 8
    slots.take_checkpoint("a", [7])
    assert slots.retention_floor("a") == 11


def test_without_a_grid_nothing_is_held_back() -> None:
    slots = slots_of(NO_BUFFER)
    forward(slots, "a", 11)
    assert slots.retention_floor("a") == 11
