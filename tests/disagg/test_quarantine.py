"""Pages of failed transfers: kept until there is proof, reported, bounded."""

from collections.abc import Callable
from typing import cast

import pytest

from tests.disagg.ranks import Ranks, per_band
from unikv.alloc.signals import TRANSFERS
from unikv.disagg.engine import EpochProof, FenceProof, NoProof
from unikv.disagg.life import Direction, Outcome
from unikv.disagg.quarantine import QuarantineLimits
from unikv.disagg.rounds import Ended
from unikv.errors import ArgumentError, TransferError

NOTHING = ((), (), ())


def failed(ranks: Ranks, name: str = "a", pages: int = 3) -> list[int]:
    """A send that fails on one rank and is quarantined on all; its ids."""
    taken = ranks.sent(name, pages)
    ranks.round()
    ranks.each[0].engine.fail(name)
    assert ranks.round().isolated == (name,)
    return taken.ids


def prove(ranks: Ranks, name: str = "a") -> None:
    """Every rank's engine is quiet."""
    for rank in ranks.each:
        rank.engine.prove(name)


def test_a_failure_on_one_rank_stops_every_engine() -> None:
    ranks = Ranks(3)
    failed(ranks)
    assert [rank.engine.aborted for rank in ranks.each] == [["a"]] * 3


def test_no_number_of_rounds_releases_a_page() -> None:
    ranks = Ranks(2)
    failed(ranks)
    held = ranks.books()
    for _ in range(50):
        assert ranks.round().ended == ()
    assert ranks.books() == held


def test_pages_leave_when_the_last_rank_has_its_proof() -> None:
    ranks = Ranks(3)
    failed(ranks)
    for rank in ranks.each:
        assert ranks.round().ended == ()
        rank.engine.prove("a")
    assert ranks.round().ended == (Ended("a", Outcome.FAILED),)
    assert [rank.chain.ledger.held.holds() for rank in ranks.each] == [()] * 3


def test_an_engine_that_calls_a_failed_transfer_done_has_proved_nothing() -> None:
    ranks = Ranks(2)
    failed(ranks)
    for rank in ranks.each:
        rank.engine.finish("a")
    assert ranks.round().ended == ()


def test_the_report_says_who_what_since_when_and_until_which_proof() -> None:
    ranks = Ranks(2)
    failed(ranks)
    first, second = (rank.board.quarantine.report()[0] for rank in ranks.each)
    assert (first.name, first.peer, first.direction) == ("a", "decode", Direction.SEND)
    assert (first.cause, first.since_round) == (Outcome.FAILED, 2)
    held = ranks.each[0].chain.ledger.held
    assert first.pages == tuple(tuple(sorted(held.pages(band, TRANSFERS))) for band in range(3))
    assert first.pages[2] == (47, 48, 49)
    assert first.page_count == 6
    assert (first.awaited, second.awaited) == (FenceProof(1), EpochProof(1))


def test_a_retired_row_is_in_no_report() -> None:
    ranks = Ranks(2)
    taken = ranks.received("a", 3)
    ranks.all(lambda rank: rank.chain.retire(1, taken.ids))
    ranks.round()
    ranks.each[0].engine.fail("a")
    ranks.round()
    (entry,) = ranks.each[1].board.quarantine.report()
    assert [len(pages) for pages in entry.pages] == [1, 0, 3]
    assert entry.page_count == 4


def test_an_epoch_proves_only_when_everything_up_to_it_is_over() -> None:
    ranks = Ranks(2)
    failed(ranks, "a")
    failed(ranks, "b")
    prove(ranks, "b")
    assert ranks.round().ended == ()
    prove(ranks, "a")
    assert [ended.name for ended in ranks.round().ended] == ["a", "b"]


def test_an_engine_that_cannot_be_stopped_is_told_again() -> None:
    ranks = Ranks(2)
    ranks.each[1].engine.refuses.add("abort")
    failed(ranks)
    (entry,) = ranks.each[1].board.quarantine.report()
    assert entry.awaited == NoProof("the engine does not abort")
    assert ranks.round().ended == ()
    ranks.each[1].engine.refuses.clear()
    ranks.round()
    prove(ranks)
    assert ranks.round().ended == (Ended("a", Outcome.FAILED),)


def test_an_engine_that_cannot_answer_has_proved_nothing() -> None:
    ranks = Ranks(2)
    failed(ranks)
    prove(ranks)
    ranks.each[0].engine.refuses.add("fence")
    assert ranks.round().ended == ()
    ranks.each[0].engine.refuses.clear()
    assert ranks.round().ended == (Ended("a", Outcome.FAILED),)


# Bounds -------------------------------------------------------------------------------------


def refusal(ranks: Ranks, act: Callable[[], object]) -> str:
    """Why every rank refuses; nothing has changed."""
    before = ranks.books()
    with pytest.raises(TransferError) as caught:
        act()
    assert ranks.books() == before
    return str(caught.value)


def test_a_peer_with_too_many_transfers_here_gets_no_send() -> None:
    ranks = Ranks(2, limits=QuarantineLimits(1, 64))
    failed(ranks)
    taken = ranks.take(1, 0)
    text = refusal(
        ranks,
        lambda: ranks.all(lambda r: r.transfers.sends.queue("b", "decode", per_band(taken), 0)),
    )
    assert "'decode', of which 1 transfers with 6 pages are in quarantine" in text
    assert "until 'a' is proved quiet by FenceProof(fence=1)" in text


def test_a_peer_with_too_many_pages_here_gets_no_receive_and_takes_no_page() -> None:
    ranks = Ranks(2, limits=QuarantineLimits(9, 7))
    ranks.received("a", 3)
    ranks.round()
    ranks.each[1].engine.fail("a")
    ranks.round()
    text = refusal(ranks, lambda: ranks.received("b", 1))
    assert "allowed: fewer than 9 and fewer than 7 pages" in text


def test_another_peer_is_not_refused() -> None:
    ranks = Ranks(2, limits=QuarantineLimits(1, 64))
    failed(ranks)
    ranks.received("b", 1)
    assert ranks.round().began == ("receive b",)


def test_proof_opens_the_quarantine_again() -> None:
    ranks = Ranks(2, limits=QuarantineLimits(1, 64))
    failed(ranks)
    prove(ranks)
    ranks.round()
    ranks.sent("b", 1)
    assert ranks.round().began == ("send b part 0",)


def test_what_was_admitted_before_the_quarantine_was_full_goes_on() -> None:
    ranks = Ranks(2, limits=QuarantineLimits(1, 64))
    for name in ("a", "b", "c"):
        ranks.sent(name, 1)
    ranks.round()
    for name in ("a", "b"):
        ranks.each[0].engine.fail(name)
    for rank in ranks.each:
        rank.engine.finish("c")
    assert ranks.round().ended == (Ended("c", Outcome.SENT),)
    assert len(ranks.each[1].board.quarantine.report()) == 2


@pytest.mark.parametrize("limits", [QuarantineLimits(0, 1), QuarantineLimits(1, 0)])
def test_limits_that_allow_nothing_are_refused(limits: QuarantineLimits) -> None:
    with pytest.raises(TransferError, match="allowed: 1 or more transfers and pages"):
        Ranks(1, limits=limits)


@pytest.mark.parametrize("count", [2.5, True, "8"])
def test_a_board_whose_places_are_no_int_is_refused(count: int) -> None:
    with pytest.raises(ArgumentError, match=r"board: the most transfers is .*; allowed: an int"):
        Ranks(1, transfers_max=count)


@pytest.mark.parametrize("limits", [QuarantineLimits(cast(int, 2.5), 1), QuarantineLimits(1, True)])
def test_limits_that_are_no_ints_are_refused(limits: QuarantineLimits) -> None:
    with pytest.raises(ArgumentError, match=r"quarantine: a limit is .*; allowed: an int"):
        Ranks(1, limits=limits)


def test_a_board_without_places_is_refused() -> None:
    with pytest.raises(TransferError, match="board of 0 transfers; allowed: 1 or more"):
        Ranks(1, transfers_max=0)


# Drains -------------------------------------------------------------------------------------


def unaccounted(ranks: Ranks) -> object:
    """Claimed pages that no quarantine explains."""
    return ranks.all(lambda rank: rank.board.quarantine.unaccounted_pages(rank.chain.bands))


def test_a_drain_counts_quarantined_pages_as_accounted() -> None:
    ranks = Ranks(2)
    ids = failed(ranks)
    ranks.all(lambda rank: rank.chain.free(ids))
    assert ranks.each[0].chain.owner.pending == 3
    assert unaccounted(ranks) == NOTHING


def test_a_drain_finds_pages_that_nobody_explains() -> None:
    ranks = Ranks(2)
    ids = failed(ranks)
    ranks.all(lambda rank: rank.chain.free(ids))
    taken = ranks.take(1, 1)
    (rank, _) = ranks.each
    named = [rank.chain.translate(band, units) for band, units in enumerate(per_band(taken))]
    assert unaccounted(ranks) == tuple(map(tuple, named))


def test_a_drain_after_the_proof_has_nothing_left() -> None:
    ranks = Ranks(2)
    ids = failed(ranks)
    ranks.all(lambda rank: rank.chain.free(ids))
    prove(ranks)
    ranks.round()
    assert unaccounted(ranks) == NOTHING
    assert [band.span() for band in ranks.each[0].chain.bands] == [(0, 0)] * 3
