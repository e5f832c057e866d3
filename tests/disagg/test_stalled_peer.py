"""A peer of one rank stands still: whatever a wait comes to, all ranks hear of it in one round."""

import pytest

from tests.disagg.ranks import Rank, Ranks
from unikv.disagg.transfer_waiter import RoundLimit
from unikv.errors import TransferError

USE = "send a part 0"


def stalled(count: int, rank: int, rounds: int) -> Ranks:
    """Every engine is done in its first round, but for that of one rank."""
    ranks = Ranks(count)
    ranks.sent("a", 3)
    ranks.round()
    for each in ranks.each:
        each.pace.hurry = 1
    ranks.each[rank].pace.stalled = rounds
    return ranks


def wait(rank: Rank) -> int:
    """Wait for the send; how many collectives that took."""
    before = rank.link.joined
    rank.waiter.wait([USE])
    return rank.link.joined - before


def rounds_until_it_fails(rank: Rank) -> tuple[int, str]:
    """Wait in vain; how many collectives that took, and what was said."""
    before = rank.link.joined
    with pytest.raises(TransferError) as caught:
        rank.waiter.wait([USE])
    return rank.link.joined - before, str(caught.value)


@pytest.mark.parametrize(("count", "rank"), [(2, 0), (2, 1), (4, 0), (4, 2), (4, 3)])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_all_ranks_return_in_the_round_in_which_the_stalled_one_gets_on(
    count: int, rank: int, rounds: int
) -> None:
    ranks = stalled(count, rank, rounds)
    assert ranks.all(wait) == rounds + 1


@pytest.mark.parametrize(("count", "rank"), [(2, 0), (2, 1), (4, 0), (4, 2), (4, 3)])
def test_all_ranks_fail_at_the_deadline_of_one(count: int, rank: int) -> None:
    ranks = stalled(count, rank, 1000)
    ranks.each[-1].pace.limit = RoundLimit(3)
    rounds, said = ranks.all(rounds_until_it_fails)
    assert rounds == 3
    assert "after 3 rounds" in said


@pytest.mark.parametrize("count", [2, 4])
def test_a_later_wait_begins_anew_on_all_ranks(count: int) -> None:
    ranks = stalled(count, 1, 4)
    assert ranks.all(rounds_until_it_fails)[0] == 4
    ranks.each[1].pace.stalled = 2
    assert ranks.all(wait) == 3
