"""The fuzz command: what it refuses, what a fuzzer's process tells, and faults it finds."""

from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness.case import load_case
from harness.choices import SeedChoices
from harness.cli import main
from harness.errors import InputError
from harness.fuzz.inputs import FRAME_BYTES, HEADER_BYTES, Target, run_input
from harness.sweep.findings import Findings
from harness.sweep.fuzzing import (
    Fuzzing,
    FuzzPlan,
    Reached,
    add_failed_inputs,
    checked_flags,
    fuzzer_version,
)
from harness.sweep.interrupts import Interrupts
from harness.sweep.smaller import make_small_in_time
from harness.sweep.verdict import Exit
from tests.cli.seeds import SMOKE, a_violation
from tests.cli.test_findings import a_case
from tests.harness.lived_in import scenario

needs_atheris = pytest.mark.skipif(
    find_spec("atheris") is None, reason="atheris is not installed; pip install 'unikv[fuzz]'"
)


def invoked(*arguments: str) -> Result:
    """The program's answer."""
    return CliRunner().invoke(main, ["fuzz", *arguments])


def a_failing_input(plant: str) -> bytes:
    """Bytes that show a planted fault in the smoke scenario."""
    target = Target("smoke", scenario("smoke"), 400, plant=plant)
    for seed in range(40):
        choices = SeedChoices(seed)
        data = bytes(choices.below(256) for _ in range(HEADER_BYTES + FRAME_BYTES * 200))
        if run_input(target, data).violations:
            return data
    raise AssertionError(f"no input of 40 shows {plant}")


def a_plan(folder: Path, plant: str | None = None) -> FuzzPlan:
    """A plan that nobody carries out."""
    target = Target("smoke", scenario("smoke"), 400, plant=plant)
    return FuzzPlan(SMOKE, target, folder, folder, 60, 1, ())


def ended(folder: Path, status: int, *, plant: str | None = None, executions: int = 9) -> Fuzzing:
    """A process that ended."""
    return Fuzzing(a_plan(folder, plant), reached=Reached(executions), status=status)


# Refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plant", "nonsense"], "'nonsense': no such fault"),
        (["--scenario", "absent.yaml"], "absent.yaml"),
        (["--replay", "absent"], "absent: cannot read this input"),
        (["--budget", "soon"], "--budget: 'soon'"),
        (["--seed", "0"], "--seed: '0'"),
        (["--", "corpus/"], "'corpus/': want flags of libFuzzer"),
        (["--", "-runs=1", "x"], "'x': want flags of libFuzzer"),
    ],
)
def test_what_cannot_be_fuzzed_is_refused(arguments: list[str], said: str) -> None:
    result = invoked(*arguments)
    assert (result.exit_code, result.stdout) == (4, "")
    assert said in result.stderr


@pytest.mark.parametrize(
    ("flag", "instead"),
    [
        ("-artifact_prefix=/tmp/x-", "--artifacts DIR"),
        ("-exact_artifact_path=x", "--artifacts DIR"),
        ("-error_exitcode=1", "leave this out"),
        ("-timeout_exitcode=0", "leave this out"),
        ("-jobs=2", "--seed of its own"),
        ("-fork=1", "--seed of its own"),
        ("-merge=1", "--corpus DIR"),
        ("-set_cover_merge=1", "--corpus DIR"),
        ("-minimize_crash=1", "--replay FILE"),
        ("-cleanse_crash=1", "--replay FILE"),
        ("-ignore_remaining_args=1", "leave this out"),
    ],
)
def test_a_flag_that_loses_what_is_found_is_refused(flag: str, instead: str) -> None:
    result = invoked("--", "-runs=1", flag)
    assert (result.exit_code, result.stdout) == (4, "")
    assert f"error: fuzz: {flag!r}: " in result.stderr
    assert instead in result.stderr


def test_other_flags_are_passed_on() -> None:
    assert checked_flags(["-runs=9", "-rss_limit_mb=100"]) == ("-runs=9", "-rss_limit_mb=100")


def test_without_a_fuzzer_one_line_says_how_to_get_it() -> None:
    with pytest.raises(InputError, match=r"^fuzz: no-fuzzer is not installed; on Linux, pip"):
        fuzzer_version("no-fuzzer")


@pytest.mark.skipif(find_spec("atheris") is not None, reason="atheris is installed")
def test_fuzzing_without_a_fuzzer_is_refused_before_a_folder_is_made(tmp_path: Path) -> None:
    result = invoked("--scenario", str(SMOKE), "--artifacts", str(tmp_path / "artifacts"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert not (tmp_path / "artifacts").exists()


# Inputs without a fuzzer --------------------------------------------------------------------


@pytest.mark.slow
def test_a_failing_input_becomes_a_case_without_a_fuzzer(tmp_path: Path) -> None:
    path = tmp_path / "crash-1"
    path.write_bytes(a_failing_input("row-leaked"))
    options = ["--scenario", str(SMOKE), "--plant", "row-leaked", "--artifacts", str(tmp_path)]
    result = invoked(*options, "--replay", str(path), "--json")
    assert result.exit_code == 1
    assert result.stdout.startswith(f"input {path}  scenario smoke  1664 bytes")
    (case,) = tmp_path.glob("fuzz-*/*/case.json")
    assert CliRunner().invoke(main, ["replay", str(case)]).exit_code == 1
    assert msgspec.json.decode(result.stdout.splitlines()[-1])["command"] == "fuzz"


@pytest.mark.slow
def test_failures_in_another_way_are_kept_as_those_of_a_run(tmp_path: Path) -> None:
    path = tmp_path / "crash-1"
    path.write_bytes(a_failing_input("barrier-dropped"))
    options = ["--scenario", str(SMOKE), "--plant", "barrier-dropped", "--artifacts", str(tmp_path)]
    assert invoked(*options, "--replay", str(path)).exit_code == 1
    cases = [load_case(found) for found in tmp_path.glob("fuzz-*/*/min.json")]
    assert len({case.violation.signature for case in cases}) == 2


@pytest.mark.slow
def test_every_failing_input_is_made_small_once(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    for plant in ("row-leaked", "freed-page-offered"):
        (tmp_path / "crash-1").write_bytes(a_failing_input(plant))
        add_failed_inputs(ended(tmp_path, 77, plant=plant), findings)
        make_small_in_time(findings, Interrupts())
    assert len(list(tmp_path.glob("*/min.json"))) == len(findings) == 2
    assert not any("not written" in findings.report(finding) for finding in findings.all())


def test_an_input_that_does_not_fail_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(a_failing_input("row-leaked"))
    options = ["--scenario", str(SMOKE), "--artifacts", str(tmp_path / "artifacts")]
    assert invoked(*options, "--replay", str(path)).exit_code == 0
    assert not (tmp_path / "artifacts").exists()


def test_an_input_that_does_not_show_its_fault_is_a_miss(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(a_failing_input("row-leaked"))
    # There is no host tier in this scenario.
    options = ["--scenario", str(SMOKE), "--plant", "backup-without-its-last-page"]
    result = invoked(*options, "--replay", str(path))
    assert result.exit_code == 7
    assert "planted fault backup-without-its-last-page was not caught" in result.stdout


# What a process tells -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (0, Exit.CLEAN),
        (70, Exit.VIOLATION),
        (71, Exit.VIOLATION),
        (77, Exit.NOT_DETERMINISTIC),
        (1, Exit.INTERNAL),
        (-9, Exit.INTERNAL),
    ],
)
def test_an_exit_status_without_a_finding(tmp_path: Path, status: int, verdict: Exit) -> None:
    assert ended(tmp_path, status).verdict(Findings(tmp_path)) is verdict


def test_a_finding_is_a_violation(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(msgspec.structs.replace(a_case(7), violation=a_violation()))
    assert ended(tmp_path, 77).verdict(findings) is Exit.VIOLATION


def test_a_planted_fault_that_stays_hidden_is_missed(tmp_path: Path) -> None:
    quiet = ended(tmp_path, 0, plant="row-leaked")
    assert quiet.verdict(Findings(tmp_path)) is Exit.MISSED


def test_no_execution_is_no_evidence(tmp_path: Path) -> None:
    assert ended(tmp_path, 0, executions=0).verdict(Findings(tmp_path)) is Exit.NOTHING_RAN


def test_somebody_who_interrupts_is_told_so(tmp_path: Path) -> None:
    fuzzing = ended(tmp_path, 72)
    fuzzing.interrupts.seen = True
    assert fuzzing.verdict(Findings(tmp_path)) is Exit.INTERRUPTED


def test_executions_are_counted_up_to_the_input_that_failed(tmp_path: Path) -> None:
    (tmp_path / "situations.txt").write_text("1\tband full [live]\n1\tAdmit done\n41\t\n")
    fuzzing = ended(tmp_path, 77)
    assert fuzzing.executions() == 41
    assert fuzzing.situations() == {"band": 1, "Admit": 1}


def test_an_input_that_fails_only_under_the_fuzzer_is_no_finding(tmp_path: Path) -> None:
    (tmp_path / "crash-1").write_bytes(b"")
    findings = Findings(tmp_path)
    add_failed_inputs(ended(tmp_path, 77), findings)
    assert len(findings) == 0


@pytest.mark.parametrize("status", [0, 1, 77, -9])
@pytest.mark.parametrize(
    ("name", "verdict"),
    [("crash-1", Exit.NOT_DETERMINISTIC), ("timeout-1", Exit.VIOLATION), ("oom-1", Exit.VIOLATION)],
)
def test_what_lies_in_the_folder_counts_whatever_the_exit_status(
    tmp_path: Path, status: int, name: str, verdict: Exit
) -> None:
    (tmp_path / name).write_bytes(b"")
    assert ended(tmp_path, status).verdict(Findings(tmp_path)) is verdict


@pytest.mark.slow
def test_a_failing_input_is_a_finding_whatever_the_exit_status(tmp_path: Path) -> None:
    (tmp_path / "crash-1").write_bytes(a_failing_input("row-leaked"))
    fuzzing = ended(tmp_path, 1, plant="row-leaked")
    findings = Findings(tmp_path)
    add_failed_inputs(fuzzing, findings)
    assert len(findings) == 1
    assert fuzzing.verdict(findings) is Exit.VIOLATION


def test_an_input_that_hung_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "timeout-1").write_bytes(a_failing_input("row-leaked"))
    findings = Findings(tmp_path)
    add_failed_inputs(ended(tmp_path, 70, plant="row-leaked"), findings)
    assert len(findings) == 0


# With a fuzzer ------------------------------------------------------------------------------


@needs_atheris
@pytest.mark.slow
def test_a_planted_fault_is_found_from_an_empty_corpus(tmp_path: Path) -> None:
    options = ["--scenario", str(SMOKE), "--plant", "move-over-writer", "--budget", "120s"]
    result = invoked(*options, "--artifacts", str(tmp_path), "--json")
    assert result.exit_code == 1
    record = msgspec.json.decode(result.stdout.splitlines()[-1])
    assert record["violations"][0]["check"] == "ordering"
    assert record["executions"] >= 1
    assert record["situations"] > 50
    (small,) = tmp_path.glob("*/*/min.json")
    assert CliRunner().invoke(main, ["replay", str(small)]).exit_code == 1


@needs_atheris
@pytest.mark.slow
def test_a_sound_allocator_is_not_reported_by_the_fuzzer(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    options = ["--scenario", str(SMOKE), "--ops", "60", "--corpus", str(corpus)]
    result = invoked(*options, "--artifacts", str(tmp_path), "--json", "--", "-runs=60")
    record = msgspec.json.decode(result.stdout.splitlines()[-1])
    assert (result.exit_code, record["violations"]) == (0, [])
    assert record["executions"] >= 60
    # What was kept is counters of the allocator and situations, and is there for the next time.
    assert record["coverage"] > record["situations"] > 0
    assert len(list(corpus.iterdir())) >= 5
