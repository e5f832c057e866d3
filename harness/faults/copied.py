"""Faults of what a copy carries: other pages or host slots than its own, too few, out of order.

A tier that miscopies keeps every book right, so only what is read back can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from harness.device.clock import Access
from harness.device.host_memory import HostMemory
from harness.device.memory import ARENA, CopyBytes
from harness.faults.fault import Fault
from harness.faults.parts import become, in_host
from harness.world import World
from unikv.cache.claims import pages_of
from unikv.cache.host_copies import Load
from unikv.cache.host_tier import HostCopy, HostTier, LoadTake, PerBand
from unikv.device.port import CopyDevice, Event, Stream
from unikv.memory.host import SlotState

Answer = TypeVar("Answer")
Pages = Sequence[int]
Slots = Sequence[int]


class _Miscopies(HostTier):
    """Hands its device other pages or slots than a copy is about."""

    def saves(self, name: str, band: int, pages: Pages, slots: Slots) -> tuple[Pages, Slots]:
        """What a backup of `pages` to `slots` copies instead."""
        return pages, slots

    def brings(self, name: str, band: int, slots: Slots, pages: Pages) -> tuple[Slots, Pages]:
        """What a load of `slots` to `pages` copies instead."""
        return slots, pages

    def submit_backup(self, name: str) -> Event:
        """As any tier, with a device that copies what `saves` says."""
        return self._miscopy(name, super().submit_backup)

    def submit_load(self, name: str) -> tuple[Event, ...]:
        """As any tier, with a device that copies what `brings` says."""
        return self._miscopy(name, super().submit_load)

    def _miscopy(self, name: str, submit: Callable[[str], Answer]) -> Answer:
        device = self._device
        self._device = cast(CopyDevice, _OtherCopies(self, device, name))
        try:
            return submit(name)
        finally:
            self._device = device


class _OtherCopies:
    """A device that asks a tier what to copy."""

    def __init__(self, tier: _Miscopies, device: CopyDevice, name: str) -> None:
        self._tier, self._device, self._name = tier, device, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def copy_to_host(self, stream: Stream, band: int, pages: Pages, slots: Slots) -> None:
        """Copy what the tier says, if anything."""
        pages, slots = self._tier.saves(self._name, band, pages, slots)
        if pages:
            self._device.copy_to_host(stream, band, pages, slots)

    def copy_from_host(
        self, stream: Stream, band: int, group: int, slots: Slots, pages: Pages
    ) -> None:
        """Copy what the tier says, if anything."""
        slots, pages = self._tier.brings(self._name, band, slots, pages)
        if slots:
            self._device.copy_from_host(stream, band, group, slots, pages)


class _BackupTranslatedEarly(_Miscopies):
    def begin_backup(self, name: str, ids: PerBand) -> HostCopy:
        copy = super().begin_backup(name, ids)
        pages = pages_of(self._chain.bands, self.copies[name].claim)
        vars(self).setdefault("early", {})[name] = pages
        return copy

    def saves(self, name: str, band: int, pages: Pages, slots: Slots) -> tuple[Pages, Slots]:
        return vars(self)["early"][name][band], slots


class _LoadTranslatedEarly(_Miscopies):
    def begin_load(self, name: str, source: HostCopy) -> LoadTake:
        taken = super().begin_load(name, source)
        load = self.copies[name]
        assert isinstance(load, Load)
        vars(self).setdefault("early", {})[name] = [
            load.reserved.get(band.index) or band.ids.pages_of(units)
            for band, units in zip(self._chain.bands, load.claim.ids, strict=True)
        ]
        return taken

    def brings(self, name: str, band: int, slots: Slots, pages: Pages) -> tuple[Slots, Pages]:
        return slots, vars(self)["early"][name][band]


class _IdsForPages(_Miscopies):
    def saves(self, name: str, band: int, pages: Pages, slots: Slots) -> tuple[Pages, Slots]:
        ids, limit = self.copies[name].claim.ids[band], len(self._chain.bands[band].states)
        return [u if u < limit else p for u, p in zip(ids, pages, strict=True)], slots


class _SavesANeighbour(_Miscopies):
    def saves(self, name: str, band: int, pages: Pages, slots: Slots) -> tuple[Pages, Slots]:
        low, high = self._chain.bands[band].span()
        beside = pages[0] + 1 if pages[0] + 1 < high else pages[0] - 1
        return [beside if low <= beside else pages[0], *pages[1:]], slots


class _SavesAllButTheLast(_Miscopies):
    def saves(self, name: str, band: int, pages: Pages, slots: Slots) -> tuple[Pages, Slots]:
        return pages[:-1], slots[:-1]


class _SavesInReverse(_Miscopies):
    def saves(self, name: str, band: int, pages: Pages, slots: Slots) -> tuple[Pages, Slots]:
        return pages, slots[::-1]


class _BringsAllButTheLast(_Miscopies):
    def brings(self, name: str, band: int, slots: Slots, pages: Pages) -> tuple[Slots, Pages]:
        return slots[:-1], pages[:-1]


class _BringsInReverse(_Miscopies):
    def brings(self, name: str, band: int, slots: Slots, pages: Pages) -> tuple[Slots, Pages]:
        return slots[::-1], pages


class _BringsAnotherState(_Miscopies):
    def brings(self, name: str, band: int, slots: Slots, pages: Pages) -> tuple[Slots, Pages]:
        if self._chain.bands[band].layout.zeroed:
            return slots, pages
        others = self.memory.pools[band].slots_in(SlotState.FULL)
        return [others[0]] * len(slots), pages


class _GroupsInReverse(HostMemory):
    """Takes host slots to hold their layer groups in reverse."""

    def copy_from_host(
        self, stream: int, band: int, group: int, slots: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Copy the mirrored layer group of host slots into pages of the arena."""
        device, size, index = self._device, self._device.page_bytes[band], self.piece_of[band]
        piece = size // self._groups
        mirrored = self._groups - 1 - group
        copies = [
            (slot * size + mirrored * piece, page * size + group * piece, piece)
            for slot, page in zip(slots, pages, strict=True)
        ]
        host = device.program.host[index]
        before = [bytes(host[source : source + length]) for source, _, length in copies]
        touched = (
            Access(self.spaces[index], self._units(index, band, slots, mirrored), False),
            Access(device.arena, device.group_granules(band, pages, group), True),
        )
        device.submit(stream, "load", 0, CopyBytes(index, ARENA, copies, before), touched)


def _reverse_groups(world: World) -> None:
    become(world.device.host, _GroupsInReverse)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="backup-translated-early",
        planted="a backup reads the pages that its ids named when it began",
        plant=in_host(_BackupTranslatedEarly),
        checks=("ledger", "content"),
        scenario="host_tier",
        rows=("B09",),
    ),
    Fault(
        id="load-translated-early",
        planted="a load fills the pages that its ids named when it began",
        plant=in_host(_LoadTranslatedEarly),
        checks=("ledger", "content"),
        scenario="host_tier",
        rows=("B09",),
    ),
    Fault(
        id="ids-taken-for-pages",
        planted="a backup takes ids for page numbers",
        plant=in_host(_IdsForPages),
        checks=("ledger", "content"),
        scenario="host_tier",
        rows=("B09",),
    ),
    Fault(
        id="backup-of-a-neighbour",
        planted="a backup reads the page beside its first one",
        plant=in_host(_SavesANeighbour),
        checks=("ledger", "content"),
        scenario="host_tier",
        rows=("B09",),
    ),
    Fault(
        id="backup-without-its-last-page",
        planted="a backup leaves out the last page of every band",
        plant=in_host(_SavesAllButTheLast),
        checks=("ledger", "initialised"),
        scenario="host_tier",
        rows=("B43",),
    ),
    Fault(
        id="backup-into-slots-in-reverse",
        planted="a backup fills its host slots in another order than it answered",
        plant=in_host(_SavesInReverse),
        checks=("content",),
        scenario="host_tier",
    ),
    Fault(
        id="load-without-its-last-page",
        planted="a load leaves out the last page of every band",
        plant=in_host(_BringsAllButTheLast),
        checks=("ledger", "initialised"),
        scenario="host_tier",
        rows=("B43",),
    ),
    Fault(
        id="load-from-slots-in-reverse",
        planted="a load reads its host slots in another order than it was given",
        plant=in_host(_BringsInReverse),
        checks=("content",),
        scenario="host_tier",
    ),
    Fault(
        id="state-of-another-prefix-restored",
        planted="a load brings back the state of another prefix",
        plant=in_host(_BringsAnotherState),
        checks=("content",),
        scenario="everything",
    ),
    Fault(
        id="layer-groups-in-reverse",
        planted="what restores a page takes its layer groups to be saved in reverse",
        plant=_reverse_groups,
        checks=("content",),
        scenario="host_tier",
        rows=("B53",),
    ),
)
