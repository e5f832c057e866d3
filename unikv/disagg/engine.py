"""What a transfer engine and the link between ranks must offer; the only words exchanged with them.

An engine moves bytes on no stream of ours, so its word is all there is: what it says is final, and
a page is reused only once it has said that it is quiet.  Which engine it is, and how ranks talk, is
not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, TypeAlias

Pages: TypeAlias = tuple[tuple[int, ...], ...]
"""Physical pages per band, in the order of the ids that name them; 0 where an id names none."""


class Judgement(IntEnum):
    """What one engine says of a transfer; the least of all ranks is what they agree on."""

    FAILED = 0  # it will not end well, and the engine may still touch its pages
    IN_PROGRESS = 1
    DONE = 2  # all that was handed over is there, and its pages are not touched again


@dataclass(frozen=True, slots=True)
class FenceProof:
    """An abandoned transfer is quiet once the engine has passed this fence.

    Attributes:
        fence: the engine's own number of it.
    """

    fence: int


@dataclass(frozen=True, slots=True)
class EpochProof:
    """An abandoned transfer is quiet once everything that began up to this epoch is over.

    Attributes:
        epoch: the engine's own number of it.
    """

    epoch: int


@dataclass(frozen=True, slots=True)
class NoProof:
    """The engine could not be told to stop; it is told again in every round.

    Attributes:
        reason: what it said instead.
    """

    reason: str


Proof: TypeAlias = FenceProof | EpochProof | NoProof


class TransferEngine(Protocol):
    """One rank's engine.

    Every method returns at once.

    `judge`, `fence_passed` and `quiet_epoch` are asked before the ranks agree.  A `TransferError`
    counts as a failed transfer, or as a proof that is not there; any other error leaves this rank's
    round and tells the others to leave it too.

    `send`, `receive`, `abort` and `forget` are told what the ranks have agreed on, so no error of
    theirs leaves a round: of whatever kind, it counts as a failed transfer, as a proof that is not
    there (`NoProof`), or as an end that is not forgotten yet.  What was said is kept in
    `Quarantined.refusal`, `Quarantined.awaited` and `Board.unforgotten`.
    """

    def send(self, name: str, peer: str, run: int, pages: Pages) -> None:
        """Begin to read `pages` for `peer`: part `run` of the send `name`, counted from 0."""
        ...

    def receive(self, name: str, peer: str, pages: Pages) -> None:
        """Tell `peer` where to write; it may do so from this moment on."""
        ...

    def judge(self, name: str) -> Judgement:
        """How everything that was handed over under `name` stands; `DONE` and `FAILED` are final.

        A send whose parts are all there is `DONE` until another part is handed over.
        """
        ...

    def abort(self, name: str) -> Proof:
        """Stop the transfer; what will prove that neither engine nor peer touches its pages.

        Asked again in every round after an error or a `NoProof`, and never after a proof.
        """
        ...

    def fence_passed(self, fence: int) -> bool:
        """Whether a fence has been passed; for good once it has."""
        ...

    def quiet_epoch(self) -> int:
        """Newest epoch with everything that began up to it over; it never falls."""
        ...

    def forget(self, name: str) -> None:
        """The transfer is over on every rank; nobody asks for it again.

        Told again in every round after an error, and never once it has returned.
        """
        ...


class Collective(Protocol):
    """The link between the ranks that share one layout."""

    def min_reduce(self, values: list[int]) -> list[int]:
        """The least of every rank's value, place by place; blocks until every rank has called."""
        ...
