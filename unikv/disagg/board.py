"""Every transfer that is not over, each in its place of the payload, and the rounds about them.

What a rank's calls say is entered here at once and becomes true of the transfer only by a round:
then every rank changes it alike.  What is recorded in the ledger, and when ids may leave, is not
known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from unikv.arguments import check_names, check_number
from unikv.disagg.aborts import Aborts
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
from unikv.disagg.engine import Collective, Judgement, NoProof, Pages, TransferEngine
from unikv.disagg.engine_calls import Refused, tell
from unikv.disagg.life import (
    Change,
    Direction,
    Outcome,
    Phase,
    due_change,
    phase_after,
)
from unikv.disagg.quarantine import Quarantine, Quarantined, QuarantineLimits
from unikv.errors import TransferError, listed


@dataclass(slots=True)
class Transfer:
    """One send or receive; only the board and the queue that admitted it change it.

    Law: `uses` are the names under which the ledger holds its pages, and `handed_over` is exactly
    what the engine was told of them.

    Attributes:
        name: unique among all transfers of the ranks, for good.
        peer: the other side.
        direction: which way the bytes go.
        place: its place in the payload.
        phase: where it is in its life.
        parts_left: parts of a send that no engine has seen, those to come included.
        uses: names in the ledger, oldest first.
        handed_over: pages of each part.
        refusal: why this rank's engine would not begin a part; empty if it did.
    """

    name: str
    peer: str
    direction: Direction
    place: int
    phase: Phase
    parts_left: int
    uses: list[str] = field(default_factory=list)
    handed_over: list[Pages] = field(default_factory=list)
    refusal: str = ""


class Ledger(Protocol):
    """Where the pages of transfers are held."""

    def isolate(self, name: str) -> None:
        """The transfer that is held under `name` was given up: nobody waits for it."""
        ...


class NoLedger:
    """The ledger of a board that no storage has joined."""

    def isolate(self, name: str) -> None:
        """Nothing is held, so nothing can have been given up."""
        raise TransferError(
            f"{name!r} is given up, but no storage has joined the board; allowed: transfers of the"
            " storage whose rounds were built on it"
        )


class Board:
    """The transfers of one rank.

    Law: places are given and taken back by calls and rounds that are equal on every rank, so a
    transfer has the same place everywhere.

    Attributes:
        aborts: what was asked to stop.
        engine: this rank's engine.
        quarantine: what was given up and is not proved quiet.
        rounds: rounds that ended, the first one is 1; waits do not count.
    """

    __slots__ = (
        "_agreement",
        "_isolated",
        "_ledger",
        "_transfers",
        "_unforgotten",
        "aborts",
        "engine",
        "quarantine",
        "rounds",
    )

    def __init__(
        self,
        engine: TransferEngine,
        collective: Collective,
        transfers_max: int,
        limits: QuarantineLimits,
    ) -> None:
        """An empty board.

        Args:
            engine: this rank's engine.
            collective: the link to the ranks that share the layout.
            transfers_max: transfers that are not over at any time; equal on every rank.
            limits: of the quarantine, equal on every rank.

        Raises:
            ArgumentError: if a number is no int.
            TransferError: if a limit allows nothing.
        """
        check_number("board", "the most transfers", transfers_max)
        if transfers_max < 1:
            raise TransferError(
                f"board of {transfers_max} transfers; allowed: 1 or more, as many as may be queued,"
                " held, under way and in quarantine together"
            )
        self._agreement = Agreement(collective, transfers_max)
        self._transfers: dict[str, Transfer] = {}
        self.aborts = Aborts()
        self.engine = engine
        self.quarantine = Quarantine(engine, limits)
        self.rounds = 0
        self._isolated: list[str] = []
        self._unforgotten: dict[str, str] = {}
        self._ledger: Ledger = NoLedger()

    def join(self, ledger: Ledger) -> None:
        """The storage whose waiter stands on this board holds pages in `ledger`."""
        self._ledger = ledger

    def transfers(self) -> tuple[Transfer, ...]:
        """Those that are not over, oldest first."""
        return tuple(self._transfers.values())

    def find(self, name: str) -> Transfer:
        """The transfer of that name.

        Raises:
            TransferError: if there is none, or it is over.
        """
        if name not in self._transfers:
            raise TransferError(
                f"transfer {name!r} is unknown or over; allowed: {listed(sorted(self._transfers))}:"
                " begin it first, and ask for nothing after its round reported its end"
            )
        return self._transfers[name]

    def holder(self, use: str) -> Transfer:
        """The transfer whose pages the ledger holds under the name `use`.

        Raises:
            TransferError: if there is none.
        """
        for transfer in self._transfers.values():
            if use in transfer.uses:
                return transfer
        known = [use for transfer in self._transfers.values() for use in transfer.uses]
        raise TransferError(
            f"a wait for {use!r}, which no transfer of this board holds; allowed: {listed(known)}:"
            " let the board begin every transfer of the storage"
        )

    def check_admission(self, name: str, peer: str) -> None:
        """Refuse a transfer that may not begin now.

        Raises:
            ArgumentError: if a name is no str.
            TransferError: for a name in use, a full board, or a peer whose quarantine is full.
        """
        check_names("transfer", name, peer)
        if name in self._transfers:
            raise TransferError(
                f"transfer {name!r} begins, but one of that name is"
                f" {self._transfers[name].phase.value}; allowed: a name that was never used"
            )
        places = self._agreement.places
        if len(self._transfers) >= places:
            raise TransferError(
                f"transfer {name!r} begins beside {len(self._transfers)} others; allowed:"
                f" {places} at a time: end some first, or build a board with more places"
            )
        self.quarantine.check_open(peer)

    def admit(self, name: str, peer: str, direction: Direction, phase: Phase) -> Transfer:
        """Give a transfer its place; `check_admission` has been passed."""
        # The quarantine is not asked again: what was admitted goes on, though its peer's is full.
        assert name not in self._transfers
        assert len(self._transfers) < self._agreement.places
        taken = {transfer.place for transfer in self._transfers.values()}
        place = min(set(range(len(taken) + 1)) - taken)
        self._transfers[name] = Transfer(name, peer, direction, place, phase, parts_left=1)
        return self._transfers[name]

    def abort(self, name: str) -> None:
        """This rank's own scheduler gives `name` up; true on every rank from the next round on.

        Raises:
            TransferError: if there is no such transfer.
        """
        self.find(name)
        self.aborts.stop(name)

    def abort_for(self, name: str, requester: str) -> None:
        """A peer gives `name` up, and waits to hear that nothing touches its pages any more.

        The name may be unknown still, or over: then it can never begin, and the answer is due at
        once.
        """
        self.aborts.stop(name)
        if name in self._transfers:
            self.aborts.owe(name, requester)
        else:
            self.aborts.answer(name, requester)

    def forget_abort(self, name: str) -> None:
        """No transfer of this name begins any more.

        Raises:
            TransferError: if there is such a transfer.
        """
        if name in self._transfers:
            raise TransferError(
                f"forget of {name!r}, which is {self._transfers[name].phase.value}; allowed: names"
                " that are over or never came: its abort is forgotten when it is over"
            )
        self.aborts.forget(name)

    def reach(self, topic: str, prepare: Callable[[], Patience]) -> Agreed:
        """One round: what every rank thinks of every transfer.

        Args:
            topic: what it is about, equal on every rank.
            prepare: what this rank does before it speaks; an error in it stops every rank.

        Raises:
            TransferError: as `Agreement.reach`.
        """

        def form_view() -> View:
            patience = prepare()
            about = [
                f"{t.place} {t.name} {t.direction.value} {t.phase.value} {t.parts_left}"
                for t in self._transfers.values()
            ]
            opinions = {t.place: self._opinion(t) for t in self._transfers.values()}
            return View("\n".join([topic, *about]), patience, opinions)

        return self._agreement.reach(form_view)

    def due(self, transfer: Transfer, agreed: Agreed) -> Change:
        """What the round changes about `transfer`."""
        return due_change(transfer.phase, agreed.opinions[transfer.place], transfer.parts_left)

    def change(self, transfer: Transfer, change: Change) -> None:
        """Lead `transfer` into its next phase.

        Raises:
            TransferError: if its phase does not allow the change; nothing has changed then.
        """
        transfer.phase = phase_after(transfer.name, transfer.phase, change)

    def isolate(self, transfer: Transfer, agreed: Agreed) -> None:
        """Give `transfer` up: its engine is stopped, its pages stay until there is proof."""
        self.change(transfer, Change.ISOLATE)
        self._isolated.append(transfer.name)
        is_wished = agreed.opinions[transfer.place].wish is Wish.STOP
        self.quarantine.isolate(
            Quarantined(
                transfer.name,
                transfer.peer,
                transfer.direction,
                Outcome.ABORTED if is_wished else Outcome.FAILED,
                merged(transfer.handed_over),
                sum(page > 0 for part in transfer.handed_over for band in part for page in band),
                self.rounds,
                NoProof("not asked"),
                transfer.refusal,
            )
        )

    def mark_isolated(self) -> None:
        """Let the ledger keep the pages of what was given up: no wait is worth its time."""
        for name in self._isolated:
            transfer = self._transfers.get(name)
            for use in transfer.uses if transfer else ():
                self._ledger.isolate(use)

    def take_isolated(self) -> tuple[str, ...]:
        """What was given up since the last call, each named once."""
        isolated, self._isolated = tuple(self._isolated), []
        return isolated

    def remove(self, transfer: Transfer) -> None:
        """`transfer` is over on every rank: its place is free, and whoever asked is answered.

        Its end stands whatever the engine says to it: one that does not forget is told again.
        """
        assert transfer.phase is Phase.OVER
        del self._transfers[transfer.name]
        self.aborts.over(transfer.name)
        if transfer.handed_over:
            self._forget(transfer.name)

    def forget_again(self) -> None:
        """Tell this rank's engine once more what it has not forgotten."""
        for name in list(self._unforgotten):
            if name not in self._transfers:
                self._forget(name)

    def unforgotten(self) -> Mapping[str, str]:
        """Transfers that are over and not forgotten by this rank's engine, and what it said to it.

        It is told again in every round; what stays here is what it leaks.
        """
        return dict(self._unforgotten)

    def _forget(self, name: str) -> None:
        answer = tell(lambda: self.engine.forget(name))
        self._unforgotten.pop(name, None)
        if isinstance(answer, Refused):
            self._unforgotten[name] = answer.reason

    def _opinion(self, transfer: Transfer) -> Opinion:
        wish = self.aborts.wish(transfer.name)
        match transfer.phase:
            case Phase.SENDING | Phase.RECEIVING:
                return Opinion(wish, self._judge(transfer), Evidence.MISSING)
            case Phase.QUARANTINED:
                evidence = self.quarantine.evidence(transfer.name)
                return Opinion(wish, Judgement.FAILED, evidence)
            case _:
                return NOTHING_TO_SAY._replace(wish=wish)

    def _judge(self, transfer: Transfer) -> Judgement:
        if transfer.refusal:
            return Judgement.FAILED
        try:
            return self.engine.judge(transfer.name)
        except TransferError:
            # An engine that cannot answer for its transfer has lost it.
            return Judgement.FAILED


def merged(parts: Sequence[Pages]) -> Pages:
    """Pages of all parts, per band, ascending, each once; the sink is nobody's page."""
    bands = zip(*parts, strict=True)
    return tuple(tuple(sorted({p for part in band for p in part} - {0})) for band in bands)
