"""The chain allocator: bands of one arena behind the calls that an engine makes.

It sequences the parts and decides nothing itself.  The last band owns the token ids, window bands
bind their pages to the owner's ids, and a state band has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.band import Band
from unikv.alloc.chain_bands import build_bands
from unikv.alloc.clearance import CLEARANCE, ClearanceTable, Toucher
from unikv.alloc.compaction import PageMover
from unikv.alloc.fences import check_written, page_ranges, wait_copies
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.page_usage import PageLedger, Use
from unikv.alloc.parts import ChainParts
from unikv.alloc.prewarm import check_first, prewarm_copies
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.relief import Relief
from unikv.alloc.signals import NoTransfers, TransferWaiter
from unikv.alloc.statistics import Counters, Statistics, gather_statistics
from unikv.alloc.taken import LoadTaken, Taken, check_load
from unikv.arguments import check_band, check_counts, check_ids, check_ids_per_band, check_slots
from unikv.device.port import Device, Event, StorageLayout, Stream
from unikv.errors import ArgumentError, OwnershipError, Shortage, listed
from unikv.ids.translation import Translation
from unikv.ids.unit_ids import MintedIds, Operation
from unikv.memory.arena import Arena

NO_TRANSFERS = NoTransfers()
_operation = tuple.__new__  # A named tuple, without the Python call that its own name is.


class ChainAllocator:
    """Takes, frees, steps and layout of one arena.

    Invariant: between calls every band keeps its count law, spans are disjoint and in chain order,
    and nothing is pending unless a recorded step or a transfer is in flight.
    """

    def __init__(
        self,
        layout: StorageLayout,
        device: Device,
        clearance: ClearanceTable = CLEARANCE,
        waiter: TransferWaiter = NO_TRANSFERS,
    ) -> None:
        self.layout = layout
        self.device = device
        self._clearance = clearance
        self.bands = build_bands(layout)
        self.owner = self.bands[-1]
        self.token_bands = tuple(band for band in self.bands if self._binds_owner_ids(band))
        self.minted = {
            band.index: MintedIds(band.layout.id_count) for band in self.bands if band.layout.mints
        }
        self.counters = Counters()
        self.steps = ForwardSteps(device)
        self.ledger = PageLedger()
        arena = Arena(layout.sink_bytes, layout.total_bytes)
        self.parts = ChainParts(
            device, arena, self.bands, self.steps, self.ledger, clearance, self.counters
        )
        self.reclaim = Reclaim(self.parts)
        self.mover = PageMover(self.parts, self.reclaim)
        self.relief = Relief(self.parts, self.reclaim, self.mover, waiter)
        self.users = AsyncUsers(self.parts, self.reclaim)
        self.ids = Translation([band.ids for band in self.bands], layout.bands)
        self._operations = 0
        self._takes_slots = [not self._binds_owner_ids(band) for band in self.bands]
        self._holds_state = True in self._takes_slots
        self._windows = tuple(band for band in self.token_bands if band is not self.owner)
        self._minting = tuple(self.minted.items())

    def fits(self, pages: int, slots: int) -> bool:
        """Whether `take(pages, slots)` succeeds now; a yes is a successful take.

        Between launch and record of a step the answer is about the moment after the record.
        Raises ArgumentError: as `take`.
        """
        demand = self._demand(pages, slots)
        return self._short_ids(demand) is None and self.relief.fits(demand)

    def take(self, pages: int, slots: int) -> Taken:
        """Hand out `pages` virtual pages, bound in every token band, and `slots` state slots.

        Order: enqueues waits, copies, zeroing and map writes on the schedule stream.  Blocks the
        host only where no layout leaves the pages of every transfer alone.

        Raises:
            Shortage: if ids or bytes are short; nothing has changed then.
            TransferError: if a transfer that has to be waited for does not end; likewise.
            StepOrderError: between launch and record of a step.
            ArgumentError: for what is no count, or slots where no band holds state; likewise.
        """
        demand = self._demand(pages, slots)
        self._begin("take")
        taken = self._lay_out_and_acquire(demand)
        ids = self.minted[self.owner.index].mint(pages)
        slot_ids: list[int] = []
        for band, got in zip(self.bands, taken, strict=True):
            if self._takes_slots[band.index]:
                slot_ids = self.minted[band.index].mint(slots)
                self._hand_out(band, slot_ids, got)
            else:
                self._hand_out(band, ids, got)
        return Taken(ids, slot_ids)

    def reserve(self, band: int, count: int) -> list[int]:
        """Take `count` pages of one band for a load, fixed where they are and not zeroed.

        Pending pages settle first where the holes do not cover the load.

        Returns:
            Physical pages: the queued copy carries them, so they do not move until ids name them.

        Raises and Order: as `take`.
        """
        check_band("reserve", band, len(self.bands))
        check_counts("reserve", (count,))
        self._begin("reserve")
        demand = [count if index == band else 0 for index in range(len(self.bands))]
        part = self.bands[band]
        spans = self.relief.lay_out(demand)
        if spans is None:
            self.counters.shortages += 1
            raise Shortage("bytes", part.layout.name, count, part.holes)
        pages = self._acquire(part, count, spans[band])
        part.fix_live(pages)
        return pages

    def fits_load(self, counts: Sequence[int]) -> bool:
        """Whether `take_for_load(counts)` succeeds now; a yes is a successful take.

        Raises ArgumentError: as `take_for_load`.
        """
        check_load(counts, self.bands)
        return self._short_ids(counts) is None and self.relief.fits(counts)

    def take_for_load(self, counts: Sequence[int]) -> LoadTaken:
        """Take pages of every band for one load, laid out as one demand; none is zeroed.

        Args:
            counts: per band; the rows of a window band are for the last of the owner's pages.

        Raises and Order: as `take`, and as `check_load`.
        """
        check_load(counts, self.bands)
        self._begin("take_for_load")
        pages = self._lay_out_and_acquire(counts)
        ids: list[int] = []
        slots: list[int] = []
        reserved: dict[int, list[int]] = {}
        for band, got in zip(self.bands, pages, strict=True):
            if band.layout.mints:
                minted = self.minted[band.index].mint(len(got))
                if band is self.owner:
                    ids = minted
                else:
                    slots = minted
                if got:
                    band.ids.bind(minted, got)
                    self.device.write_map(Stream.SCHEDULE, band.index, minted, got)
            elif got:
                band.fix_live(got)
                reserved[band.index] = got
        return LoadTaken(ids, slots, reserved)

    def free(self, ids: Sequence[int]) -> None:
        """Free virtual pages in the owner and in every window band that still binds them.

        Order: enqueues map writes on the schedule stream.  Waits for nothing.

        Raises:
            OwnershipError: if an id names no page or is listed twice; nothing has changed then.
            StepOrderError: between launch and record of a step.
            ArgumentError: if an id is no int.
        """
        check_ids("free", ids)
        operation = self._begin("free")
        self._give_up(self.owner, ids, operation)
        self.minted[self.owner.index].give_back(ids)
        for band in self._windows:
            forward = band.ids.forward
            self._give_up(band, [unit for unit in ids if forward[unit]], operation)

    def retire(self, band: int, ids: Sequence[int]) -> None:
        """Free the rows of one window band that `ids` name; the ids stay bound in the owner.

        Order: as `free`.

        Raises:
            OwnershipError: as `free`, and if the band has ids of its own, which would be lost.
            StepOrderError: as `free`.
            ArgumentError: as `free`, and if there is no such band.
        """
        check_band("retire", band, len(self.bands))
        check_ids("retire", ids)
        operation = self._begin("retire")
        part = self.bands[band]
        if part.layout.mints:
            raise OwnershipError(
                f"band {part.layout.name!r}: retire of ids {listed(ids)}, but only the rows of"
                " window bands retire; free the ids"
            )
        self._give_up(part, ids, operation)

    def free_slots(self, slots: Sequence[int]) -> None:
        """Free state slots.  Raises and Order: as `free`."""
        check_ids("free_slots", slots)
        operation = self._begin("free_slots")
        if not self._holds_state:
            raise OwnershipError(f"free of slots {listed(slots)}, but no band holds state")
        state = self.bands[self._takes_slots.index(True)]
        self._give_up(state, slots, operation)
        self.minted[state.index].give_back(slots)

    def launch_step(self, number: int) -> None:
        """Open a forward step: until it is recorded nothing is taken, freed or moved.

        Raises StepOrderError, ArgumentError: as `ForwardSteps.launch`.
        """
        self.steps.launch(number)

    def record_step(self, number: int, event: Event, writes: Sequence[Sequence[int]]) -> None:
        """Name the end of the open step and what it writes.

        Args:
            number: the open step.
            event: recorded after its last kernel on every stream it uses.
            writes: per band, the ids whose pages the step writes.

        Raises:
            OwnershipError: if an id names no page of its band, or one that a backup still reads.
            StepOrderError: if the step is not the open one, or its event is in use.
            ArgumentError: if the number or an id is no int, or not every band has its ids.
        """
        check_ids_per_band("record_step", writes, len(self.bands))
        pages = [band.ids.pages_of(ids) for band, ids in zip(self.bands, writes, strict=True)]
        if self.ledger.fences:
            for band, written in zip(self.bands, pages, strict=True):
                check_written(self._clearance, self.ledger.fences, band, written, number)
        self.steps.record(number, event)
        for band, written in zip(self.bands, pages, strict=True):
            self.ledger.add(Use.FORWARD_WRITE, band.index, written, number)

    def record_step_of_unknown_writes(self, number: int, event: Event) -> None:
        """As `record_step`, of a step that may write any page: nothing moves until it retires.

        Raises StepOrderError, ArgumentError: as `ForwardSteps.record`.
        """
        self.steps.record(number, event)
        for band in self.bands:
            self.ledger.add_unknown_write(band.index, number)

    def process_step(self, number: int) -> None:
        """The host has synchronized a completion that covers the step's event.

        Raises StepOrderError, ArgumentError: as `ForwardSteps.process`, and as `flush`.
        """
        self.steps.check_between_steps("process")
        self.reclaim.process(number)

    def prewarm(self) -> None:
        """Copy a page of each band onto the sink, so that no later move is a device's first.

        Order: enqueues copies and map writes on the schedule stream.

        Raises:
            CallOrderError: if anything was ever handed out, or a step is in flight.
            StepOrderError: between launch and record of a step.
        """
        self._begin("prewarm")
        check_first(self.counters.taken_pages, self.steps.newest)
        prewarm_copies(self.device, self.bands)

    def flush(self, limit: int) -> int:
        """Compact both ends with at most `limit` moves in all; returns how many pages moved.

        Order: may enqueue waits for writers, copies and map writes on the schedule stream.
        Settles nothing and does not block the host.
        Raises StepOrderError, ArgumentError: as `take`, of `limit`.
        """
        check_counts("flush", (limit,))
        self._begin("flush")
        moved = 0
        for band in {0: self.bands[0], len(self.bands) - 1: self.owner}.values():
            moved += self.mover.compact(band, limit - moved)
        return moved

    def relieve(self, pages: int, slots: int) -> bool:
        """Make room for a later take of `pages` and `slots`; whether a layout holds them.

        This is the urgent flush: it settles, and moves as many pages as the demand needs.

        Raises and Order: as `take`, but what fits nowhere is no error, and nothing is handed out.
        """
        demand = self._demand(pages, slots)
        self._begin("relieve")
        spans = self.relief.lay_out(demand)
        for band in self.bands:
            self.reclaim.retreat(band)
        return spans is not None

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        """Physical page of each id, for the kernels of one step; 0, the sink, where unbound.

        Raises:
            ArgumentError: if there is no such band, or an id is no int of its id space.
        """
        check_band("translate", band, len(self.bands))
        forward = self.bands[band].ids.forward
        check_slots("translate", ids, len(forward))
        return [forward[unit] for unit in ids]

    def statistics(self) -> Statistics:
        """What it has done and what it holds; the answer does not change with the chain."""
        arena, in_flight = self.parts.arena, len(self.steps.in_flight())
        return gather_statistics(self.counters, arena, self.bands, self.minted, in_flight)

    def _begin(self, name: str) -> Operation:
        if self.steps.launched:
            self.steps.check_between_steps(name)
        self._operations = number = self._operations + 1
        return _operation(Operation, (number, name))

    def _lay_out_and_acquire(self, demand: Sequence[int]) -> list[list[int]]:
        """Pages of every band, or a `Shortage` before anything has changed."""
        short = self._short_ids(demand)
        if short is not None:
            self.counters.shortages += 1
            raise short
        spans = self.relief.lay_out(demand)
        if spans is None:
            self.counters.shortages += 1
            raise Shortage("bytes", "", sum(demand), sum(band.holes for band in self.bands))
        return list(map(self._acquire, self.bands, demand, spans))

    def _demand(self, pages: int, slots: int) -> list[int]:
        """Pages per band.  Raises ArgumentError: as `take`."""
        if type(pages) is not int or type(slots) is not int or pages < 0 or slots < 0:
            check_counts("demand of pages and slots", (pages, slots))
        if self._holds_state:
            return [slots if takes_slots else pages for takes_slots in self._takes_slots]
        if slots:
            raise ArgumentError(f"demand of {slots} slots; allowed: 0, as no band holds state")
        return [pages] * len(self.bands)

    def _binds_owner_ids(self, band: Band) -> bool:
        return band is self.owner or not band.layout.mints

    def _short_ids(self, demand: Sequence[int]) -> Shortage | None:
        for index, minted in self._minting:
            if demand[index] > minted.free_count:
                name = self.bands[index].layout.name
                return Shortage("ids", name, demand[index], minted.free_count)
        return None

    def _acquire(self, band: Band, count: int, span: tuple[int, int]) -> list[int]:
        if not count:
            return []
        pages = band.take_holes(count) if band.holes else []
        missing = count - len(pages)
        if missing and band.pending:
            self.reclaim.settle(band, missing)
            pages += band.take_holes(missing)
            missing = count - len(pages)
        if missing:
            pages += band.grow(*span, missing)
        assert len(pages) == count, f"{band.layout.name}: found {len(pages)} of {count} in {span}"
        fences = self.ledger.fences
        if fences:
            ranges = page_ranges(band.layout.page_bytes, pages)
            wait_copies(self.device, self._clearance, fences, Toucher.HAND_OUT, ranges)
        if band.holes:
            self.reclaim.retreat(band)
        self.counters.taken_pages += count
        return pages

    def _hand_out(self, band: Band, ids: Sequence[int], pages: Sequence[int]) -> None:
        if not pages:
            return
        band.ids.bind(ids, pages)
        if band.layout.zeroed:
            self.device.zero_pages(Stream.SCHEDULE, band.index, pages)
        self.device.write_map(Stream.SCHEDULE, band.index, ids, pages)

    def _give_up(self, band: Band, ids: Sequence[int], operation: Operation) -> None:
        if not ids:
            return
        pages = band.ids.unbind(ids, operation)
        self.device.write_map(Stream.SCHEDULE, band.index, ids, [0] * len(ids))
        self.reclaim.free(band, pages)


__all__ = ["ChainAllocator", "LoadTaken", "Taken"]
