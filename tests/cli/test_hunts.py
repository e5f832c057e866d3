"""Hunts for planted faults, whatever a fault does to its process."""

import os
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from harness.cli import main
from harness.errors import InputError
from harness.faults.ablation import ablated
from harness.faults.catalog import FAULTS
from harness.report.faults import hunt_lines, hunt_records
from harness.sweep.crew import Died
from harness.sweep.hunts import Hunted, Hunts, HuntWork, Shrunken
from harness.sweep.jobs import Job
from harness.sweep.kept_hunts import KeptHunts
from harness.sweep.loading import load_named
from tests.cli.seeds import SMOKE

FIRST, SECOND, THIRD = list(FAULTS)[:3]


def hunts_of(folder: Path, *faults: str) -> Hunts:
    """Hunts for these faults in the smoke scenario."""
    return Hunts(HuntWork(load_named([str(SMOKE)]), faults), folder)


def test_missed_faults_come_first(tmp_path: Path) -> None:
    hunts = hunts_of(tmp_path, FIRST, SECOND, THIRD)
    hunts.ended = {
        2: Hunted(fault=THIRD, caught=False, check="signal 9"),
        0: Hunted(fault=FIRST, caught=True, check="ordering"),
        1: Hunted(fault=SECOND, caught=False, check=""),
    }
    assert [hunted.fault for hunted in hunts.missed_first()] == [SECOND, THIRD, FIRST]


def test_a_fault_that_ends_its_process_is_missed(tmp_path: Path) -> None:
    hunts = hunts_of(tmp_path, FIRST, SECOND)
    died = Died(Job(1, 0, 1), "signal 9", "", raised=False)
    assert hunts.answer(died) == Hunted(fault=SECOND, caught=False, check="signal 9")


def test_the_table_says_how_many_were_caught() -> None:
    lines = hunt_lines(
        [
            Hunted(fault=SECOND, caught=False, check=""),
            Hunted(fault=FIRST, caught=True, check="ordering", operations=7),
        ]
    )
    assert lines[1].startswith(f"MISSED  {SECOND}")
    assert lines[-1] == "caught      1 of 2"


def test_a_row_for_programs_says_what_was_planted() -> None:
    (row,) = hunt_records([Hunted(fault=FIRST, caught=True, check="ordering", operations=7)])
    assert (row["id"], row["planted"]) == (FIRST, FAULTS[FIRST].planted)
    assert {"rows", "caught", "check", "operations", "cpu_seconds"} <= row.keys()


def listed(*options: str) -> list[str]:
    """What a list says, without its last line, which counts."""
    result = CliRunner().invoke(main, ["faults", "--list", *options])
    assert result.exit_code == 0
    *lines, last = result.stdout.splitlines()
    assert last.startswith(f"faults      {len(lines)}, ")
    return lines


def test_a_list_names_every_fault_once() -> None:
    assert [line.split()[0] for line in listed()] == list(FAULTS)


def test_a_list_of_edges_names_the_faults_that_take_one_out() -> None:
    assert [line.split()[0] for line in listed("--edges")] == list(ablated())


def test_a_list_of_some_says_who_may_report_them_and_what_was_broken() -> None:
    (line,) = listed("--only", FIRST)
    assert f"{', '.join(FAULTS[FIRST].checks)}: {FAULTS[FIRST].planted}" in line


def test_a_list_ends_with_an_object_for_programs() -> None:
    result = CliRunner().invoke(main, ["faults", "--list", "--only", FIRST, "--json"])
    record = msgspec.json.decode(result.stdout.splitlines()[-1])
    (row,) = record["faults"]
    assert (row["id"], row["checks"]) == (FIRST, list(FAULTS[FIRST].checks))


def test_a_list_of_what_is_no_fault_is_refused() -> None:
    result = CliRunner().invoke(main, ["faults", "--list", "--only", "nothing"])
    assert (result.exit_code, result.stdout) == (4, "")


@pytest.mark.slow
def test_several_processes_hunt_for_every_fault(tmp_path: Path) -> None:
    hunts = hunts_of(tmp_path, FIRST, SECOND, THIRD)
    assert {hunted.fault for hunted in hunts.run(2)} == {FIRST, SECOND, THIRD}
    assert [hunted.fault for hunted in hunts.missed_first()] == [FIRST, SECOND, THIRD]


class Rows(HuntWork):
    """Says which hunts were done, and hunts for nothing."""

    def run(self, job: Job) -> Hunted:
        """Not caught, at some cost."""
        return Hunted(fault=self.faults[job.seed], caught=False, check="", operations=1 + job.seed)


def kept_in(folder: Path, seeds: int = 3) -> KeptHunts:
    """Rows of so many seeds of the smoke scenario."""
    return KeptHunts(folder / "rows", load_named([str(SMOKE)]), seeds)


def test_hunts_that_are_kept_are_not_done_again(tmp_path: Path) -> None:
    one = Hunts(Rows((), (FIRST, THIRD)), tmp_path, kept_in(tmp_path))
    assert [hunted.fault for hunted in one.run(1)] == [FIRST, THIRD]
    known = Hunted(fault=THIRD, caught=True, check="mapping")
    kept_in(tmp_path).keep(known)
    two = Hunts(Rows((), (FIRST, SECOND, THIRD)), tmp_path, kept_in(tmp_path))
    assert [hunted.fault for hunted in two.run(1)] == [FIRST, THIRD, SECOND]
    assert [two.ended[place].operations for place in range(3)] == [1, 2, 0]
    assert two.ended[2] == known


def test_rows_of_another_question_are_done_again(tmp_path: Path) -> None:
    kept_in(tmp_path).keep(Hunted(fault=FIRST, caught=True, check="mapping"))
    assert kept_in(tmp_path).recall(FIRST) is not None
    assert kept_in(tmp_path, seeds=4).recall(FIRST) is None


def test_a_row_that_is_none_is_refused(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    (tmp_path / "rows" / f"{FIRST}.json").write_text("{}")
    with pytest.raises(InputError, match="not a row of a hunt"):
        kept.recall(FIRST)


def test_a_row_of_another_fault_is_refused(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    kept.keep(Hunted(fault=SECOND, caught=True, check="mapping"))
    (tmp_path / "rows" / f"{SECOND}.json").rename(tmp_path / "rows" / f"{FIRST}.json")
    with pytest.raises(InputError, match=f"fault is '{SECOND}'; this name is for the row"):
        kept.recall(FIRST)


def test_a_row_that_is_no_file_is_refused(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    os.mkfifo(tmp_path / "rows" / f"{FIRST}.json")
    with pytest.raises(InputError, match="not a regular file"):
        kept.recall(FIRST)


def test_a_row_with_less_than_nothing_in_it_is_refused(tmp_path: Path) -> None:
    kept = kept_in(tmp_path)
    shrunk = Shrunken(
        seeds=-5,
        confirmed=-5,
        operations=3,
        longest=3,
        distinct_results=1,
        same_result=1,
        signatures=1,
        same_result_each=1,
        seconds=0.1,
        seconds_longest=0.1,
        executions=9,
    )
    kept.keep(Hunted(fault=FIRST, caught=True, check="mapping", shrunk=shrunk))
    with pytest.raises(InputError, match=r"shrunk\.seeds"):
        kept.recall(FIRST)


def test_a_hunt_that_ended_its_process_is_done_again(tmp_path: Path) -> None:
    hunts = Hunts(Deadly((), (FIRST, SECOND)), tmp_path, kept_in(tmp_path))
    assert sorted(hunted.caught for hunted in hunts.run(2)) == [False, True]
    assert kept_in(tmp_path).recall(FIRST) is None
    assert kept_in(tmp_path).recall(SECOND) is not None


class Deadly(HuntWork):
    """Its first hunt ends its process."""

    def run(self, job: Job) -> Hunted:
        """End it, or be caught."""
        if job.seed == 0:
            os._exit(9)
        return Hunted(fault=self.faults[job.seed], caught=True, check="mapping")
