"""Faults of what a round makes of a transfer, or says of it: another end or cause, or nothing."""

from __future__ import annotations

from dataclasses import replace

from harness.faults.fault import Fault
from harness.faults.network_parts import in_board, in_quarantine, in_rounds
from unikv.disagg.agreement import Agreed, Wish
from unikv.disagg.board import Board, Transfer
from unikv.disagg.life import Change, Outcome
from unikv.disagg.quarantine import Quarantine, Quarantined
from unikv.disagg.rounds import RoundReport, TransferRounds


class _StopsWhatIsDone(Board):
    __slots__ = ()

    def due(self, transfer: Transfer, agreed: Agreed) -> Change:
        change = super().due(transfer, agreed)
        is_wished = agreed.opinions[transfer.place].wish is Wish.STOP
        return Change.ISOLATE if is_wished and change is Change.FINISH else change


class _SwapsCauses(Quarantine):
    __slots__ = ()

    def isolate(self, entry: Quarantined) -> None:
        is_failure = entry.cause is Outcome.FAILED
        super().isolate(replace(entry, cause=Outcome.ABORTED if is_failure else Outcome.FAILED))


class _SaysNothingOfQuarantine(TransferRounds):
    __slots__ = ()

    def round(self) -> RoundReport:
        return replace(super().round(), isolated=())


class _ForgetsWhatAWaitGaveUp(TransferRounds):
    __slots__ = ()

    def round(self) -> RoundReport:
        self.board.mark_isolated()
        self.board.take_isolated()
        return super().round()


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="stop-beats-done",
        planted="a transfer that is done on every rank is given up, because somebody wished so",
        plant=in_board(_StopsWhatIsDone),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="failed-and-aborted-swapped",
        planted="a transfer that failed ends as one that was aborted, and the reverse",
        plant=in_quarantine(_SwapsCauses),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="quarantine-not-reported",
        planted="a round never says which transfers were given up",
        plant=in_rounds(_SaysNothingOfQuarantine),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="given-up-in-a-wait-not-reported",
        planted="a round does not say which transfers a wait before it has given up",
        plant=in_rounds(_ForgetsWhatAWaitGaveUp),
        checks=("ledger",),
        scenario="peers",
    ),
)
