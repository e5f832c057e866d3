"""Receives: pages that a peer writes once the host has seen the last of their earlier uses.

Taken rows are held where they are until their ids leave.  The host knows the ids at once; a gate
behind the take says when they may leave, because the take's own waits and its zeroing have run by
then.  The ledger turns the hold into a receive before the engine learns the ids, with no gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from unikv.alloc.chain import ChainAllocator, Taken
from unikv.disagg.agreement import Patience, Wish
from unikv.disagg.board import Board, Transfer
from unikv.disagg.engine import Pages
from unikv.disagg.engine_calls import Refused, tell
from unikv.disagg.gate import Gate, set_gate, wait_gate
from unikv.disagg.life import Change, Direction, Phase, phase_after
from unikv.errors import TransferError, listed


@dataclass(frozen=True, slots=True)
class Held:
    """Rows that were taken for a receive.

    Attributes:
        ids: virtual ids per band.
        gate: set behind the take.
    """

    ids: tuple[tuple[int, ...], ...]
    gate: Gate


class Receives:
    """The receives of one rank.

    Law: from the take to the release there is no moment at which the ledger does not hold the rows.
    """

    __slots__ = ("_board", "_chain", "_held")

    def __init__(self, chain: ChainAllocator, board: Board) -> None:
        self._chain = chain
        self._board = board
        self._held: dict[str, Held] = {}

    def take(self, name: str, peer: str, pages: int, slots: int) -> Taken:
        """Take the rows of a receive and hold them; a later round publishes them.

        Called after the iteration's round, so that the round that publishes is a later iteration's
        and finds the gate passed.

        Args:
            name: unique among all transfers of the ranks, for good.
            peer: who writes.
            pages: virtual pages.
            slots: state slots.

        Raises:
            TransferError: for a name in use, a full board, a peer whose quarantine is full, or no
                pages at all; nothing has changed then.  Also as `ChainAllocator.take`.
            Shortage, StepOrderError, ArgumentError: as `ChainAllocator.take`.

        Order: as `ChainAllocator.take`; then records an event on the schedule stream.
        """
        self._board.check_admission(name, peer)
        if not pages and not slots:
            raise TransferError(f"receive {name!r} of 0 pages and 0 slots; allowed: 1 or more")
        taken = self._chain.take(pages, slots)
        transfer = self._board.admit(name, peer, Direction.RECEIVE, Phase.HELD)
        ids = tuple(tuple(self._ids(band, taken)) for band in range(len(self._chain.bands)))
        use = f"receive {name}"
        self._chain.users.hold_receive(use, ids)
        transfer.uses.append(use)
        self._held[name] = Held(ids, set_gate(self._chain))
        return taken

    def publish(self, name: str) -> None:
        """Publish a held receive at once, where there is no later iteration to wait for.

        Called alike on every rank.  If a peer has told some rank to stop it, it stays held and the
        next round drops it: the peer may have heard already that nothing of that name begins.

        Raises:
            TransferError: if it is no held receive, or its rows were freed, and on every rank if
                one of them leaves; nothing has changed then.
            StepOrderError: here, between launch and record of a step; nothing has changed then.

        Order: joins one collective; blocks the host until the schedule stream has run the take.
        """

        def prepare() -> Patience:
            transfer = self._board.find(name)
            phase_after(name, transfer.phase, Change.PUBLISH)
            self._chain.steps.check_between_steps("publish")
            if self._board.aborts.wish(name) is Wish.GO_ON:
                self.prepare(transfer)
            return Patience.LEFT

        agreed = self._board.reach(f"publish {name}", prepare)
        transfer = self._board.find(name)
        if self._board.due(transfer, agreed) is Change.STAY:
            self.advance(transfer)

    # What a round does with them -----------------------------------------------------------

    def prepare(self, transfer: Transfer) -> None:
        """Wait the gate of a receive that is published in this round if nobody stops it.

        Order: blocks the host until the take, and the last move if there was one, have run.

        Raises:
            TransferError: if its rows were freed; nothing has changed then.
        """
        if transfer.phase is Phase.HELD:
            held = self._held[transfer.name]
            self._check_rows(transfer, held)
            wait_gate(self._chain, held.gate)

    def advance(self, transfer: Transfer) -> list[str]:
        """Publish a held receive; the names under which the ledger holds it."""
        if transfer.phase is not Phase.HELD:
            return []
        (use,) = transfer.uses
        # Read only now: a relief may have moved held rows since they were taken.
        pages = self._pages(self._held[transfer.name])
        leaving = self._chain.users.publish(use, use)
        assert _by_band(leaving) == _by_band(dict(enumerate(pages))), (
            f"{transfer.name}: the ledger holds other pages than its ids name, as sets by number of"
            f" band: {_by_band(leaving)} and {_by_band(dict(enumerate(pages)))}"
        )
        self._board.change(transfer, Change.PUBLISH)
        transfer.parts_left = 0
        transfer.handed_over.append(pages)
        engine = self._board.engine
        answer = tell(lambda: engine.receive(transfer.name, transfer.peer, pages))
        if isinstance(answer, Refused):
            # Part of the ids may have left, so only a proof ends it.
            transfer.refusal = answer.reason
        return [use]

    def forget(self, transfer: Transfer) -> None:
        """The receive is over."""
        del self._held[transfer.name]

    def _ids(self, band: int, taken: Taken) -> list[int]:
        part = self._chain.bands[band]
        is_state = part.layout.mints and part is not self._chain.owner
        return taken.slots if is_state else taken.ids

    def _pages(self, held: Held) -> Pages:
        """Pages in the order of the ids; 0 where a window row was retired."""
        return tuple(
            tuple(self._chain.translate(band, units)) for band, units in enumerate(held.ids)
        )

    def _check_rows(self, transfer: Transfer, held: Held) -> None:
        """Freed rows leave the hold, and by now their ids may name somebody else's pages."""
        holds = [h for h in self._chain.ledger.held.holds() if h.name in transfer.uses]
        for part, pages in zip(self._chain.bands, self._pages(held), strict=True):
            kept = {page for hold in holds if hold.band == part.index for page in hold.pages}
            # Only rows of a window may have been retired meanwhile.
            if set(pages) - {0} != kept or (part.layout.mints and 0 in pages):
                raise TransferError(
                    f"receive {transfer.name!r}: the ids of its rows in band {part.layout.name!r}"
                    f" name pages {listed(pages)}, and held are {listed(sorted(kept))}; allowed:"
                    " rows that stay bound: abort the receive before its rows are freed"
                )


def _by_band(pages: Mapping[int, Iterable[int]]) -> dict[int, set[int]]:
    """The pages of each band that has any; 0 is none."""
    kept = {band: set(own) - {0} for band, own in pages.items()}
    return {band: own for band, own in kept.items() if own}
