"""The host tier: copies of pages in host memory, made by backups and brought back by loads.

No copy is one call.  A backup takes host slots, is submitted, and is acknowledged once every rank
has seen it end; a load takes pages, gets its window rows named, is submitted, and is acknowledged.
In each gap the engine may free, move, evict and launch, and what keeps that safe is recorded in the
chain's ledger at submission and in the host pools from the first call to the last.

The tier decides neither what is worth keeping nor when a copy has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, ClearanceTable, InFlight, Toucher
from unikv.alloc.fences import page_ranges
from unikv.alloc.use import Use
from unikv.arguments import check_ids_per_band, check_names
from unikv.cache.claims import check_held, claim, pages_of, still_held
from unikv.cache.host_copies import Backup, Load
from unikv.device.port import CopyDevice, Event, StorageLayout, Stream
from unikv.errors import ArgumentError, HostTierError, OwnershipError, listed
from unikv.memory.host import HostMemory, Slots

PerBand = Sequence[Sequence[int]]
"""Ids, pages or slots of every band, in the order of the chain."""


class HostCopy(NamedTuple):
    """Where pages are kept in host memory.

    It names slots, as ids name pages, and not what is in them: slots that were dropped are filled
    again by other backups, and then the same words are the copies of those.  So whoever drops a
    copy forgets it, and every part of it.

    Attributes:
        slots: per band, host slots in the order of the ids that were backed up.
    """

    slots: Slots


class LoadTake(NamedTuple):
    """What a load brings its content back to.

    Attributes:
        ids: virtual pages, bound in the owner; in a window band the last ones have rows.
        slots: state slot ids, bound.
    """

    ids: list[int]
    slots: list[int]


Copy = TypeVar("Copy", Backup, Load)


class HostTier:
    """Backups and loads of one chain.

    Law: a host slot belongs to one backup, from its first call on, or to whoever holds the
    `HostCopy` that it returned; a slot is read only after the backup that filled it is over.

    Every call that reaches the chain raises `StepOrderError` between launch and record of a step,
    and each raises `ArgumentError` for a name that is no str.  A call that raises one of these, or
    what its own docstring lists, has changed nothing.

    Any other exception is the device's own (see `Device`).  A submission in which a copy fails
    counts as submitted: what the device took before is in the ledger, behind an event, so no page
    or slot changes hands under it.  What it copied is worth nothing: acknowledge it, free the ids
    of a load, drop what a backup kept.

    Attributes:
        memory: the host slots of every band.
        copies: every backup and load that is not over, by name, oldest first.
    """

    def __init__(
        self,
        layout: StorageLayout,
        chain: ChainAllocator,
        device: CopyDevice,
        clearance: ClearanceTable = CLEARANCE,
    ) -> None:
        """A tier with the host memory of `layout`, all of it free."""
        self._chain = chain
        self._device = device
        self._clearance = clearance
        self._groups = layout.layer_groups
        self.memory = HostMemory(layout)
        self.copies: dict[str, Backup | Load] = {}

    # Backups ---------------------------------------------------------------------------------

    def begin_backup(self, name: str, ids: PerBand) -> HostCopy:
        """Take host slots for the pages of `ids`, per band; nothing is copied yet.

        Raises:
            Shortage: if a pool is short of slots.
            OwnershipError: if an id names no page.
            HostTierError: if a copy of that name is not over.
            ArgumentError: if the name is no str, an id is no int, or not every band has its ids.
        """
        self._check_new("begin_backup", name)
        check_ids_per_band("begin_backup", ids, len(self._chain.bands))
        for band, units in zip(self._chain.bands, ids, strict=True):
            band.ids.pages_of(units)
        target = self.memory.take([len(units) for units in ids])
        self.copies[name] = Backup(claim(self._chain.bands, ids), target)
        return HostCopy(target)

    def submit_backup(self, name: str) -> Event:
        """Enqueue the copy of what the ids' pages hold now; the event after it.

        What is kept is what nobody writes any more: until the acknowledgement no forward may write
        the pages.  They may be freed and moved, and whoever is handed them waits for the copy.

        Order: the backup stream waits the schedule stream, the forward stream, and loads that still
        fill one of the pages; then it copies.

        Raises:
            OwnershipError: if an id was freed since the backup began, which can then only be
                cancelled.
            HostTierError: if there is no such backup, or it is submitted already.
        """
        backup = self._unsubmitted("submit_backup", name, Backup)
        self._chain.steps.check_between_steps("submit_backup")
        check_held(self._chain.bands, backup.claim, f"copy {name!r}", "cancel it")
        pages = pages_of(self._chain.bands, backup.claim)
        self._order_backup(pages)
        try:
            for band, (sources, slots) in enumerate(zip(pages, backup.target, strict=True)):
                if sources:
                    self._device.copy_to_host(Stream.BACKUP, band, sources, slots)
        finally:
            # What a device took before it failed runs all the same.
            event = self._device.record_event(Stream.BACKUP)
            backup.number = self._chain.users.begin_backup(backup.claim.ids, event)
        return event

    # Loads -----------------------------------------------------------------------------------

    def begin_load(self, name: str, source: HostCopy) -> LoadTake:
        """Take the pages that `source` shall be brought back to, all in one demand.

        Owner pages and state slots are bound at once.  Window rows are reserved: fixed where they
        are until `name_rows` or the submission.

        Args:
            name: of the load.
            source: a copy, a part of one, or several put together, with at most as many slots in a
                window band as in the owner.

        Raises:
            Shortage: if ids or bytes are short.
            OwnershipError: if a slot of `source` is not filled, or listed twice.
            HostTierError: if a copy of that name is not over.
            ArgumentError: as `begin_backup`, and if a window band has more slots than the owner.
        """
        self._check_new("begin_load", name)
        slots = self._slots_of("begin_load", source)
        self.memory.check_full(slots, "load")
        counts = [len(own) for own in slots]
        taken = self._chain.take_for_load(counts)
        self.memory.begin_read(slots)
        ids = []
        for band, count in zip(self._chain.bands, counts, strict=True):
            units = taken.ids if band in self._chain.token_bands else taken.slots
            ids.append(units[len(units) - count :])
        self.copies[name] = Load(claim(self._chain.bands, ids), slots, taken.reserved)
        return LoadTake(taken.ids, taken.slots)

    def name_rows(self, name: str) -> None:
        """Let owner ids name the reserved window rows, which may move from now on.

        Order: enqueues map writes on the schedule stream.

        Raises:
            OwnershipError: if an id of the load was freed, or names another row meanwhile; the load
                can then only be cancelled.
            HostTierError: if there is no such load, it is submitted, or it has no unnamed rows.
        """
        load = self._unsubmitted("name_rows", name, Load)
        if not load.reserved:
            raise HostTierError(f"name_rows: load {name!r} has no unnamed rows; submit it next")
        self._check_nameable(name, load)
        self._name(load)

    def submit_load(self, name: str) -> tuple[Event, ...]:
        """Enqueue the copy, layer group by layer group; the event after each.

        Rows that are not named yet are named first, so the reservation ends with no gap before the
        copy's own use begins.  Ids are translated here, not when the load began.

        From here on the ids are the engine's alone: it may free them before the copy has ended, and
        whoever is handed their pages waits for it.

        Order: the load stream waits the schedule stream, then copies.

        Raises:
            OwnershipError: as `name_rows`, and if a named row was retired.
            HostTierError: if there is no such load, or it is submitted already.
        """
        load = self._unsubmitted("submit_load", name, Load)
        self._chain.steps.check_between_steps("submit_load")
        self._check_nameable(name, load)
        self._name(load)
        pages = pages_of(self._chain.bands, load.claim)
        if self._clearance[Toucher.LOAD_COPY, InFlight.SCHEDULE] is Clearance.WAIT_SCHEDULE:
            event = self._device.record_event(Stream.SCHEDULE)
            self._device.wait_event(Stream.LOAD, event)
        events: list[Event] = []
        try:
            for group in range(self._groups):
                for band, (slots, targets) in enumerate(zip(load.source, pages, strict=True)):
                    if targets:
                        self._device.copy_from_host(Stream.LOAD, band, group, slots, targets)
                events.append(self._device.record_event(Stream.LOAD))
        finally:
            # What a device took before it failed runs all the same.
            is_whole = len(events) == self._groups
            end = events[-1] if is_whole else self._device.record_event(Stream.LOAD)
            load.number = self._chain.users.begin_load(load.claim.ids, end)
        load.events = tuple(events)
        return load.events

    def order_forward(self, stream: Stream, names: Sequence[str], layer_group: int) -> None:
        """Put the layers of one group of a forward behind the loads that its batch reads.

        Order: `stream`, on which the forward runs, waits.  Only where that is the schedule stream,
        as without overlap, does its wait for the last group end the use of the load.

        Raises:
            HostTierError: if a load is not submitted, since then nothing could be waited for, or is
                acknowledged or unknown, or the device failed in its submission.
            ArgumentError: if there is no such group.
        """
        if type(layer_group) is not int or not 0 <= layer_group < self._groups:
            raise ArgumentError(
                f"order_forward: layer group {layer_group!r}; allowed: 0..{self._groups - 1}"
            )
        loads = [self._submitted_load(name) for name in names]
        if self._clearance[Toucher.FORWARD, InFlight.LOAD] is not Clearance.WAIT_LOAD:
            return
        for load in loads:
            self._device.wait_event(stream, load.events[layer_group])
            if stream == Stream.SCHEDULE and layer_group == self._groups - 1:
                self._chain.ledger.fences.end(load.number)

    # Both ------------------------------------------------------------------------------------

    def acknowledge(self, name: str) -> None:
        """The copy has ended on every rank: its use is over, its host slots are unlocked.

        Raises:
            HostTierError: if there is no such copy, or it is not submitted.
        """
        check_names("acknowledge", name)
        copy = self.copies.get(name)
        if copy is None or not copy.number:
            raise HostTierError(
                f"acknowledgement of {name!r}, but only submitted copies end; submitted are"
                f" {listed(self.in_flight())}"
            )
        self._chain.users.end_copy(copy.number)
        if isinstance(copy, Backup):
            self.memory.filled(copy.target)
        else:
            self.memory.end_read(copy.source)
        del self.copies[name]

    def cancel(self, name: str) -> None:
        """Give up a copy that is not submitted; whatever it took goes back.

        Ids of a load are freed with it, apart from those that were freed since it began.  A
        submitted copy runs whatever happens: free its ids if nobody wants them, and acknowledge it.

        Order: of a load, as `free`.

        Raises:
            HostTierError: if there is no such copy, or it is submitted.
        """
        check_names("cancel", name)
        copy = self.copies.get(name)
        if copy is None or copy.number:
            state = "is unknown" if copy is None else "is submitted"
            raise HostTierError(
                f"cancel of {name!r}, which {state}; only copies before their submission are"
                " cancelled, submitted ones are acknowledged"
            )
        if isinstance(copy, Backup):
            self.memory.cancel(copy.target)
        else:
            for band, pages in copy.reserved.items():
                self._chain.users.cancel_reservation(band, pages)
            owner = self._chain.owner
            for part in self._chain.bands:
                held = still_held(part, copy.claim) if part.layout.mints else []
                if held:
                    (self._chain.free if part is owner else self._chain.free_slots)(held)
            self.memory.end_read(copy.source)
        del self.copies[name]

    def drop(self, copy: HostCopy) -> None:
        """Give back the host slots of a copy that nobody wants any more.

        Raises:
            OwnershipError: if its backup is not acknowledged, a load still reads it, or it was
                dropped before and other backups have not filled all of its slots again.
            ArgumentError: as `begin_backup`, of slots.
        """
        self.memory.drop(self._slots_of("drop", copy))

    def in_flight(self) -> list[str]:
        """Names of the submitted copies that are not acknowledged, oldest first."""
        return [name for name, copy in self.copies.items() if copy.number]

    def _check_new(self, call: str, name: str) -> None:
        check_names(call, name)
        if name in self.copies:
            raise HostTierError(
                f"{call}: a copy named {name!r} is not over; give the new one another name"
            )

    def _slots_of(self, call: str, copy: HostCopy) -> Slots:
        if type(copy) is not HostCopy:
            raise ArgumentError(
                f"{call}: a {type(copy).__name__}; allowed: a HostCopy, as begin_backup answers it"
            )
        check_ids_per_band(call, copy.slots, len(self._chain.bands))
        return _frozen(copy.slots)

    def _unsubmitted(self, call: str, name: str, kind: type[Copy]) -> Copy:
        check_names(call, name)
        copy = self.copies.get(name)
        if not isinstance(copy, kind):
            known = [known for known, copy in self.copies.items() if isinstance(copy, kind)]
            what = kind.__name__.lower()
            raise HostTierError(f"{call}: no {what} {name!r}; unfinished are {listed(known)}")
        if copy.number:
            raise HostTierError(f"{call}: {name!r} is submitted already; acknowledge it next")
        return copy

    def _submitted_load(self, name: str) -> Load:
        check_names("order_forward", name)
        load = self.copies.get(name)
        if not isinstance(load, Load) or not load.events:
            loads = [n for n, c in self.copies.items() if isinstance(c, Load) and c.events]
            raise HostTierError(
                f"order_forward: {name!r} is no load in flight; those are {listed(loads)}: submit a"
                " load before its readers are launched, and forget it when it is acknowledged"
            )
        return load

    def _check_nameable(self, name: str, load: Load) -> None:
        check_held(self._chain.bands, load.claim, f"copy {name!r}", "cancel it")
        for band in load.reserved:
            pages = self._chain.translate(band, load.claim.ids[band])
            bound = [unit for unit, page in zip(load.claim.ids[band], pages, strict=True) if page]
            if bound:
                raise OwnershipError(
                    f"load {name!r}: ids {listed(bound)} name other rows of band"
                    f" {self._chain.bands[band].layout.name!r} already; cancel it"
                )

    def _order_backup(self, pages: PerBand) -> None:
        clearance, device = self._clearance, self._device
        if clearance[Toucher.BACKUP_COPY, InFlight.SCHEDULE] is Clearance.WAIT_SCHEDULE:
            device.wait_event(Stream.BACKUP, device.record_event(Stream.SCHEDULE))
        if clearance[Toucher.BACKUP_COPY, InFlight.FORWARD] is Clearance.WAIT_FORWARD:
            device.wait_event(Stream.BACKUP, device.record_event(Stream.FORWARD))
        if clearance[Toucher.BACKUP_COPY, InFlight.LOAD] is Clearance.WAIT_LOAD:
            ranges = tuple(
                piece
                for band, sources in zip(self._chain.bands, pages, strict=True)
                for piece in page_ranges(band.layout.page_bytes, sources)
            )
            for use in self._chain.ledger.fences.touching(ranges):
                if use.use is Use.COPY_WRITE:
                    device.wait_event(Stream.BACKUP, use.event)

    def _name(self, load: Load) -> None:
        for band, pages in load.reserved.items():
            self._chain.users.name_reserved(band, load.claim.ids[band], pages)
        load.reserved = {}


def _frozen(per_band: PerBand) -> Slots:
    return tuple(map(tuple, per_band))
