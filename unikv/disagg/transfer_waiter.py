"""How the host waits for transfer engines: in rounds that every rank begins and ends alike.

A relief calls it when no layout leaves the pages of some transfers alone.  Each rank judges its own
engine; the least judgement of all ranks counts, and so does the least patience.  Nothing is
released here: the allocator lets go of the pages itself once the wait is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from unikv.disagg.agreement import Agreed, Patience
from unikv.disagg.board import Board, Transfer
from unikv.disagg.life import Change, is_quiet
from unikv.errors import TransferError, listed


class Pace(Protocol):
    """How one rank passes the time of a wait.

    Where it has a clock, the deadline belongs beyond the sum of the engine's own timeouts.
    """

    def next_round(self, asked: int) -> Patience:
        """Whether to wait on after round `asked`, from 1; may block the host for a moment."""
        ...


@dataclass(frozen=True, slots=True)
class RoundLimit:
    """A deadline in rounds, for engines that make progress whenever they are asked.

    Attributes:
        rounds: how often the engines are asked, 1 or more.
    """

    rounds: int

    def next_round(self, asked: int) -> Patience:
        """Whether another round is allowed."""
        return Patience.LEFT if asked < self.rounds else Patience.OUT


class NetworkTransferWaiter:
    """The `TransferWaiter` of a storage whose transfers are on a board."""

    __slots__ = ("_board", "_pace", "_waits")

    def __init__(self, board: Board, pace: Pace) -> None:
        self._board = board
        self._pace = pace
        self._waits = 0

    def wait(self, names: Sequence[str]) -> None:
        """Block the host until no engine of any rank touches the pages of `names`.

        Every rank returns in the same round.  A transfer that failed on some rank is given up on
        all of them at once, and then its proof is waited for.  If that comes too late, the ledger
        learns of it, so no later wait begins for the same pages.

        Args:
            names: of uses in the ledger, equal on every rank.

        Raises:
            TransferError: on every rank in the same round: past the deadline of any rank, with the
                transfers still in flight; if a name is no transfer of the board; if a rank leaves.
        """
        self._waits += 1
        asked = 0
        while True:
            asked += 1
            agreed = self._ask(names, asked)
            running = self._running(names, agreed)
            if not running:
                return
            if agreed.patience is Patience.OUT:
                self._board.mark_isolated()
                described = [f"{t.name} ({t.phase.value}, peer {t.peer})" for t in running]
                raise TransferError(
                    f"wait for transfers {listed(names)}: after {asked} rounds still in flight on"
                    f" some rank are {listed(described)}; allowed: quiet on every rank before the"
                    " first rank's deadline: abort them, or free other pages"
                )

    def _ask(self, names: Sequence[str], asked: int) -> Agreed:
        def prepare() -> Patience:
            for name in names:
                self._board.holder(name)
            return self._pace.next_round(asked)

        return self._board.reach(f"wait {self._waits} {asked} {list(names)}", prepare)

    def _running(self, names: Sequence[str], agreed: Agreed) -> list[Transfer]:
        """The transfers that some engine may still touch, each once, oldest use first."""
        holders = {holder.name: holder for holder in map(self._board.holder, names)}
        running = []
        for transfer in holders.values():
            if not is_quiet(transfer.phase, agreed.opinions[transfer.place]):
                running.append(transfer)
                if self._board.due(transfer, agreed) is Change.ISOLATE:
                    self._board.isolate(transfer, agreed)
        return running
