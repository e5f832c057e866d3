"""The same seed is the same run: in a fresh process, with other hashes, on another Python."""

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from shutil import which

import pytest

from harness.runner import run_seed
from tests.harness.lived_in import scenario

ROOT = Path(__file__).parents[2]
RUNS = (("smoke", 11), ("hybrid", 12), ("peers", 26), ("everything", 1))
OPERATIONS = 150
VERSIONS = ("3.11", "3.12", "3.13")

PROGRAM = f"""
import sys
from pathlib import Path
from harness.runner import run_seed
from harness.loading import load_scenario
for name, seed in {RUNS!r}:
    scenario = load_scenario(Path("scenarios") / (name + ".yaml"))
    print(run_seed(scenario, name, seed, {OPERATIONS}).digest)
"""


@cache
def digests() -> list[str]:
    """The digests of the runs in this process."""
    return [run_seed(scenario(name), name, seed, OPERATIONS).digest for name, seed in RUNS]


def digests_in(python: str, hash_seed: str) -> list[str]:
    """The digests of the same runs in a process of its own."""
    finished = subprocess.run(
        [python, "-c", PROGRAM],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return finished.stdout.split()


def interpreters(version: str) -> Iterator[str]:
    """Interpreters of one version, those of environments beside the code first."""
    yield from map(str, ROOT.glob(f".venv*/bin/python{version}"))
    found = which(f"python{version}")
    if found:
        yield found
    yield from map(str, (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))


def is_equipped(python: str) -> bool:
    """Whether an interpreter starts and has what a run needs."""
    command = [python, "-c", "import msgspec, yaml"]
    return subprocess.run(command, capture_output=True, timeout=60).returncode == 0


def test_the_same_seed_is_the_same_run() -> None:
    assert [run_seed(scenario(n), n, s, OPERATIONS).digest for n, s in RUNS] == digests()


def test_another_seed_is_another_run() -> None:
    assert run_seed(scenario("smoke"), "smoke", 13, OPERATIONS).digest not in digests()


def test_a_run_leaves_nothing_behind_for_the_next() -> None:
    run_seed(scenario("hybrid"), "hybrid", 99, OPERATIONS)
    assert run_seed(scenario("smoke"), "smoke", RUNS[0][1], OPERATIONS).digest == digests()[0]


@pytest.mark.parametrize("hash_seed", ["0", "random"])
def test_a_fresh_process_with_other_hashes_is_the_same_run(hash_seed: str) -> None:
    assert digests_in(sys.executable, hash_seed) == digests()


@pytest.mark.parametrize("version", VERSIONS)
def test_another_python_is_the_same_run(version: str) -> None:
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        pytest.skip("this is the Python that runs the tests")
    python = next(filter(is_equipped, interpreters(version)), None)
    if python is None:
        pytest.skip(f"no Python {version} with msgspec and pyyaml; make env VENV=.venv-{version}")
    assert digests_in(python, "random") == digests()
