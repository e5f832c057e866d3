"""What was found survives a disk that takes nothing more."""

from pathlib import Path

from harness.case import CASE_VERSION, Case
from harness.report.summary import finding_lines
from harness.runner import run_seed
from harness.sweep.findings import Findings
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
    findings.add_smaller(finding, case)
    text = "\n".join(finding_lines(findings, 1))
    assert case.violation.check in text
    assert "not written: " in text


def test_a_finding_that_can_be_written_is_on_disk(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(failed())
    (finding,) = findings.all()
    assert findings.report(finding) in finding.report.read_text(encoding="utf-8")
    assert (finding.folder / "case.json").exists()
