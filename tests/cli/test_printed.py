"""Text on its way out: nothing moves a cursor, and nothing is lost for want of an encoding."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from harness.case import save_case
from harness.cli import main
from harness.printed import json_line, quoted, shown
from harness.sweep.loading import load_named
from tests.cli.seeds import SMOKE
from tests.cli.test_commands import ROOT
from tests.cli.test_findings import a_case

ODD = os.fsdecode(b"it's bad\xff \\ \x1b[31m")
PLAIN_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_what_a_terminal_obeys_is_shown_as_an_escape() -> None:
    assert shown("a\x1b[31m\rb\n\udcff─ä") == "a\\x1b[31m\\rb\n\\udcff─ä"


@pytest.mark.parametrize("word", ["plain", "with a blank", "ä", "it's"])
def test_a_printable_word_is_quoted_as_everywhere(word: str) -> None:
    assert quoted(word) == shlex.quote(word)


def test_any_other_word_comes_back_from_a_shell() -> None:
    assert quoted(ODD).isprintable()
    said = subprocess.run(
        ["bash", "-c", f"printf %s {quoted(ODD)}"], capture_output=True, check=True
    )
    assert said.stdout == os.fsencode(ODD)


def test_a_record_says_which_file_it_was() -> None:
    line = json_line({"case": ODD})
    assert line.isascii()
    assert json.loads(line) == {"case": ODD}


def test_a_scenario_is_named_in_printable_characters(tmp_path: Path) -> None:
    path = tmp_path / "a\tb.yaml"
    path.write_text(SMOKE.read_text())
    (named,) = load_named([str(path)])
    assert named.name == "a\\tb"


def test_what_a_strangers_case_holds_moves_no_cursor(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    save_case(path, msgspec.structs.replace(a_case(7), scenario="a\x1b[31mb"))
    result = CliRunner().invoke(main, ["replay", str(path)])
    assert "scenario a\\x1b[31mb" in result.stdout
    assert "\x1b" not in result.output


def test_what_an_error_names_moves_no_cursor() -> None:
    result = CliRunner().invoke(main, ["replay", "absent\x1b[31m"])
    assert result.stderr.startswith("error: absent\\x1b[31m: ")


@pytest.mark.slow
@pytest.mark.parametrize("folder", [b"bad\xff", "ä".encode()])
def test_a_violation_is_said_whatever_its_folder_is_called(tmp_path: Path, folder: bytes) -> None:
    command = ["run", "--scenario", str(SMOKE), "--seeds", "1..3", "--plant", "freed-page-offered"]
    artifacts = os.fsencode(tmp_path) + b"/" + folder
    done = subprocess.run(
        [sys.executable, "-m", "harness", *command, "--jobs", "1", "--artifacts", artifacts],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | PLAIN_LOCALE,
    )
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"\nreplay\n  python -m harness replay $'" in done.stdout
    (found,) = Path(os.fsdecode(artifacts)).glob("*/*/min.json")
    assert "python -m harness replay $'" in (found.parent / "report.md").read_text("utf-8")


@pytest.mark.slow
def test_a_text_is_said_where_its_encoding_is_lacking(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    save_case(path, msgspec.structs.replace(a_case(7), scenario="ä─"))
    done = subprocess.run(
        [sys.executable, "-m", "harness", "replay", str(path)],
        capture_output=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONIOENCODING": "latin-1:strict"},
    )
    assert done.stderr == b""
    assert b"scenario \xe4\\u2500" in done.stdout
