"""Uses of bytes by copies between device and host, and who has to wait for them.

A use is a range of bytes and an event.  The band is not part of it, so a use survives its bytes
leaving the band, and whoever writes them next, with whatever page size, finds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unikv.alloc.band import Band
from unikv.alloc.clearance import Clearance, ClearanceTable, InFlight, Toucher
from unikv.alloc.use import Use
from unikv.device.port import Device, Event, Stream
from unikv.errors import OwnershipError, listed

Ranges = tuple[tuple[int, int], ...]
"""Byte ranges `[low, high)`."""

IN_FLIGHT: Mapping[Use, InFlight] = {
    Use.COPY_READ: InFlight.BACKUP,
    Use.COPY_WRITE: InFlight.LOAD,
}


@dataclass(frozen=True, slots=True)
class CopyUse:
    """One copy that is not over.

    Attributes:
        number: its name, from 1.
        use: `COPY_READ` for a backup, `COPY_WRITE` for a load.
        ranges: the bytes of the arena that it touches.
        event: after its last kernel.
    """

    number: int
    use: Use
    ranges: Ranges
    event: Event


def page_ranges(page_bytes: int, pages: Sequence[int]) -> Ranges:
    """The bytes of whole pages."""
    return tuple((page * page_bytes, (page + 1) * page_bytes) for page in pages)


class Fences:
    """Every copy use that is not over, oldest first.

    Law: a use is over when the schedule stream waited its event or the host acknowledged it; a wait
    of another stream ends nothing.
    """

    __slots__ = ("_count", "_uses")

    def __init__(self) -> None:
        self._uses: list[CopyUse] = []
        self._count = 0

    def __bool__(self) -> bool:
        return bool(self._uses)

    def uses(self) -> tuple[CopyUse, ...]:
        """The copies that are not over."""
        return tuple(self._uses)

    @property
    def newest(self) -> int:
        """Number of the newest copy; 0 before the first."""
        return self._count

    def add(self, use: Use, ranges: Ranges, event: Event) -> int:
        """Record a submitted copy; its number."""
        assert use in IN_FLIGHT
        self._count += 1
        self._uses.append(CopyUse(self._count, use, ranges, event))
        return self._count

    def end(self, number: int) -> None:
        """The copy is over; one that is over already stays so."""
        self._uses = [use for use in self._uses if use.number != number]

    def touching(self, ranges: Ranges) -> list[CopyUse]:
        """The copies that touch any of the bytes, oldest first."""
        return [use for use in self._uses if _overlap(use.ranges, ranges)]


def wait_copies(
    device: Device, clearance: ClearanceTable, fences: Fences, toucher: Toucher, ranges: Ranges
) -> None:
    """Let the schedule stream wait the copies that `toucher` must be behind.

    Order: enqueues waits on the schedule stream.  Does not block the host.
    """
    if not fences:
        return
    for use in fences.touching(ranges):
        if clearance[toucher, IN_FLIGHT[use.use]] is Clearance.WAIT_COPY:
            device.wait_event(Stream.SCHEDULE, use.event)
            fences.end(use.number)


def check_written(
    clearance: ClearanceTable, fences: Fences, band: Band, pages: Sequence[int], step: int
) -> None:
    """Refuse a forward that writes pages under a copy that nobody makes it wait for.

    What a backup keeps is final: whole pages, and states that nobody runs on.  A page that is
    handed out anew has waited for the copy, so this can only be a page that its owner was not to
    write any more.

    Raises:
        OwnershipError: naming band, pages and the rule.
    """
    for use in fences.touching(page_ranges(band.layout.page_bytes, pages)):
        if clearance[Toucher.FORWARD, IN_FLIGHT[use.use]] is Clearance.AT_HAND_OUT:
            under = [
                page
                for page in pages
                if _overlap(use.ranges, page_ranges(band.layout.page_bytes, [page]))
            ]
            raise OwnershipError(
                f"record_step: step {step} writes pages {listed(under)} of band"
                f" {band.layout.name!r}, which a backup still reads and no forward waits for; back"
                " up what is final, or launch behind the acknowledgement; this step is still open,"
                " and record_step_of_unknown_writes records it as it is"
            )


def _overlap(left: Ranges, right: Ranges) -> bool:
    return any(a < d and c < b for a, b in left for c, d in right)
