"""Planted faults from the command line: found, written down, replayed, hunted."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness.case import Case, load_case, save_case
from harness.cli import main
from harness.faults.catalog import FAULTS
from harness.report.faults import missed_text
from tests.cli.seeds import SMOKE
from tests.cli.test_commands import record_of, run_of, unmeasured

FAULT = "barrier-dropped"
"""The bug of these tests: the first seeds of the smoke scenario find it."""


def invoked(*arguments: object) -> Result:
    """The program's answer to these arguments."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def found(folder: Path, *options: str) -> Result:
    """A run that finds the fault in one of its first seeds."""
    return run_of(folder, "--seeds", "1..8", "--plant", FAULT, "--jobs", "1", "--json", *options)


def violation_in(result: Result) -> dict[str, Any]:
    """The only violation of a result that a seed showed; others were met while it was shrunk."""
    (violation,) = (found for found in record_of(result)["violations"] if found["count"])
    assert isinstance(violation, dict)
    return violation


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shrunk case of the fault."""
    return Path(violation_in(found(tmp_path_factory.mktemp("found")))["case"])


def without_its_fault(case: Path, folder: Path) -> Path:
    """The same case, for the allocator as it is."""
    path = folder / "repaired.json"
    save_case(path, msgspec.structs.replace(load_case(case), plant=None))
    return path


def test_a_violation_ends_with_status_one(tmp_path: Path) -> None:
    result = found(tmp_path)
    assert result.exit_code == 1
    assert violation_in(result)["check"] == "ordering"


def test_a_finding_has_a_shrunk_case_and_a_report(stored: Path) -> None:
    assert stored.name == "min.json"
    assert {path.name for path in stored.parent.iterdir()} == {
        "case.json",
        "env.json",
        "min.json",
        "report.html",
        "report.md",
        "repro.py",
        "timeline.json",
    }
    small, whole = load_case(stored), load_case(stored.with_name("case.json"))
    assert small.violation.signature == whole.violation.signature
    assert len(small.operations) < len(whole.operations)


def test_the_report_is_printed_with_the_command_that_replays_it(tmp_path: Path) -> None:
    result = found(tmp_path)
    case = violation_in(result)["case"]
    command = f"python -m harness replay {case}\n"
    assert f"\n  {command}" in result.stdout
    assert f"\n{command}" in Path(case).with_name("report.md").read_text()


def test_a_failing_run_ends_alike_in_several_processes(tmp_path: Path) -> None:
    alone = record_of(found(tmp_path))
    together = record_of(
        run_of(tmp_path, "--seeds", "1..8", "--plant", FAULT, "--jobs", "2", "--json")
    )
    for record in (alone, together):
        for violation in record["violations"]:
            del violation["case"]
    assert unmeasured(alone) == unmeasured(together)


def test_a_fault_that_is_not_seen_is_missed(tmp_path: Path) -> None:
    result = run_of(tmp_path, "--seeds", "1", "--ops", "1", "--plant", FAULT)
    assert result.exit_code == 7
    assert f"planted fault {FAULT} was not caught; the scenario to look in is" in result.stdout


def test_a_stored_failure_fails_again(stored: Path) -> None:
    result = invoked("replay", stored, "--json")
    assert result.exit_code == 1
    assert violation_in(result)["signature"] == load_case(stored).violation.signature
    assert "twice       fails: ordering" in result.stdout


def test_a_replay_can_stop_before_the_failure(stored: Path) -> None:
    until = load_case(stored).violation.operation - 1
    result = invoked("replay", stored, "--until", until)
    assert (result.exit_code, "does not fail" in result.stdout) == (0, True)


def test_a_stored_failure_that_was_repaired_is_reported(stored: Path, tmp_path: Path) -> None:
    result = invoked("replay", without_its_fault(stored, tmp_path))
    assert result.exit_code == 7
    assert "no longer fails; stored: ordering" in result.stdout


def test_a_fault_can_be_planted_under_a_stored_case(stored: Path, tmp_path: Path) -> None:
    repaired = without_its_fault(stored, tmp_path)
    assert invoked("replay", repaired, "--plant", FAULT).exit_code == 1


def test_a_case_of_a_fault_that_is_gone_is_refused(stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "renamed.json"
    save_case(path, msgspec.structs.replace(load_case(stored), plant="renamed"))
    result = invoked("replay", path)
    assert result.exit_code == 4
    assert "'renamed': no such fault; known: " in result.stderr


def test_a_replay_changes_no_file(stored: Path) -> None:
    before = {path: path.read_bytes() for path in stored.parent.iterdir()}
    invoked("replay", stored)
    assert {path: path.read_bytes() for path in stored.parent.iterdir()} == before


def test_a_seed_replays_to_the_digest_of_its_run(tmp_path: Path) -> None:
    result = invoked("replay", "--scenario", SMOKE, "--seed", 3, "--ops", 40, "--json")
    ran = run_of(tmp_path, "--seeds", "3", "--ops", "40", "--json")
    assert result.exit_code == 0
    assert record_of(result)["digest"] == record_of(ran)["digest"]


def test_a_failing_seed_replays_without_a_case(tmp_path: Path) -> None:
    seed = violation_in(found(tmp_path))["seed"]
    result = invoked("replay", "--scenario", SMOKE, "--seed", seed, "--plant", FAULT, "--json")
    assert result.exit_code == 1
    assert violation_in(result)["case"] is None


def test_a_seed_that_does_not_show_its_fault_is_a_miss() -> None:
    words = ["replay", "--scenario", SMOKE, "--seed", 1, "--ops", 5, "--plant", FAULT]
    result = invoked(*words)
    assert result.exit_code == 7
    assert f"planted fault {FAULT} was not caught" in result.stdout
    assert invoked(*words, "--until", 3).exit_code == 0


def test_runs_that_differ_are_not_deterministic(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The second run of the replay meets a repaired allocator.
    answers = iter([FAULTS[FAULT], FAULTS["freed-id-lost"]])

    class Changing(dict[str, object]):
        def __getitem__(self, key: str) -> object:
            return next(answers)

    monkeypatch.setattr("harness.runner.FAULTS", Changing())
    result = invoked("replay", stored)
    assert result.exit_code == 6
    assert "not deterministic: " in result.stdout


def test_a_hunt_says_what_caught_a_fault(tmp_path: Path) -> None:
    result = invoked("faults", "--only", FAULT, "--jobs", 1, "--artifacts", tmp_path, "--json")
    assert result.exit_code == 0
    (row,) = record_of(result)["faults"]
    assert row["id"] == FAULT
    assert (row["caught"], row["check"], row["rows"]) == (
        True,
        "ordering",
        list(FAULTS[FAULT].rows),
    )
    assert row["operations"] > 0


def test_a_hunt_for_an_unknown_fault_is_refused() -> None:
    result = invoked("faults", "--only", "nonsense")
    assert result.exit_code == 4
    assert "--only: 'nonsense': no such fault; known: " in result.stderr


def test_a_case_names_the_program_that_wrote_it(stored: Path) -> None:
    case: Case = load_case(stored)
    assert (case.plant, case.scenario, case.seed) == (FAULT, "smoke", 1)


@pytest.mark.parametrize(
    ("fault", "where"),
    [
        ("row-never-reset", "the scenario to look in is rows"),
        ("ids-taken-by-value", "calls show it that no operation makes"),
    ],
)
def test_a_miss_says_where_the_fault_is(fault: str, where: str) -> None:
    assert missed_text(fault) == (
        f"planted fault {fault} was not caught; {where}; faults --only {fault} hunts it"
    )
