"""What is on disk for a failure, and that it is never lost."""

from pathlib import Path

import pytest

from harness.case import Case, load_case
from harness.errors import InputError
from harness.shrinking import Smaller
from harness.sweep.artifacts import command_folder, new_folder, write_text
from harness.sweep.crew import Died
from harness.sweep.findings import Findings
from harness.sweep.jobs import Job
from tests.cli.seeds import a_result, a_violation, failing


def a_case(seed: int, detail: str = "books differ") -> Case:
    """A failed seed of the smoke scenario."""
    violation = a_violation(detail)
    return failing().case(Job(0, 0, seed), a_result(seed, violation), violation)


def test_a_finding_is_a_case_with_a_report(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    (finding,) = findings.all()
    assert finding.folder.name == a_violation().short_signature
    assert load_case(finding.folder / "case.json") == a_case(7)
    assert finding.replay in finding.report.read_text()


def test_the_first_seed_owns_the_finding(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    findings.add_case(a_case(9))
    (finding,) = findings.all()
    assert (finding.seed, findings.count(finding)) == (7, 2)
    assert load_case(finding.folder / "case.json").seed == 7


def test_another_finding_never_takes_a_folder(tmp_path: Path) -> None:
    taken = tmp_path / a_violation().short_signature
    taken.mkdir()
    (taken / "case.json").write_text("somebody else's")
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    assert findings.all()[0].folder.name == f"{a_violation().short_signature}-2"
    assert (taken / "case.json").read_text() == "somebody else's"


def test_a_shrunk_case_joins_the_one_as_found(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    (finding,) = findings.all()
    assert finding.smallest_case == finding.folder / "case.json"
    findings.add_smaller(finding, Smaller(a_case(7), complete=True))
    assert finding.smallest_case == finding.folder / "min.json"
    assert "min.json" in finding.report.read_text()


def test_deaths_by_one_exception_are_one_finding(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    for seed in (3, 4):
        log = f"Traceback:\n  somewhere\nKeyError: {seed}"
        died = Died(Job(0, 0, seed), "exit status 1", log, raised=True)
        findings.add_crash(died, "smoke", "the command")
    (finding,) = findings.all()
    assert finding.signature == "crash | exit status 1 | KeyError"
    assert "KeyError: 3" in finding.report.read_text()


def test_every_command_gets_a_new_folder(tmp_path: Path) -> None:
    assert command_folder(tmp_path, "run") != command_folder(tmp_path, "run")


def test_a_file_in_the_way_of_artifacts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make this folder: Not a directory"):
        new_folder(tmp_path / "file", "run")


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_link_to_nothing_in_the_way_of_artifacts_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(InputError, match="link: links to 'nowhere', where nothing is; make that"):
        new_folder(tmp_path / "link" / below, "run")


def test_a_text_replaces_the_one_before(tmp_path: Path) -> None:
    write_text(tmp_path / "report.md", "one")
    write_text(tmp_path / "report.md", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
    assert (tmp_path / "report.md").read_text() == "two"


def test_a_text_that_has_no_encoding_is_written_with_escapes(tmp_path: Path) -> None:
    write_text(tmp_path / "report.md", "bad\udcff")
    assert (tmp_path / "report.md").read_text() == "bad\\udcff"
