"""The folder of a failure: everything to pass on, nothing that says where it was made."""

import getpass
import os
import platform
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.errors import InputError
from harness.report.environment import dependencies, environment
from harness.report.folder import files_of, plain_report
from harness.report.repro import repro
from harness.report.story import Story
from harness.shrinking import Smaller
from harness.sweep.artifacts import write_text
from harness.sweep.findings import Findings
from tests.report.stories import COMMAND, hostile, no_room, race, ranks_apart, under_a_peer

ROOT = Path(__file__).parents[2]


def test_a_folder_has_a_report_pictures_a_test_and_versions() -> None:
    assert list(files_of(race().case, COMMAND)) == [
        "report.md",
        "report.html",
        "timeline.json",
        "repro.py",
        "env.json",
    ]


def test_a_case_that_no_longer_fails_has_nothing_to_tell() -> None:
    assert files_of(msgspec.structs.replace(race().case, plant=None), COMMAND) == {}


def test_the_same_case_gives_the_same_files() -> None:
    assert files_of(race().case, COMMAND) == files_of(race().case, COMMAND)


def reproduced(story: Story, folder: Path) -> Callable[[Path], None]:
    """The test that a story's folder holds."""
    path = folder / "repro.py"
    path.write_text(repro(story.case, path.name), encoding="utf-8")
    test: Callable[[Path], None] = runpy.run_path(str(path))["test_the_failure_is_there"]
    return test


@pytest.mark.parametrize("told", [race, ranks_apart, under_a_peer, no_room])
def test_the_test_passes_while_the_failure_is_there(
    told: Callable[[], Story], tmp_path: Path
) -> None:
    reproduced(told(), tmp_path)(tmp_path)


def test_the_test_fails_once_the_failure_is_gone(tmp_path: Path) -> None:
    repaired = msgspec.structs.replace(race().case, plant=None)
    path = tmp_path / "repro.py"
    path.write_text(repro(repaired, path.name), encoding="utf-8")
    with pytest.raises(AssertionError):
        runpy.run_path(str(path))["test_the_failure_is_there"](tmp_path)


@pytest.mark.parametrize(
    "text", ["'''", '"""', "\\", "\\u0041'''\\", "line\nend", "\u2028é\x00", "{x}"]
)
def test_a_test_holds_any_text(text: str, tmp_path: Path) -> None:
    story = hostile(race(), text)
    case = msgspec.structs.replace(story.case, plant="move-over-writer")
    path = tmp_path / "repro.py"
    path.write_text(repro(case, path.name), encoding="utf-8")
    module = runpy.run_path(str(path))
    assert msgspec.json.decode(module["CASE"].strip())["scenario"] == text
    module["test_the_failure_is_there"](tmp_path)


@pytest.mark.slow
def test_the_test_needs_nothing_but_the_library(tmp_path: Path) -> None:
    path = tmp_path / "repro.py"
    path.write_text(repro(race().case, path.name), encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_versions_are_told_and_places_are_not() -> None:
    text = environment().decode()
    record: dict[str, Any] = msgspec.json.decode(text)
    assert record["python"] == platform.python_version()
    assert {"click", "msgspec"} <= set(dependencies())
    assert platform.node() not in text.replace(platform.release(), "")
    assert f'"{getpass.getuser()}"' not in text
    assert "/" not in text


def test_a_report_in_plain_text_stays_as_it_is() -> None:
    assert plain_report("crash: one\n  two\n") == "```text\ncrash: one\n  two\n```\n"


def test_what_a_finding_shows_is_replaced_by_what_the_smaller_one_shows(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(race().case)
    (finding,) = findings.all()
    before = finding.report.read_text()
    findings.add_smaller(finding, Smaller(race().case, complete=True))
    assert "History of page 1" in finding.report.read_text()
    assert "History" not in before


@pytest.mark.parametrize(
    ("complete", "sentence"),
    [(True, "No operation can be left out"), (False, "It was not made small to the end")],
)
def test_it_is_told_whether_all_operations_are_needed(
    complete: bool, sentence: str, tmp_path: Path
) -> None:
    findings = Findings(tmp_path)
    findings.add_case(race().case)
    (finding,) = findings.all()
    findings.complete(finding)
    for text in (finding.report.read_text(), findings.report(finding)):
        assert "It is as it was found" in text
    findings.add_smaller(finding, Smaller(race().case, complete))
    page = (finding.folder / "report.html").read_text()
    for text in (finding.report.read_text(), page, findings.report(finding)):
        assert sentence in text
        assert "It is as it was found" not in text


def test_what_is_there_is_not_replaced_by_less(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(race().case)
    (finding,) = findings.all()
    findings.complete(finding)
    told = {path.name: path.read_bytes() for path in finding.folder.iterdir()}
    # A case that does not fail as it says has nothing to tell.
    gone = msgspec.structs.replace(race().case, plant=None)
    findings.add_smaller(finding, Smaller(gone, complete=True))
    after = {path.name: path.read_bytes() for path in finding.folder.iterdir()}
    assert {name: text for name, text in after.items() if name != "min.json"} == told


def test_a_file_that_cannot_be_written_is_an_error_of_the_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write this file: No such file"):
        write_text(tmp_path / "nowhere" / "report.md", "text")
