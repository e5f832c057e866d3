"""Calls of an engine that fail on one rank once the ranks have agreed.

Every rank has changed by then, so none may leave: all report the same, the next round is a round
like any other, and what the engine said is kept where it can be read.
"""

import pytest

from tests.disagg.ranks import TIGHT, Rank, Ranks
from unikv.disagg.engine import NoProof
from unikv.disagg.life import Outcome, Phase
from unikv.disagg.quarantine import Quarantined
from unikv.disagg.rounds import Ended
from unikv.errors import TransferError

ERRORS = (TransferError, ConnectionError, KeyError)
USE = "send a part 0"

each_error = pytest.mark.parametrize("error", ERRORS)


def refusing(ranks: Ranks, call: str, error: type[BaseException]) -> None:
    """The first rank's engine answers a call with an error."""
    ranks.each[0].engine.refuses.add(call)
    ranks.each[0].engine.error = error


def text_of(call: str, error: type[Exception]) -> str:
    """What is kept of it: of our own error its words, of another one its kind too."""
    said = f"the engine does not {call}"
    return said if error is TransferError else repr(error(said))


def quarantined(ranks: Ranks) -> list[Quarantined]:
    """The one entry of each rank's quarantine."""
    entries = []
    for rank in ranks.each:
        (entry,) = rank.board.quarantine.report()
        entries.append(entry)
    return entries


def sending(*names: str) -> Ranks:
    """Sends that are with both engines."""
    ranks = Ranks(2)
    for name in names:
        ranks.sent(name, 2)
    ranks.round()
    return ranks


def finish(ranks: Ranks, *names: str) -> None:
    """Every engine is done with them."""
    for rank in ranks.each:
        for name in names:
            rank.engine.finish(name)


def assert_works(ranks: Ranks) -> None:
    """A transfer begins and ends as ever."""
    ranks.each[0].engine.refuses.clear()
    ranks.sent("later", 1)
    assert ranks.round().began == ("send later part 0",)
    finish(ranks, "later")
    assert Ended("later", Outcome.SENT) in ranks.round().ended


# Forget -------------------------------------------------------------------------------------


@each_error
def test_a_forget_that_fails_loses_no_end(error: type[Exception]) -> None:
    ranks = sending("a", "b")
    finish(ranks, "a", "b")
    refusing(ranks, "forget", error)
    assert ranks.round().ended == (Ended("a", Outcome.SENT), Ended("b", Outcome.SENT))
    assert_works(ranks)


@each_error
def test_what_an_engine_does_not_forget_is_said(error: type[Exception]) -> None:
    ranks = sending("a")
    finish(ranks, "a")
    refusing(ranks, "forget", error)
    ranks.round()
    kept = [rank.board.unforgotten() for rank in ranks.each]
    assert kept == [{"a": text_of("forget", error)}, {}]


def test_an_engine_that_does_not_forget_is_told_again_in_every_round() -> None:
    ranks = sending("a")
    finish(ranks, "a")
    refusing(ranks, "forget", ConnectionError)
    for _ in range(3):
        ranks.round()
    assert list(ranks.each[0].engine.told) == ["a"]
    ranks.each[0].engine.refuses.clear()
    ranks.round()
    assert [rank.engine.told for rank in ranks.each] == [{}, {}]
    assert ranks.each[0].board.unforgotten() == {}


def test_a_name_in_use_again_is_not_forgotten() -> None:
    ranks = sending("a")
    finish(ranks, "a")
    refusing(ranks, "forget", ConnectionError)
    ranks.round()
    ranks.each[0].engine.refuses.clear()
    ranks.sent("a", 1)
    ranks.all(lambda rank: rank.transfers.abort("a"))
    assert ranks.all(lambda rank: rank.transfers.round()).ended == (Ended("a", Outcome.ABORTED),)
    assert list(ranks.each[0].engine.told) == ["a"]
    ranks.round()
    assert ranks.each[0].engine.told == {}


# Send and receive ---------------------------------------------------------------------------


@each_error
def test_a_send_that_breaks_fails_on_every_rank(error: type[Exception]) -> None:
    ranks = Ranks(2)
    refusing(ranks, "send", error)
    ranks.sent("a", 2)
    assert ranks.round().began == (USE,)
    assert ranks.round().isolated == ("a",)
    assert [entry.refusal for entry in quarantined(ranks)] == [text_of("send", error), ""]
    assert_works(ranks)


def test_a_send_that_breaks_keeps_what_ended_and_what_began_in_its_round() -> None:
    ranks = sending("a")
    finish(ranks, "a")
    refusing(ranks, "send", ConnectionError)
    for name in ("b", "c"):
        ranks.sent(name, 1)
    report = ranks.round()
    assert report.ended == (Ended("a", Outcome.SENT),)
    assert report.began == ("send b part 0", "send c part 0")


@each_error
def test_a_receive_that_breaks_fails_on_every_rank(error: type[Exception]) -> None:
    ranks = Ranks(2)
    refusing(ranks, "receive", error)
    ranks.received("a", 2)
    assert ranks.round().began == ("receive a",)
    assert ranks.round().isolated == ("a",)
    assert [entry.refusal for entry in quarantined(ranks)] == [text_of("receive", error), ""]
    assert_works(ranks)


def test_a_receive_that_breaks_when_it_is_published_at_once_fails_on_every_rank() -> None:
    ranks = Ranks(2)
    refusing(ranks, "receive", ConnectionError)
    ranks.received("a", 2)
    ranks.all(lambda rank: rank.transfers.receives.publish("a"))
    assert [rank.board.find("a").phase for rank in ranks.each] == [Phase.RECEIVING] * 2
    assert ranks.round().isolated == ("a",)


class Wordless(Exception):
    """An error whose text is empty."""

    def __init__(self, _: str) -> None:
        super().__init__()


def test_an_error_without_words_is_a_refusal_too() -> None:
    ranks = Ranks(2)
    refusing(ranks, "send", Wordless)
    ranks.sent("a", 2)
    ranks.round()
    assert ranks.round().isolated == ("a",)
    assert quarantined(ranks)[0].refusal == "Wordless()"


# Abort --------------------------------------------------------------------------------------


@each_error
def test_an_abort_that_breaks_is_a_proof_that_is_not_there(error: type[Exception]) -> None:
    ranks = sending("a")
    ranks.each[0].engine.fail("a")
    refusing(ranks, "abort", error)
    assert ranks.round().isolated == ("a",)
    assert ranks.round().ended == ()
    assert quarantined(ranks)[0].awaited == NoProof(text_of("abort", error))
    assert_works(ranks)
    for rank in ranks.each:
        rank.engine.prove("a")
    assert ranks.round().ended == (Ended("a", Outcome.FAILED),)


def wait(rank: Rank) -> int:
    """Wait for the send; how many collectives that took."""
    before = rank.link.joined
    rank.waiter.wait([USE])
    return rank.link.joined - before


@each_error
def test_an_abort_that_breaks_in_a_wait_leaves_nobody_alone(error: type[Exception]) -> None:
    ranks = sending("a")
    ranks.each[0].engine.fail("a")
    refusing(ranks, "abort", error)
    first, second = ranks.answers(wait)
    assert isinstance(first, TransferError)
    assert str(first) == str(second)
    assert "after 4 rounds still in flight" in str(first)
    assert ranks.round().isolated == ("a",)


def test_a_relief_whose_wait_meets_a_broken_abort_ends_on_every_rank() -> None:
    ranks = Ranks(2, TIGHT)
    ranks.sent("a", 2)
    ranks.round()
    ranks.each[0].engine.fail("a")
    refusing(ranks, "abort", ConnectionError)
    errors = ranks.answers(lambda rank: rank.chain.take(0, 10))
    assert all(isinstance(error, TransferError) for error in errors)
    assert ranks.round().isolated == ("a",)
    assert_works(ranks)


# What is no error of the engine -------------------------------------------------------------


@pytest.mark.parametrize("call", ["send", "receive"])
def test_an_interrupt_is_no_refusal(call: str) -> None:
    ranks = Ranks(1)
    refusing(ranks, call, KeyboardInterrupt)
    ranks.sent("a", 1)
    ranks.received("b", 1)
    (answer,) = ranks.answers(lambda rank: rank.transfers.round())
    assert isinstance(answer, KeyboardInterrupt)
