"""All checks together: silent on healthy worlds, and every one of them has been seen to report."""

from pathlib import Path

import pytest

import harness.check
from harness.check import PROMISES
from tests.harness.lived_in import is_busy, reports, run_when

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", ["smoke", "hybrid"])
def test_a_healthy_world_is_not_reported(name: str) -> None:
    run = run_when(name, is_busy)
    assert reports(run.world) == []


@pytest.mark.parametrize("name", ["smoke", "hybrid"])
def test_a_healthy_world_at_rest_is_not_reported(name: str) -> None:
    run = run_when(name, is_busy)
    run.world.come_to_rest()
    assert reports(run.world) == []


def test_every_check_has_been_seen_to_report() -> None:
    modules = {path.stem for path in Path(harness.check.__file__).parent.glob("*.py")}
    tested = {path.stem.removeprefix("test_check_") for path in HERE.glob("test_check_*.py")}
    assert modules - {"__init__"} <= tested


def test_every_promise_has_been_seen_to_break() -> None:
    texts = "".join(path.read_text() for path in HERE.glob("test_check_*.py"))
    assert [name for name in PROMISES if f'("{name}",' not in texts] == []
