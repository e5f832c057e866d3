"""Ranks that one process steps: all meet in a collective, in one order, or one is left alone."""

import pytest

from harness.lockstep import LeftAlone, Lockstep


def test_without_a_collective_every_rank_is_called_once_in_order() -> None:
    called: list[int] = []

    def call(rank: int) -> int:
        called.append(rank)
        return 10 * rank

    assert Lockstep(3).run(call) == [0, 10, 20]
    assert called == [0, 1, 2]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_collective_gives_every_rank_the_least_of_each_place(ranks: int) -> None:
    lockstep = Lockstep(ranks)
    answers = lockstep.run(lambda rank: lockstep.min_reduce(rank, [rank, -rank, 7]))
    assert answers == [[0, 1 - ranks, 7]] * ranks


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_go_one_at_a_time_and_the_first_goes_first(ranks: int) -> None:
    lockstep, done = Lockstep(ranks), []

    def call(rank: int) -> None:
        for part in range(3):
            done.append((part, rank))
            lockstep.min_reduce(rank, [0])

    lockstep.run(call)
    assert done == [(part, rank) for part in range(3) for rank in range(ranks)]


def test_ranks_meet_again_in_the_next_call() -> None:
    lockstep = Lockstep(2)
    for _ in range(20):
        assert lockstep.run(lambda rank: lockstep.min_reduce(rank, [5 + rank])) == [[5], [5]]


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_a_rank_that_joins_alone_is_told(alone: int) -> None:
    lockstep = Lockstep(3)

    def call(rank: int) -> list[int]:
        return lockstep.min_reduce(rank, [1]) if rank == alone else []

    with pytest.raises(LeftAlone, match=f"rank {alone} "):
        lockstep.run(call)


@pytest.mark.parametrize("longer", [0, 1])
def test_a_rank_that_joins_once_more_than_the_others_is_told(longer: int) -> None:
    lockstep = Lockstep(2)

    def call(rank: int) -> None:
        lockstep.min_reduce(rank, [1])
        if rank == longer:
            lockstep.min_reduce(rank, [2])

    with pytest.raises(LeftAlone, match=f"rank {longer} "):
        lockstep.run(call)


def test_a_call_that_fails_releases_the_others_and_the_next_call_works() -> None:
    lockstep = Lockstep(3)

    def call(rank: int) -> list[int]:
        least = lockstep.min_reduce(rank, [rank])
        if rank == 1:
            raise ArithmeticError("a mistake of rank 1")
        return least

    with pytest.raises(ArithmeticError, match="of rank 1"):
        lockstep.run(call)
    assert lockstep.run(lambda rank: lockstep.min_reduce(rank, [rank])) == [[0]] * 3


def test_the_first_rank_that_fails_before_the_others_joined_is_heard() -> None:
    lockstep = Lockstep(2)

    def call(rank: int) -> list[int]:
        if rank == 0:
            lockstep.min_reduce(0, [0])
            raise ArithmeticError("a mistake of rank 0")
        return lockstep.min_reduce(1, [1])

    with pytest.raises(ArithmeticError, match="of rank 0"):
        lockstep.run(call)


# Calls with one collective --------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_one_collective_gives_every_rank_the_least(ranks: int) -> None:
    lockstep = Lockstep(ranks)
    answers = lockstep.meet_once(lambda rank: lockstep.min_reduce(rank, [rank, -rank, 7]))
    assert answers == [[0, 1 - ranks, 7]] * ranks


@pytest.mark.parametrize("ranks", [2, 3])
def test_the_first_rank_goes_on_first_from_one_collective(ranks: int) -> None:
    lockstep, done = Lockstep(ranks), []

    def call(rank: int) -> None:
        lockstep.min_reduce(rank, [0])
        done.append(rank)

    lockstep.meet_once(call)
    assert done == list(range(ranks))


def test_a_call_that_may_meet_need_not() -> None:
    assert Lockstep(3).meet_once(lambda rank: 10 * rank) == [0, 10, 20]


@pytest.mark.parametrize("alone", [0, 1, 2])
def test_a_rank_that_joins_the_only_collective_alone_is_told(alone: int) -> None:
    lockstep = Lockstep(3)

    def call(rank: int) -> list[int]:
        return lockstep.min_reduce(rank, [1]) if rank == alone else []

    with pytest.raises(LeftAlone, match=f"rank {alone} "):
        lockstep.meet_once(call)


@pytest.mark.parametrize("longer", [0, 1])
def test_a_rank_that_joins_a_second_collective_is_told(longer: int) -> None:
    lockstep = Lockstep(2)

    def call(rank: int) -> None:
        lockstep.min_reduce(rank, [1])
        if rank == longer:
            lockstep.min_reduce(rank, [2])

    with pytest.raises(LeftAlone, match=f"rank {longer} "):
        lockstep.meet_once(call)


def test_both_kinds_of_calls_follow_each_other() -> None:
    lockstep = Lockstep(2)
    for _ in range(3):
        for meet in (lockstep.run, lockstep.meet_once):
            assert meet(lambda rank: lockstep.min_reduce(rank, [5 + rank])) == [[5], [5]]


def test_a_rank_that_fails_at_the_only_collective_is_heard() -> None:
    lockstep = Lockstep(3)

    def call(rank: int) -> list[int]:
        least = lockstep.min_reduce(rank, [rank])
        if rank == 1:
            raise ArithmeticError("a mistake of rank 1")
        return least

    with pytest.raises(ArithmeticError, match="of rank 1"):
        lockstep.meet_once(call)
    assert lockstep.meet_once(lambda rank: lockstep.min_reduce(rank, [rank])) == [[0]] * 3
