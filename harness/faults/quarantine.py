"""Faults of how a transfer ends: no proof, a proof of something else, a peer that is believed.

Nobody of ours sees what a peer does, so each of these takes a wrong word for the end of its work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from harness.device.clock import Access
from harness.device.memory import WritePages
from harness.device.modeled import ModeledDevice
from harness.faults.fault import Fault
from harness.faults.network_parts import (
    in_board,
    in_network,
    in_quarantine,
    in_rounds,
    in_transfer_engines,
)
from harness.peers import PEER_NAMES, Network, RankNetwork
from unikv.disagg.agreement import Agreed, Evidence, Opinion
from unikv.disagg.board import Board, Transfer
from unikv.disagg.engine import Judgement, Pages
from unikv.disagg.life import Change, Outcome, Phase, due_change
from unikv.disagg.quarantine import Quarantine
from unikv.disagg.rounds import Ended, TransferRounds


class _ReleasesOnFailure(TransferRounds):
    __slots__ = ()

    def _change(self, transfer: Transfer, agreed: Agreed) -> list[Ended]:
        if self.board.due(transfer, agreed) is Change.ISOLATE:
            return self._end(transfer, Change.FINISH, Outcome.FAILED)
        return super()._change(transfer, agreed)


class _TakesFailureForSuccess(Board):
    __slots__ = ()

    def _judge(self, transfer: Transfer) -> Judgement:
        judgement = super()._judge(transfer)
        return Judgement.DONE if judgement is Judgement.FAILED else judgement


class _EndsWithItsFirstPart(Board):
    __slots__ = ()

    def due(self, transfer: Transfer, agreed: Agreed) -> Change:
        return due_change(transfer.phase, agreed.opinions[transfer.place], 0)


class _DropsOnlySends(Board):
    __slots__ = ()

    def due(self, transfer: Transfer, agreed: Agreed) -> Change:
        change = super().due(transfer, agreed)
        is_receive = transfer.phase is Phase.HELD
        return Change.STAY if is_receive and change is Change.DROP else change


class _KeepsEmptySends(TransferRounds):
    __slots__ = ()

    def _change(self, transfer: Transfer, agreed: Agreed) -> list[Ended]:
        parts = self.sends._parts.get(transfer.name)
        is_empty = parts is not None and not parts.waiting
        if is_empty and self.board.due(transfer, agreed) is Change.DROP:
            return []
        return super()._change(transfer, agreed)


class _HidesItsQuarantine(Board):
    __slots__ = ()

    def mark_isolated(self) -> None:
        pass


class _TakesRoundsForProof(Board):
    __slots__ = ()

    def _opinion(self, transfer: Transfer) -> Opinion:
        opinion = super()._opinion(transfer)
        since = {kept.name: kept.since_round for kept in self.quarantine.report()}
        if self.rounds - since.get(transfer.name, self.rounds) < 2:
            return opinion
        return opinion._replace(evidence=Evidence.GIVEN)


class _LiftsWithoutProof(Quarantine):
    __slots__ = ()

    def evidence(self, name: str) -> Evidence:
        super().evidence(name)
        return Evidence.GIVEN


class _NeverLifts(Quarantine):
    __slots__ = ()

    def evidence(self, name: str) -> Evidence:
        super().evidence(name)
        return Evidence.MISSING


class _TakesAnythingIn(Quarantine):
    __slots__ = ()

    def check_open(self, peer: str) -> None:
        pass


class _SaysDoneWithTheFirstRank(RankNetwork):
    def judge(self, name: str) -> Judgement:
        entry = self._network.handed[name]
        if self._rank in entry.failed:
            return Judgement.FAILED
        if not self._network.has_ended(name, 0):
            return Judgement.IN_PROGRESS
        self._network.says_quiet(name, self._rank)
        return Judgement.DONE


class _WritesFromTwoPeers(Network):
    def begin(self, name: str, peer: str, kind: str, pages: Pages) -> None:
        super().begin(name, peer, kind, pages)
        if kind == "network_receive":
            super().begin(name, next(p for p in PEER_NAMES if p != peer), kind, pages)


class _StopsInTheMiddle(Network):
    """Its peers write half of what was published, and nobody is told."""

    def begin(self, name: str, peer: str, kind: str, pages: Pages) -> None:
        device = self.device
        if kind == "network_receive":
            self.device = cast(ModeledDevice, _HalfWritten(device))
        try:
            super().begin(name, peer, kind, pages)
        finally:
            self.device = device


class _HalfWritten:
    """A device on which half of what is written gets lost."""

    def __init__(self, device: ModeledDevice) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def submit(
        self, lane: int, kind: str, step: int, effect: WritePages, touched: Sequence[Access]
    ) -> None:
        """Submit the first half."""
        writes = effect._writes
        half = WritePages(writes[: len(writes) // 2])
        self._device.submit(lane, kind, step, half, touched)


_REUSED = "zero write|move|load|body|receive write"

FAULTS: tuple[Fault, ...] = (
    Fault(
        id="released-on-failure",
        planted="the pages of a failed transfer are released at once, so a late write hits others",
        plant=in_rounds(_ReleasesOnFailure),
        checks=("ledger", "ordering"),
        scenario="peers",
        rows=("B55", "B67"),
        ablates="edge page kept until proof (failed transfer)",
        edge="<- peer",
        pair=("send read|receive write", _REUSED),
        ahead=("ledger",),
    ),
    Fault(
        id="quarantine-lifted-without-proof",
        planted="a transfer leaves quarantine without a proof",
        plant=in_quarantine(_LiftsWithoutProof),
        checks=("ordering",),
        scenario="peers",
        rows=("B55",),
        edge="<- peer",
        pair=("send read|receive write", _REUSED),
    ),
    Fault(
        id="quarantine-lifted-by-rounds",
        planted="a transfer leaves quarantine after some rounds instead of by a proof",
        plant=in_board(_TakesRoundsForProof),
        checks=("ordering",),
        scenario="peers",
        rows=("B55", "B67"),
        edge="<- peer",
        pair=("send read|receive write", _REUSED),
    ),
    Fault(
        id="quarantine-never-lifted",
        planted="no proof is ever accepted, so pages stay in quarantine for good",
        plant=in_quarantine(_NeverLifts),
        checks=("idle",),
        scenario="peers",
        rows=("B61", "B67"),
    ),
    Fault(
        id="quarantine-without-a-limit",
        planted="a peer gets new transfers however many of its old ones are in quarantine",
        plant=in_quarantine(_TakesAnythingIn),
        checks=("capacity",),
        scenario="peers",
    ),
    Fault(
        id="quarantine-hidden-from-the-ledger",
        planted="the ledger does not learn which transfers no wait can end",
        plant=in_board(_HidesItsQuarantine),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="aborted-receive-published",
        planted="an abort of a receive that is held is forgotten, so freed rows are published",
        plant=in_board(_DropsOnlySends),
        checks=("ownership", "ledger", "assertion"),
        scenario="peers",
    ),
    Fault(
        id="aborted-send-kept",
        planted="an abort of a send that has no part yet is never carried out",
        plant=in_rounds(_KeepsEmptySends),
        checks=("ledger",),
        scenario="peers",
        rows=("B61",),
    ),
    Fault(
        id="send-over-with-parts-left",
        planted="a send is over once the parts that began are done",
        plant=in_board(_EndsWithItsFirstPart),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="failure-taken-for-success",
        planted="a transfer that an engine gave up counts as done",
        plant=in_board(_TakesFailureForSuccess),
        checks=("ledger", "ordering"),
        scenario="peers",
        rows=("B59",),
        edge="<- peer",
        pair=("send read|receive write", _REUSED),
        ahead=("ledger",),
    ),
    Fault(
        id="done-with-the-first-rank",
        planted="every rank's engine says done once the first rank's work has ended",
        plant=in_transfer_engines(_SaysDoneWithTheFirstRank),
        checks=("ledger", "content"),
        scenario="peers",
        rows=("B63",),
    ),
    Fault(
        id="two-peers-write-one-page",
        planted="the same pages are published to two peers",
        plant=in_network(_WritesFromTwoPeers),
        checks=("ordering",),
        scenario="peers",
        rows=("B57",),
        edge="peer <- peer",
        pair=("receive write", "receive write"),
    ),
    Fault(
        id="peer-stops-in-the-middle",
        planted="a peer writes half of a prompt, and the other side is told that all is there",
        plant=in_network(_StopsInTheMiddle),
        checks=("content", "initialised"),
        scenario="peers",
        rows=("B59", "B63"),
    ),
)
