"""The request table: rows of virtual page ids that every kernel of a forward looks up.

The host keeps the rows; the device table is a replica written in stream order.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.device.port import Device, Stream
from unikv.errors import OwnershipError, Shortage


class RequestTable:
    """Request rows.

    Law: a row is free or held by one caller.  Rows are handed out last freed first.

    Attributes:
        rows: per row, the virtual page ids written to it, from entry 0.
    """

    __slots__ = ("_device", "_free", "_held", "_row_pages", "rows")

    def __init__(self, row_count: int, row_pages: int, device: Device) -> None:
        self._device = device
        self._row_pages = row_pages
        self._free = list(range(row_count - 1, -1, -1))
        self._held = bytearray(row_count)
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

    def take(self) -> int:
        """Hand out an empty row.

        Raises:
            Shortage: if every row is held.
        """
        if not self._free:
            raise Shortage("rows", "request table", 1, 0)
        row = self._free.pop()
        self._held[row] = 1
        self.rows[row] = []
        return row

    def append(self, row: int, ids: Sequence[int]) -> None:
        """Write `ids` behind what the row already names.

        Order: enqueues a write of the row's device replica on the schedule stream.

        Raises:
            OwnershipError: if nobody holds the row, or it would grow past its end.
        """
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
        """Return a row; it may be handed out again at once.

        Raises:
            OwnershipError: if nobody holds the row.
        """
        self._check_held(row, "free")
        self._held[row] = 0
        self._free.append(row)

    def _check_held(self, row: int, action: str) -> None:
        if not 0 <= row < len(self._held) or not self._held[row]:
            raise OwnershipError(
                f"request row {row}: {action}, but nobody holds it; rows are"
                f" 0..{len(self._held) - 1}"
            )
