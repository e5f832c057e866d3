"""Sends: pages that a transfer engine reads once the host has seen everything that writes them.

A part of a send is queued by its virtual ids and may move until it starts.  It starts when the host
has *processed* the last step that writes it, which a wait of the schedule stream alone does not
give, when no load fills it any more, and has waited the last move of its pages.  Then the ledger
learns of it, and then the engine.  Until then nothing holds its ids, so a claim tells whether they
are still what they were: freed and minted again, they name somebody else's pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from unikv.alloc.chain import ChainAllocator
from unikv.alloc.fences import page_ranges
from unikv.alloc.use import Use
from unikv.arguments import check_ids_per_band, check_number
from unikv.cache.claims import Claim, check_held, claim
from unikv.disagg.board import Board, Transfer
from unikv.disagg.engine import Pages
from unikv.disagg.engine_calls import Refused, tell
from unikv.disagg.gate import Gate, set_gate, wait_gate
from unikv.disagg.life import Change, Direction, Phase
from unikv.errors import TransferError


@dataclass(frozen=True, slots=True)
class Part:
    """Pages of a send that are final once a step is processed.

    Attributes:
        claim: virtual ids per band, as they were held when the part was queued.
        written_through: the newest step that writes their pages; 0 if none does.
        gate: set when the part was queued.
        under_load: whether a load filled one of its pages then.
    """

    claim: Claim
    written_through: int
    gate: Gate
    under_load: bool

    @property
    def ids(self) -> tuple[tuple[int, ...], ...]:
        """Virtual ids per band."""
        return self.claim.ids


@dataclass(slots=True)
class Parts:
    """The parts of one send in the order in which they go; only `Sends` changes them.

    Attributes:
        waiting: those that no engine has seen.
        coming: 1 while more may be added, else 0.
    """

    waiting: list[Part]
    coming: int


NO_PARTS = Parts([], 0)
"""Of a transfer that is no send."""

SENDABLE = frozenset({Phase.QUEUED, Phase.SENDING})
"""Phases in which parts are added and started."""


class Sends:
    """The sends of one rank.

    Law: a part that waits is in no ledger, so its ids stay with their owner; its pages may move.
    """

    __slots__ = ("_board", "_chain", "_parts")

    def __init__(self, chain: ChainAllocator, board: Board) -> None:
        self._chain = chain
        self._board = board
        self._parts: dict[str, Parts] = {}

    def open(self, name: str, peer: str) -> None:
        """Announce a send whose parts come one by one.

        Args:
            name: unique among all transfers of the ranks, for good.
            peer: who reads.

        Raises:
            ArgumentError: if a name is no str.
            TransferError: for a name in use, a full board or a peer whose quarantine is full;
                nothing has changed then.
        """
        self._board.check_admission(name, peer)
        self._board.admit(name, peer, Direction.SEND, Phase.QUEUED)
        self._parts[name] = Parts([], 1)

    def add(self, name: str, ids: Sequence[Sequence[int]], written_through: int) -> None:
        """Queue a part; the ids stay bound until the round that starts it, or the send is aborted.

        Pages that a load fills are queued once it is submitted, and wait until it is over.

        Args:
            name: an open send.
            ids: virtual ids per band.
            written_through: the newest step that writes their pages; 0 if none does.

        Raises:
            ArgumentError: if the ids are not ints per band, or the step is no int.
            OwnershipError: if an id names no page; nothing has changed then.
            TransferError: if the send takes no parts, the part names nothing, or the step cannot
                be the last one to write it; nothing has changed then.

        Order: records an event on the schedule stream.
        """
        transfer = self._board.find(name)
        parts = self._open_parts(transfer, "add")
        self._check_part(name, ids, written_through)
        own = claim(self._chain.bands, ids)
        gate, under_load = set_gate(self._chain), self._is_filled(own.ids)
        parts.waiting.append(Part(own, written_through, gate, under_load))
        self._count(transfer)

    def close(self, name: str) -> None:
        """No part comes after those that were added.

        Raises:
            TransferError: if the send takes no parts already, or has none.
        """
        transfer = self._board.find(name)
        parts = self._open_parts(transfer, "close")
        if not parts.waiting and not transfer.uses:
            raise TransferError(
                f"close of send {name!r} with 0 parts; allowed: 1 or more: add one, or abort it"
            )
        parts.coming = 0
        self._count(transfer)

    def queue(
        self, name: str, peer: str, ids: Sequence[Sequence[int]], written_through: int
    ) -> None:
        """Queue a send of one part.  Args and Raises: as `open` and `add`; all or nothing."""
        self._board.check_admission(name, peer)
        self._check_part(name, ids, written_through)
        self.open(name, peer)
        self.add(name, ids, written_through)
        self.close(name)

    # What a round does with them -----------------------------------------------------------

    def prepare(self, transfer: Transfer) -> None:
        """Wait the gates of the parts that start in this round if nobody stops them.

        Order: blocks the host until the last move of their pages has run.

        Raises:
            OwnershipError: if an id of such a part was freed since, also if it names a page again;
                nothing has changed then.
        """
        for part in self._ready(transfer):
            self._check_held(transfer, part)
            # A load may be over because the schedule stream waited it, behind the part's own gate.
            wait_gate(self._chain, set_gate(self._chain) if part.under_load else part.gate)

    def advance(self, transfer: Transfer) -> list[str]:
        """Hand over every part that is ready; the names under which the ledger holds them."""
        started = []
        for part in self._ready(transfer):
            use = f"send {transfer.name} part {len(transfer.uses)}"
            self._chain.users.begin_send(use, part.ids)
            self._board.change(transfer, Change.START)
            transfer.uses.append(use)
            self._parts[transfer.name].waiting.remove(part)
            self._count(transfer)
            # Read only now: a part that waited may have moved since it was queued.
            self._hand_over(transfer, self._pages(part))
            started.append(use)
        return started

    def forget(self, transfer: Transfer) -> None:
        """The send is over."""
        del self._parts[transfer.name]

    def _hand_over(self, transfer: Transfer, pages: Pages) -> None:
        number = len(transfer.handed_over)
        transfer.handed_over.append(pages)
        if transfer.refusal:
            return
        engine = self._board.engine
        answer = tell(lambda: engine.send(transfer.name, transfer.peer, number, pages))
        if isinstance(answer, Refused):
            # The ledger holds the pages already, and only a proof ends that.
            transfer.refusal = answer.reason

    def _ready(self, transfer: Transfer) -> list[Part]:
        """The parts at the head of the queue that no step and no load writes any more."""
        ready: list[Part] = []
        if transfer.phase in SENDABLE:
            for part in self._parts[transfer.name].waiting:
                # Processed, not retired: a wait of the schedule stream orders no engine.
                if part.written_through > self._chain.steps.processed_through:
                    break
                if self._is_filled(part.ids):
                    break
                ready.append(part)
        return ready

    def _is_filled(self, ids: tuple[tuple[int, ...], ...]) -> bool:
        """Whether a load that is not over writes a page that one of the ids names."""
        fences = self._chain.ledger.fences
        if not fences:
            return False
        ranges: list[tuple[int, int]] = []
        for band, units in zip(self._chain.bands, ids, strict=True):
            pages = self._chain.translate(band.index, units)
            ranges += page_ranges(band.layout.page_bytes, pages)
        return any(use.use is Use.COPY_WRITE for use in fences.touching(tuple(ranges)))

    def _check_held(self, transfer: Transfer, part: Part) -> None:
        what = f"a part of send {transfer.name!r}"
        check_held(self._chain.bands, part.claim, what, "abort the send before its ids are freed")

    def _pages(self, part: Part) -> Pages:
        bands = zip(self._chain.bands, part.ids, strict=True)
        return tuple(tuple(band.ids.pages_of(ids)) for band, ids in bands)

    def _open_parts(self, transfer: Transfer, call: str) -> Parts:
        parts = self._parts.get(transfer.name, NO_PARTS)
        if transfer.phase not in SENDABLE or not parts.coming:
            raise TransferError(
                f"{call} of {transfer.name!r}, a {transfer.direction.value} that is"
                f" {transfer.phase.value} with {parts.coming} parts to come; allowed: a queued or"
                " sending send that was not closed: begin another send for other pages"
            )
        return parts

    def _check_part(self, name: str, ids: Sequence[Sequence[int]], written_through: int) -> None:
        check_ids_per_band("send", ids, len(self._chain.bands))
        check_number("send", "the last writing step", written_through)
        if not any(ids):
            raise TransferError(f"send {name!r}: a part of no pages; allowed: 1 or more ids")
        bands = zip(self._chain.bands, ids, strict=True)
        pages = [band.ids.pages_of(units) for band, units in bands]
        steps, ledger = self._chain.steps, self._chain.ledger
        newest = max(steps.launched, steps.newest, steps.processed_through)
        writer = max(ledger.newest_writer(band, held) for band, held in enumerate(pages))
        if not writer <= written_through <= newest:
            raise TransferError(
                f"send {name!r}: a part written through step {written_through}; allowed:"
                f" {writer}, the newest step known to write its pages, to {newest}, the newest"
                " launched: queue pages once the last step that writes them is launched"
            )

    def _count(self, transfer: Transfer) -> None:
        parts = self._parts[transfer.name]
        transfer.parts_left = len(parts.waiting) + parts.coming
