"""The calls of those who use pages without a forward step: host tier and network transfers.

Each call records or ends one kind of use in the ledger, at the moment at which the hazard begins or
is over.  What the uses mean for the next toucher is in the clearance table.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.alloc.band import Band
from unikv.alloc.fences import Ranges, page_ranges
from unikv.alloc.parts import ChainParts
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.use import Use
from unikv.arguments import (
    check_band,
    check_ids,
    check_ids_per_band,
    check_names,
    check_number,
)
from unikv.device.port import Event, Stream
from unikv.errors import ArgumentError, OwnershipError, TransferError, listed


class AsyncUsers:
    """Copies, holds and transfers of one chain.

    Invariant: pages of a reservation are fixed until ids name them or it is cancelled; there is no
    moment between a receive hold and its receive at which nothing holds the pages.

    Every call raises `StepOrderError` between launch and record of a step, and an `OwnershipError`
    for an id that names no page, and an `ArgumentError` for a band, id, page, number or name that
    is none; nothing has changed then.
    """

    __slots__ = ("_bands", "_device", "_ledger", "_reclaim", "_steps")

    def __init__(self, parts: ChainParts, reclaim: Reclaim) -> None:
        self._bands = parts.bands
        self._device = parts.device
        self._steps = parts.steps
        self._ledger = parts.ledger
        self._reclaim = reclaim

    def name_reserved(self, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
        """Let owner ids name pages of a reservation, which ends it: the pages may move again.

        Order: enqueues a map write on the schedule stream.

        Raises:
            OwnershipError: if an id is bound already or names no page of the owner, a page is not
                reserved, or the band has ids of its own, which only a take hands out.
        """
        check_band("name_reserved", band, len(self._bands))
        check_ids("name_reserved", ids)
        check_ids("name_reserved", pages)
        self._steps.check_between_steps("name_reserved")
        part = self._bands[band]
        _check_nameable(part, ids, pages)
        _check_reserved(part, pages)
        self._bands[-1].ids.pages_of(ids)
        part.ids.bind(ids, pages)
        part.name_fixed(pages)
        self._device.write_map(Stream.SCHEDULE, band, ids, pages)

    def cancel_reservation(self, band: int, pages: Sequence[int]) -> None:
        """Give reserved pages back before their load was submitted.

        Raises:
            OwnershipError: if a page is not reserved.
        """
        check_band("cancel_reservation", band, len(self._bands))
        check_ids("cancel_reservation", pages)
        self._steps.check_between_steps("cancel_reservation")
        part = self._bands[band]
        _check_reserved(part, pages)
        part.release_fixed(pages)
        self._reclaim.retreat(part)

    def begin_backup(self, ids: Sequence[Sequence[int]], event: Event) -> int:
        """A copy to the host was submitted that reads the pages of `ids`, per band; its number.

        Order: the copy stream has waited the forward and the schedule stream; `event` is after it.
        """
        check_ids_per_band("begin_backup", ids, len(self._bands))
        self._steps.check_between_steps("begin_backup")
        return self._ledger.fences.add(Use.COPY_READ, self._ranges(ids), event)

    def begin_load(self, ids: Sequence[Sequence[int]], event: Event) -> int:
        """A copy from the host was submitted that writes the pages of `ids`, per band; its number.

        Order: the copy stream has waited the schedule stream; `event` is after the copy.
        """
        check_ids_per_band("begin_load", ids, len(self._bands))
        self._steps.check_between_steps("begin_load")
        return self._ledger.fences.add(Use.COPY_WRITE, self._ranges(ids), event)

    def end_copy(self, number: int) -> None:
        """The copy is acknowledged on every rank; one that is over already stays so.

        Raises:
            ArgumentError: if no copy of this number was submitted.
        """
        check_number("end_copy", "the copy", number)
        self._steps.check_between_steps("end_copy")
        fences = self._ledger.fences
        if not 1 <= number <= fences.newest:
            raise ArgumentError(
                f"end_copy: copy {number} was not submitted; allowed: 1..{fences.newest}, as"
                " begin_backup and begin_load answer them"
            )
        fences.end(number)

    def hold_receive(self, name: str, ids: Sequence[Sequence[int]]) -> None:
        """Keep the pages of `ids`, per band, where they are until they are published.

        A hold of that name grows.

        Raises:
            TransferError: if there is no id at all, a transfer of that name is not over, or a
                relief has ended one and its release has not come; nothing has changed then.
        """
        check_names("hold_receive", name)
        check_ids_per_band("hold_receive", ids, len(self._bands))
        self._steps.check_between_steps("hold_receive")
        self._add(name, Use.RECEIVE_HOLD, ids)

    def publish(self, hold: str, transfer: str) -> dict[int, list[int]]:
        """Turn a receive hold into the receive `transfer`; per band, the pages that may now leave.

        Raises:
            TransferError: if `hold` is no receive hold, or `transfer` is another name that a hold
                or a transfer has, or that a relief has ended and whose release has not come;
                nothing has changed then.
        """
        check_names("publish", hold, transfer)
        self._steps.check_between_steps("publish")
        leaving: dict[int, set[int]] = {}
        for held in self._ledger.held.publish(hold, transfer):
            leaving.setdefault(held.band, set()).update(held.pages)
        return {band: sorted(pages) for band, pages in leaving.items()}

    def begin_send(self, name: str, ids: Sequence[Sequence[int]]) -> None:
        """A transfer engine reads the pages of `ids`, per band, until it is released.

        A send of that name grows.

        Order: the host has processed every step that writes them and waited the last move.

        Raises:
            TransferError: if there is no id at all, a hold or a receive of that name is not over,
                or a relief has ended a transfer of that name and its release has not come: then
                the release would end this one.  Nothing has changed then.
        """
        check_names("begin_send", name)
        check_ids_per_band("begin_send", ids, len(self._bands))
        self._steps.check_between_steps("begin_send")
        self._add(name, Use.NETWORK_SEND, ids)

    def isolate(self, name: str) -> None:
        """The transfer `name` was given up on every rank, and may touch its pages until a proof.

        Until its release its pages stay where they are in every layout, and no relief waits for it.

        Raises:
            TransferError: if it holds no pages; harmless for one that a relief has ended.
        """
        check_names("isolate", name)
        self._steps.check_between_steps("isolate")
        self._ledger.held.isolate(name)

    def release(self, name: str) -> None:
        """The transfer or hold is over on every rank: its pages may move and be reused.

        Harmless, once, for a transfer that a relief has waited for and ended already.

        Raises:
            TransferError: if nothing is held under that name.
        """
        check_names("release", name)
        self._steps.check_between_steps("release")
        self._reclaim.release(name)

    def _add(self, name: str, use: Use, ids: Sequence[Sequence[int]]) -> None:
        if not any(ids):
            # A hold of nothing would have no entry, so its release would find none.
            raise TransferError(f"{name!r} begins with no pages; allowed: 1 or more ids")
        self._ledger.held.check_begin(name, use)
        pages = [part.ids.pages_of(units) for part, units in zip(self._bands, ids, strict=True)]
        for band, held in enumerate(pages):
            self._ledger.held.add(name, use, band, held)

    def _ranges(self, ids: Sequence[Sequence[int]]) -> Ranges:
        ranges: list[tuple[int, int]] = []
        for part, units in zip(self._bands, ids, strict=True):
            ranges += page_ranges(part.layout.page_bytes, part.ids.pages_of(units))
        return tuple(ranges)


def _check_nameable(band: Band, ids: Sequence[int], pages: Sequence[int]) -> None:
    if band.layout.mints:
        raise OwnershipError(
            f"band {band.layout.name!r}: ids {listed(ids)} for reserved pages, but only the rows of"
            " window bands are named by ids of another band; take pages of this one"
        )
    if len(ids) != len(pages):
        raise ArgumentError(
            f"name_reserved: {len(ids)} ids for {len(pages)} pages; allowed: one id for each page"
        )


def _check_reserved(band: Band, pages: Sequence[int]) -> None:
    reserved = band.fixed_pages()
    if len(set(pages)) < len(pages) or not set(pages) <= set(reserved):
        raise OwnershipError(
            f"band {band.layout.name!r}: pages {listed(pages)} are not a part of those reserved,"
            f" {listed(sorted(reserved))}; name or cancel each of these once"
        )
