"""The wait of a relief: every rank returns or raises in the same round."""

import pytest

from tests.disagg.ranks import TIGHT, Rank, Ranks, per_band
from unikv.disagg.agreement import Patience
from unikv.disagg.life import Outcome, Phase
from unikv.disagg.quarantine import QuarantineLimits
from unikv.disagg.rounds import Ended
from unikv.disagg.transfer_waiter import RoundLimit
from unikv.errors import Shortage, TransferError

USE = "send a part 0"


def sending(count: int = 3) -> Ranks:
    """A send of three pages is with every rank's engine."""
    ranks = Ranks(count)
    ranks.sent("a", 3)
    assert ranks.round().began == (USE,)
    return ranks


def wait(rank: Rank) -> int:
    """Wait for the send; how many collectives that took."""
    before = rank.link.joined
    rank.waiter.wait([USE])
    return rank.link.joined - before


def errors(ranks: Ranks, *names: str) -> list[str]:
    """What every rank's wait raises, which is the same."""
    raised = ranks.answers(lambda rank: rank.waiter.wait(names))
    assert all(isinstance(error, TransferError) for error in raised)
    assert len({str(error) for error in raised}) == 1
    return [str(error) for error in raised]


def test_ranks_whose_engines_end_at_different_times_return_in_one_round() -> None:
    ranks = sending()
    for rank in ranks.each[:2]:
        rank.engine.finish("a")
    ranks.each[2].pace.hurry = 1
    assert ranks.all(wait) == 1


def test_a_wait_for_what_is_over_takes_one_collective() -> None:
    ranks = sending()
    for rank in ranks.each:
        rank.engine.finish("a")
    assert ranks.all(wait) == 1


def test_a_wait_for_nothing_joins_a_collective_too() -> None:
    ranks = sending()
    ranks.all(lambda rank: rank.waiter.wait([]))
    assert [rank.link.joined for rank in ranks.each] == [2, 2, 2]


def test_past_the_deadline_every_rank_names_what_is_in_flight() -> None:
    ranks = sending()
    ranks.each[0].engine.finish("a")
    (text, *_) = errors(ranks, USE)
    assert "after 4 rounds" in text
    assert "a (sending, peer decode)" in text


def test_the_least_patient_rank_ends_the_wait_of_all() -> None:
    ranks = sending()
    ranks.each[1].pace.limit = RoundLimit(2)
    (text, *_) = errors(ranks, USE)
    assert "after 2 rounds" in text


def test_a_failure_on_one_rank_is_given_up_on_all_and_its_proof_is_waited_for() -> None:
    ranks = sending()
    ranks.each[1].engine.fail("a")
    for rank in ranks.each:
        rank.pace.hurry = 1
    assert ranks.all(wait) == 2
    assert [rank.engine.aborted for rank in ranks.each] == [["a"]] * 3


def test_a_failure_without_proof_is_not_waited_away() -> None:
    ranks = sending()
    ranks.each[1].engine.fail("a")
    (text, *_) = errors(ranks, USE)
    assert "a (quarantined, peer decode)" in text
    assert ranks.round().isolated == ("a",)


def test_an_engine_that_cannot_judge_leaves_nobody_alone() -> None:
    ranks = sending()
    ranks.each[2].engine.refuses.add("judge")
    errors(ranks, USE)
    assert [rank.board.find("a").phase for rank in ranks.each] == [Phase.QUARANTINED] * 3


def test_a_rank_that_breaks_leaves_nobody_alone() -> None:
    ranks = sending()
    del ranks.each[2].engine.judgements["a"]
    first, second, third = ranks.answers(wait)
    assert isinstance(third, KeyError)
    assert isinstance(first, TransferError)
    assert str(first) == str(second)


def test_a_wait_for_an_unknown_name_is_refused_on_every_rank() -> None:
    ranks = sending()
    (text, *_) = errors(ranks, USE, "lost")
    assert f"'lost', which no transfer of this board holds; allowed: ['{USE}']" in text


def test_a_wait_releases_nothing_itself() -> None:
    ranks = sending()
    held = ranks.each[0].chain.ledger.held.holds()
    for rank in ranks.each:
        rank.engine.finish("a")
    ranks.all(wait)
    assert ranks.each[0].chain.ledger.held.holds() == held


def test_a_transfer_that_was_waited_for_still_ends_in_a_round() -> None:
    ranks = sending()
    for rank in ranks.each:
        rank.engine.finish("a")
        rank.chain.reclaim.release_early(USE)
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)
    assert ranks.round().ended == ()


def test_a_limit_of_rounds_is_patient_up_to_it() -> None:
    limit = RoundLimit(2)
    assert [limit.next_round(asked) for asked in (1, 2)] == [Patience.LEFT, Patience.OUT]

    # In a relief --------------------------------------------------------------------------------


def crowded() -> Ranks:
    """The pages of a send are in the way of ten state slots."""
    ranks = Ranks(2, TIGHT)
    ranks.sent("a", 2)
    ranks.round()
    return ranks


def test_a_relief_waits_for_a_send_in_its_way() -> None:
    ranks = crowded()
    for rank in ranks.each:
        rank.pace.hurry = 1
    ranks.take(0, 10)
    assert [rank.chain.counters.host_waits for rank in ranks.each] == [1, 1]
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)


def test_a_relief_that_waits_in_vain_raises_on_every_rank() -> None:
    ranks = crowded()
    ranks.each[0].pace.hurry = 1
    before = ranks.books()
    with pytest.raises(TransferError, match="after 4 rounds"):
        ranks.take(0, 10)
    assert ranks.books() == before


def test_no_relief_waits_for_a_quarantined_send() -> None:
    ranks = crowded()
    ranks.each[0].engine.fail("a")
    ranks.round()
    for rank in ranks.each:
        rank.pace.hurry = 1
    assert not ranks.all(lambda rank: rank.chain.fits(0, 10))
    joined = ranks.meeting.rounds
    with pytest.raises(Shortage):
        ranks.take(0, 10)
    assert ranks.meeting.rounds == joined


def test_the_round_that_has_the_proof_makes_the_room() -> None:
    ranks = crowded()
    ranks.each[0].engine.fail("a")
    ranks.round()
    for rank in ranks.each:
        rank.engine.prove("a")
    assert ranks.round().ended == (Ended("a", Outcome.FAILED),)
    assert len(ranks.take(0, 10).slots) == 10


def test_a_wait_in_vain_for_a_proof_is_the_last_one() -> None:
    ranks = crowded()
    ranks.each[1].engine.fail("a")
    with pytest.raises(TransferError, match="quarantined"):
        ranks.take(0, 10)
    with pytest.raises(Shortage):
        ranks.take(0, 10)
    assert ranks.round().isolated == ("a",)


def test_a_relief_that_gave_a_send_up_and_saw_its_proof_makes_the_room() -> None:
    ranks = crowded()
    ranks.each[1].engine.fail("a")
    for rank in ranks.each:
        rank.pace.hurry = 1
    assert len(ranks.take(0, 10).slots) == 10
    assert [rank.chain.ledger.held.isolated for rank in ranks.each] == [set(), set()]
    assert ranks.round().ended == (Ended("a", Outcome.FAILED),)


def test_a_part_that_starts_after_such_a_wait_is_held_again() -> None:
    ranks = Ranks(2, TIGHT)
    first, second = ranks.take(2, 0), ranks.take(1, 0)
    ranks.all(lambda rank: rank.transfers.sends.open("a", "decode"))
    ranks.all(lambda rank: rank.transfers.sends.add("a", per_band(first), 0))
    ranks.round()
    for rank in ranks.each:
        rank.pace.hurry = 1
    ranks.take(0, 10)
    ranks.all(lambda rank: rank.transfers.sends.add("a", per_band(second), 0))
    ranks.all(lambda rank: rank.transfers.sends.close("a"))
    assert ranks.round().began == ("send a part 1",)
    for rank in ranks.each:
        assert {hold.name for hold in rank.chain.ledger.held.holds()} == {"send a part 1"}
        rank.engine.finish("a")
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)
    assert ranks.each[0].chain.ledger.held.ended_early() == frozenset()


def test_a_receive_is_admitted_though_its_take_filled_the_quarantine_of_its_peer() -> None:
    ranks = Ranks(2, TIGHT, limits=QuarantineLimits(1, 64))
    taken = ranks.take(2, 0)
    ranks.all(lambda rank: rank.transfers.sends.queue("a", "prefill", per_band(taken), 0))
    ranks.round()
    ranks.each[0].engine.fail("a")
    for rank in ranks.each:
        rank.pace.hurry = 1
    ranks.all(lambda rank: rank.transfers.receives.take("b", "prefill", 0, 10))
    assert [q.name for q in ranks.each[1].board.quarantine.report()] == ["a"]
    assert ranks.round().ended == (Ended("a", Outcome.FAILED),)
