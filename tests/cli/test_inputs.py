"""What a wrong command line is told: one line, exit status 4, and nothing done."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness import case, options, scenario
from harness.case import save_case
from harness.cli import main
from harness.loading import load_scenario
from harness.scenario import Scenario
from harness.weights import OPERATION_WEIGHTS
from tests.cli.seeds import SMOKE
from tests.cli.test_findings import a_case

RUN = ["run", "--scenario", str(SMOKE)]


def invoked(*arguments: str) -> Result:
    """The program's answer to these arguments."""
    return CliRunner().invoke(main, arguments)


def with_weights(**weights: int) -> Scenario:
    """The smoke scenario with other weights."""
    return msgspec.structs.replace(load_scenario(SMOKE), weights=weights)


def assert_refused(result: Result, *said: str) -> None:
    """One line on standard error, and exit status 4."""
    assert result.exit_code == 4
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ")
    for words in said:
        assert words in line


@pytest.mark.parametrize(
    "seeds", ["5..1", "..5", "5..", "-3", "1-5", "", "x", "1..99999999", "9" * 20, "٣"]
)
def test_wrong_seeds(seeds: str) -> None:
    assert_refused(invoked(*RUN, f"--seeds={seeds}"), "--seeds", repr(seeds), "LOW..HIGH")


@pytest.mark.parametrize("budget", ["20x", "20", "0s", "", "s", "-1s", "169h", "1.5s", "1m30s"])
def test_wrong_budgets(budget: str) -> None:
    assert_refused(invoked("sweep", f"--budget={budget}"), "--budget", repr(budget), "20s")


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--ops", "0"),
        ("--ops", "100001"),
        ("--ops", "many"),
        ("--jobs", "0"),
        ("--jobs", "257"),
        ("--ranks", "9"),
        ("--ranks", "-1"),
        ("--ranks", "9" * 5000),
    ],
)
def test_wrong_numbers(option: str, value: str) -> None:
    result = invoked(*RUN, "--seeds", "1", f"{option}={value}")
    assert_refused(result, option, repr(value), "want a whole number from 1 to")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["walk"],
        ["run"],
        ["run", "--seeds", "1"],
        [*RUN],
        [*RUN, "--seeds"],
        [*RUN, "--seeds", "1", "--fast"],
        [*RUN, "--seeds", "1", "--strategy", "luck"],
        [*RUN, "--seeds", "1", "surplus"],
        ["sweep"],
        ["smoke", "surplus"],
        ["replay"],
        ["replay", "--scenario", str(SMOKE)],
        ["replay", "--seed", "1"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    assert_refused(invoked(*arguments))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--out", "rows"],
            "--out: rows: is only for failing seeds that are made small; add --shr",
        ),
        (["--seeds", "5"], "--seeds: 5: is only for failing seeds"),
        (["--list", "--seeds", "2"], "--seeds: 2: is only for failing seeds"),
        (["--edges", "--out", "rows"], "--out: rows: is only for failing seeds"),
        (["--edges", "--shrink"], "--shrink: --edges shows the fewest operations by itself; want"),
        (["--edges", "--shrink", "--out", "rows"], "--shrink: --edges shows"),
        (["--list", "--shrink"], "--shrink: --list hunts nothing; want only one"),
    ],
)
def test_an_option_of_a_hunt_that_would_do_nothing(
    options: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(invoked("faults", "--only", "row-leaked", *options), said)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_fault_is_told_the_known_ones() -> None:
    assert_refused(invoked(*RUN, "--seeds", "1", "--plant", "nonsense"), "'nonsense'", "known: ")


def test_a_missing_scenario(tmp_path: Path) -> None:
    path = str(tmp_path / "absent.yaml")
    assert_refused(invoked("run", "--scenario", path, "--seeds", "1"), path, "No such file")


def test_a_folder_as_scenario(tmp_path: Path) -> None:
    assert_refused(invoked("run", "--scenario", str(tmp_path), "--seeds", "1"), "Is a directory")


def test_an_unknown_key_of_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "typo.yaml"
    path.write_text(SMOKE.read_text() + "\npresure: 3\n")
    result = invoked("run", "--scenario", str(path), "--seeds", "1")
    assert_refused(result, str(path), "presure")


def test_two_scenarios_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / SMOKE.name
    path.write_text(SMOKE.read_text())
    result = invoked("sweep", "--budget=1s", "--scenario", str(SMOKE), "--scenario", str(path))
    assert_refused(result, str(path), "names that differ")


def test_artifacts_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    result = invoked(*RUN, "--seeds", "1", "--artifacts", str(file))
    assert_refused(result, str(file), "cannot make this folder: Not a directory")
    assert file.read_text() == "kept"


def test_wrong_traffic(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp": 1}\n')
    assert_refused(invoked(*RUN, "--seeds", "1", "--traffic", str(path)), f"{path}:1: ")


def test_a_truncated_case(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    save_case(path, a_case(7))
    path.write_bytes(path.read_bytes()[:-9])
    assert_refused(invoked("replay", str(path)), str(path))


def test_a_case_of_a_newer_version(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text('{"version": 99}')
    assert_refused(invoked("replay", str(path)), str(path), "99")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"scenario_data": with_weights(nope=3)}, "scenario_data: weights.nope is no operation"),
        (
            {"scenario_data": with_weights(**dict.fromkeys(OPERATION_WEIGHTS, 0))},
            "scenario_data: every weight is 0",
        ),
    ],
)
@pytest.mark.parametrize("command", ["replay", "explain", "shrink"])
def test_a_case_that_no_run_can_have_written(
    tmp_path: Path, command: str, changed: dict[str, object], said: str
) -> None:
    path = tmp_path / "case.json"
    save_case(path, msgspec.structs.replace(a_case(7), **changed))
    assert_refused(invoked(command, str(path)), f"{path}: ", said)


def test_a_folder_as_case(tmp_path: Path) -> None:
    assert_refused(invoked("replay", str(tmp_path)), "Is a directory")


@pytest.mark.parametrize(
    ("option", "value"), [("--scenario", "x"), ("--seed", "1"), ("--ops", "9"), ("--ranks", "1")]
)
def test_a_case_with_options_of_a_seed(tmp_path: Path, option: str, value: str) -> None:
    path = tmp_path / "case.json"
    save_case(path, a_case(7))
    assert_refused(invoked("replay", str(path), option, value), option, "a case holds its own")


def test_a_refused_command_leaves_nothing(tmp_path: Path) -> None:
    artifacts = tmp_path / "artifacts"
    invoked(*RUN, "--seeds", "1", "--plant", "nonsense", "--artifacts", str(artifacts))
    assert not artifacts.exists()


def test_limits_of_options_are_those_of_the_files_that_they_end_up_in() -> None:
    # The options stand alone, so that `--help` loads nothing else.
    assert options.RANKS_MAX == scenario.RANKS_MAX
    assert options.STRATEGIES == scenario.STRATEGIES
    assert options.UNTIL_MAX == case.OPERATIONS_MAX
