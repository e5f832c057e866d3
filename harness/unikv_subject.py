"""The built-in subject: unikv's own storage behind the harness's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

from harness.subject import (
    Answer,
    Book,
    CopyRecord,
    HoldRecord,
    LoadAnswer,
    RoundAnswer,
    Use,
)
from unikv.alloc.fences import CopyUse
from unikv.alloc.page_usage import PageUse
from unikv.cache.host_copies import Load
from unikv.cache.host_tier import HostCopy, HostTier
from unikv.device.port import CopyDevice, Event, RowContent, RowMemoryDevice, StorageLayout, Stream
from unikv.disagg.board import Board
from unikv.disagg.quarantine import QuarantineLimits
from unikv.disagg.rounds import TransferRounds
from unikv.disagg.transfer_waiter import NetworkTransferWaiter
from unikv.errors import TransferError
from unikv.requests import RowMemory
from unikv.storage import KVStorage

_NO_BOOK = Book(b"", (0, 0), (0, 0, 0, 0))

TRANSFERS_MAX = 8
LIMITS = QuarantineLimits(transfers=2, pages=64)


def _keeps_row_memory(device: object) -> TypeGuard[RowMemoryDevice]:
    """Whether it has the calls that it is known by; cheaper than to compare every call of one."""
    return all(hasattr(device, call) for call in ("reset_rows", "save_row", "restore_row"))


class NotedWaiter(NetworkTransferWaiter):
    """Tells its rank's network which waits begin, and how they end."""

    __slots__ = ("_board_of", "_network")

    def __init__(self, board: Board, network: Any) -> None:
        super().__init__(board, network)
        self._board_of = board
        self._network = network

    def wait(self, names: Sequence[str]) -> None:
        uses: dict[str, tuple[str, int]] = {}
        for transfer in self._board_of.transfers():
            for number, use in enumerate(transfer.uses):
                uses.setdefault(use, (transfer.name, number))
        self._network.waits_for([uses[use] for use in names if use in uses])
        try:
            super().wait(names)
        except TransferError:
            self._network.waited_in_vain()
            raise
        self._network.waited_out()


class UnikvSubject:
    """A `KVStorage` on one rank's port."""

    families = frozenset({"windows", "state", "prefix", "layout", "host", "network", "rows"})
    shares_bytes = True
    quarantine_max = LIMITS.transfers
    quarantine_pages_max = LIMITS.pages
    transfers_max = TRANSFERS_MAX

    def __init__(self, layout: StorageLayout, device: CopyDevice) -> None:
        network = getattr(device, "network", None)
        self._transfers: TransferRounds | None = None
        if network is None:
            self.storage = KVStorage(layout, device)
        else:
            board = Board(network, network, TRANSFERS_MAX, LIMITS)
            waiter = NotedWaiter(board, network)
            self.storage = KVStorage(layout, device, waiter=waiter)
            self._transfers = TransferRounds(self.storage.chain, board)
        self._row_memory: RowMemory | None = None
        if _keeps_row_memory(device):
            self._row_memory = RowMemory(self.storage.requests, device)
        # The pages below the first one that a band can claim, which every book starts with.
        self._bands = [
            (band, bytes(band.axis.pages_of_span(0, len(band.states))[0]))
            for band in self.storage.chain.bands
        ]
        # What the last books were made of: those of a band that is in that state again are given
        # once more, since to compare memory is cheaper than to copy it.
        self._books: list[Book] = [_NO_BOOK for _ in self._bands]
        self._made_of: list[tuple[object, ...]] = [() for _ in self._bands]
        # What records were last made of, and those: most questions find nothing changed.
        self._uses: tuple[tuple[PageUse, ...], list[Use]] = ((), [])
        self._copies: tuple[tuple[CopyUse, ...], list[CopyRecord]] = ((), [])
        self._holds: tuple[object, list[HoldRecord]] = (None, [])

    def fits(self, pages: int, slots: int) -> bool:
        """Whether a take would succeed now."""
        return self.storage.chain.fits(pages, slots)

    def take(self, pages: int, slots: int) -> Answer:
        """Hand out virtual pages and state slots."""
        taken = self.storage.chain.take(pages, slots)
        return Answer(taken.ids, taken.slots)

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages everywhere."""
        self.storage.chain.free(ids)

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free the rows of one window band."""
        self.storage.chain.retire(band, ids)

    def free_slots(self, slots: Sequence[int]) -> None:
        """Free state slots."""
        self.storage.chain.free_slots(slots)

    def take_row(self) -> int:
        """Hand out an empty request row."""
        return self.storage.requests.take()

    def append_row(self, row: int, ids: Sequence[int]) -> None:
        """Write virtual pages behind what the row names."""
        self.storage.requests.append(row, ids)

    def free_row(self, row: int) -> None:
        """Return a request row."""
        self.storage.requests.give_back(row)

    @property
    def row_memory(self) -> RowMemory:
        """What its rows need when they change hands."""
        assert self._row_memory is not None, "the device keeps no memory of rows"
        return self._row_memory

    def reset_new_rows(self, stream: Stream) -> tuple[int, ...]:
        """Reset what was handed out."""
        return self.row_memory.reset_new_rows(stream)

    def save_row(self, row: int) -> RowContent:
        """Copy a row's memory away."""
        return self.row_memory.save(row)

    def restore_row(self, row: int, content: RowContent) -> None:
        """Write a row's memory whole."""
        self.row_memory.restore(row, content)

    def launch_step(self, number: int) -> None:
        """Open a forward step."""
        self.storage.chain.launch_step(number)

    def record_step(self, number: int, event: Event, writes: Sequence[Sequence[int]]) -> None:
        """Name the end of the open step."""
        self.storage.chain.record_step(number, event, writes)

    def record_step_of_unknown_writes(self, number: int, event: Event) -> None:
        """Name the end of the open step, which may write any page."""
        self.storage.chain.record_step_of_unknown_writes(number, event)

    def process_step(self, number: int) -> None:
        """The host has synchronized the step."""
        self.storage.chain.process_step(number)

    def prewarm(self) -> None:
        """Run the copy path once."""
        self.storage.chain.prewarm()

    def flush(self, limit: int) -> int:
        """Close holes of both ends."""
        return self.storage.chain.flush(limit)

    def relieve(self, pages: int, slots: int) -> bool:
        """Make room for a later take."""
        return self.storage.chain.relieve(pages, slots)

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        """Physical pages for the kernels of one step."""
        return self.storage.chain.translate(band, ids)

    @property
    def _host(self) -> HostTier:
        assert self.storage.host is not None, "the layout has no host memory"
        return self.storage.host

    def begin_backup(self, name: str, ids: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        """Take host slots."""
        return self._host.begin_backup(name, ids).slots

    def submit_backup(self, name: str) -> Event:
        """Enqueue a backup."""
        return self._host.submit_backup(name)

    def fits_load(self, counts: Sequence[int]) -> bool:
        """Whether a load would fit now."""
        return self.storage.chain.fits_load(counts)

    def begin_load(self, name: str, slots: Sequence[Sequence[int]]) -> LoadAnswer:
        """Take pages for a load."""
        taken = self._host.begin_load(name, HostCopy(tuple(map(tuple, slots))))
        load = self._host.copies[name]
        assert isinstance(load, Load)
        return LoadAnswer(taken.ids, taken.slots, dict(load.reserved))

    def name_rows(self, name: str) -> None:
        """Name the rows of a load."""
        self._host.name_rows(name)

    def submit_load(self, name: str) -> tuple[Event, ...]:
        """Enqueue a load."""
        return self._host.submit_load(name)

    def order_forward(self, stream: Stream, names: Sequence[str], layer_group: int) -> None:
        """Put the forward stream behind loads."""
        self._host.order_forward(stream, names, layer_group)

    def acknowledge(self, name: str) -> None:
        """A copy has ended on every rank."""
        self._host.acknowledge(name)

    def cancel_copy(self, name: str) -> None:
        """Give up a copy."""
        self._host.cancel(name)

    def drop_saved(self, slots: Sequence[Sequence[int]]) -> None:
        """Give back host slots."""
        self._host.drop(HostCopy(tuple(map(tuple, slots))))

    def copies(self) -> list[CopyRecord]:
        """Submitted copies that are not over."""
        uses = self.storage.chain.ledger.fences.uses()
        if uses != self._copies[0]:
            shown = [CopyRecord(use.use.value, tuple(sorted(set(use.ranges)))) for use in uses]
            self._copies = (uses, shown)
        return self._copies[1]

    def remembered_copies(self) -> list[str]:
        """Copies that the tier knows."""
        return list(self._host.copies)

    @property
    def _rounds(self) -> TransferRounds:
        assert self._transfers is not None, "the device has no network"
        return self._transfers

    def begin_receive(self, name: str, peer: str, pages: int, slots: int) -> Answer:
        """Take rows for a receive."""
        taken = self._rounds.receives.take(name, peer, pages, slots)
        return Answer(taken.ids, taken.slots)

    def begin_send(self, name: str, peer: str) -> None:
        """Announce a send."""
        self._rounds.sends.open(name, peer)

    def add_part(self, name: str, ids: Sequence[Sequence[int]], through: int) -> None:
        """Queue a part of a send."""
        self._rounds.sends.add(name, ids, through)

    def close_send(self, name: str) -> None:
        """No part comes any more."""
        self._rounds.sends.close(name)

    def abort_transfer(self, name: str) -> None:
        """Give a transfer up."""
        self._rounds.abort(name)

    def publish_receive(self, name: str) -> None:
        """Publish a held receive now."""
        self._rounds.receives.publish(name)

    def abort_for(self, name: str, requester: str) -> None:
        """A peer gave a transfer up."""
        self._rounds.abort_for(name, requester)

    def acknowledgements(self) -> list[tuple[str, str]]:
        """Answers that this rank owes to peers."""
        return [(name, requester) for name, requester in self._rounds.acknowledgements()]

    def forget_abort(self, name: str) -> None:
        """No transfer of this name begins any more."""
        self._rounds.forget(name)

    def transfer_round(self) -> RoundAnswer:
        """Agree with the other ranks."""
        report = self._rounds.round()
        ended = tuple((end.name, end.outcome.value) for end in report.ended)
        return RoundAnswer(ended, report.isolated)

    def holds(self) -> list[HoldRecord]:
        """Holds and transfers that are not over."""
        held = self.storage.chain.ledger.held
        made_of = (held.holds(), frozenset(held.isolated))
        if made_of != self._holds[0]:
            shown = [
                HoldRecord(hold.use.value, hold.band, hold.pages, hold.name in held.isolated)
                for hold in made_of[0]
                if hold.pages
            ]
            self._holds = (made_of, shown)
        return self._holds[1]

    def quarantined(self) -> list[str]:
        """Transfers that wait for proof."""
        return [entry.name for entry in self._rounds.board.quarantine.report()]

    def remembered_transfers(self) -> list[str]:
        """Names on the board, in the queues, in quarantine and among the aborts."""
        rounds = self._rounds
        aborts = rounds.board.aborts
        names = {transfer.name for transfer in rounds.board.transfers()}
        names.update(rounds.sends._parts, rounds.receives._held, self.quarantined())
        return sorted(names.union(aborts._stopped, aborts._waiting))

    def books(self) -> list[Book]:
        """Its account of every band's pages."""
        books, made_of = self._books, self._made_of
        for index, (band, below) in enumerate(self._bands):
            counts = (band.live, band.holes, band.pending, band.fixed)
            now = (counts, band.low, band.high, band.axis, below, band.states)
            if now != made_of[index]:
                made_of[index] = (*now[:-1], bytes(band.states))
                states = below + band.states[:: band.axis.step]
                books[index] = Book(states, band.span(), counts)
        return books.copy()

    def page_map(self, band: int) -> list[int]:
        """Page of every id."""
        return self.storage.chain.bands[band].ids.forward

    def inverse_map(self, band: int) -> list[int]:
        """Id of every page."""
        return self.storage.chain.bands[band].ids.inverse

    def row(self, row: int) -> list[int]:
        """What a request row names."""
        return self.storage.requests.rows[row]

    def free_rows(self) -> int:
        """Request rows that can be taken now."""
        return self.storage.requests.free_count

    def uses(self) -> list[Use]:
        """Every use that is not over."""
        uses = self.storage.chain.ledger.uses()
        if uses != self._uses[0]:
            shown = [Use(use.use.value, use.band, use.pages, use.step) for use in uses]
            self._uses = (uses, shown)
        return self._uses[1]

    def pool_pages(self) -> list[int]:
        """Pages between the walls: every band may use any free byte."""
        return [len(band.states) for band in self.storage.chain.bands]

    def statistics(self) -> dict[str, int]:
        """Running totals."""
        counters = self.storage.chain.counters
        return {
            "moves": counters.moved_pages,
            "settles": counters.settles,
            "reliefs": counters.reliefs,
            "relocations": counters.relocations,
            "retreats": counters.retreats,
        }
