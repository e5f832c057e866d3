"""Faults of the request table: rows unsent, shared, leaked, or staged in memory that is reused."""

from __future__ import annotations

from collections.abc import Sequence

from harness.device.rank_port import RankPort
from harness.faults.fault import Fault
from harness.faults.parts import become, in_rows
from harness.leader_port import LeaderPort
from harness.world import World
from unikv.device.port import Stream
from unikv.requests import RequestTable


class _RowUnsent(RequestTable):
    __slots__ = ()

    def append(self, row: int, ids: Sequence[int]) -> None:
        self._check_held(row, "append")
        self.rows[row].extend(ids)


class _RowFromItsStart(RequestTable):
    __slots__ = ()

    def append(self, row: int, ids: Sequence[int]) -> None:
        self._check_held(row, "append")
        self._device.write_row(Stream.SCHEDULE, row, 0, ids)
        self.rows[row].extend(ids)


class _RowBackwards(RequestTable):
    __slots__ = ()

    def append(self, row: int, ids: Sequence[int]) -> None:
        super().append(row, ids[::-1])


class _RowLeaks(RequestTable):
    __slots__ = ()

    def give_back(self, row: int) -> None:
        self._check_held(row, "free")
        self._held[row] = 0


class _RowBlocksTheHost(RequestTable):
    __slots__ = ()

    def give_back(self, row: int) -> None:
        self._device.host_wait(self._device.record_event(Stream.FORWARD))
        super().give_back(row)


class _RowStaysFree(RequestTable):
    __slots__ = ()

    def take(self) -> int:
        row = super().take()
        if len(self._free) > 1:
            self._free.append(row)
        return row


class _StagedPort(RankPort):
    staging: list[int]

    def write_row(self, stream: Stream, row: int, first: int, ids: Sequence[int]) -> None:
        # The upload reads the buffer when it runs, and the next one has filled it by then.
        self.staging[:] = ids
        super().write_row(stream, row, first, self.staging)


class _StagedLeader(_StagedPort, LeaderPort):
    pass


def _stage_rows(world: World) -> None:
    for port in world.ports:
        become(port, _StagedLeader if isinstance(port, LeaderPort) else _StagedPort)
        assert isinstance(port, _StagedPort)
        port.staging = []


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="row-write-lost",
        planted="a request row is extended on the host and never on the device",
        plant=in_rows(_RowUnsent),
        checks=("mapping",),
    ),
    Fault(
        id="row-written-from-its-start",
        planted="what is appended to a row overwrites its beginning on the device",
        plant=in_rows(_RowFromItsStart),
        checks=("mapping",),
    ),
    Fault(
        id="row-written-backwards",
        planted="pages are appended to a row in reverse, on the host, on the device and in the"
        " report alike",
        plant=in_rows(_RowBackwards),
        checks=("mapping",),
        together="mapping",
    ),
    Fault(
        id="row-leaked",
        planted="a row that is given back is never free again",
        plant=in_rows(_RowLeaks),
        checks=("idle",),
        rows=("B79",),
    ),
    Fault(
        id="row-returned-blocks-the-host",
        planted="a row that is given back lets the host wait until the forward stream has run",
        plant=in_rows(_RowBlocksTheHost),
        checks=("host_reads",),
    ),
    Fault(
        id="row-shared-by-two",
        planted="a row that is held stays in the free list",
        plant=in_rows(_RowStaysFree),
        checks=("mapping", "ownership", "idle"),
        rows=("B23",),
    ),
    Fault(
        id="row-staging-reused",
        planted="every row upload is staged in the same buffer, refilled before the upload ran",
        plant=_stage_rows,
        checks=("content",),
        rows=("B29", "B31"),
    ),
)
