"""Faults of the host tier: host slots and reserved rows in wrong hands, copies ended too early.

Which bytes a copy carries, and what it has to wait for, are not the matter here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.device.launches import ModeledEvent
from harness.engine import Engine
from harness.faults.fault import Fault
from harness.faults.parts import become, both, in_engine, in_host, in_host_pools, in_mover, in_world
from harness.host import Blocks, HostTierState, Saved
from harness.world import World
from unikv.alloc.band import Band
from unikv.alloc.compaction import PageMover, plan_compaction
from unikv.cache.claims import claim
from unikv.cache.host_copies import Backup, Load
from unikv.cache.host_tier import HostCopy, HostTier, LoadTake, PerBand
from unikv.device.port import Event, Stream
from unikv.memory.host import HostPool, SlotState


class _OffersSlotsBeingFilled(HostPool):
    __slots__ = ()

    def take(self, count: int) -> list[int]:
        slots = super().take(count)
        for slot in slots[:1]:
            self._states[self._axis.depth_of(slot)] = SlotState.FREE
        return slots

    def _change(self, slots: Sequence[int], before: SlotState, after: SlotState) -> None:
        for slot in slots:
            self._states[self._axis.depth_of(slot)] = after


class _ForgetsReaders(HostPool):
    __slots__ = ()

    def begin_read(self, slots: Sequence[int]) -> None:
        pass

    def end_read(self, slots: Sequence[int]) -> None:
        pass


class _DropsWhatIsBeingFilled(HostPool):
    __slots__ = ()

    def check_idle(self, slots: Sequence[int], action: str) -> None:
        pass

    def give_back(self, slots: Sequence[int]) -> None:
        for slot in slots:
            self._states[self._axis.depth_of(slot)] = SlotState.FREE
        self._retreat()


class _DropsItsTailTwice(HostTier):
    def drop(self, copy: HostCopy) -> None:
        super().drop(copy)
        for pool, slot in vars(self).get("tails", ()):
            depth = pool._axis.depth_of(slot)
            if pool._states[depth] == SlotState.FULL:
                pool._states[depth] = SlotState.FREE
        pools = zip(self.memory.pools, copy.slots, strict=True)
        vars(self)["tails"] = [(pool, own[-1]) for pool, own in pools if own]


class _CancelKeepsSlots(HostTier):
    def cancel(self, name: str) -> None:
        if isinstance(self.copies.get(name), Backup):
            del self.copies[name]
        else:
            super().cancel(name)


class _CancelKeepsRows(HostTier):
    def cancel(self, name: str) -> None:
        copy = self.copies.get(name)
        if isinstance(copy, Load):
            copy.reserved = {}
        super().cancel(name)


class _ReservationEndsAtOnce(HostTier):
    def begin_load(self, name: str, source: HostCopy) -> LoadTake:
        taken = super().begin_load(name, source)
        load = self.copies[name]
        assert isinstance(load, Load)
        for band, pages in load.reserved.items():
            self._chain.bands[band].name_fixed(pages)
        return taken


class _NamesTheFirstRows(HostTier):
    def begin_load(self, name: str, source: HostCopy) -> LoadTake:
        taken = super().begin_load(name, source)
        load = self.copies[name]
        assert isinstance(load, Load)
        ids = list(load.claim.ids)
        for band in load.reserved:
            ids[band] = tuple(taken.ids[: len(ids[band])])
        load.claim = claim(self._chain.bands, ids)
        return taken


class _MovesReservedRows(PageMover):
    __slots__ = ()

    def compact(self, band: Band, limit: int) -> int:
        fixed = band.fixed_pages()
        band.name_fixed(fixed)
        plan = plan_compaction(band, limit)
        band.fix_live(fixed)
        for source, target in zip(plan.sources, plan.targets, strict=True):
            if source in fixed:
                self._device.move_pages(Stream.SCHEDULE, band.index, [source], [target])
                band.occupy_holes([target])
                band.fix_live([target])
                band.release_fixed([source])
                return 1
        return super().compact(band, limit)


class _FullAtSubmission(HostTier):
    def submit_backup(self, name: str) -> Event:
        event = super().submit_backup(name)
        backup = self.copies[name]
        assert isinstance(backup, Backup)
        self.memory.filled(backup.target)
        return event

    def acknowledge(self, name: str) -> None:
        backup = self.copies[name]
        if isinstance(backup, Backup):
            self._chain.users.end_copy(backup.number)
            del self.copies[name]
        else:
            super().acknowledge(name)


def _blocks(world: World, copy: object) -> Blocks:
    """The prefix that a copy saves or brings back; none if it is a request's."""
    host = world.host
    if not isinstance(copy, str):
        return ()
    backup, load = host.backups.get(copy), host.loads.get(copy)
    return backup.blocks if backup else load.blocks if load else ()


class _ReadsWhatIsSubmitted(World):
    """The engine takes a backup that is submitted for one that is over."""

    def ask(self, name: str, *arguments: Any) -> Any:
        answer = super().ask(name, *arguments)
        saved = self.host.saved.get(_blocks(self, arguments[0])) if arguments else None
        if saved is not None and name == "submit_backup":
            saved.backup = ""
            saved.readers += 1  # by which nothing but a load may use it
        if saved is not None and name == "acknowledge" and arguments[0] in self.host.backups:
            saved.readers -= 1
        return answer


class _Forgotten(dict[Blocks, Saved]):
    """What is saved; of what was dropped under a copy nothing is known any more."""

    def __missing__(self, blocks: Blocks) -> Saved:
        return Saved((), [], "")


class _DropsWhatIsRead(World):
    """The engine counts no load once it is submitted."""

    def ask(self, name: str, *arguments: Any) -> Any:
        saved = self.host.saved.get(_blocks(self, arguments[0])) if arguments else None
        if saved is not None and name == "acknowledge" and arguments[0] in self.host.loads:
            saved.readers += 1
        answer = super().ask(name, *arguments)
        if saved is not None and name == "submit_load":
            saved.readers -= 1
        return answer


class _ForgetsBackups(World):
    """The engine counts no backup once it is submitted."""

    def ask(self, name: str, *arguments: Any) -> Any:
        answer = super().ask(name, *arguments)
        saved = self.host.saved.get(_blocks(self, arguments[0])) if arguments else None
        if saved is not None and name == "submit_backup":
            saved.backup = ""
        return answer


def _forget_what_is_dropped(world: World) -> None:
    world.host.saved = _Forgotten(world.host.saved)


class _LaunchesOverUnsubmitted(HostTierState):
    __slots__ = ()

    def waits_for_submission(self, pages: Sequence[int], slot: int) -> bool:
        return False

    def loads_of(self, pages: Sequence[int], slot: int) -> list[str]:
        return [name for name in super().loads_of(pages, slot) if self.loads[name].events]


def _launch_over_unsubmitted(world: World) -> None:
    become(world.host, _LaunchesOverUnsubmitted)


class _FirstRankDecides(Engine):
    def has_ended(self, event: ModeledEvent) -> bool:
        if not self.device.passed(0, event):
            return False
        self.device.host_saw(event)
        return True


class _PicksSlotsByItsOwnCopies(HostTier):
    def submit_backup(self, name: str) -> Event:
        vars(self)["newest"] = event = super().submit_backup(name)
        return event

    def begin_backup(self, name: str, ids: PerBand) -> HostCopy:
        copy = super().begin_backup(name, ids)
        newest = vars(self).get("newest")
        if newest is not None and self._device.query(newest):
            backup = self.copies[name]
            assert isinstance(backup, Backup)
            backup.target = tuple(own[::-1] for own in copy.slots)
            return HostCopy(backup.target)
        return copy


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="host-slot-offered-while-filled",
        planted="a host slot that a backup fills is offered to the next backup",
        plant=in_host_pools(_OffersSlotsBeingFilled),
        checks=("ownership",),
        scenario="host_tier",
        rows=("B35",),
    ),
    Fault(
        id="host-slot-freed-twice",
        planted="the last host slot of a dropped copy is freed once more at the next drop",
        plant=in_host(_DropsItsTailTwice),
        checks=("ownership",),
        scenario="host_tier",
        rows=("B47",),
    ),
    Fault(
        id="host-slot-read-at-submission",
        planted="host slots count as filled once their backup is submitted, and a load reads them",
        plant=both(in_host(_FullAtSubmission), in_world(_ReadsWhatIsSubmitted)),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B33",),
        ablates="edge L <- backup of the source slots",
        edge="load <- backup",
        pair=("backup write", "load read"),
    ),
    Fault(
        id="host-slot-dropped-under-a-load",
        planted="host slots are given back while a load reads them, and the next backup fills them",
        plant=both(
            _forget_what_is_dropped,
            both(in_host_pools(_ForgetsReaders), in_world(_DropsWhatIsRead)),
        ),
        checks=("ordering",),
        scenario="host_tier",
        rows=("B37", "B51"),
        ablates="edge host slot locked until acknowledged",
        edge="backup <- load",
        pair=("load read", "backup write"),
    ),
    Fault(
        id="host-slot-dropped-under-its-backup",
        planted="host slots are given back while their own backup still fills them",
        plant=both(
            _forget_what_is_dropped,
            both(in_host_pools(_DropsWhatIsBeingFilled), in_world(_ForgetsBackups)),
        ),
        checks=("assertion", "ownership"),
        scenario="host_tier",
    ),
    Fault(
        id="backup-forgotten-by-the-engine",
        planted="the engine reads or drops what is saved before its backup is acknowledged",
        plant=in_world(_ForgetsBackups),
        checks=("ownership",),
        scenario="host_tier",
    ),
    Fault(
        id="cancel-keeps-host-slots",
        planted="a cancelled backup never gives its host slots back",
        plant=in_host(_CancelKeepsSlots),
        checks=("capacity",),
        scenario="host_tier",
        rows=("B49",),
    ),
    Fault(
        id="cancel-keeps-rows",
        planted="a cancelled load never gives its reserved rows back",
        plant=in_host(_CancelKeepsRows),
        checks=("ledger",),
        scenario="host_tier",
        rows=("B49",),
    ),
    Fault(
        id="reservation-ends-at-once",
        planted="the rows of a load may move before ids name them",
        plant=in_host(_ReservationEndsAtOnce),
        checks=("ledger",),
        scenario="host_tier",
    ),
    Fault(
        id="reserved-row-moved",
        planted="a flush moves a row that is reserved for a load",
        plant=in_mover(_MovesReservedRows),
        checks=("ownership",),
        scenario="host_tier",
    ),
    Fault(
        id="rows-named-from-the-front",
        planted="the window rows of a load are named by its first ids instead of its last",
        plant=in_host(_NamesTheFirstRows),
        checks=("ownership",),
        scenario="host_tier",
    ),
    Fault(
        id="launch-over-an-unsubmitted-load",
        planted="a forward reads pages whose load is not even submitted",
        plant=_launch_over_unsubmitted,
        checks=("initialised",),
        scenario="host_tier",
        rows=("B45",),
    ),
    Fault(
        id="acknowledged-by-the-first-rank",
        planted="a copy is over for every rank once the first has seen it end",
        plant=in_engine(_FirstRankDecides),
        checks=("content",),
        scenario="host_tier",
        rows=("B123",),
    ),
    Fault(
        id="host-slots-by-own-copies",
        planted="each rank picks host slots by what its own copies have finished",
        plant=in_host(_PicksSlotsByItsOwnCopies),
        checks=("divergence",),
        scenario="host_tier",
        rows=("B123", "B131"),
    ),
)
