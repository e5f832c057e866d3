"""Faults of rounds: ranks that end, wait or judge on their own, and releases at the wrong time.

What has to prove that a transfer is over is not the matter here.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from harness.faults.fault import Fault
from harness.faults.network_parts import in_board, in_rounds, in_waiter, rounds
from harness.faults.parts import become
from harness.unikv_subject import NotedWaiter
from harness.world import World
from unikv.disagg.agreement import Agreed
from unikv.disagg.board import Board, Transfer
from unikv.disagg.engine import Judgement
from unikv.disagg.life import Change, Outcome, due_change
from unikv.disagg.rounds import Ended, RoundReport, TransferRounds
from unikv.errors import TransferError


class _KeepsItsUses(TransferRounds):
    __slots__ = ()

    def _end(self, transfer: Transfer, change: Change, outcome: Outcome) -> list[Ended]:
        transfer.uses.clear()
        return super()._end(transfer, change, outcome)


class _EndsARoundLater(TransferRounds):
    __slots__ = ()

    def _change(self, transfer: Transfer, agreed: Agreed) -> list[Ended]:
        is_over = self.board.due(transfer, agreed) in (Change.FINISH, Change.PROVE)
        if is_over and self.board.rounds % 2:
            return []
        return super()._change(transfer, agreed)


class _ReleasesTwice(TransferRounds):
    __slots__ = ()

    def _end(self, transfer: Transfer, change: Change, outcome: Outcome) -> list[Ended]:
        transfer.uses *= 2
        return super()._end(transfer, change, outcome)


class _ReleasesOnAbort(TransferRounds):
    __slots__ = ()

    def abort(self, name: str) -> None:
        super().abort(name)
        transfer = self.board.find(name)
        for use in transfer.uses:
            self._chain.users.release(use)
        transfer.uses.clear()


class _SkipsTheCollective(TransferRounds):
    __slots__ = ()

    def round(self) -> RoundReport:
        board = self.board
        running = [board.engine.judge(t.name) for t in board.transfers() if t.handed_over]
        if running and set(running) == {Judgement.IN_PROGRESS}:
            board.rounds += 1
            return RoundReport(board.rounds, (), (), ())
        return super().round()


class _JudgesAlone(Board):
    __slots__ = ()

    def due(self, transfer: Transfer, agreed: Agreed) -> Change:
        return due_change(transfer.phase, self._opinion(transfer), transfer.parts_left)


class _ReturnsWithItsOwnEngine(NotedWaiter):
    __slots__ = ()

    def _ask(self, names: Sequence[str], asked: int) -> Agreed:
        agreed = super()._ask(names, asked)
        own = list(agreed.opinions)
        for transfer in self._board_of.transfers():
            own[transfer.place] = self._board_of._opinion(transfer)
        return Agreed(agreed.patience, tuple(own))


class _TakesTheDeadlineForTheEnd(NotedWaiter):
    __slots__ = ()

    def wait(self, names: Sequence[str]) -> None:
        with suppress(TransferError):
            super().wait(names)


def _judge_alone_on_the_first_rank(world: World) -> None:
    for part in list(rounds(world))[:1]:
        become(part.board, _JudgesAlone)


def _keep_uses_on_the_last_rank(world: World) -> None:
    for part in list(rounds(world))[-1:]:
        become(part, _KeepsItsUses)


def _end_later_on_the_last_rank(world: World) -> None:
    for part in list(rounds(world))[-1:]:
        become(part, _EndsARoundLater)


_REUSED = "zero write|move|load|body|receive write"

FAULTS: tuple[Fault, ...] = (
    Fault(
        id="release-on-one-rank-less",
        planted="the last rank never releases the pages of what is over",
        plant=_keep_uses_on_the_last_rank,
        checks=("divergence",),
        scenario="peers",
        rows=("B69",),
    ),
    Fault(
        id="release-a-round-later",
        planted="the last rank ends transfers in another round than the others",
        plant=_end_later_on_the_last_rank,
        checks=("divergence",),
        scenario="peers",
        rows=("B69",),
    ),
    Fault(
        id="judged-by-its-own-rank",
        planted="each rank ends a transfer by what its own engine says",
        plant=in_board(_JudgesAlone),
        checks=("divergence",),
        scenario="peers",
        rows=("B123",),
    ),
    Fault(
        id="leader-ends-alone",
        planted="the first rank drops a transfer by its own judgement, before the others are done",
        plant=_judge_alone_on_the_first_rank,
        checks=("divergence", "assertion"),
        scenario="peers",
        rows=("B69",),
    ),
    Fault(
        id="collective-skipped",
        planted="a rank whose engine has nothing new skips the round's collective",
        plant=in_rounds(_SkipsTheCollective),
        checks=("divergence",),
        scenario="peers",
        rows=("B123", "B125"),
    ),
    Fault(
        id="wait-ends-with-its-own-engine",
        planted="a rank returns from a wait once its own engine is quiet",
        plant=in_waiter(_ReturnsWithItsOwnEngine),
        checks=("divergence",),
        scenario="peers",
        rows=("B125",),
    ),
    Fault(
        id="wait-past-its-deadline-counts",
        planted="a wait that ends without a proof counts as if there were one",
        plant=in_waiter(_TakesTheDeadlineForTheEnd),
        checks=("ledger", "ownership", "ordering"),
        scenario="peers",
        rows=("B55",),
        edge="<- peer",
        pair=("send read|receive write", _REUSED),
        ahead=("ledger", "ownership"),
    ),
    Fault(
        id="released-twice",
        planted="the pages of a transfer that is over are released twice",
        plant=in_rounds(_ReleasesTwice),
        checks=("assertion",),
        scenario="peers",
    ),
    Fault(
        id="released-on-abort",
        planted="an abort releases the pages at once, though the engine still touches them",
        plant=in_rounds(_ReleasesOnAbort),
        checks=("ledger", "ownership", "ordering"),
        scenario="peers",
        rows=("B67",),
        edge="<- peer",
        pair=("send read|receive write", _REUSED),
        ahead=("ledger", "ownership"),
    ),
)
