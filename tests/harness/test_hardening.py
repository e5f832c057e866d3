"""Traces and files that once confused the harness itself."""

import os
from pathlib import Path

import pytest

from harness.choices import SeedChoices
from harness.errors import InputError
from harness.loading import load_scenario
from harness.ops import Abort, Admit, Arrive, Decode, IdleCheck, Launch, Operation, Process
from harness.ops import SharedReadEnd as ReadEnd
from harness.runner import run_trace
from harness.scenario import Setup
from harness.setup import check_setup, draw_setup
from tests.harness.lived_in import scenario


def setup_where(*, read_end: bool) -> Setup:
    drawn = (draw_setup(scenario("smoke"), SeedChoices(seed)) for seed in range(100))
    return next(s for s in drawn if s.read_end is read_end and s.overlap)


def test_a_request_named_twice_decodes_once() -> None:
    trace: tuple[Operation, ...] = (
        Arrive("r1", 3, 2),
        Admit("r1", 3),
        Launch(("r1",)),
        Process(),
        Decode(("r1", "r1")),
        Launch(("r1",)),
        IdleCheck(),
    )
    result = run_trace(setup_where(read_end=True), trace)
    assert not result.violations
    assert result.skipped == 0


def test_a_backend_without_a_read_end_cannot_declare_one() -> None:
    trace: tuple[Operation, ...] = (
        Arrive("r1", 3, 2),
        Admit("r1", 3),
        Launch(("r1",)),
        ReadEnd(),
        Process(),
        Launch(()),
        Abort("r1"),
    )
    result = run_trace(setup_where(read_end=False), trace)
    assert not result.violations
    assert result.skipped == 2


def test_a_pipe_is_no_scenario(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="not a regular file"):
        load_scenario(pipe)


def test_a_stored_setup_of_too_many_pages_is_refused() -> None:
    setup = setup_where(read_end=True)
    size = setup.bands[0].page_bytes
    with pytest.raises(InputError, match="at most 4096 pages"):
        check_setup(replaced(setup, setup.sink_bytes + 5000 * size), "a case")


def replaced(setup: Setup, total_bytes: int) -> Setup:
    fields = {name: getattr(setup, name) for name in setup.__struct_fields__}
    return Setup(**{**fields, "total_bytes": total_bytes})
