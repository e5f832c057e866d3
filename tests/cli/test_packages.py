"""What is said where a package that is needed is not installed."""

import os
import subprocess
import venv
from importlib.metadata import distribution
from pathlib import Path

import msgspec
import pytest

from harness.packages import NEEDED, REMEDY
from tests.cli.seeds import SMOKE

ROOT = Path(__file__).parents[2]

BROUGHT_ALONG = ("markupsafe", "markdown-it-py", "mdurl", "pygments")
"""Packages that those of the light install need."""

A_RUN = ("run", "--scenario", str(SMOKE), "--seeds", "1", "--ops", "10")


def environment_of(folder: Path, *packages: str) -> Path:
    """The interpreter of a new environment that has these packages and no others."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        installed = distribution(package)
        for name in {path.parts[0] for path in installed.files or () if path.parts[0] != ".."}:
            (site / name).symlink_to(Path(str(installed.locate_file(name))))
    return folder / "bin" / "python"


def without(folder: Path, missing: str) -> Path:
    """The interpreter of a new environment that has all of the light install but one package."""
    return environment_of(folder, *(p for p in (*NEEDED, *BROUGHT_ALONG) if p != missing))


def answer(python: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the program says in an environment."""
    return subprocess.run(
        [python, "-m", "harness", *words],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_without_anything_to_read_a_command_line_one_line_says_so(tmp_path: Path) -> None:
    said = answer(environment_of(tmp_path), "doctor")
    assert (said.returncode, said.stdout) == (4, "")
    (line,) = said.stderr.splitlines()
    assert line.startswith(
        f"error: click is not installed, and the command line needs it; {REMEDY}"
    )


def test_the_doctor_needs_no_more_than_that(tmp_path: Path) -> None:
    said = answer(environment_of(tmp_path, "click"), "doctor", "--json")
    assert (said.returncode, said.stderr) == (4, "")
    assert "jinja2 MISSING, msgspec MISSING, pyyaml MISSING, rich MISSING\n" in said.stdout
    assert f"to install  {REMEDY}\n" in said.stdout
    record = msgspec.json.decode(said.stdout.splitlines()[-1])
    assert [name for name, version in record["needed"].items() if version] == ["click"]


@pytest.mark.slow
@pytest.mark.parametrize("package", ["jinja2", "pyyaml", "msgspec"])
def test_the_doctor_names_the_one_that_is_missing(tmp_path: Path, package: str) -> None:
    said = answer(without(tmp_path, package), "doctor")
    assert (said.returncode, said.stderr) == (4, "")
    assert said.stdout.count("MISSING") == 1
    assert f"{package} MISSING" in said.stdout
    assert f"repeats     unknown: exit status 4: error: {package} is not installed" in said.stdout


@pytest.mark.slow
@pytest.mark.parametrize("package", ["jinja2", "pyyaml", "msgspec"])
def test_another_command_names_it_in_one_line(tmp_path: Path, package: str) -> None:
    said = answer(without(tmp_path, package), *A_RUN, "--artifacts", str(tmp_path / "artifacts"))
    assert (said.returncode, said.stdout) == (4, "")
    (line,) = said.stderr.splitlines()
    assert line.startswith(f"error: {package} is not installed")


@pytest.mark.slow
def test_the_light_install_is_enough(tmp_path: Path) -> None:
    python = without(tmp_path, "nothing")
    said = answer(python, *A_RUN, "--artifacts", str(tmp_path / "artifacts"))
    assert (said.returncode, said.stderr) == (0, "")
    assert answer(python, "doctor").returncode == 0
