"""Static buffers: filled for one step at a time, and replayed only for that step."""

import pytest

from unikv.errors import ArgumentError, StepOrderError
from unikv.static_buffer import StaticBuffer


def buffer() -> StaticBuffer:
    """A buffer for batches of up to four rows."""
    return StaticBuffer("state slots", 4)


def test_padded_rows_are_given_the_sink() -> None:
    slots = buffer()
    slots.fill(1, [7, 8, 9])
    slots.processed(1)
    assert slots.fill(2, [5]) == (5, 0, 0, 0)


def test_a_replay_finds_what_it_was_filled_with() -> None:
    slots = buffer()
    slots.fill(1, [7, 8])
    assert slots.read_by(1) == (7, 8, 0, 0)


def test_a_buffer_that_a_step_may_still_read_is_not_filled() -> None:
    slots = buffer()
    slots.fill(1, [7])
    with pytest.raises(StepOrderError, match="for step 2, but step 1 may still read it"):
        slots.fill(2, [8])
    assert slots.read_by(1) == (7, 0, 0, 0)


def test_a_step_fills_a_buffer_once() -> None:
    slots = buffer()
    slots.fill(1, [7])
    with pytest.raises(StepOrderError, match="for step 1, but step 1 may still read it"):
        slots.fill(1, [8])


def test_a_step_that_was_never_launched_is_over_when_a_later_one_is_processed() -> None:
    slots = buffer()
    slots.fill(2, [7])
    slots.processed(1)
    with pytest.raises(StepOrderError):
        slots.fill(3, [8])
    slots.processed(3)
    assert slots.fill(4, [8]) == (8, 0, 0, 0)


@pytest.mark.parametrize("step", [0, 1, 3])
def test_a_replay_from_a_buffer_of_another_step_is_refused(step: int) -> None:
    slots = buffer()
    slots.fill(2, [7])
    with pytest.raises(StepOrderError, match=f"replay of step {step} .* filled for step 2"):
        slots.read_by(step)


def test_a_replay_on_what_the_capture_left_is_refused() -> None:
    slots = buffer()
    slots.fill(1, [])
    slots.processed(1)
    with pytest.raises(StepOrderError, match=r"replay of step 2 .* filled for no step"):
        slots.read_by(2)


def test_a_batch_that_is_longer_than_the_buffer_is_refused() -> None:
    slots = buffer()
    with pytest.raises(ArgumentError, match="with 5 values, the least 1; allowed: up to 4, from 0"):
        slots.fill(1, [1, 2, 3, 4, 5])
    assert slots.fill(1, [1, 2, 3, 4]) == (1, 2, 3, 4)


@pytest.mark.parametrize("values", [[-1], [1.0], [True]])
def test_what_is_no_id_is_refused(values: list[int]) -> None:
    with pytest.raises(ArgumentError):
        buffer().fill(1, values)


@pytest.mark.parametrize("step", [0, -1, True])
def test_what_is_no_step_is_refused(step: int) -> None:
    with pytest.raises(ArgumentError):
        buffer().fill(step, [1])
