"""One collective a round: what comes out of it, and that nobody is left in it."""

from collections.abc import Callable

import pytest

from tests.disagg.ranks import Link, Meeting, Ranks
from unikv.disagg.agreement import (
    NOTHING_TO_SAY,
    Agreed,
    Agreement,
    Evidence,
    Opinion,
    Patience,
    View,
    Wish,
)
from unikv.disagg.engine import Judgement
from unikv.errors import OwnershipError, TransferError

FINE = Opinion(Wish.GO_ON, Judgement.DONE, Evidence.GIVEN)


class Alone:
    """A collective of one rank, which keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[list[int]] = []

    def min_reduce(self, values: list[int]) -> list[int]:
        """The same."""
        self.given.append(values)
        return values


def view(topic: str = "round", opinion: Opinion = FINE) -> Callable[[], View]:
    """What a rank brings."""
    return lambda: View(topic, Patience.LEFT, {1: opinion})


def reached(*views: Callable[[], View]) -> list[Agreed | BaseException]:
    """What each rank gets that brings its view."""
    meeting = Meeting(len(views))
    ranks = Ranks(len(views))
    ranks.meeting = meeting
    for rank in ranks.each:
        rank.link = Link(meeting)
    agreements = {id(rank): Agreement(rank.link, 2) for rank in ranks.each}
    mine = {id(rank): own for rank, own in zip(ranks.each, views, strict=True)}
    return ranks.answers(lambda rank: agreements[id(rank)].reach(mine[id(rank)]))


def failing() -> View:
    """A rank that finds something wrong before it can speak."""
    raise OwnershipError("an id is gone")


@pytest.mark.parametrize(
    "least",
    [
        FINE._replace(wish=Wish.STOP),
        FINE._replace(judgement=Judgement.FAILED),
        FINE._replace(judgement=Judgement.IN_PROGRESS),
        FINE._replace(evidence=Evidence.MISSING),
    ],
)
def test_the_least_of_every_rank_is_agreed(least: Opinion) -> None:
    agreed = Agreed(Patience.LEFT, (NOTHING_TO_SAY, least))
    assert reached(view(), view(opinion=least), view()) == [agreed] * 3


def test_a_rank_that_fails_tells_the_others_in_the_same_round() -> None:
    first, second, third = reached(view(), failing, view())
    assert isinstance(second, OwnershipError)
    assert isinstance(first, TransferError)
    assert str(first) == str(third)
    assert "a rank left" in str(first)


def test_ranks_that_speak_of_different_transfers_all_hear_of_it() -> None:
    errors = reached(view("a"), view("b"), view("a"))
    assert all(isinstance(error, TransferError) for error in errors)
    assert len({str(error) for error in errors}) == 1


def test_the_payload_has_one_length_whatever_happens() -> None:
    alone = Alone()
    agreement = Agreement(alone, 2)
    agreement.reach(view())
    agreement.reach(lambda: View("nothing", Patience.OUT, {}))
    with pytest.raises(OwnershipError):
        agreement.reach(failing)
    assert {len(values) for values in alone.given} == {10}


def test_a_place_that_no_transfer_has_changes_no_minimum() -> None:
    assert [max(kind) for kind in (Wish, Judgement, Evidence)] == list(NOTHING_TO_SAY)
