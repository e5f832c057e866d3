"""Processes: every seed has one end, whatever happens to its process."""

import os
from pathlib import Path

import pytest

from harness.sweep import crew
from harness.sweep.crew import CrewError, Died
from harness.sweep.journal import Opened, Started, read_journal
from harness.sweep.worker import Finished
from tests.cli.seeds import Deadly, Peaceful, Pestered, Unloadable, events_of, plan_of, queue_of
from tests.cli.test_full_disk import room_for


def seeds_that(kind: type[Finished] | type[Died], events: list[Finished | Died]) -> list[int]:
    """Seeds that ended in this way, sorted."""
    return sorted(event.job.seed for event in events if isinstance(event, kind))


def test_a_crew_of_one_runs_in_this_process(tmp_path: Path) -> None:
    events = list(events_of(plan_of(Peaceful(), tmp_path, size=1), queue_of(range(3))))
    assert [event.job.seed for event in events] == [0, 1, 2]
    assert read_journal(tmp_path / "seeds-1.jsonl")[0] == Opened(1, os.getpid())


def test_a_crew_of_one_names_the_seed_that_raised(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as caught:
        list(events_of(plan_of(Deadly(raises=2), tmp_path, size=1), queue_of(range(3))))
    assert caught.value.__notes__ == ["while running seed 2 of scenario smoke"]


@pytest.mark.slow
def test_processes_finish_every_seed_once(tmp_path: Path) -> None:
    events = list(events_of(plan_of(Peaceful(), tmp_path), queue_of(range(9))))
    assert seeds_that(Finished, events) == list(range(9))


def test_a_killed_process_costs_one_seed(tmp_path: Path) -> None:
    plan = plan_of(Deadly(kills=4), tmp_path, chunk=3)
    events = list(events_of(plan, queue_of(range(9))))
    assert seeds_that(Died, events) == [4]
    assert seeds_that(Finished, events) == [0, 1, 2, 3, 5, 6, 7, 8]


@pytest.mark.slow
def test_a_process_that_can_write_nothing_down_costs_one_seed_as_well(tmp_path: Path) -> None:
    plan = plan_of(Deadly(kills=4), tmp_path, chunk=3)
    with room_for(0):
        events = list(events_of(plan, queue_of(range(9))))
    assert seeds_that(Died, events) == [4]
    assert seeds_that(Finished, events) == [0, 1, 2, 3, 5, 6, 7, 8]


def test_ctrl_c_does_not_reach_a_worker(tmp_path: Path) -> None:
    events = list(events_of(plan_of(Pestered(), tmp_path), queue_of(range(4))))
    assert seeds_that(Finished, events) == [0, 1, 2, 3]


@pytest.mark.slow
def test_a_death_says_how_and_what_was_said_last(tmp_path: Path) -> None:
    plan = plan_of(Deadly(raises=1), tmp_path, chunk=1)
    died = next(event for event in events_of(plan, queue_of(range(3))) if isinstance(event, Died))
    assert (died.how, died.raised) == ("exit status 1", True)
    assert died.log.endswith("KeyError: 1")


@pytest.mark.slow
def test_a_seed_that_hangs_is_ended_with_its_stack(tmp_path: Path) -> None:
    plan = plan_of(Deadly(hangs=1), tmp_path, limit=1)
    (died,) = events_of(plan, queue_of(range(1, 2)))
    assert isinstance(died, Died)
    assert died.how == "no result within 1 s"
    assert "in run" in died.log


class Clock:
    """Wall time that passes by leaps, as for a process that is stopped."""

    seconds = 0.0

    def monotonic(self) -> float:
        """Seconds since the beginning."""
        return self.seconds


def test_a_crew_that_was_stopped_blames_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(crew, "time", clock)
    seen: list[Finished | Died] = []
    for event in events_of(plan_of(Peaceful(), tmp_path), queue_of(range(9))):
        seen.append(event)
        clock.seconds += 1000
    assert seeds_that(Died, seen) == []
    assert seeds_that(Finished, seen) == list(range(9))


@pytest.mark.slow
def test_workers_that_cannot_start_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(CrewError, match="ended before its first seed: exit status 3"):
        list(events_of(plan_of(Unloadable(), tmp_path), queue_of(range(9))))


@pytest.mark.slow
def test_logs_that_say_nothing_are_removed(tmp_path: Path) -> None:
    list(events_of(plan_of(Peaceful(), tmp_path), queue_of(range(4))))
    assert not list(tmp_path.glob("*.log"))


def test_an_interrupt_ends_the_seed_that_runs(tmp_path: Path) -> None:
    plan = plan_of(Deadly(interrupts=2), tmp_path, size=1)
    events = events_of(plan, queue_of(range(5)))
    assert [event.job.seed for event in events] == [0, 1]
    assert isinstance(read_journal(tmp_path / "seeds-1.jsonl")[-1], Started)


@pytest.mark.slow
def test_an_interrupt_ends_every_process(tmp_path: Path) -> None:
    plan = plan_of(Deadly(interrupts=2, hangs=3), tmp_path, chunk=1)
    seeds = [event.job.seed for event in events_of(plan, queue_of(range(200_000)))]
    assert len(seeds) < 200_000
