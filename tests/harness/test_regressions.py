"""Every bug that was found keeps its shrunk case, and the case replays clean for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.case import load_case
from harness.runner import run_trace

CASES = sorted((Path(__file__).parents[2] / "scenarios" / "regressions").glob("*.json"))


def test_there_are_stored_cases() -> None:
    assert CASES


@pytest.mark.parametrize("path", CASES, ids=str)
def test_a_fixed_bug_stays_fixed(path: Path) -> None:
    case = load_case(path)
    result = run_trace(case.setup, case.operations, plant=case.plant)
    assert not result.violations
    assert result.applied > 0
