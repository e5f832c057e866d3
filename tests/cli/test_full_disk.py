"""What was found survives a disk that takes nothing more."""

import resource
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.case import CASE_VERSION, Case, save_case
from harness.cli import main
from harness.report.summary import finding_lines
from harness.runner import run_seed
from harness.shrinking import Smaller
from harness.sweep.crew import Died
from harness.sweep.findings import Findings
from harness.sweep.jobs import Job
from harness.sweep.shrinks import OtherFailures
from harness.sweep.verdicts import Verdicts
from tests.cli.seeds import SMOKE, a_violation
from tests.harness.lived_in import scenario


def failed(plant: str = "freed-page-offered") -> Case:
    """The first seed of the smoke scenario, in which a planted fault is seen."""
    result = run_seed(scenario("smoke"), "smoke", 1, 400, plant=plant)
    return Case(
        version=CASE_VERSION,
        unikv="0",
        scenario="smoke",
        scenario_data=scenario("smoke"),
        setup=result.setup,
        seed=1,
        plant=plant,
        operations=result.trace,
        violation=result.violations[0],
    )


def test_a_finding_that_cannot_be_written_is_still_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where the folder was")
    findings = Findings(tmp_path / "file")
    case = failed()
    findings.add_case(case)
    (finding,) = findings.all()
    findings.add_smaller(finding, Smaller(case, complete=True))
    text = "\n".join(finding_lines(findings, 1))
    assert case.violation.check in text
    assert "not written: " in text


def test_a_finding_that_can_be_written_is_on_disk(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(failed())
    (finding,) = findings.all()
    assert findings.report(finding) in finding.report.read_text(encoding="utf-8")
    assert (finding.folder / "case.json").exists()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Within, no file grows beyond so many bytes, as on a disk that has no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_crash_that_cannot_be_written_is_still_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("where the folder was")
    findings = Findings(tmp_path / "file")
    findings.add_crash(Died(Job(0, 0, 7), "signal 9", "", raised=False), "smoke", "the command")
    text = "\n".join(finding_lines(findings, 1))
    assert "seed 7 of scenario smoke ended its process: signal 9" in text
    assert "not written: " in text


def test_verdicts_that_cannot_be_kept_are_remembered_all_the_same(tmp_path: Path) -> None:
    case = failed()
    path = tmp_path / "case.json"
    items = [(case.setup, *case.operations[:length]) for length in range(3)]
    with closing(Verdicts(path, case)) as verdicts:
        verdicts.remember(items[0], fails=False)
        with room_for(verdicts.path.stat().st_size):
            verdicts.remember(items[1], fails=True)
            verdicts.remember(items[2], fails=False)
        assert [verdicts.recall(one) for one in items] == [False, True, False]
        assert verdicts.trouble.startswith(f"{verdicts.path}: verdicts are not kept any more: ")
        assert not verdicts.path.exists()


def test_what_was_made_small_is_said_where_it_cannot_be_written(tmp_path: Path) -> None:
    case = failed()
    path = tmp_path / "case.json"
    save_case(path, case)
    with room_for(200):
        result = CliRunner().invoke(main, ["shrink", str(path)])
    assert result.exit_code == 4
    assert f"\n  python -m harness replay {path}\n" in result.stdout
    assert result.stdout.count("\n    ") < len(case.operations)
    assert result.stderr == f"error: {tmp_path}/min.json: cannot write this case: File too large\n"
    assert [file.name for file in tmp_path.iterdir()] == ["case.json"]


def test_a_failure_met_on_the_way_does_not_end_a_reduction(tmp_path: Path) -> None:
    case, other = failed(), a_violation()
    others = OtherFailures(case, tmp_path)
    with room_for(200):
        others.keep(case.setup, case.operations, other)
    others.keep(case.setup, case.operations, other)
    assert others.paths == {}
    assert others.lost[other.signature].endswith(f"File too large; it fails with {other.signature}")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_that_cannot_write_anything_says_what_it_found(tmp_path: Path, jobs: str) -> None:
    options = ["--seeds", "1..3", "--plant", "freed-page-offered", "--jobs", jobs]
    with room_for(10):
        result = CliRunner().invoke(
            main, ["run", "--scenario", str(SMOKE), *options, "--artifacts", str(tmp_path)]
        )
    assert (result.exit_code, result.stderr) == (1, "")
    assert "not written: " in result.stdout
    assert "not kept    " in result.stdout
    assert ".jsonl: cannot write down which seed runs: " in result.stdout
