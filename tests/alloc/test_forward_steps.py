"""Forward steps: launch, record and process in turn, and which steps are retired."""

from collections.abc import Callable

import pytest

from tests.alloc.small_chain import DiaryDevice, Mark, layout_of, tokens
from unikv.alloc.forward_steps import ForwardSteps
from unikv.errors import StepOrderError


def steps_with(*recorded: int) -> tuple[ForwardSteps, DiaryDevice]:
    """Steps launched and recorded in this order, each with an event named after it."""
    device = DiaryDevice(layout_of(16, 4, tokens("full")))
    steps = ForwardSteps(device)
    for number in recorded:
        steps.launch(number)
        steps.record(number, Mark(f"end of {number}"))
    return steps, device


def waits(device: DiaryDevice) -> list[str]:
    """The events that the schedule stream was told to wait for."""
    return [str(event) for (event,) in device.named("wait")]


def assert_refused(act: Callable[[], object], *words: str) -> None:
    """The act raises, and its text holds every word."""
    with pytest.raises(StepOrderError) as caught:
        act()
    for word in words:
        assert word in str(caught.value)


def test_a_second_launch_is_refused_until_the_first_is_recorded() -> None:
    steps, _ = steps_with()
    steps.launch(1)
    assert_refused(lambda: steps.launch(2), "launch of step 2", "record of step 1")


def test_any_action_is_refused_between_launch_and_record() -> None:
    steps, _ = steps_with()
    steps.launch(1)
    assert_refused(lambda: steps.check_between_steps("take"), "take", "step 1", "record it first")


def test_actions_are_free_again_after_the_record() -> None:
    steps, _ = steps_with(1)
    steps.check_between_steps("take")


def test_a_number_that_a_recorded_step_has_is_refused() -> None:
    steps, _ = steps_with(1, 2)
    assert_refused(lambda: steps.launch(2), "launch of step 2 after step 2")


def test_a_number_that_a_processed_step_had_is_refused() -> None:
    steps, _ = steps_with(1)
    steps.process(1)
    assert_refused(lambda: steps.launch(1), "launch of step 1 after step 1")


def test_numbers_start_at_one() -> None:
    steps, _ = steps_with()
    assert_refused(lambda: steps.launch(0), "launch of step 0")


def test_numbers_may_leave_gaps() -> None:
    steps, _ = steps_with(1, 5)
    assert steps.in_flight() == (1, 5)


def test_a_record_without_a_launch_is_refused() -> None:
    steps, _ = steps_with()
    assert_refused(lambda: steps.record(1, Mark("end")), "record of step 1", "launch it first")


def test_a_record_of_step_zero_is_no_way_around_a_launch() -> None:
    steps, _ = steps_with()
    assert_refused(lambda: steps.record(0, Mark("end")), "record of step 0")


def test_a_record_of_another_step_is_refused() -> None:
    steps, _ = steps_with()
    steps.launch(1)
    assert_refused(lambda: steps.record(2, Mark("end")), "record of step 2", "step 1 is open")


def test_an_event_in_use_is_refused() -> None:
    steps, _ = steps_with()
    event = Mark("end")
    steps.launch(1)
    steps.record(1, event)
    steps.launch(2)
    assert_refused(lambda: steps.record(2, event), "record of step 2", "event")


def test_a_refused_record_leaves_its_step_open() -> None:
    steps, _ = steps_with()
    steps.launch(1)
    with pytest.raises(StepOrderError):
        steps.record(2, Mark("end"))
    assert steps.launched == 1
    assert steps.in_flight() == ()


def test_processing_out_of_turn_is_refused() -> None:
    steps, _ = steps_with(1, 2)
    assert_refused(lambda: steps.process(2), "process of step 2", "oldest recorded is 1")


def test_processing_twice_is_refused() -> None:
    steps, _ = steps_with(1, 2)
    steps.process(1)
    assert_refused(lambda: steps.process(1), "process of step 1")


def test_processing_nothing_is_refused() -> None:
    steps, _ = steps_with()
    assert_refused(lambda: steps.process(1), "process of step 1", "oldest recorded is 0")


def test_steps_are_in_flight_from_record_to_process() -> None:
    steps, _ = steps_with(1, 2, 3)
    steps.process(1)
    assert steps.in_flight() == (2, 3)
    assert steps.newest == 3


def test_without_a_step_the_newest_is_zero() -> None:
    steps, _ = steps_with(1)
    steps.process(1)
    assert steps.newest == 0


def test_a_wait_is_for_the_step_that_was_named() -> None:
    steps, device = steps_with(1, 2, 3)
    assert steps.wait(2)
    assert waits(device) == ["end of 2"]


def test_a_wait_for_a_gap_is_for_the_step_behind_it() -> None:
    steps, device = steps_with(1, 5)
    assert steps.wait(3)
    assert waits(device) == ["end of 5"]
    assert steps.retired_through == 5


def test_a_retired_step_is_not_waited_again() -> None:
    steps, device = steps_with(1, 2)
    steps.wait(2)
    assert not steps.wait(1)
    assert not steps.wait(2)
    assert waits(device) == ["end of 2"]


def test_a_processed_step_is_not_waited() -> None:
    steps, device = steps_with(1, 2)
    steps.process(1)
    assert not steps.wait(1)
    assert waits(device) == []


def test_a_wait_retires_the_step_with_all_earlier_ones() -> None:
    steps, _ = steps_with(1, 2, 3)
    steps.wait(2)
    assert steps.retired_through == 2
    assert steps.newest_unretired == 3


def test_a_settled_step_is_still_in_flight() -> None:
    steps, _ = steps_with(1, 2)
    steps.wait(2)
    assert steps.in_flight() == (1, 2)
    assert steps.newest == 2
    assert steps.newest_unretired == 0


def test_processing_an_older_step_leaves_the_settled_one_retired() -> None:
    steps, _ = steps_with(1, 2)
    steps.wait(2)
    steps.process(1)
    assert steps.retired_through == 2


def test_processing_retires_what_no_wait_has() -> None:
    steps, _ = steps_with(1, 2)
    steps.wait(1)
    steps.process(1)
    steps.process(2)
    assert steps.retired_through == 2
