"""The round: one collective, then every change that all ranks agreed on, in one order.

A serving engine calls it once an iteration.  What can fail on one rank alone is done before the
collective, where the others learn of it; what follows is equal on every rank, and an engine that
fails in it is judged by the next round.  Which bytes go where is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, assert_never

from unikv.alloc.chain import ChainAllocator
from unikv.disagg.aborts import Drained
from unikv.disagg.agreement import Agreed, Patience, Wish
from unikv.disagg.board import Board, Transfer
from unikv.disagg.decode import Receives
from unikv.disagg.life import SUCCESS, Change, Direction, Outcome
from unikv.disagg.prefill import Sends


class Queue(Protocol):
    """What a round needs of sends and of receives."""

    def prepare(self, transfer: Transfer) -> None:
        """Do what may block or fail before this rank speaks."""
        ...

    def advance(self, transfer: Transfer) -> list[str]:
        """Give the engine what it may have; the names of the uses that began."""
        ...

    def forget(self, transfer: Transfer) -> None:
        """The transfer is over."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """One transfer that is over on every rank; its pages are released.

    Attributes:
        name: the transfer.
        outcome: how it ended; only `RECEIVED` rows hold what the peer sent.
    """

    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class RoundReport:
    """What one round changed; equal on every rank.

    Attributes:
        number: of the round, from 1.
        ended: transfers that are over, in the order in which they were admitted.
        began: uses of the ledger whose pages engines or peers may touch from now on.
        isolated: transfers that went into quarantine in this round or in a wait before it.
    """

    number: int
    ended: tuple[Ended, ...]
    began: tuple[str, ...]
    isolated: tuple[str, ...]


class TransferRounds:
    """The transfers of one storage on one rank.

    Invariant: between calls the ledger holds exactly the pages of receives that are held and of
    transfers that were handed over and are not over, but for those that a relief has waited for.

    Attributes:
        board: every transfer that is not over.
        sends, receives: where they are begun.
    """

    __slots__ = ("_chain", "_queues", "board", "receives", "sends")

    def __init__(self, chain: ChainAllocator, board: Board) -> None:
        """Join a chain with the board that its waiter was built on."""
        self._chain = chain
        self.board = board
        board.join(chain.users)
        self.sends = Sends(chain, board)
        self.receives = Receives(chain, board)
        self._queues: Mapping[Direction, Queue] = {
            Direction.SEND: self.sends,
            Direction.RECEIVE: self.receives,
        }

    def abort(self, name: str) -> None:
        """Give a transfer up; called on every rank, before its ids are freed.

        True from the next round on: what was not handed over is dropped, the rest is quarantined.

        Raises:
            TransferError: if there is no such transfer, or it is over.
        """
        self.board.abort(name)

    def abort_for(self, name: str, requester: str) -> None:
        """A peer gave a transfer up and told this rank, and maybe no other.

        Allowed before the transfer is known here, more than once, by several peers, and after its
        end: each requester is answered once per request, through `acknowledgements`.
        """
        self.board.abort_for(name, requester)

    def acknowledgements(self) -> tuple[Drained, ...]:
        """Answers that this rank owes to peers, each handed out once."""
        return self.board.aborts.take_due()

    def forget(self, name: str) -> None:
        """No transfer of this name begins any more, so an early or a late abort need not be kept.

        Raises:
            TransferError: if there is such a transfer; its abort is forgotten when it is over.
        """
        self.board.forget_abort(name)

    def round(self) -> RoundReport:
        """Agree with the other ranks and carry out what all agreed on.

        Raises:
            TransferError: on every rank in the same round, if one of them leaves or they differ;
                nothing has changed then.
            OwnershipError, StepOrderError: here, if ids of something that would start were freed,
                or between launch and record; the other ranks raise `TransferError`, and nothing
                has changed anywhere.

        Order: blocks the host for the other ranks and for the gates of what starts.
        """
        agreed = self.board.reach(f"round {self.board.rounds + 1}", self._prepare)
        self.board.rounds += 1
        ended: list[Ended] = []
        for transfer in self.board.transfers():
            ended += self._change(transfer, agreed)
        self.board.mark_isolated()
        began: list[str] = []
        for transfer in self.board.transfers():
            began += self._queues[transfer.direction].advance(transfer)
        isolated = self.board.take_isolated()
        return RoundReport(self.board.rounds, tuple(ended), tuple(began), isolated)

    def _prepare(self) -> Patience:
        self._chain.steps.check_between_steps("round")
        self.board.forget_again()
        for transfer in self.board.transfers():
            if self.board.aborts.wish(transfer.name) is Wish.GO_ON:
                self._queues[transfer.direction].prepare(transfer)
        return Patience.LEFT

    def _change(self, transfer: Transfer, agreed: Agreed) -> list[Ended]:
        change = self.board.due(transfer, agreed)
        match change:
            case Change.STAY:
                return []
            case Change.ISOLATE:
                self.board.isolate(transfer, agreed)
                return []
            case Change.DROP:
                return self._end(transfer, change, Outcome.ABORTED)
            case Change.FINISH:
                return self._end(transfer, change, SUCCESS[transfer.direction])
            case Change.PROVE:
                return self._end(transfer, change, self.board.quarantine.lift(transfer.name).cause)
            case Change.START | Change.PUBLISH:
                raise AssertionError(f"{change.value} is no answer to a round")
            case _:
                assert_never(change)

    def _end(self, transfer: Transfer, change: Change, outcome: Outcome) -> list[Ended]:
        self.board.change(transfer, change)
        for use in transfer.uses:
            self._chain.users.release(use)
        self._queues[transfer.direction].forget(transfer)
        self.board.remove(transfer)
        return [Ended(transfer.name, outcome)]
