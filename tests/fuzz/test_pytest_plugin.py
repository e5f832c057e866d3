"""The pytest plugin: seeds inside somebody else's tests."""

import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.case import Drawn, load_case, save_case
from harness.errors import InputError
from harness.runner import run_trace
from harness.seed_runs import BrokenPromise, SeedRuns
from harness.shrinking import shrink_case
from harness.static_subject import StaticSubject
from harness.subject import Answer
from harness.sweep.patience import ENDLESS_MAX, Measured
from shrink import Budget
from tests.report.test_story import case_for, shown_together
from unikv.device.port import Device, StorageLayout

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "scenarios" / "smoke.yaml"

# Whether the package is installed or not, the plugin is there once.
PLUGIN = ("-p", "no:unikv", "-p", "harness.pytest_plugin", "-p", "no:cacheprovider")

A_TEST = f"""
import pytest


@pytest.mark.unikv_seeds(3)
def test_mine(unikv_run):
    totals = unikv_run({str(SMOKE)!r}, operations=30)
    print("seeds", totals.seeds)


def test_unmarked(unikv_run):
    assert unikv_run({str(SMOKE)!r}, operations=1).seeds == 20
"""

A_BROKEN_TEST = f"""
import pytest
from tests.fuzz.test_pytest_plugin import Doubled


@pytest.mark.unikv_seeds(5)
@pytest.mark.parametrize("subject", [Doubled], ids=["of mine"])
def test_mine(unikv_run, subject):
    unikv_run({str(SMOKE)!r}, operations=60, subject=subject)


def test_planted(unikv_run):
    unikv_run({str(SMOKE)!r}, operations=200, plant="row-leaked")
"""


class Doubled(StaticSubject):
    """Hands out the same pages to everybody."""

    def take(self, pages: int, slots: int) -> Answer:
        """Name the first page again."""
        answer = super().take(pages, slots)
        return Answer([1] * len(answer.ids), answer.slots)


class Picky(Doubled):
    """Works with several bands only."""

    def __init__(self, layout: StorageLayout, device: Device) -> None:
        if len(layout.bands) == 1:
            raise ValueError("one band: want two")
        super().__init__(layout, device)


class Stuck(Doubled):
    """Never comes back where it has only one band."""

    def take(self, pages: int, slots: int) -> Answer:
        """Name the first page again."""
        while len(self._layout.bands) == 1:
            pass
        return super().take(pages, slots)


class Fickle(StaticSubject):
    """Its first take, of all its kind, is wrong."""

    takes = 0

    def take(self, pages: int, slots: int) -> Answer:
        """Name the first page again, once."""
        answer = super().take(pages, slots)
        Fickle.takes += 1
        return Answer([1] * (len(answer.ids) + 1), answer.slots) if Fickle.takes == 1 else answer


def seed_runs(folder: Path, stored: Path | None = None) -> SeedRuns:
    """Five seeds of a test."""
    return SeedRuns(5, folder, stored, "test_file.py::test_mine")


def test_the_marker_says_how_many_seeds(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(A_TEST)
    result = pytester.runpytest_inprocess(*PLUGIN, "-s", "--strict-markers")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*seeds 3*"])


def test_the_option_overrides_the_marker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(A_TEST)
    result = pytester.runpytest_inprocess(*PLUGIN, "-s", "-k", "mine", "--unikv-seeds", "2")
    result.stdout.fnmatch_lines(["*seeds 2*"])


@pytest.mark.parametrize("seeds", ["0", "-1", "1000001"])
def test_an_impossible_number_of_seeds_is_refused(pytester: pytest.Pytester, seeds: str) -> None:
    result = pytester.runpytest_inprocess(*PLUGIN, f"--unikv-seeds={seeds}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--unikv-seeds: {seeds}: want one whole number from 1 to*"])


def test_a_marker_without_a_number_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(A_TEST.replace("unikv_seeds(3)", "unikv_seeds"))
    result = pytester.runpytest_inprocess(*PLUGIN, "-k", "mine")
    result.stdout.fnmatch_lines(["*unikv_seeds: None: want one whole number*"])


def test_a_failing_test_names_its_case(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_file=A_BROKEN_TEST)
    result = pytester.runpytest_inprocess(*PLUGIN, "-k", "mine")
    result.assert_outcomes(failed=1, deselected=1)
    result.stdout.fnmatch_lines(
        [
            "E * ownership: *",
            "E * python -m pytest 'test_file.py::test_mine*of mine*' --unikv-replay artifacts/*",
            "E * case folder",
        ]
    )
    (folder,) = (pytester.path / "artifacts").glob("pytest-*/ownership-*")
    assert {path.name for path in folder.iterdir()} == {
        "case.json",
        "min.json",
        "report.md",
        "report.html",
        "timeline.json",
        "repro.py",
        "env.json",
    }
    assert "--unikv-replay" in (folder / "report.md").read_text()
    small = load_case(folder / "min.json")
    assert len(small.operations) <= len(load_case(folder / "case.json").operations)
    again = run_trace(small.setup, small.operations, subject=Doubled)
    assert again.violations[0].signature == small.violation.signature


def test_the_test_of_a_failing_case_imports_the_subject(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise):
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Doubled)
    (path,) = tmp_path.glob("pytest-*/*/repro.py")
    runpy.run_path(str(path))["test_the_failure_is_there"](tmp_path)


def test_a_subject_that_nobody_can_import_has_no_test(tmp_path: Path) -> None:
    class Hidden(Doubled):
        """Is in no module."""

    with pytest.raises(BrokenPromise):
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Hidden)
    (folder,) = tmp_path.glob("pytest-*/*")
    names = {path.name for path in folder.iterdir()}
    assert "report.html" in names
    assert "repro.py" not in names


def test_a_case_can_be_run_instead_of_seeds(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise) as first:
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Doubled)
    command = next(line for line in str(first.value).splitlines() if "--unikv-replay" in line)
    stored = Path(shlex.split(command)[-1])
    with pytest.raises(BrokenPromise, match="ownership: "):
        seed_runs(tmp_path, stored)(SMOKE, subject=Doubled)
    assert len(list(tmp_path.glob("pytest-*"))) == 1


def test_a_case_that_no_longer_fails_passes(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise):
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Doubled)
    (stored,) = tmp_path.glob("pytest-*/*/min.json")
    assert seed_runs(tmp_path, stored)(SMOKE, subject=StaticSubject).seeds == 1


def test_a_failure_of_unikv_replays_on_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise, match="python -m harness replay ") as caught:
        seed_runs(tmp_path)(SMOKE, operations=200, plant="row-leaked")
    assert "planted fault row-leaked" in str(caught.value)


def test_a_scenario_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.yaml"):
        seed_runs(tmp_path)(tmp_path / "absent.yaml")


def test_the_setup_gets_as_simple_as_that_of_a_run(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise):
        seed_runs(tmp_path)(SMOKE, operations=200, plant="row-leaked")
    (folder,) = tmp_path.glob("pytest-*/*")
    small = load_case(folder / "min.json")
    assert (small.setup.ranks, len(small.setup.bands)) == (1, 1)
    assert small == shrink_case(load_case(folder / "case.json"), Budget()).case


def test_failures_in_another_way_are_kept_beside_it(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise, match="another failure met on the way") as caught:
        seed_runs(tmp_path)(SMOKE, operations=200, plant="barrier-dropped")
    first, second = (load_case(path) for path in tmp_path.glob("pytest-*/*/case.json"))
    assert first.violation.signature != second.violation.signature
    assert all(str(folder) in str(caught.value) for folder in tmp_path.glob("pytest-*/*"))


def test_a_subject_that_refuses_a_simpler_storage_keeps_its_own(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise, match="ownership: "):
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Picky)
    (small,) = (load_case(path) for path in tmp_path.glob("pytest-*/*/min.json"))
    assert (small.setup.ranks, len(small.setup.bands)) == (1, 2)


@pytest.mark.slow
def test_a_subject_that_gets_stuck_in_a_simpler_storage_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent: list[Measured] = []

    def short() -> Measured:
        spent.append(Measured(0.1))
        return spent[-1]

    monkeypatch.setattr("harness.seed_runs.Measured", short)
    with pytest.raises(BrokenPromise, match="ownership: "):
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Stuck)
    assert [measured.endless for measured in spent] == [ENDLESS_MAX]
    assert len(list(tmp_path.glob("pytest-*/*/min.json"))) == 1


def test_a_subject_that_does_not_repeat_keeps_its_case(tmp_path: Path) -> None:
    Fickle.takes = 0
    with pytest.raises(BrokenPromise, match="not made small: run once more, it does not fail"):
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Fickle)
    assert len(list(tmp_path.glob("pytest-*/*/case.json"))) == 1


@pytest.mark.slow
def test_workers_of_xdist_write_apart(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_file=A_BROKEN_TEST)
    result = pytester.runpytest_inprocess(*PLUGIN, "-n", "2")
    result.assert_outcomes(failed=2)
    assert len(list((pytester.path / "artifacts").glob("pytest-*/*/min.json"))) == 2


def test_the_plugin_loads_nothing_that_runs_seeds() -> None:
    program = (
        "import sys, harness.pytest_plugin; print({'harness.runner', 'numpy'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "set()\n"


def test_a_stored_case_is_told_of_what_it_was_stored_for(tmp_path: Path) -> None:
    violation = shown_together()[1]
    save_case(tmp_path / "min.json", case_for(violation))
    with pytest.raises(BrokenPromise) as raised:
        seed_runs(tmp_path, tmp_path / "min.json")(SMOKE)
    assert violation.missing_edge in " ".join(str(raised.value).split())


def test_a_case_says_how_its_seed_was_drawn(tmp_path: Path) -> None:
    with pytest.raises(BrokenPromise):
        seed_runs(tmp_path)(SMOKE, operations=60, subject=Doubled, strategy="random", ranks=1)
    (stored,) = tmp_path.glob("pytest-*/*/min.json")
    assert load_case(stored).drawn == Drawn(strategy="random", ranks=1, traffic="")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"operations": 0}, "operations=0: want 1 to 100000"),
        ({"operations": -5}, "operations=-5"),
        ({"strategy": "bogus"}, "strategy='bogus': want 'random' or 'swarm'"),
        ({"ranks": 0}, "ranks=0: want 1 to 8"),
        ({"plant": "nope"}, "plant: 'nope': no such fault"),
    ],
)
def test_arguments_that_nothing_can_be_run_with_are_refused(
    arguments: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        seed_runs(tmp_path)(SMOKE, **arguments)
    assert said in str(raised.value)


def test_a_stored_case_with_a_fault_that_there_is_not_is_refused(tmp_path: Path) -> None:
    case = case_for(shown_together()[1])
    save_case(tmp_path / "min.json", msgspec.structs.replace(case, plant="nope"))
    with pytest.raises(InputError, match="plant"):
        seed_runs(tmp_path, tmp_path / "min.json")(SMOKE)
