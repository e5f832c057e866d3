"""The host tier: saving cached prefixes and bringing them back, one operation for every part.

Between any two parts everything else may happen: steps, frees, moves, evictions, cancellations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from harness.check import capacity, effects
from harness.host import Backup, Load, Saved
from harness.ops.base import Name, Op, Outcome
from harness.ops.requests import BLOCKS_MAX
from harness.parked import (
    cancel_resume,
    cancel_save,
    drop_if_unwanted,
    free_load,
    park,
    resume,
)
from harness.requests import Prefix
from harness.subject import LoadAnswer
from harness.world import World
from unikv.errors import Shortage

Blocks = Annotated[tuple[int, ...], Meta(min_length=1, max_length=BLOCKS_MAX)]


def _is_off(world: World) -> bool:
    return world.host_subject is None


class BeginBackup(Op, frozen=True, tag="begin_backup"):
    """A cached prefix gets host slots; nothing is copied yet."""

    copy: Name
    blocks: Blocks

    def apply(self, world: World) -> Outcome:
        """Take the slots, or change nothing."""
        host, prefix = world.host, world.prefixes.get(self.blocks)
        if _is_off(world) or prefix is None or host.is_known(self.copy):
            return Outcome.SKIPPED
        if self.blocks in host.saved:
            return Outcome.SKIPPED
        ids = _ids_of(world, prefix)
        answer = world.ask("begin_backup", self.copy, ids)
        if isinstance(answer, Shortage):
            world.answers.append(str(answer))
            counts = tuple(map(len, ids))
            capacity.after_a_shortage(world, answer, counts)
            world.capacity_answers.append((answer, counts))
            world.probes["host_slots_refused"] += 1
            return Outcome.REFUSED
        world.answers.append(answer)
        for problem in world.truth.copies.slots_handed_out(self.copy, answer):
            world.truth.note("ownership", "host slot with two owners", problem)
        world.truth.copies.pairs.backup_asked(ids, answer)
        tails = [len(tail) for tail in prefix.tails]
        host.saved[self.blocks] = Saved(answer, tails, self.copy)
        host.backups[self.copy] = Backup(self.blocks)
        prefix.locks += 1
        return Outcome.DONE


class BeginLoad(Op, frozen=True, tag="begin_load"):
    """A saved prefix gets pages, ids and a slot; its window rows are reserved and have no name."""

    copy: Name
    blocks: Blocks

    def apply(self, world: World) -> Outcome:
        """Take everything in one demand, or change nothing."""
        host, saved = world.host, world.host.saved.get(self.blocks)
        if _is_off(world) or saved is None or saved.backup or host.is_known(self.copy):
            return Outcome.SKIPPED
        if self.blocks in world.prefixes:
            return Outcome.SKIPPED
        load = begin_load(world, self.copy, self.blocks, saved.slots, saved.tails)
        if load is None:
            return Outcome.REFUSED
        prefix = world.prefixes[self.blocks] = load.prefix
        world.states.adopt(world, prefix)
        block_pages = world.setup.block_pages
        world.truth.remember_prefix(prefix.pages, prefix.slot, self.blocks, block_pages)
        saved.readers += 1
        return Outcome.DONE


class NameRows(Op, frozen=True, tag="name_rows"):
    """The reserved window rows of a load get the ids of the prefix, and may move from now on."""

    copy: Name

    def apply(self, world: World) -> Outcome:
        """Bind them."""
        load = world.host.loads.get(self.copy)
        if load is None or load.is_named:
            return Outcome.SKIPPED
        world.order_tables()
        _rows_are_named(world, self.copy, load)
        world.ask("name_rows", self.copy)
        world.probes["load_named_first"] += 1
        return Outcome.DONE


class SubmitCopy(Op, frozen=True, tag="submit_copy"):
    """A backup or a load is enqueued on its own stream."""

    copy: Name

    def apply(self, world: World) -> Outcome:
        """Enqueue it; what it saves or brings back may be freed from now on."""
        host = world.host
        backup, load = host.backups.get(self.copy), host.loads.get(self.copy)
        if backup is not None and backup.event is None:
            backup.event = world.ask("submit_backup", self.copy)
            world.truth.copies.began(self.copy, "copy_read", backup.event)
            if self.copy in host.parked:
                park(world, self.copy)
            else:
                world.prefixes[backup.blocks].locks -= 1
            world.probes["backup_submitted"] += 1
            return Outcome.DONE
        if load is not None and not load.events:
            world.order_tables()
            if not load.is_named:
                _rows_are_named(world, self.copy, load)
                world.probes["load_named_by_its_submission"] += 1
            load.events = world.ask("submit_load", self.copy)
            world.truth.copies.began(self.copy, "copy_write", load.events[-1])
            load.prefix.locks -= 1
            if load.parked:
                resume(world, load)
            else:
                world.states.adopted(world, load.prefix)
            world.probes["load_submitted"] += 1
            return Outcome.DONE
        return Outcome.SKIPPED


class Acknowledge(Op, frozen=True, tag="acknowledge"):
    """Every rank has seen a copy end, and the engine tells the allocator in the same round."""

    copy: Name

    def apply(self, world: World) -> Outcome:
        """End it, if it has ended on every rank."""
        host = world.host
        backup, load = host.backups.get(self.copy), host.loads.get(self.copy)
        event = backup.event if backup else load.events[-1] if load and load.events else None
        if event is None or not world.engine.has_ended(event):
            return Outcome.SKIPPED
        acknowledge(world, self.copy)
        return Outcome.DONE


class CancelCopy(Op, frozen=True, tag="cancel_copy"):
    """A copy is given up before it was submitted."""

    copy: Name

    def apply(self, world: World) -> Outcome:
        """Give back what it took, unless somebody builds on it already."""
        host = world.host
        backup, load = host.backups.get(self.copy), host.loads.get(self.copy)
        if self.copy in host.parked and backup is not None and backup.event is None:
            cancel_save(world, self.copy)
            world.probes["save_cancelled"] += 1
            return Outcome.DONE
        if load is not None and load.parked and not load.events:
            cancel_resume(world, self.copy)
            world.probes["resume_cancelled"] += 1
            return Outcome.DONE
        if backup is not None and backup.event is None:
            world.ask("cancel_copy", self.copy)
            world.truth.copies.slots_given_back(host.saved.pop(backup.blocks).slots)
            world.prefixes[backup.blocks].locks -= 1
            del host.backups[self.copy]
            world.probes["backup_cancelled"] += 1
            return Outcome.DONE
        if load is None or load.events or _is_shared(world, load):
            return Outcome.SKIPPED
        world.states.dropped(world, load.prefix.slot)
        free_load(world, self.copy, load)
        world.probes["load_cancelled_named" if load.is_named else "load_cancelled_reserved"] += 1
        del world.prefixes[load.blocks]
        host.saved[load.blocks].readers -= 1
        del host.loads[self.copy]
        return Outcome.DONE


class DropSaved(Op, frozen=True, tag="drop_saved"):
    """A saved prefix leaves host memory."""

    blocks: Blocks

    def apply(self, world: World) -> Outcome:
        """Give back its slots, unless a copy still uses them."""
        saved = world.host.saved.get(self.blocks)
        if saved is None or saved.backup or saved.readers:
            return Outcome.SKIPPED
        submitted = len(world.ports[0].log)
        world.ask("drop_saved", saved.slots)
        effects.after_free(world, "drop_saved", submitted)
        world.truth.copies.slots_given_back(saved.slots)
        del world.host.saved[self.blocks]
        world.probes["host_evicted"] += 1
        return Outcome.DONE


def begin_load(
    world: World,
    copy: str,
    blocks: tuple[int, ...],
    slots: Sequence[Sequence[int]],
    tails: Sequence[int],
) -> Load | None:
    """Take everything that a load brings back, held once; None when the allocator is short."""
    counts = tuple(map(len, slots))
    taken: LoadAnswer | None = world.ask_for(
        counts, ("fits_load", counts), ("begin_load", copy, slots)
    )
    if taken is None:
        return None
    if any(world.truth.transfers.stuck):
        world.probes["loaded_beside_stuck_pages"] += 1
    minted = {world.owner_band: taken.ids}
    if taken.slots:
        minted[world.state_band] = taken.slots
    world.truth.awaits_load(copy, minted, taken.reserved)
    slot = taken.slots[0] if taken.slots else 0
    rows = [taken.ids[len(taken.ids) - count :] for count in tails]
    filled = {**minted, **dict(zip(world.window_bands, rows, strict=True))}
    ids = [filled.get(band, []) for band in world.band_range]
    world.truth.copies.pairs.load_asked(ids, slots)
    prefix = Prefix(blocks, taken.ids, [[] for _ in rows], slot, locks=1)
    world.hold(prefix.pages, prefix.tails)
    load = Load(blocks, prefix, set(prefix.pages), slot, rows, is_named=not any(rows))
    world.host.loads[copy] = load
    return load


def acknowledge(world: World, copy: str) -> None:
    """Tell every rank's allocator in the same round that a copy has ended."""
    host = world.host
    world.ask("acknowledge", copy)
    world.truth.copies.acknowledged(copy)
    if copy in host.backups:
        backup = host.backups.pop(copy)
        if copy in host.parked:
            host.parked[copy].is_filled = True
            drop_if_unwanted(world, copy)
        else:
            host.saved[backup.blocks].backup = ""
        world.probes["backup_acknowledged"] += 1
    else:
        load = host.loads.pop(copy)
        if load.parked:
            host.parked[load.parked].load = ""
            drop_if_unwanted(world, load.parked)
        else:
            host.saved[load.blocks].readers -= 1
        world.probes["load_acknowledged"] += 1


def _is_shared(world: World, load: Load) -> bool:
    """Whether somebody was admitted on the prefix that a load brings back."""
    counts = world.page_holds.counts
    return load.prefix.locks > 1 or any(counts[unit] > 1 for unit in load.prefix.pages)


def _ids_of(world: World, prefix: Prefix) -> list[list[int]]:
    """Per band, the ids of a prefix whose pages a backup reads."""
    ids: list[list[int]] = [[] for _ in world.setup.bands]
    ids[world.owner_band] = list(prefix.pages)
    for band, tail in zip(world.window_bands, prefix.tails, strict=True):
        ids[band] = list(tail)
    if prefix.slot:
        ids[world.state_band] = [prefix.slot]
    return ids


def _rows_are_named(world: World, copy: str, load: Load) -> None:
    """The tree holds the rows of a load from now on; called before the allocator binds them."""
    load.is_named = True
    world.truth.reservation_over(copy)
    load.prefix.tails = load.rows
    for band, rows in zip(world.window_bands, load.rows, strict=True):
        world.row_holds[band].add(rows)
