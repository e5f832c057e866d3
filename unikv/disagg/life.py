"""The life of a transfer: its phases, what changes them, and which change is due after a round.

Both are tables of facts that are equal on every rank, so every rank changes alike.  What a change
does to the ledger or to an engine is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import assert_never

from unikv.disagg.agreement import Evidence, Opinion, Wish
from unikv.disagg.engine import Judgement
from unikv.errors import TransferError, listed


class Direction(Enum):
    """Which way the bytes go."""

    SEND = "send"
    RECEIVE = "receive"


class Phase(Enum):
    """Where a transfer is in its life."""

    QUEUED = "queued"  # a send of which the engine knows nothing
    SENDING = "sending"  # parts of it are in the ledger and with the engine
    HELD = "held"  # a receive whose rows are taken and whose ids nobody outside knows
    RECEIVING = "receiving"  # the peer knows the ids
    QUARANTINED = "quarantined"  # given up, and the engine may still touch the pages
    OVER = "over"


class Change(Enum):
    """What happens to a transfer."""

    STAY = "stay"
    START = "start"  # a part of a send is recorded and handed to the engine
    PUBLISH = "publish"  # the receive is recorded and its ids leave
    DROP = "drop"  # given up before an engine knew of it
    FINISH = "finish"  # done on every rank
    ISOLATE = "isolate"  # failed or given up on some rank: the pages are kept
    PROVE = "prove"  # every rank's engine has proved that it is quiet


class Outcome(Enum):
    """How a transfer ended."""

    SENT = "sent"
    RECEIVED = "received"
    FAILED = "failed"
    ABORTED = "aborted"


LIFE: Mapping[tuple[Phase, Change], Phase] = {
    (Phase.QUEUED, Change.START): Phase.SENDING,
    (Phase.SENDING, Change.START): Phase.SENDING,
    (Phase.HELD, Change.PUBLISH): Phase.RECEIVING,
    # No engine has seen the ids, so nothing can touch the pages later.
    (Phase.QUEUED, Change.DROP): Phase.OVER,
    (Phase.HELD, Change.DROP): Phase.OVER,
    (Phase.SENDING, Change.FINISH): Phase.OVER,
    (Phase.RECEIVING, Change.FINISH): Phase.OVER,
    # From here on only a proof leads out.
    (Phase.SENDING, Change.ISOLATE): Phase.QUARANTINED,
    (Phase.RECEIVING, Change.ISOLATE): Phase.QUARANTINED,
    (Phase.QUARANTINED, Change.PROVE): Phase.OVER,
}
"""Every change but `STAY` that a phase allows, and where it leads."""

SUCCESS: Mapping[Direction, Outcome] = {
    Direction.SEND: Outcome.SENT,
    Direction.RECEIVE: Outcome.RECEIVED,
}


def phase_after(name: str, phase: Phase, change: Change) -> Phase:
    """Where `change` leads transfer `name`.

    Raises:
        TransferError: if its phase does not allow the change.
    """
    if (phase, change) not in LIFE:
        allowed = [known.value for at, known in LIFE if at is phase]
        raise TransferError(
            f"transfer {name!r} is {phase.value}, which does not allow {change.value!r}; allowed:"
            f" {listed(allowed)}"
        )
    return LIFE[phase, change]


def due_change(phase: Phase, opinion: Opinion, parts_left: int) -> Change:
    """What happens to a transfer after a round.

    Args:
        phase: where it is.
        opinion: what every rank agrees on.
        parts_left: parts of a send that no engine has seen, those to come included.
    """
    match phase:
        case Phase.QUEUED | Phase.HELD:
            return Change.DROP if opinion.wish is Wish.STOP else Change.STAY
        case Phase.SENDING | Phase.RECEIVING:
            # Done on every rank beats a wish to stop: nothing is left that could be stopped.
            if opinion.judgement is Judgement.DONE and not parts_left:
                return Change.FINISH
            failed = opinion.judgement is Judgement.FAILED
            return Change.ISOLATE if failed or opinion.wish is Wish.STOP else Change.STAY
        case Phase.QUARANTINED:
            return Change.PROVE if opinion.evidence is Evidence.GIVEN else Change.STAY
        case Phase.OVER:
            return Change.STAY
        case _:
            assert_never(phase)


def is_quiet(phase: Phase, opinion: Opinion) -> bool:
    """Whether, on every rank, no engine touches any page that was handed over so far."""
    if phase is Phase.QUARANTINED:
        # The word of a transfer that was given up is not its engine's promise to be quiet.
        return opinion.evidence is Evidence.GIVEN
    return opinion.judgement is Judgement.DONE
