"""Receives: held from the take on, published behind a gate, usable after every rank is done."""

import pytest

from tests.disagg.ranks import TIGHT, Rank, Ranks, per_band
from unikv.alloc.chain import Taken
from unikv.alloc.use import Use
from unikv.disagg.life import Outcome, Phase
from unikv.disagg.rounds import Ended
from unikv.errors import Shortage, StepOrderError, TransferError

USE = "receive a"


def uses(rank: Rank) -> set[Use]:
    """What the ledger holds."""
    return {hold.use for hold in rank.chain.ledger.held.holds()}


def named(rank: Rank, taken: Taken) -> tuple[tuple[int, ...], ...]:
    """Pages of the ids now."""
    return tuple(tuple(rank.chain.translate(b, ids)) for b, ids in enumerate(per_band(taken)))


# Hold and publication -----------------------------------------------------------------------


def test_taken_rows_are_held_at_once() -> None:
    ranks = Ranks(2)
    ranks.received("a", 3)
    assert [uses(rank) for rank in ranks.each] == [{Use.RECEIVE_HOLD}] * 2
    assert [rank.engine.told for rank in ranks.each] == [{}, {}]


def test_a_later_round_publishes_behind_the_event_of_the_take() -> None:
    ranks = Ranks(1)
    ranks.received("a", 3)
    (rank,) = ranks.each
    taken_at = rank.device.position
    ranks.take(1, 0)
    assert ranks.round().began == (USE,)
    assert [event.position for event in rank.device.host_waits] == [taken_at]


def moved_while_held(ranks: Ranks) -> Taken:
    """A relief that finds no other layout moves held rows."""
    taken = ranks.all(lambda rank: rank.transfers.receives.take("a", "prefill", 2, 0))
    before = named(ranks.each[0], taken)
    ranks.take(0, 10)
    assert named(ranks.each[0], taken) != before
    return taken


def test_a_receive_that_moved_is_published_behind_the_schedule_stream() -> None:
    ranks = Ranks(1, TIGHT)
    moved_while_held(ranks)
    (rank,) = ranks.each
    moved_at = rank.device.position
    ranks.round()
    assert [event.position for event in rank.device.host_waits] == [moved_at]


def test_a_receive_that_moved_leaves_with_the_pages_of_now() -> None:
    ranks = Ranks(2, TIGHT)
    taken = moved_while_held(ranks)
    ranks.round()
    assert [r.engine.told["a"] for r in ranks.each] == [[named(r, taken)] for r in ranks.each]


def test_immediate_publication_waits_the_take_and_for_no_round() -> None:
    ranks = Ranks(2)
    ranks.received("a", 3)
    ranks.all(lambda rank: rank.transfers.receives.publish("a"))
    assert [uses(rank) for rank in ranks.each] == [{Use.NETWORK_RECEIVE}] * 2
    assert [rank.link.joined for rank in ranks.each] == [1, 1]
    assert [rank.board.rounds for rank in ranks.each] == [0, 0]
    assert ranks.round().began == ()


def test_the_peer_learns_pages_in_the_order_of_the_ids() -> None:
    ranks = Ranks(1)
    gone = ranks.take(3, 0)
    ranks.all(lambda rank: rank.chain.free(gone.ids[1:]))
    taken = ranks.received("a", 4)
    ranks.round()
    (rank,) = ranks.each
    (pages,) = rank.engine.told["a"]
    assert pages == named(rank, taken)


def test_window_rows_retired_under_the_hold_do_not_leave() -> None:
    ranks = Ranks(2)
    taken = ranks.received("a", 3)
    ranks.all(lambda rank: rank.chain.retire(1, taken.ids[:2]))
    ranks.round()
    for rank in ranks.each:
        (pages,) = rank.engine.told["a"]
        assert pages[1][:2] == (0, 0)
        assert pages == named(rank, taken)


def test_a_receive_of_slots_alone_has_only_those() -> None:
    ranks = Ranks(1)
    taken = ranks.all(lambda rank: rank.transfers.receives.take("a", "prefill", 0, 2))
    ranks.round()
    (pages,) = ranks.each[0].engine.told["a"]
    assert [len(own) for own in pages] == [2, 0, 0]
    assert pages == named(ranks.each[0], taken)


# Ends ---------------------------------------------------------------------------------------


def test_rows_are_usable_when_the_last_rank_is_done() -> None:
    ranks = Ranks(3)
    ranks.received("a", 3)
    ranks.round()
    for rank in ranks.each:
        assert ranks.round().ended == ()
        assert uses(rank) == {Use.NETWORK_RECEIVE}
        rank.engine.finish("a")
    assert ranks.round().ended == (Ended("a", Outcome.RECEIVED),)
    assert [uses(rank) for rank in ranks.each] == [set()] * 3


def test_a_held_receive_that_is_aborted_is_released_in_the_round() -> None:
    ranks = Ranks(2)
    taken = ranks.received("a", 3)
    ranks.all(lambda rank: rank.transfers.abort("a"))
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    assert ranks.round().ended == (Ended("a", Outcome.ABORTED),)
    assert [uses(rank) for rank in ranks.each] == [set()] * 2
    assert [rank.engine.told for rank in ranks.each] == [{}, {}]


def owned_bytes(rank: Rank, ids: list[int]) -> list[bytes]:
    """What the owner's pages of some ids hold."""
    device = rank.device
    return [bytes(device.arena[device.bytes_of(2, page)]) for page in rank.chain.translate(2, ids)]


def test_a_late_write_after_an_abort_changes_nobodys_bytes() -> None:
    ranks = Ranks(1, TIGHT)
    (rank,) = ranks.each
    taken = ranks.received("a", 3)
    ranks.round()
    ranks.all(lambda rank: rank.transfers.abort("a"))
    ranks.round()
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    ranks.all(lambda rank: rank.chain.free_slots(taken.slots))
    others = ranks.take(2, 0).ids
    others += ranks.take(2, 0).ids
    with pytest.raises(Shortage):
        ranks.take(2, 0)
    rank.engine.write_late("a", b"late")
    assert owned_bytes(rank, others) == [bytes(4)] * len(others)
    assert ranks.round().ended == ()


def test_pages_of_an_aborted_receive_return_with_the_proof() -> None:
    ranks = Ranks(2)
    taken = ranks.received("a", 3)
    ranks.round()
    ranks.all(lambda rank: rank.transfers.abort("a"))
    ranks.round()
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    ranks.each[0].engine.prove("a")
    assert ranks.round().ended == ()
    assert ranks.each[0].chain.owner.pending == 3
    ranks.each[1].engine.prove("a")
    assert ranks.round().ended == (Ended("a", Outcome.ABORTED),)
    assert ranks.each[0].chain.owner.pending == 0


def test_an_engine_that_cannot_tell_its_peer_fails_the_receive_on_every_rank() -> None:
    ranks = Ranks(2)
    ranks.each[0].engine.refuses.add("receive")
    ranks.received("a", 3)
    ranks.round()
    assert ranks.round().isolated == ("a",)
    assert [uses(rank) for rank in ranks.each] == [{Use.NETWORK_RECEIVE}] * 2


# Refusals -----------------------------------------------------------------------------------


def test_a_receive_that_does_not_fit_leaves_no_trace() -> None:
    ranks = Ranks(2, TIGHT)
    with pytest.raises(Shortage):
        ranks.received("a", 20)
    assert ranks.each[0].board.transfers() == ()


def test_a_receive_of_nothing_is_refused() -> None:
    ranks = Ranks(1)
    with pytest.raises(TransferError, match="0 pages and 0 slots; allowed: 1 or more"):
        ranks.all(lambda rank: rank.transfers.receives.take("a", "prefill", 0, 0))


def test_an_abort_that_reached_one_rank_holds_a_publication_back_on_all() -> None:
    ranks = Ranks(3)
    ranks.each[2].transfers.abort_for("a", "prefill")
    assert [answer.name for answer in ranks.each[2].transfers.acknowledgements()] == ["a"]
    ranks.received("a", 3)
    ranks.all(lambda rank: rank.transfers.receives.publish("a"))
    assert [rank.engine.told for rank in ranks.each] == [{}, {}, {}]
    assert ranks.round().ended == (Ended("a", Outcome.ABORTED),)


def test_a_rank_that_cannot_publish_leaves_nobody_alone() -> None:
    ranks = Ranks(2)
    ranks.received("a", 3)
    ranks.each[1].chain.launch_step(1)
    first, second = ranks.answers(lambda rank: rank.transfers.receives.publish("a"))
    assert isinstance(first, TransferError)
    assert isinstance(second, StepOrderError)
    assert [rank.board.find("a").phase for rank in ranks.each] == [Phase.HELD] * 2


def test_a_receive_is_published_once() -> None:
    ranks = Ranks(1)
    ranks.received("a", 3)
    ranks.round()
    with pytest.raises(TransferError, match="'a' is receiving, which does not allow 'publish'"):
        ranks.all(lambda rank: rank.transfers.receives.publish("a"))


def test_a_send_is_not_published() -> None:
    ranks = Ranks(1)
    ranks.sent("a", 3)
    with pytest.raises(TransferError, match="'a' is queued, which does not allow 'publish'"):
        ranks.all(lambda rank: rank.transfers.receives.publish("a"))


def test_rows_that_were_freed_and_taken_by_somebody_else_are_not_published() -> None:
    ranks = Ranks(2)
    taken = ranks.received("a", 3)
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    assert sorted(ranks.received("b", 3).ids) == sorted(taken.ids)
    errors = ranks.answers(lambda rank: rank.transfers.round())
    assert all(isinstance(error, TransferError) for error in errors)
    assert "abort the receive before its rows are freed" in str(errors[0])
    assert [rank.board.find("b").phase for rank in ranks.each] == [Phase.HELD] * 2
