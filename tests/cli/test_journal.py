"""What is on disk while a seed runs."""

from contextlib import closing
from pathlib import Path

import pytest

from harness.runner import SeedResult
from harness.sweep.jobs import Job
from harness.sweep.journal import Ended, Journal, Opened, Started, read_journal
from harness.sweep.worker import run_job
from tests.cli.seeds import Deadly, Peaceful, a_result, a_violation

JOB = Job(4, 0, 7)


def test_a_seed_is_on_disk_before_it_runs(tmp_path: Path) -> None:
    class Looking(Peaceful):
        def run(self, job: Job) -> SeedResult:
            assert read_journal(path)[-1] == Started(7, "smoke", 4)
            return a_result(job.seed)

    path = tmp_path / "seeds.jsonl"
    with closing(Journal(path, 1, 99)) as journal:
        run_job(Looking(), JOB, journal)


def test_a_seed_that_ended_says_how(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    with closing(Journal(path, 1, 99)) as journal:
        journal.start(JOB, "smoke")
        journal.end(JOB, "smoke", a_result(7, a_violation("books differ")))
    assert read_journal(path) == [
        Opened(1, 99),
        Started(7, "smoke", 4),
        Ended(7, "smoke", 4, f"{7:032x}", ("ledger | books differ",)),
    ]


def test_a_seed_that_raised_stays_started(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    with closing(Journal(path, 1, 99)) as journal, pytest.raises(KeyError):
        run_job(Deadly(raises=7), JOB, journal)
    assert isinstance(read_journal(path)[-1], Started)


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "seeds.jsonl"
    with closing(Journal(path, 1, 99)) as journal:
        journal.start(JOB, "smoke")
    path.write_bytes(path.read_bytes()[:-5])
    assert read_journal(path) == [Opened(1, 99)]


def test_no_file_is_an_empty_journal(tmp_path: Path) -> None:
    assert read_journal(tmp_path / "absent.jsonl") == []
