"""One collective a round: in goes what a rank thinks of each transfer, out comes what all think.

The payload has one length and one order, so ranks can differ in values but never in shape.
A rank that cannot go on still joins the collective, and says so: the others then stop in the same
round instead of waiting for it in the next one.  What the opinions are about is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

from unikv.disagg.engine import Collective, Judgement
from unikv.errors import TransferError


class Wish(IntEnum):
    """Whether a rank was asked to stop a transfer; one is enough."""

    STOP = 0
    GO_ON = 1


class Evidence(IntEnum):
    """Whether a rank's engine has proved that it is quiet; all have to."""

    MISSING = 0
    GIVEN = 1


class Patience(IntEnum):
    """Whether a rank waits for another round; one that does not is enough."""

    OUT = 0
    LEFT = 1


class Presence(IntEnum):
    """Whether a rank is still there after the round."""

    LEAVES = 0
    STAYS = 1


class Opinion(NamedTuple):
    """What one rank, or all of them together, think of one transfer."""

    wish: Wish
    judgement: Judgement
    evidence: Evidence


NOTHING_TO_SAY = Opinion(max(Wish), max(Judgement), max(Evidence))
"""Of a place that no transfer has: neutral in every minimum."""


class View(NamedTuple):
    """What one rank brings to a round.

    Attributes:
        topic: what the round is about, in words that are equal on every rank.
        patience: whether this rank would wait for another round.
        opinions: by place in the payload.
    """

    topic: str
    patience: Patience
    opinions: Mapping[int, Opinion]


class Agreed(NamedTuple):
    """What every rank takes from a round.

    Attributes:
        patience: of the least patient rank.
        opinions: by place in the payload; `places` of them.
    """

    patience: Patience
    opinions: tuple[Opinion, ...]


HEADER = 4
LANES = len(Opinion._fields)


class Agreement:
    """The rounds of one rank: one collective each, however the round ends here."""

    __slots__ = ("_collective", "places")

    def __init__(self, collective: Collective, places: int) -> None:
        """Fix the payload: `places` transfers at most; the same on every rank."""
        self._collective = collective
        self.places = places

    def reach(self, form_view: Callable[[], View]) -> Agreed:
        """Form this rank's view and agree on it; joins exactly one collective.

        Order: blocks the host until every rank has joined.

        Raises:
            TransferError: on every rank alike, if a rank leaves or ranks do not speak of the same;
                and here whatever `form_view` raises, after the others were told.
        """
        payload = [int(Presence.LEAVES), int(Patience.OUT), 0, 0]
        payload += [0] * (LANES * self.places)
        try:
            payload = self._payload(form_view())
        finally:
            # Also on the way out: the others are in this collective already.
            least = self._collective.min_reduce(payload)
        assert len(least) == len(payload), "the collective changed the length of the payload"
        presence, patience, low, negated_high = least[:HEADER]
        if presence == Presence.LEAVES:
            raise TransferError(
                "a rank left this round with an error of its own; allowed: only rounds that every"
                " rank ends, so nothing was started or released: look at that rank's error"
            )
        if low != -negated_high:
            raise TransferError(
                f"ranks speak of different transfers in one round (digests {low} and"
                f" {-negated_high}); allowed: the same calls in the same order on every rank:"
                " compare what each was asked since the round before"
            )
        places = range(HEADER, len(least), LANES)
        return Agreed(Patience(patience), tuple(_opinion(*least[at : at + LANES]) for at in places))

    def _payload(self, view: View) -> list[int]:
        digest = crc32(view.topic.encode())
        payload = [int(Presence.STAYS), int(view.patience), digest, -digest]
        for place in range(self.places):
            payload += map(int, view.opinions.get(place, NOTHING_TO_SAY))
        return payload


def _opinion(wish: int, judgement: int, evidence: int) -> Opinion:
    return Opinion(Wish(wish), Judgement(judgement), Evidence(evidence))
