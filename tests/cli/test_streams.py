"""Standard streams that are closed or full: one exit status, and at most one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.case import save_case
from tests.cli.seeds import SMOKE
from tests.cli.test_commands import ROOT
from tests.cli.test_findings import a_case

PLANTED = ["--plant", "freed-page-offered"]


def redirected(how: str, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program with its streams as a shell redirects them."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, "-m", "harness", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


def run_of(folder: Path, *options: str) -> list[str]:
    """The words of a run of one seed."""
    words = ["run", "--scenario", str(SMOKE), "--seeds", "1", "--jobs", "1", *options]
    return [*words, "--artifacts", str(folder)]


@pytest.mark.slow
def test_output_that_is_closed_is_output_that_nobody_wants(tmp_path: Path) -> None:
    done = redirected(">&-", *run_of(tmp_path, *PLANTED))
    assert (done.returncode, done.stderr) == (1, "")
    assert list(tmp_path.glob("*/*/min.json"))


@pytest.mark.slow
def test_input_that_is_closed_ends_a_walk(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    save_case(path, a_case(7))
    closed = redirected("<&-", "replay", str(path), "--step")
    empty = redirected("</dev/null", "replay", str(path), "--step")
    assert (closed.returncode, closed.stderr) == (empty.returncode, "")
    assert closed.stdout == empty.stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["faults", "--list"]])
def test_output_that_is_full_is_said_in_a_line(words: list[str]) -> None:
    done = redirected(">/dev/full", *words)
    assert done.returncode == 2
    assert done.stderr == (
        "error: standard output: No space left on device; let it go to a file with room\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", ["2>/dev/full", "2>&-"])
def test_where_no_error_can_be_said_its_status_is(how: str) -> None:
    assert redirected(how, "replay", "absent").returncode == 4


@pytest.mark.slow
def test_a_failure_of_the_harness_keeps_its_status_where_no_error_can_be_said(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import harness.commands\nharness.commands.name_faults = None\n"
    )
    done = redirected("2>/dev/full", "faults", "--list", PYTHONPATH=str(tmp_path))
    assert done.returncode == 3


@pytest.mark.slow
def test_input_that_is_no_text_is_a_word_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    save_case(path, a_case(7))
    (tmp_path / "typed").write_bytes(b"\xff\nquit\n")
    words = ["replay", str(path), "--step"]
    done = redirected(f"<{tmp_path / 'typed'}", *words, PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr) == (5, "")
