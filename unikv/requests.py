"""Request rows: the virtual page ids that a forward looks up, and the row's own device memory.

A row changes hands on the host at once, while the last forward of its previous holder may still
run.  Its entries and its memory are made safe in different ways: entries by the write-after-read
barrier, memory by a reset or a restore that runs behind that forward.

The host keeps the entries; the device table is a replica written in stream order.  What the memory
of a row is good for is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from unikv.alloc.clearance import CLEARANCE, Clearance, ClearanceTable, InFlight, Toucher
from unikv.arguments import check_number, check_slots
from unikv.device.port import Device, RowContent, RowMemoryDevice, Stream
from unikv.errors import OwnershipError, Shortage


class RowState(Enum):
    """Whose the device memory of a row is.

    FREE --take--> MARKED --reset or restore--> CLEAN
      ^------------give_back----+-------------------+
    """

    FREE = "free"  # nobody's
    MARKED = "marked"  # held, but what it contains is still the previous holder's
    CLEAN = "clean"  # the holder's, for every kernel enqueued from here on


class RowResets:
    """Rows that were handed out and not reset since.

    Law: a marked row is held.
    """

    __slots__ = ("_marked",)

    def __init__(self) -> None:
        self._marked: set[int] = set()

    def marked(self) -> tuple[int, ...]:
        """The marked rows, ascending."""
        return tuple(sorted(self._marked))

    def is_marked(self, row: int) -> bool:
        """Whether the row waits for a reset."""
        return row in self._marked

    def mark(self, row: int) -> None:
        """The row is handed out."""
        self._marked.add(row)

    def unmark(self, row: int) -> None:
        """The row is written whole, or nobody's any more; it need not be marked."""
        self._marked.discard(row)

    def take_marked(self) -> tuple[int, ...]:
        """The marked rows, ascending, marked no more, since a launch resets them."""
        rows = self.marked()
        self._marked.clear()
        return rows


class RequestTable:
    """Request rows.

    A row may be handed out again at once: under a forward that still runs over it, such as the last
    chunk of an aborted prompt.

    - Its entries are looked up in that forward's metadata phase alone.  The engine applies the
      write-after-read barrier between the launch and the next table write, so the entries of the
      new holder follow the last look-up of the old one.  What runs later in a forward, on whichever
      stream, uses ids that its metadata phase resolved, and never the row.
    - Its memory is used by the forward to the end.  So nothing is written at hand-out: the row is
      marked, and the next forward resets it behind that one, on the same stream (see `RowMemory`).

    Entries beyond those that the holder wrote are stale: they name pages of some earlier holder,
    which may be anybody's by now.  Nobody may read them, so a look-up is bounded by the length of
    the request and never by the length of a row.

    A row never gets shorter.  Who resumes a sequence with a shorter prefix gives the row back and
    takes one, mostly the same: its memory describes tokens that are gone and has to be reset or
    restored anyway, and behind entries kept beyond the prefix the new ones would be out of place.

    Law: a row is free or held by one caller.  Rows are handed out last freed first.

    Attributes:
        rows: per row, the virtual page ids written to it, from entry 0.
        resets: the rows whose memory no holder has had reset yet.
    """

    __slots__ = ("_device", "_free", "_held", "_id_end", "_row_pages", "resets", "rows")

    def __init__(self, row_count: int, row_pages: int, id_count: int, device: Device) -> None:
        """A table on `device`, every row free; the ids to be written are `[1, id_count]`."""
        self._device = device
        self._row_pages = row_pages
        self._id_end = id_count + 1
        self._free = list(range(row_count - 1, -1, -1))
        self._held = bytearray(row_count)
        self.resets = RowResets()
        self.rows: list[list[int]] = [[] for _ in range(row_count)]

    @property
    def free_count(self) -> int:
        """Rows that can be taken now."""
        return len(self._free)

    @property
    def row_pages(self) -> int:
        """Virtual pages that one row can name."""
        return self._row_pages

    def free_rows(self) -> tuple[int, ...]:
        """The rows that can be taken, the next one last."""
        return tuple(self._free)

    def held_rows(self) -> tuple[int, ...]:
        """The rows that somebody holds, ascending."""
        return tuple(row for row, held in enumerate(self._held) if held)

    def state_of(self, row: int) -> RowState:
        """Whose the memory of a row is.

        Raises:
            OwnershipError: if there is no such row.
            ArgumentError: if the row is no int.
        """
        check_number("state_of", "row", row)
        if not 0 <= row < len(self._held):
            raise OwnershipError(
                f"request row {row}: there is none; rows are 0..{len(self._held) - 1}"
            )
        if not self._held[row]:
            return RowState.FREE
        return RowState.MARKED if self.resets.is_marked(row) else RowState.CLEAN

    def take(self) -> int:
        """Hand out an empty row, marked for a reset of its memory.

        Raises:
            Shortage: if every row is held.
        """
        if not self._free:
            raise Shortage("rows", "request table", 1, 0)
        row = self._free.pop()
        self._held[row] = 1
        self.resets.mark(row)
        self.rows[row] = []
        return row

    def append(self, row: int, ids: Sequence[int]) -> None:
        """Write `ids` behind what the row already names.

        Whether an id is bound is not asked; that it exists is, since a kernel looks up the page map
        with it.  0 is padding, and its page the sink.

        Order: enqueues a write of the row's device replica on the schedule stream.

        Raises:
            OwnershipError: if nobody holds the row, or it would grow past its end.
            ArgumentError: if the row or an id is no int, or an id is outside the id space.
        """
        check_slots("append", ids, self._id_end)
        self._check_held(row, "append")
        entries = self.rows[row]
        if len(entries) + len(ids) > self._row_pages:
            raise OwnershipError(
                f"request row {row}: {len(entries)} + {len(ids)} pages, a row names at most"
                f" {self._row_pages}"
            )
        if ids:
            self._device.write_row(Stream.SCHEDULE, row, len(entries), ids)
            entries.extend(ids)

    def give_back(self, row: int) -> None:
        """Return a row, marked or not; it may be handed out again at once.

        Raises:
            OwnershipError: if nobody holds the row.
            ArgumentError: if the row is no int.
        """
        self._check_held(row, "free")
        self._held[row] = 0
        self.resets.unmark(row)
        self._free.append(row)

    def _check_held(self, row: int, action: str) -> None:
        check_number(action, "the row", row)
        if not 0 <= row < len(self._held) or not self._held[row]:
            raise OwnershipError(
                f"request row {row}: {action}, but nobody holds it; rows are"
                f" 0..{len(self._held) - 1}"
            )


class RowMemory:
    """What the memory of rows needs when they change hands.

    Law: no kernel of a forward reads the memory of a row before a reset or a restore that was
    enqueued for its holder and runs behind every forward of the holders before.
    """

    __slots__ = ("_clearance", "_device", "_table")

    def __init__(
        self,
        table: RequestTable,
        device: RowMemoryDevice,
        clearance: ClearanceTable = CLEARANCE,
    ) -> None:
        """The memory of the rows of `table`, which lives on `device`."""
        self._table = table
        self._device = device
        self._clearance = clearance

    def reset_new_rows(self, stream: Stream) -> tuple[int, ...]:
        """Reset every marked row, of this batch or not; the rows, which are clean from here on.

        Where the device fails in that they stay marked, and the next launch resets them.

        Every launch calls it, after `stream` waits the schedule stream and before its first kernel.
        The wait puts it behind restores for earlier holders.  It runs outside any captured graph,
        which would reset the rows of its capture at every replay.  Forwards of earlier holders are
        on the same stream, and what they do on side streams has joined it before their end is
        recorded.

        Args:
            stream: the stream that forwards run on.
        """
        resets = self._table.resets
        rows = resets.marked()
        if rows:
            self._device.reset_rows(stream, rows)
            # Not before: a row whose reset failed still has the memory of its previous holder.
            resets.take_marked()
        return rows

    def save(self, row: int) -> RowContent:
        """A copy of the row's memory as the newest forward leaves it, for a later `restore`.

        Order: the schedule stream waits all of the forward stream, then copies.  The row may be
        given back at once: whoever resets or restores it next runs behind the copy.

        Raises:
            OwnershipError: if nobody holds the row, or it is marked, since its memory is then the
                previous holder's.
            ArgumentError: if the row is no int.
        """
        self._check(row, "save", (RowState.CLEAN,))
        self._wait_forwards()
        return self._device.save_row(Stream.SCHEDULE, row)

    def restore(self, row: int, content: RowContent) -> None:
        """Write the row's memory whole, in place of a reset, before the holder's first forward.

        A row that a launch has reset in between may be restored as well.

        Order: the schedule stream waits all of the forward stream, then writes.

        Raises:
            OwnershipError: if nobody holds the row.
            ArgumentError: if the row is no int.
        """
        self._check(row, "restore", (RowState.MARKED, RowState.CLEAN))
        self._wait_forwards()
        self._device.restore_row(Stream.SCHEDULE, row, content)
        self._table.resets.unmark(row)

    def _wait_forwards(self) -> None:
        # A shared-read end is too early: row memory is in use until the forward's last kernel.
        rule = self._clearance[Toucher.ROW_RESTORE, InFlight.FORWARD]
        if rule is Clearance.WAIT_FORWARD:
            event = self._device.record_event(Stream.FORWARD)
            self._device.wait_event(Stream.SCHEDULE, event)

    def _check(self, row: int, action: str, allowed: tuple[RowState, ...]) -> None:
        state = self._table.state_of(row)
        if state not in allowed:
            names = " or ".join(one.value for one in allowed)
            raise OwnershipError(
                f"request row {row}: {action} of its memory while it is {state.value}; allowed:"
                f" {names}; take the row first, and save it only after a launch or a restore"
            )
