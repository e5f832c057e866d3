"""Aborts from every side, at every moment: who is told, and that nothing leaks or ends twice."""

import pytest

from tests.disagg.ranks import Ranks, per_band
from unikv.disagg.aborts import Drained
from unikv.disagg.life import Outcome
from unikv.disagg.rounds import Ended
from unikv.errors import TransferError


def acknowledgements(ranks: Ranks) -> list[tuple[Drained, ...]]:
    """What each rank owes now."""
    return [rank.transfers.acknowledgements() for rank in ranks.each]


def under_way(ranks: Ranks) -> None:
    """A send with one part outstanding and one to come."""
    taken = ranks.take(2, 0)
    ranks.all(lambda rank: rank.transfers.sends.open("a", "decode"))
    ranks.all(lambda rank: rank.transfers.sends.add("a", per_band(taken), 0))
    ranks.round()


def prove(ranks: Ranks) -> None:
    """Every engine is quiet."""
    for rank in ranks.each:
        rank.engine.prove("a")


def test_an_abort_that_reached_one_rank_is_true_on_all() -> None:
    ranks = Ranks(3)
    under_way(ranks)
    ranks.each[2].transfers.abort_for("a", "decode 0")
    assert ranks.round().isolated == ("a",)
    assert [rank.engine.aborted for rank in ranks.each] == [["a"]] * 3


def test_two_peers_that_abort_the_same_transfer_are_both_told() -> None:
    ranks = Ranks(2)
    under_way(ranks)
    ranks.each[0].transfers.abort_for("a", "decode 0")
    ranks.round()
    ranks.each[0].transfers.abort_for("a", "decode 1")
    ranks.round()
    assert acknowledgements(ranks) == [(), ()]
    prove(ranks)
    ranks.round()
    told = (Drained("a", "decode 0"), Drained("a", "decode 1"))
    assert acknowledgements(ranks) == [told, ()]


def test_nobody_is_told_before_every_rank_is_quiet() -> None:
    ranks = Ranks(2)
    under_way(ranks)
    ranks.each[0].transfers.abort_for("a", "decode 0")
    ranks.round()
    ranks.each[0].engine.prove("a")
    ranks.round()
    assert acknowledgements(ranks) == [(), ()]
    ranks.each[1].engine.prove("a")
    ranks.round()
    assert acknowledgements(ranks) == [(Drained("a", "decode 0"),), ()]


def test_each_answer_is_given_once() -> None:
    ranks = Ranks(1)
    ranks.sent("a", 1)
    ranks.each[0].transfers.abort_for("a", "decode 0")
    ranks.round()
    assert acknowledgements(ranks) == [(Drained("a", "decode 0"),)]
    ranks.round()
    assert acknowledgements(ranks) == [()]


def test_a_cancel_after_the_transfer_was_cleared_is_answered() -> None:
    ranks = Ranks(2)
    ranks.sent("a", 2)
    ranks.round()
    for rank in ranks.each:
        rank.engine.finish("a")
    ranks.round()
    ranks.each[1].transfers.abort_for("a", "decode 0")
    assert acknowledgements(ranks) == [(), (Drained("a", "decode 0"),)]


def test_a_cancel_before_the_transfer_is_known_keeps_it_from_starting() -> None:
    ranks = Ranks(2)
    ranks.each[1].transfers.abort_for("a", "decode 0")
    assert acknowledgements(ranks) == [(), (Drained("a", "decode 0"),)]
    ranks.sent("a", 2)
    report = ranks.round()
    assert (report.began, report.ended) == ((), (Ended("a", Outcome.ABORTED),))


def test_a_forgotten_cancel_stops_nothing() -> None:
    ranks = Ranks(2)
    ranks.each[1].transfers.abort_for("a", "decode 0")
    ranks.all(lambda rank: rank.transfers.forget("a"))
    ranks.sent("a", 2)
    assert ranks.round().began == ("send a part 0",)


def test_the_abort_of_a_transfer_under_way_is_not_forgotten() -> None:
    ranks = Ranks(1)
    under_way(ranks)
    with pytest.raises(TransferError, match="forget of 'a', which is sending; allowed: names that"):
        ranks.all(lambda rank: rank.transfers.forget("a"))


def test_an_unknown_transfer_is_not_aborted() -> None:
    ranks = Ranks(1)
    ranks.sent("a", 2)
    with pytest.raises(TransferError, match=r"'b' is unknown or over; allowed: \['a'\]"):
        ranks.all(lambda rank: rank.transfers.abort("b"))


def test_both_sides_abort_and_nothing_leaks() -> None:
    # Two machines: no completion of the other side is left that could release anything.
    prefill, decode = Ranks(2), Ranks(2)
    ids = prefill.sent("a", 3).ids
    rows = decode.received("a", 3)
    for side in (prefill, decode):
        side.round()
        side.all(lambda rank: rank.transfers.abort("a"))
        side.round()
    prefill.each[0].transfers.abort_for("a", "decode")
    decode.each[1].transfers.abort_for("a", "prefill")
    for side in (prefill, decode):
        assert side.round().ended == ()
        prove(side)
        assert side.round().ended == (Ended("a", Outcome.ABORTED),)
    prefill.all(lambda rank: rank.chain.free(ids))
    decode.all(lambda rank: rank.chain.free(rows.ids))
    decode.all(lambda rank: rank.chain.free_slots(rows.slots))
    for side in (prefill, decode):
        for rank in side.each:
            assert rank.board.transfers() == ()
            assert [band.live + band.pending for band in rank.chain.bands] == [0, 0, 0]
    assert acknowledgements(prefill) == [(Drained("a", "decode"),), ()]
    assert acknowledgements(decode) == [(), (Drained("a", "prefill"),)]


def test_a_leader_that_is_done_keeps_its_record_until_every_worker_is() -> None:
    ranks = Ranks(3)
    under_way(ranks)
    ranks.all(lambda rank: rank.transfers.sends.close("a"))
    leader, *workers = ranks.each
    leader.engine.finish("a")
    ranks.round()
    assert leader.board.find("a").uses == ["send a part 0"]
    for worker in workers:
        worker.engine.finish("a")
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)


def test_a_transfer_that_is_over_is_not_released_again() -> None:
    ranks = Ranks(2)
    ranks.sent("a", 2)
    ranks.round()
    for rank in ranks.each:
        rank.engine.finish("a")
    assert len(ranks.round().ended) == 1
    assert ranks.round().ended == ()
    with pytest.raises(TransferError, match=r"'send a part 0'.* holds no pages"):
        ranks.all(lambda rank: rank.chain.users.release("send a part 0"))


def test_a_release_behind_the_boards_back_is_loud() -> None:
    ranks = Ranks(1)
    ranks.sent("a", 2)
    ranks.round()
    ranks.all(lambda rank: rank.chain.users.release("send a part 0"))
    ranks.each[0].engine.finish("a")
    with pytest.raises(TransferError, match=r"'send a part 0'.* holds no pages"):
        ranks.all(lambda rank: rank.transfers.round())


def test_ranks_that_were_asked_different_things_stop_together() -> None:
    ranks = Ranks(3)
    taken = ranks.take(1, 0)
    ranks.each[0].transfers.sends.queue("a", "decode", per_band(taken), 0)
    before = [rank.chain.ledger.held.holds() for rank in ranks.each]
    errors = ranks.answers(lambda rank: rank.transfers.round())
    assert all(isinstance(error, TransferError) for error in errors)
    assert [rank.chain.ledger.held.holds() for rank in ranks.each] == before


def test_a_round_takes_one_collective_whatever_it_finds() -> None:
    ranks = Ranks(2)
    ranks.round()
    ranks.sent("a", 2)
    ranks.received("b", 2)
    for _ in range(4):
        ranks.round()
    assert ranks.meeting.rounds == 5


def test_places_are_used_again() -> None:
    ranks = Ranks(2, transfers_max=2)
    for name in ("a", "b", "c", "d"):
        ranks.sent(name, 1)
        ranks.round()
        for rank in ranks.each:
            rank.engine.finish(name)
        ranks.round()
    assert ranks.ended == ["a", "b", "c", "d"]


def test_a_place_is_given_to_one_transfer_at_a_time() -> None:
    ranks = Ranks(2, transfers_max=3)
    for name in ("a", "b"):
        ranks.sent(name, 1)
    ranks.round()
    for rank in ranks.each:
        rank.engine.finish("a")
    ranks.round()
    for name in ("c", "d"):
        ranks.sent(name, 1)
    assert [t.place for t in ranks.each[0].board.transfers()] == [1, 0, 2]
