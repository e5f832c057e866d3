"""The protocol an allocator satisfies to be tested.

One subject serves one rank.  It is built on a `StorageLayout` and a device port, answers the calls
below and shows its bookkeeping in one flat form, so that a check compares memory, not objects.

The contract that the checks hold it to:

- A free is logical: it unbinds on the host and in the device map at once, and waits for nothing.
- Freed pages are *pending* under the newest step that is recorded and not processed, and holes at
  once when there is none.  They return when that step is processed, or earlier once the schedule
  stream has waited the step's event through the port; under any other step no page is a hole.
- A step's writes are in the ledger from `record_step` until the step is processed or the schedule
  stream has waited its event.
- Zeroed bands zero a page each time it is handed out, behind every earlier use of its bytes.
- Page 0 and id 0 stand for the sink: pages lie between `ceil(sink_bytes / page_bytes)` and
  `total_bytes // page_bytes`, and a page map or inverse map holds 0 for "nothing".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from unikv.device.port import Event, RowContent, Stream


class Answer(NamedTuple):
    """What a take handed out."""

    ids: list[int]
    slots: list[int]


class LoadAnswer(NamedTuple):
    """What a take for a load handed out.

    Attributes:
        ids, slots: as of a take.
        reserved: per window band, physical pages that no id names yet.
    """

    ids: list[int]
    slots: list[int]
    reserved: dict[int, list[int]]


class Use(NamedTuple):
    """One entry of a subject's ledger.

    Attributes:
        kind: `forward_write`, `unknown_write` or `vacated`.
        band: index of the band.
        pages: physical pages; none of an `unknown_write`, which may be of any.
        step: the forward step it waits for.
    """

    kind: str
    band: int
    pages: frozenset[int]
    step: int


class Book(NamedTuple):
    """A subject's account of one band.

    Attributes:
        states: state of every page, by page, `total_bytes // page_bytes` of them: 0 unclaimed,
            1 live, 2 hole, 3 pending, 4 fixed.
        span: claimed pages `[low, high)`; `(0, 0)` when there are none.
        counts: live, hole, pending and fixed pages, as it counts them.
    """

    states: bytes
    span: tuple[int, int]
    counts: tuple[int, int, int, int]


class CopyRecord(NamedTuple):
    """A subject's account of one submitted copy that is not over.

    Attributes:
        kind: `copy_read` for a backup, `copy_write` for a load.
        ranges: the bytes `[low, high)` of the arena that it touches, ascending.
    """

    kind: str
    ranges: tuple[tuple[int, int], ...]


class HoldRecord(NamedTuple):
    """A subject's account of pages of one band that peers may touch, or that wait for one.

    Attributes:
        kind: `receive_hold`, `network_send` or `network_receive`.
        band: index of the band.
        pages: physical pages.
        isolated: whether it was given up, so that no take waits for it.
    """

    kind: str
    band: int
    pages: frozenset[int]
    isolated: bool


class RoundAnswer(NamedTuple):
    """What one round of all ranks changed.

    Attributes:
        ended: transfers that are over, each with `sent`, `received`, `failed` or `aborted`.
        isolated: transfers that were given up and whose pages stay until the engine is quiet.
    """

    ended: tuple[tuple[str, str], ...]
    isolated: tuple[str, ...]


class NetworkSubject(Protocol):
    """What a subject of the family `network` offers beside `Subject`.

    It is built on a device whose `network` is this rank's transfer engine and link to the others.
    `TransferError` is a legal answer of `take`, of whatever else makes room, and of beginning one.

    Attributes:
        quarantine_max, quarantine_pages_max: transfers of one peer in quarantine, and pages, with
            which it gets no new one.
        transfers_max: how many transfers may be not over at a time.
    """

    quarantine_max: int
    quarantine_pages_max: int
    transfers_max: int

    def begin_receive(self, name: str, peer: str, pages: int, slots: int) -> Answer:
        """Take rows for a receive and hold them; a later round publishes their ids."""
        ...

    def begin_send(self, name: str, peer: str) -> None:
        """Announce a send whose parts come one by one."""
        ...

    def add_part(self, name: str, ids: Sequence[Sequence[int]], through: int) -> None:
        """Queue pages that are final once step `through` is processed."""
        ...

    def close_send(self, name: str) -> None:
        """No part comes any more."""
        ...

    def abort_transfer(self, name: str) -> None:
        """Give a transfer up, before its ids are freed."""
        ...

    def publish_receive(self, name: str) -> None:
        """Publish a held receive now, unless some rank was asked to stop it."""
        ...

    def abort_for(self, name: str, requester: str) -> None:
        """A peer gave a transfer up, known or not, and told this rank."""
        ...

    def acknowledgements(self) -> list[tuple[str, str]]:
        """Answers that this rank owes, each once: a transfer that is quiet, and who asked."""
        ...

    def forget_abort(self, name: str) -> None:
        """No transfer of this name begins any more."""
        ...

    def transfer_round(self) -> RoundAnswer:
        """Agree with the other ranks and carry it out."""
        ...

    def holds(self) -> list[HoldRecord]:
        """Every hold and transfer that is not over, by band."""
        ...

    def quarantined(self) -> list[str]:
        """Transfers that wait for proof."""
        ...

    def remembered_transfers(self) -> list[str]:
        """Every name of which it keeps anything: rows, parts, a place, a proof, an abort."""
        ...


class RowSubject(Protocol):
    """What a subject of the family `rows` offers beside `Subject`.

    A row that is handed out contains what its last holder left.  Nothing is written then: whoever
    launches next resets it, or it is written whole.
    """

    def reset_new_rows(self, stream: Stream) -> tuple[int, ...]:
        """Reset every row that was handed out and not written since, on a forward's stream."""
        ...

    def save_row(self, row: int) -> RowContent:
        """A copy of a row's memory, behind every forward launched so far."""
        ...

    def restore_row(self, row: int, content: RowContent) -> None:
        """Write a row whole, behind every forward launched so far; it is not reset any more."""
        ...


class HostSubject(Protocol):
    """What a subject of the family `host` offers beside `Subject`.

    Copies have names that the engine gives; each is over when it is acknowledged or cancelled.
    """

    def begin_backup(self, name: str, ids: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        """Take host slots for the pages of `ids`, per band; the slots, per band."""
        ...

    def submit_backup(self, name: str) -> Event:
        """Enqueue the copy of a backup; the event after it."""
        ...

    def fits_load(self, counts: Sequence[int]) -> bool:
        """Whether `begin_load` of so many pages per band would succeed now."""
        ...

    def begin_load(self, name: str, slots: Sequence[Sequence[int]]) -> LoadAnswer:
        """Take pages for what the host slots hold; window rows stay where they are, unnamed."""
        ...

    def name_rows(self, name: str) -> None:
        """Bind the window rows to the last of the load's ids."""
        ...

    def submit_load(self, name: str) -> tuple[Event, ...]:
        """Enqueue the copy of a load, naming rows first; the event after each layer group."""
        ...

    def order_forward(self, stream: Stream, names: Sequence[str], layer_group: int) -> None:
        """Put later work of a forward's stream behind one layer group of the loads."""
        ...

    def acknowledge(self, name: str) -> None:
        """A submitted copy has ended on every rank."""
        ...

    def cancel_copy(self, name: str) -> None:
        """Give up a copy that is not submitted; ids of a load are freed."""
        ...

    def drop_saved(self, slots: Sequence[Sequence[int]]) -> None:
        """Give back host slots of an acknowledged backup that no load reads."""
        ...

    def copies(self) -> list[CopyRecord]:
        """Every submitted copy that is not over."""
        ...

    def remembered_copies(self) -> list[str]:
        """Every copy, submitted or not, of which it keeps anything."""
        ...


class Subject(Protocol):
    """An allocator under test.

    Shortage is a legal answer, raised as `unikv.errors.Shortage` before anything changed.  Any
    other error of the library, and every built-in error that a mistake raises, is a violation.

    Attributes:
        families: operation families it supports beyond requests and steps, and the generator
            keeps to them: `windows`, `state`, `prefix`, `layout` if it can move pages; `host`,
            `network` and `rows` if it satisfies `HostSubject`, `NetworkSubject`, `RowSubject` too.
        shares_bytes: whether any band may use any free byte, which tells the judge of a refusal
            which layouts exist.
    """

    families: frozenset[str]
    shares_bytes: bool

    def fits(self, pages: int, slots: int) -> bool:
        """Whether `take(pages, slots)` would succeed now."""
        ...

    def take(self, pages: int, slots: int) -> Answer:
        """Hand out virtual pages, bound in every token band, and state slots."""
        ...

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages everywhere."""
        ...

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free the rows of one window band."""
        ...

    def free_slots(self, slots: Sequence[int]) -> None:
        """Free state slots."""
        ...

    def take_row(self) -> int:
        """Hand out an empty request row."""
        ...

    def append_row(self, row: int, ids: Sequence[int]) -> None:
        """Write virtual pages behind what the row names."""
        ...

    def free_row(self, row: int) -> None:
        """Return a request row."""
        ...

    def launch_step(self, number: int) -> None:
        """A forward step is launched and not yet recorded."""
        ...

    def record_step(self, number: int, event: Event, writes: Sequence[Sequence[int]]) -> None:
        """The step's end has an event; `writes` are, per band, the ids whose pages it writes."""
        ...

    def record_step_of_unknown_writes(self, number: int, event: Event) -> None:
        """The step's end has an event, and it may write any page."""
        ...

    def process_step(self, number: int) -> None:
        """The host has synchronized a completion that covers the step."""
        ...

    def prewarm(self) -> None:
        """Run the kernels of a move once for every band; only asked before the first take."""
        ...

    def flush(self, limit: int) -> int:
        """Close holes with at most `limit` moves; how many pages moved."""
        ...

    def relieve(self, pages: int, slots: int) -> bool:
        """Make room for a later take; whether a layout holds it."""
        ...

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        """Physical pages for the kernels of one step; 0 where unbound."""
        ...

    def books(self) -> list[Book]:
        """Its own account of every band's pages."""
        ...

    def page_map(self, band: int) -> list[int]:
        """Page of every id, 0 where unbound.  Entry 0 is the sink."""
        ...

    def inverse_map(self, band: int) -> list[int]:
        """Id of every page, 0 where unbound; entries beyond the last page are not looked at."""
        ...

    def row(self, row: int) -> list[int]:
        """What the host believes a request row names."""
        ...

    def free_rows(self) -> int:
        """Request rows that can be taken now."""
        ...

    def uses(self) -> list[Use]:
        """Every use of a page that is not over."""
        ...

    def pool_pages(self) -> list[int]:
        """Per band, the most pages it can ever hold; asked only where bytes are not shared."""
        ...

    def statistics(self) -> dict[str, int]:
        """Running totals: moves, settles, reliefs, relocations and what else it counts."""
        ...
