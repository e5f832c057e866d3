"""The allocator and the request table with every call checked: the same answers, more slowly.

A checked part is a subclass, chosen when a storage is built, so the allocator itself carries no
flag and a storage whose level is off pays nothing.  A call is checked while it runs by the witness
on its port and after it by the audit of the whole state, whose cost grows with the arena.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.audit import row_violations, violations
from unikv.alloc.band import Band
from unikv.alloc.chain import NO_TRANSFERS, ChainAllocator
from unikv.alloc.clearance import CLEARANCE, ClearanceTable
from unikv.alloc.invariants import TAKE_AFTER_YES, Finding, Invariants
from unikv.alloc.signals import TransferWaiter
from unikv.alloc.taken import LoadTaken, Taken
from unikv.alloc.witness import Witness
from unikv.arguments import check_band, check_counts
from unikv.device.port import Device, Event, StorageLayout
from unikv.errors import InvariantError, Shortage, UnikvError
from unikv.ids.iteration_ids import IterationIds
from unikv.ids.runner_ids import RunnerIds
from unikv.ids.translation import Translation
from unikv.ids.unit_ids import Operation
from unikv.requests import RequestTable


class CallChecks:
    """What is done around every call of one chain."""

    __slots__ = ("_chain", "_invariants", "_witness")

    def __init__(self, chain: ChainAllocator, witness: Witness, invariants: Invariants) -> None:
        self._chain = chain
        self._witness = witness
        self._invariants = invariants

    @contextmanager
    def around(self, call: str) -> Iterator[None]:
        """Check one call: a refusal is audited like an answer, since it may have changed nothing.

        Raises:
            InvariantError: as `Invariants.report`.
        """
        self._witness.begin(call)
        try:
            yield
        except InvariantError:
            raise  # the first finding is the cause; what the audit adds would bury it
        except UnikvError:
            self._audit()
            raise
        else:
            self._audit()
        finally:
            self._witness.end()

    def _audit(self) -> None:
        self._invariants.report([*violations(self._chain), *self._witness.findings()])


class CheckedUsers(AsyncUsers):
    """`AsyncUsers` with every call checked."""

    __slots__ = ("_checks",)

    def __init__(self, chain: ChainAllocator, checks: CallChecks) -> None:
        super().__init__(chain.parts, chain.reclaim)
        self._checks = checks

    def name_reserved(self, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
        """As `AsyncUsers.name_reserved`."""
        with self._checks.around("name_reserved"):
            super().name_reserved(band, ids, pages)

    def cancel_reservation(self, band: int, pages: Sequence[int]) -> None:
        """As `AsyncUsers.cancel_reservation`."""
        with self._checks.around("cancel_reservation"):
            super().cancel_reservation(band, pages)

    def begin_backup(self, ids: Sequence[Sequence[int]], event: Event) -> int:
        """As `AsyncUsers.begin_backup`."""
        with self._checks.around("begin_backup"):
            return super().begin_backup(ids, event)

    def begin_load(self, ids: Sequence[Sequence[int]], event: Event) -> int:
        """As `AsyncUsers.begin_load`."""
        with self._checks.around("begin_load"):
            return super().begin_load(ids, event)

    def end_copy(self, number: int) -> None:
        """As `AsyncUsers.end_copy`."""
        with self._checks.around("end_copy"):
            super().end_copy(number)

    def hold_receive(self, name: str, ids: Sequence[Sequence[int]]) -> None:
        """As `AsyncUsers.hold_receive`."""
        with self._checks.around("hold_receive"):
            super().hold_receive(name, ids)

    def publish(self, hold: str, transfer: str) -> dict[int, list[int]]:
        """As `AsyncUsers.publish`."""
        with self._checks.around("publish"):
            return super().publish(hold, transfer)

    def begin_send(self, name: str, ids: Sequence[Sequence[int]]) -> None:
        """As `AsyncUsers.begin_send`."""
        with self._checks.around("begin_send"):
            super().begin_send(name, ids)

    def isolate(self, name: str) -> None:
        """As `AsyncUsers.isolate`."""
        with self._checks.around("isolate"):
            super().isolate(name)

    def release(self, name: str) -> None:
        """As `AsyncUsers.release`."""
        with self._checks.around("release"):
            super().release(name)


class CheckedTranslation(Translation):
    """`Translation` with every call checked."""

    __slots__ = ("_checks",)

    def __init__(self, chain: ChainAllocator, checks: CallChecks) -> None:
        super().__init__([band.ids for band in chain.bands], chain.layout.bands)
        self._checks = checks

    def writes(self, tokens: Sequence[int], slots: Sequence[int]) -> IterationIds:
        """As `Translation.writes`."""
        with self._checks.around("writes"):
            return super().writes(tokens, slots)

    def reads(self, rows: Sequence[Sequence[int]], slots: Sequence[Sequence[int]]) -> RunnerIds:
        """As `Translation.reads`."""
        with self._checks.around("reads"):
            return super().reads(rows, slots)


class CheckedChainAllocator(ChainAllocator):
    """`ChainAllocator` with every call checked.

    Attributes:
        invariants: what becomes of findings.
        device: the witness on the device that it was given.
    """

    def __init__(
        self,
        layout: StorageLayout,
        device: Device,
        invariants: Invariants,
        clearance: ClearanceTable = CLEARANCE,
        waiter: TransferWaiter = NO_TRANSFERS,
    ) -> None:
        self.invariants = invariants
        self._witness = Witness(device, self, invariants, waiter)
        super().__init__(layout, self._witness, clearance, self._witness)
        self._checks = CallChecks(self, self._witness, invariants)
        self.users = CheckedUsers(self, self._checks)
        self.ids = CheckedTranslation(self, self._checks)

    def fits(self, pages: int, slots: int) -> bool:
        """As `ChainAllocator.fits`."""
        with self._checks.around("fits"):
            return super().fits(pages, slots)

    def take(self, pages: int, slots: int) -> Taken:
        """As `ChainAllocator.take`; the capacity question is asked first and has to agree."""
        promised = self.fits(pages, slots)
        asked = f"{pages} pages and {slots} slots"
        with self._checks.around("take"):
            try:
                taken = super().take(pages, slots)
            except Shortage as shortage:
                self._compare(asked, f"the take says: {shortage}", promised=promised, served=False)
                raise
            self._compare(asked, "the take served them", promised=promised, served=True)
            return taken

    def reserve(self, band: int, count: int) -> list[int]:
        """As `ChainAllocator.reserve`; the capacity question is asked first and has to agree."""
        # What is refused as an argument is refused before the question makes sense.
        check_band("reserve", band, len(self.bands))
        check_counts("reserve", (count,))
        demand = [count if index == band else 0 for index in range(len(self.bands))]
        promised = self.relief.fits(demand)
        asked = f"{count} pages of band {band}"
        with self._checks.around("reserve"):
            try:
                pages = super().reserve(band, count)
            except Shortage as shortage:
                told = f"the reservation says: {shortage}"
                self._compare(asked, told, promised=promised, served=False)
                raise
            self._compare(asked, "the reservation served them", promised=promised, served=True)
            return pages

    def fits_load(self, counts: Sequence[int]) -> bool:
        """As `ChainAllocator.fits_load`."""
        with self._checks.around("fits_load"):
            return super().fits_load(counts)

    def take_for_load(self, counts: Sequence[int]) -> LoadTaken:
        """As `ChainAllocator.take_for_load`; the capacity question is asked first."""
        promised = self.fits_load(counts)
        asked = f"a load of {list(counts)} pages"
        with self._checks.around("take_for_load"):
            try:
                taken = super().take_for_load(counts)
            except Shortage as shortage:
                self._compare(asked, f"the take says: {shortage}", promised=promised, served=False)
                raise
            self._compare(asked, "the take served it", promised=promised, served=True)
            return taken

    def free(self, ids: Sequence[int]) -> None:
        """As `ChainAllocator.free`."""
        with self._checks.around("free"):
            super().free(ids)

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """As `ChainAllocator.retire`."""
        with self._checks.around("retire"):
            super().retire(band, ids)

    def free_slots(self, slots: Sequence[int]) -> None:
        """As `ChainAllocator.free_slots`."""
        with self._checks.around("free_slots"):
            super().free_slots(slots)

    def launch_step(self, number: int) -> None:
        """As `ChainAllocator.launch_step`."""
        with self._checks.around("launch_step"):
            super().launch_step(number)

    def record_step(self, number: int, event: Event, writes: Sequence[Sequence[int]]) -> None:
        """As `ChainAllocator.record_step`."""
        with self._checks.around("record_step"):
            super().record_step(number, event, writes)
            self._witness.recorded(number, event)

    def record_step_of_unknown_writes(self, number: int, event: Event) -> None:
        """As `ChainAllocator.record_step_of_unknown_writes`."""
        with self._checks.around("record_step_of_unknown_writes"):
            super().record_step_of_unknown_writes(number, event)
            self._witness.recorded(number, event)

    def process_step(self, number: int) -> None:
        """As `ChainAllocator.process_step`."""
        with self._checks.around("process_step"):
            super().process_step(number)

    def prewarm(self) -> None:
        """As `ChainAllocator.prewarm`."""
        with self._checks.around("prewarm"):
            super().prewarm()

    def flush(self, limit: int) -> int:
        """As `ChainAllocator.flush`."""
        with self._checks.around("flush"):
            return super().flush(limit)

    def relieve(self, pages: int, slots: int) -> bool:
        """As `ChainAllocator.relieve`; what it says must be what the bytes then allow."""
        with self._checks.around("relieve"):
            served = super().relieve(pages, slots)
            promised = self.relief.fits(self._demand(pages, slots))
            told = f"the relief answers {served}"
            self._compare(
                f"{pages} pages and {slots} slots", told, promised=promised, served=served
            )
            return served

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        """As `ChainAllocator.translate`."""
        with self._checks.around("translate"):
            return super().translate(band, ids)

    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        pages = super()._acquire(band, count, span)
        self.invariants.report(self._witness.handed_out(band, pages))
        return pages

    def _give_up(self, band: Band, ids: Sequence[int], operation: Operation) -> None:
        forward = band.ids.forward
        pages = [forward[unit] for unit in ids if 0 < unit < len(forward)]
        super()._give_up(band, ids, operation)
        self._witness.given_up(band, pages)

    def _compare(self, asked: str, told: str, *, promised: bool, served: bool) -> None:
        if promised is not served:
            what = f"{asked} {'fit' if promised else 'do not fit'} by the question, but {told}"
            self.invariants.report([Finding(TAKE_AFTER_YES, "the chain", what)])


class CheckedRequestTable(RequestTable):
    """`RequestTable` with every call checked."""

    __slots__ = ("_invariants", "_slots_per_page")

    def __init__(self, layout: StorageLayout, device: Device, invariants: Invariants) -> None:
        super().__init__(layout.row_count, layout.row_pages, layout.bands[-1].id_count, device)
        self._invariants = invariants
        self._slots_per_page = layout.slots_per_page

    def take(self) -> int:
        """As `RequestTable.take`."""
        row = super().take()
        self._audit()
        return row

    def append(self, row: int, ids: Sequence[int]) -> None:
        """As `RequestTable.append`."""
        super().append(row, ids)
        self._audit()

    def give_back(self, row: int) -> None:
        """As `RequestTable.give_back`."""
        super().give_back(row)
        self._audit()

    def _audit(self) -> None:
        self._invariants.report(row_violations(self, self._slots_per_page))
