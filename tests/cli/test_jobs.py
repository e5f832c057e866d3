"""The order of seeds, and that each is handed out once."""

from itertools import islice

from harness.sweep.jobs import Job, JobQueue, endless_jobs, repeated_jobs, seed_jobs
from tests.cli.seeds import always_open, queue_of


def test_seeds_of_one_scenario_come_in_order() -> None:
    assert list(seed_jobs(range(7, 9))) == [Job(0, 0, 7), Job(1, 0, 8)]


def test_endless_jobs_take_scenarios_in_turn() -> None:
    assert list(islice(endless_jobs(2), 3)) == [Job(0, 0, 1), Job(1, 1, 1), Job(2, 0, 2)]


def test_repeated_jobs_finish_a_scenario_first() -> None:
    assert list(repeated_jobs(2, range(1, 3))) == [
        Job(0, 0, 1),
        Job(1, 0, 2),
        Job(2, 1, 1),
        Job(3, 1, 2),
    ]


def test_an_empty_queue_hands_out_nothing() -> None:
    queue = queue_of(range(2))
    assert len(queue.take(5)) == 2
    assert queue.take(5) == []


def test_what_was_put_back_comes_first() -> None:
    queue = queue_of(range(4))
    taken = queue.take(3)
    queue.put_back(taken[1:])
    assert queue.take(9) == [*taken[1:], Job(3, 0, 3)]


def test_nothing_behind_a_stop_is_handed_out() -> None:
    queue = queue_of(range(9))
    queue.stop_after(1)
    assert [job.position for job in queue.take(9)] == [0, 1]


def test_a_later_stop_does_not_undo_an_earlier_one() -> None:
    queue = queue_of(range(9))
    queue.stop_after(1)
    queue.stop_after(5)
    assert len(queue.take(9)) == 2


def test_what_was_put_back_behind_a_stop_is_dropped() -> None:
    queue = queue_of(range(9))
    queue.put_back(queue.take(4))
    queue.stop_after(2)
    assert [job.position for job in queue.take(9)] == [0, 1, 2]


def test_a_stop_ends_endless_jobs() -> None:
    queue = JobQueue(endless_jobs(1), always_open)
    queue.stop_after(0)
    assert len(queue.take(2)) == 1
    assert queue.take(2) == []


def test_a_closed_queue_hands_out_nothing() -> None:
    assert JobQueue(endless_jobs(1), lambda: True).take(3) == []
