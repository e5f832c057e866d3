"""Commands that run: what they say, in which order, and their exit status."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness.cli import main
from harness.sweep.journal import Ended, Opened, read_journal
from harness.sweep.tally import PER_10K
from tests.cli.seeds import SMOKE

ROOT = Path(__file__).parents[2]
KEYS = {
    "command",
    "scenario",
    "device",
    "ranks",
    "strategy",
    "seeds",
    "operations",
    "applied",
    "skipped",
    "seconds",
    "operations_per_second",
    "checks",
    "probes",
    "per_10k",
    "violations",
    "digest",
}
MEASURED = {"seconds", "operations_per_second"}


def run_of(folder: Path, *options: str) -> Result:
    """A run of the smoke scenario that writes below `folder`."""
    arguments = ["run", "--scenario", str(SMOKE), "--artifacts", str(folder), *options]
    return CliRunner().invoke(main, arguments)


def record_of(result: Result) -> dict[str, Any]:
    """The object in the last line."""
    decoded: dict[str, Any] = msgspec.json.decode(result.stdout.splitlines()[-1])
    return decoded


def unmeasured(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record without what depends on the machine."""
    return {key: value for key, value in record.items() if key not in MEASURED}


def test_a_clean_run_says_so(tmp_path: Path) -> None:
    result = run_of(tmp_path, "--seeds", "1..2", "--ops", "40", "--jobs", "1")
    assert result.exit_code == 0
    first, *_, last = result.stdout.splitlines()
    assert first.startswith("seeds 1..2  scenario smoke  strategy swarm  device modeled  unikv ")
    assert first.endswith(
        f"replay: python -m harness replay --scenario {SMOKE} --seed SEED --ops 40"
    )
    assert last == "findings    none"


def test_the_last_line_is_for_programs(tmp_path: Path) -> None:
    result = run_of(tmp_path, "--seeds", "1..2", "--ops", "40", "--jobs", "1", "--json")
    record = record_of(result)
    assert record.keys() >= KEYS
    assert record["per_10k"].keys() == set(PER_10K)
    assert (record["command"], record["seeds"], record["violations"]) == ("run", 2, [])
    assert record["applied"] + record["refused"] + record["skipped"] == record["operations"]


def test_one_seed_needs_no_range(tmp_path: Path) -> None:
    result = run_of(tmp_path, "--seeds", "7", "--ops", "20", "--json")
    assert result.stdout.startswith("seeds 7  ")
    assert record_of(result)["seeds"] == 1


def test_what_never_happened_is_said(tmp_path: Path) -> None:
    result = run_of(tmp_path, "--seeds", "1", "--ops", "1", "--jobs", "1")
    assert "NEVER RAN: " in result.stdout


def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    options = ["--seeds", "1..12", "--ops", "40", "--json"]
    alone = record_of(run_of(tmp_path, *options, "--jobs", "1"))
    together = record_of(run_of(tmp_path, *options, "--jobs", "3"))
    assert unmeasured(alone) == unmeasured(together)


def test_ranks_and_strategy_are_what_was_asked(tmp_path: Path) -> None:
    options = ["--seeds", "1", "--ops", "20", "--ranks", "1", "--strategy", "random", "--json"]
    result = run_of(tmp_path, *options)
    record = record_of(result)
    assert (record["ranks"], record["strategy"]) == (1, "random")
    assert "--ops 20 --strategy random --ranks 1\n" in result.stdout


def test_traffic_can_arrive_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"timestamp":0,"input_length":600,"output_length":9,"hash_ids":[1,2]}\n' * 3)
    result = run_of(tmp_path, "--seeds", "1", "--ops", "40", "--traffic", str(path))
    assert result.exit_code == 0
    assert f"--traffic {path}\n" in result.stdout


def test_help_loads_nothing_that_runs_seeds() -> None:
    program = "import sys, harness.cli; print({'harness.runner', 'rich'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout == "set()\n"


def test_a_reader_that_leaves_is_no_violation(tmp_path: Path) -> None:
    command = ["run", "--scenario", str(SMOKE), "--seeds", "1", "--artifacts", str(tmp_path)]
    with subprocess.Popen(
        [sys.executable, "-m", "harness", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        complained = run.stderr.read()
    assert (run.returncode, complained) == (2, b"")


def sweeping(folder: Path, *options: str) -> subprocess.Popen[str]:
    """A sweep in a process group of its own, as a terminal starts one."""
    command = ["sweep", "--budget", "60s", "--ops", "40", "--artifacts", str(folder), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "harness", *command, "--scenario", str(SMOKE), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )


def until_seeds_ended(sweep: subprocess.Popen[str], folder: Path, count: int) -> list[Path]:
    """Wait until `count` workers have each ended a seed; their journals."""
    while sweep.poll() is None:
        journals = [
            path
            for path in folder.glob("*/seeds-*.jsonl")
            if any(isinstance(line, Ended) for line in read_journal(path))
        ]
        if len(journals) >= count:
            return journals
    raise AssertionError(f"the sweep ended with {sweep.returncode} before anybody asked it to")


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_ends_a_sweep_in_order(tmp_path: Path, jobs: int) -> None:
    sweep = sweeping(tmp_path, "--jobs", str(jobs))
    until_seeds_ended(sweep, tmp_path, jobs)
    os.killpg(sweep.pid, signal.SIGINT)
    said, complained = sweep.communicate(timeout=30)
    assert (sweep.returncode, complained) == (2, "")
    assert msgspec.json.decode(said.splitlines()[-1])["seeds"] >= 1


def test_a_killed_worker_is_a_finding_and_the_others_go_on(tmp_path: Path) -> None:
    sweep = sweeping(tmp_path, "--jobs", "2")
    journals = until_seeds_ended(sweep, tmp_path, 2)
    opened = read_journal(journals[0])[0]
    assert isinstance(opened, Opened)
    os.kill(opened.process, signal.SIGKILL)
    # Its successor is the third worker.
    until_seeds_ended(sweep, tmp_path, 3)
    os.killpg(sweep.pid, signal.SIGINT)
    said, complained = sweep.communicate(timeout=30)
    assert (sweep.returncode, complained) == (2, "")
    record = msgspec.json.decode(said.splitlines()[-1])
    # A worker that is killed between two seeds has nobody to blame.
    assert [found["signature"] for found in record["violations"]] in ([], ["crash | signal 9"])


@pytest.mark.slow
def test_a_sweep_ends_with_its_budget(tmp_path: Path) -> None:
    arguments = ["sweep", "--budget", "2s", "--ops", "40", "--artifacts", str(tmp_path), "--json"]
    result = CliRunner().invoke(main, arguments)
    record = record_of(result)
    assert (result.exit_code, record["digest"]) == (0, None)
    assert "smoke" in record["scenario"].split(",")


@pytest.mark.slow
def test_smoke_is_clean_and_under_pressure(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["smoke", "--artifacts", str(tmp_path), "--json"])
    record = record_of(result)
    assert (result.exit_code, record["shortfalls"]) == (0, [])
