"""Operations: any subset of a trace is a trace, and a trace survives being written to a file."""

from collections.abc import Sequence
from functools import cache
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.choices import SeedChoices
from harness.generate import Generator
from harness.ops import (
    Abort,
    Admit,
    Arrive,
    Complete,
    Decode,
    Flush,
    IdleCheck,
    Launch,
    Op,
    Operation,
    Outcome,
    Process,
    Record,
    Relieve,
)
from harness.runner import Run, SeedResult, run_trace
from harness.scenario import Setup
from harness.setup import draw_setup
from tests.harness.lived_in import running, scenario

LENGTH = 160
NAMES = ("smoke", "hybrid", "rows", "host_tier", "peers", "everything")
SEEDS = range(3)


@cache
def trace_of(name: str, seed: int) -> tuple[Setup, tuple[Operation, ...]]:
    """A generated trace, brought to an empty rest, and the setup it ran on."""
    choices, family = SeedChoices(seed), scenario(name)
    run = Run(draw_setup(family, choices), None)
    generator = Generator(family, choices, "random", None)
    for _ in range(LENGTH):
        generator.heard(run.execute(generator.next(run.world)))
    for operation in run.finish():
        run.execute(operation)
    assert run.violations == []
    return run.world.setup, tuple(run.trace)


def assert_clean(setup: Setup, trace: Sequence[Operation]) -> SeedResult:
    """The trace runs without a report."""
    result = run_trace(setup, trace)
    assert result.violations == ()
    return result


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_trace_that_is_run_again_is_the_same_run(name: str, seed: int) -> None:
    setup, trace = trace_of(name, seed)
    first, second = assert_clean(setup, trace), assert_clean(setup, trace)
    assert first.digest == second.digest
    assert first == second


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40)
@given(seed=st.sampled_from(SEEDS), kept=st.binary(min_size=LENGTH // 8, max_size=LENGTH // 8))
def test_any_subset_of_a_trace_is_a_trace(name: str, seed: int, kept: bytes) -> None:
    setup, trace = trace_of(name, seed)
    assert_clean(
        setup, [op for at, op in enumerate(trace) if kept[at // 8 % len(kept)] >> at % 8 & 1]
    )


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(seed=st.sampled_from(SEEDS), gone=st.sets(st.integers(0, LENGTH - 1), max_size=6))
def test_a_trace_that_lost_a_few_operations_is_a_trace(
    name: str, seed: int, gone: set[int]
) -> None:
    setup, trace = trace_of(name, seed)
    assert_clean(setup, [op for at, op in enumerate(trace) if at not in gone])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(st.permutations(range(LENGTH)))
def test_a_trace_in_any_order_is_a_trace(name: str, order: list[int]) -> None:
    setup, trace = trace_of(name, 0)
    assert_clean(setup, [trace[at] for at in order])


@pytest.mark.parametrize("kind", sorted({type(op).__name__ for op in trace_of("hybrid", 0)[1]}))
def test_a_trace_without_any_operation_of_one_kind_is_a_trace(kind: str) -> None:
    setup, trace = trace_of("hybrid", 0)
    assert_clean(setup, [op for op in trace if type(op).__name__ != kind])


@pytest.mark.parametrize("other", ["smoke", "hybrid"])
def test_a_trace_runs_on_another_setup(other: str) -> None:
    _, trace = trace_of("hybrid" if other == "smoke" else "smoke", 1)
    setup, _ = trace_of(other, 2)
    assert_clean(setup, trace)


# One operation at a time -------------------------------------------------------------------


def run_of(*operations: Operation) -> tuple[Run, list[Outcome]]:
    """These operations on a fresh setup, and how each ended."""
    run = Run(trace_of("smoke", 0)[0], None)
    outcomes = [run.execute(operation) for operation in operations]
    assert run.violations == []
    return run, outcomes


@pytest.mark.parametrize(
    "operation",
    [
        Admit("r9", 4),
        Abort("r9"),
        Decode(("r9",)),
        Launch(("r9",)),
        Record(),
        Process(),
        Complete(0, 1, 1),
        Complete(7, 1, 1),
        Flush(3),
    ],
)
def test_an_operation_whose_subject_is_gone_is_skipped(operation: Operation) -> None:
    assert run_of(operation)[1] == [Outcome.SKIPPED]


def test_a_name_that_has_arrived_does_not_arrive_again() -> None:
    run, outcomes = run_of(Arrive("r1", 4, 4), Arrive("r1", 8, 8))
    assert outcomes == [Outcome.DONE, Outcome.SKIPPED]
    assert run.world.requests["r1"].prompt == 4


@pytest.mark.parametrize("prompt", [0, 1_000_000])
def test_a_prompt_that_no_row_can_name_is_refused(prompt: int) -> None:
    run, outcomes = run_of(Arrive("r1", prompt, 4))
    assert outcomes == [Outcome.REFUSED]
    assert run.world.requests == {}


def test_an_admitted_request_runs_to_its_launch() -> None:
    run, outcomes = run_of(Arrive("r1", 3, 4), Admit("r1", 9), Launch(("r1", "r1")), Record())
    assert outcomes == [Outcome.DONE] * 4
    (request,) = running(run.world)
    assert (request.length, request.prepared) == (3, 0)
    assert [step.requests for step in run.world.steps] == [("r1",)]


def test_what_may_not_happen_between_launch_and_record_is_skipped() -> None:
    _, outcomes = run_of(Arrive("r1", 3, 4), Admit("r1", 9), Launch(("r1",)), Relieve(1, 0))
    assert outcomes[-1] is Outcome.SKIPPED


def test_a_lost_record_is_made_up_for() -> None:
    run, outcomes = run_of(Arrive("r1", 3, 4), Admit("r1", 9), Launch(("r1",)), Process())
    assert outcomes[-1] is Outcome.DONE
    assert run.world.probes["recorded_implicitly"] == 1


def test_time_does_not_count_as_an_operation() -> None:
    run, _ = run_of(Arrive("r1", 3, 4), Complete(0, 1, 1), IdleCheck())
    assert run.result("", 0).operations == 1


# In a file ---------------------------------------------------------------------------------


def test_every_operation_has_a_name_of_its_own() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(Operation)]
    assert len(set(tags)) == len(tags)
    assert all(issubclass(kind, Op) for kind in get_args(Operation))


@pytest.mark.parametrize("name", NAMES)
def test_a_trace_survives_being_written_to_a_file(name: str) -> None:
    _, trace = trace_of(name, 1)
    text = msgspec.json.encode(trace)
    assert msgspec.json.decode(text, type=tuple[Operation, ...]) == trace


@pytest.mark.parametrize(
    "text",
    [
        '{"op": "lunch"}',
        '{"request": "r1"}',
        '{"op": "abort"}',
        '{"op": "abort", "request": 1}',
        '{"op": "abort", "request": "r1", "reason": "none"}',
        '{"op": "abort", "request": "a name that is far too long"}',
        '{"op": "flush", "limit": -1}',
        '{"op": "complete", "rank": 0, "stream": 9, "count": 1}',
        '{"op": "complete", "rank": 0, "stream": 0, "count": 0}',
        '{"op": "arrive", "request": "r1", "prompt": 1e9, "output": 1}',
    ],
)
def test_what_is_no_operation_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=Operation)
