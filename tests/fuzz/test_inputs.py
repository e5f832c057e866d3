"""Bytes as runs: an input means the same everywhere, and a frame means one operation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.choices import ListChoices, SeedChoices
from harness.fuzz.inputs import (
    FRAME_BYTES,
    HEADER_BYTES,
    FramedChoices,
    Target,
    case_of,
    frames,
    run_input,
)
from harness.fuzz.mutate import RUN_FRAMES_MAX, cross_inputs, mutate_input
from harness.fuzz.states import StateRecorder
from harness.ops import Operation, Outcome
from harness.runner import run_trace
from harness.static_subject import StaticSubject
from harness.world import World
from tests.harness.lived_in import scenario

SMOKE = Target("smoke", scenario("smoke"), 60)


def an_input(seed: int, operations: int = 60) -> bytes:
    """A header and frames that a seed decides."""
    choices = SeedChoices(seed)
    return bytes(choices.below(256) for _ in range(HEADER_BYTES + FRAME_BYTES * operations))


def operations_of(target: Target, data: bytes) -> list[Operation]:
    """What an input does, without what brings it to rest."""
    seen: list[Operation] = []

    def watch(world: World, operation: Operation, outcome: Outcome) -> None:
        seen.append(operation)

    run_input(target, data, watch)
    return seen[: len(list(frames(data)))]


@settings(max_examples=30)
@given(st.binary(max_size=400))
def test_any_bytes_are_a_run(data: bytes) -> None:
    assert run_input(SMOKE, data).violations == ()


def test_an_input_runs_the_same_twice() -> None:
    assert run_input(SMOKE, an_input(1)).digest == run_input(SMOKE, an_input(1)).digest


@pytest.mark.slow
def test_inputs_of_every_family_run_clean() -> None:
    target = Target("everything", scenario("everything"), 150)
    results = [run_input(target, an_input(seed, 150)) for seed in range(8)]
    assert [result.violations for result in results] == [()] * 8
    reached = {name for result in results for name, times in result.probes.items() if times}
    assert {"backup_submitted", "transfer_sent", "window_retired"} <= reached


def test_a_frame_decides_one_operation() -> None:
    data = an_input(2, 20)
    at = HEADER_BYTES + FRAME_BYTES * 19
    other = data[:at] + bytes(255 - byte for byte in data[at:])
    assert operations_of(SMOKE, data)[:19] == operations_of(SMOKE, other)[:19]


def test_what_is_too_long_is_not_read() -> None:
    target = Target("smoke", scenario("smoke"), 20)
    data = an_input(3, 40)
    assert run_input(target, data).digest == run_input(target, data[: target.bytes_max]).digest


def test_frames_are_read_from_their_beginning_and_round_again() -> None:
    choices = FramedChoices(b"\xff")
    assert choices.below(2) == 1
    choices.open(b"\x00\xff")
    assert [choices.below(2) for _ in range(6)] == [0, 1, 0, 1, 0, 1]


def test_a_failing_input_replays_as_a_case() -> None:
    target = Target("smoke", scenario("smoke"), 200, plant="row-leaked")
    results = (run_input(target, an_input(seed, 200)) for seed in range(20))
    result = next(result for result in results if result.violations)
    case = case_of(target, result, result.violations[0])
    again = run_trace(case.setup, case.operations, plant=case.plant)
    assert again.violations == result.violations


def test_another_allocator_can_be_run() -> None:
    target = Target("smoke", scenario("smoke"), 60, subject=StaticSubject)
    assert run_input(target, an_input(4)).violations == ()


# Mutations ----------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.binary(max_size=200), st.integers(0, 2**32), st.integers(0, 300))
def test_a_mutated_input_is_never_too_long(data: bytes, seed: int, bytes_max: int) -> None:
    assert len(mutate_input(data, bytes_max, SeedChoices(seed))) <= bytes_max


@settings(max_examples=50)
@given(st.binary(max_size=200), st.binary(max_size=200), st.integers(0, 2**32))
def test_crossed_inputs_are_made_of_frames_of_both(left: bytes, right: bytes, seed: int) -> None:
    crossed = cross_inputs(left, right, 1000, SeedChoices(seed))
    padded = [frame.ljust(FRAME_BYTES, b"\0") for part in (left, right) for frame in frames(part)]
    assert set(frames(crossed)) <= set(padded)
    assert crossed[:HEADER_BYTES] == left[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0")


def test_mutations_keep_frames_whole() -> None:
    data = an_input(5, 30)
    known = set(frames(data))
    for seed in range(200):
        mutated = list(frames(mutate_input(data, 4000, SeedChoices(seed))))
        assert all(len(frame) == FRAME_BYTES for frame in mutated)
        # What is not invented whole keeps most of what was there.
        if known & set(mutated):
            changed = sum(frame not in known for frame in mutated[: len(known)])
            assert changed <= RUN_FRAMES_MAX


def test_one_input_in_some_is_invented_whole() -> None:
    data = an_input(6, 30)
    mutated = [mutate_input(data, 4000, SeedChoices(seed)) for seed in range(400)]
    fresh = [other for other in mutated if not set(frames(other)) & set(frames(data))]
    assert 100 <= len(fresh) <= 300


def test_the_smallest_choices_are_an_input_too() -> None:
    assert mutate_input(b"", 4000, ListChoices([])) == bytes(4000)


# Situations ---------------------------------------------------------------------------------


def reached_by(target: Target, data: bytes) -> set[str]:
    """Situations of one input."""
    recorder = StateRecorder()
    run_input(target, data, recorder)
    return recorder.reached


def test_looking_for_situations_changes_nothing() -> None:
    watched = run_input(SMOKE, an_input(7), StateRecorder())
    assert watched.digest == run_input(SMOKE, an_input(7)).digest


@pytest.mark.slow
def test_a_watched_run_fails_as_it_does_unwatched() -> None:
    target = Target("smoke", scenario("smoke"), 200, plant="move-over-writer")
    pairs = [
        (run_input(target, data).violations, run_input(target, data, StateRecorder()).violations)
        for data in (an_input(seed, 200) for seed in range(12))
    ]
    assert any(alone for alone, _ in pairs)
    assert all(alone == watched for alone, watched in pairs)


def test_situations_name_kinds_only() -> None:
    data = an_input(8)
    assert reached_by(SMOKE, data) == reached_by(SMOKE, data)
    words = {word for line in reached_by(SMOKE, data) for word in line.split()}
    # Counts of steps are the only numbers.
    assert {word for word in words if any(letter.isdigit() for letter in word)} <= {"0", "1", "2"}


@pytest.mark.slow
def test_a_launch_is_a_situation_with_its_page_and_its_order() -> None:
    target = Target("smoke", scenario("smoke"), 200)
    reached = set().union(*(reached_by(target, an_input(seed, 200)) for seed in range(10)))
    assert "zero of schedule writes window page pending: behind forward" in reached
    assert any(line.startswith("move of schedule reads full page of one") for line in reached)
    assert any(line.startswith("band window [") and "hole" in line for line in reached)


@pytest.mark.slow
@pytest.mark.parametrize("plant", ["zeroing-unordered", "moves-unordered"])
def test_situations_are_seen_beside_a_fault_in_the_device(plant: str) -> None:
    target = Target("hybrid", scenario("hybrid"), 200, plant=plant)
    found = [run_input(target, an_input(seed, 200), StateRecorder()) for seed in range(12)]
    assert any(result.violations for result in found)
