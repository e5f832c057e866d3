"""An engine with a host tier, and its own account of what every page and every host slot must hold.

It does what an engine may do in the gaps between the calls of a copy, and knows which calls must be
refused.  A refusal must have changed nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pytest

from benchmarks.search.lending_account import books
from tests.cache.late_device import LateDevice, word
from unikv.alloc.invariants import InvariantLevel, Invariants
from unikv.cache.host_tier import HostCopy, HostTier
from unikv.device.port import Event, StorageLayout, Stream
from unikv.errors import OwnershipError, Shortage, UnikvError
from unikv.memory.host import SlotState
from unikv.storage import KVStorage

Answer = TypeVar("Answer")
Ids = tuple[tuple[int, ...], ...]
Words = list[list[bytes]]


@dataclass(slots=True)
class Saved:
    """A backup: its ids, their pages when it began, whether one was freed since, its content."""

    ids: Ids
    pages: list[list[int]]
    copy: HostCopy
    is_lost: bool = False
    words: Words | None = None
    event: Event = None


@dataclass(slots=True)
class Loaded:
    """A load: its ids, their pages when it began, its source and content, how far it has come."""

    ids: Ids
    pages: list[list[int]]
    source: HostCopy
    words: Words
    is_named: bool = False
    is_lost: bool = False
    event: Event = None


class TieredEngine:
    """Backups, loads and everything that may happen between their calls.

    Attributes:
        words: per band and bound id, the content of its page; None where nobody has written yet.
        backups, loads: those that are not over, by name.
        kept: acknowledged copies and their content.
        met: how often something happened that a test must not miss.
    """

    def __init__(self, layout: StorageLayout, level: InvariantLevel) -> None:
        self.layout = layout
        self.device = LateDevice(layout)
        self.storage = KVStorage(layout, self.device, invariants=Invariants(level))
        assert self.storage.host is not None
        self.tier: HostTier = self.storage.host
        self.chain = self.storage.chain
        self.bands = range(len(layout.bands))
        self.owner = self.bands[-1]
        self.state = next((i for i, band in enumerate(layout.bands[:-1]) if band.mints), -1)
        self.windows = [band for band in self.bands if not layout.bands[band].mints]
        self.words: list[dict[int, bytes | None]] = [{} for _ in self.bands]
        self.backups: dict[str, Saved] = {}
        self.loads: dict[str, Loaded] = {}
        self.kept: list[tuple[HostCopy, Words]] = []
        self.recorded: list[tuple[int, Event]] = []
        self.met: Counter[str] = Counter()
        self._stamps = self._names = self._steps = 0

    # The chain ----------------------------------------------------------------------------------

    def take(self, pages: int, slots: int) -> bool:
        """Take pages and slots."""
        try:
            taken = self.chain.take(pages, slots)
        except Shortage:
            return False
        for band in (*self.windows, self.owner):
            zeros = bytes(self.layout.bands[band].page_bytes)
            self.words[band].update(dict.fromkeys(taken.ids, zeros))
        if slots:
            self.words[self.state].update(dict.fromkeys(taken.slots))
        return True

    def free(self, band: int, ids: Sequence[int]) -> None:
        """Free owner ids everywhere, state slots, or the rows of a window."""
        if band == self.state:
            self.chain.free_slots(ids)
        elif band == self.owner:
            self.chain.free(ids)
        else:
            self.chain.retire(band, ids)
        for other in [band] if band != self.owner else [*self.windows, self.owner]:
            for unit in ids:
                self.words[other].pop(unit, None)
            self._lose(other, ids)

    def _lose(self, band: int, ids: Sequence[int]) -> None:
        copies: list[Saved | Loaded] = [*self.backups.values(), *self.loads.values()]
        for copy in copies:
            copy.is_lost |= not copy.event and not set(ids).isdisjoint(copy.ids[band])

    def writable(self, band: int) -> list[int]:
        """Ids that a forward may write: none that a backup in flight reads."""
        copied = {u for backup in self.backups.values() if backup.event for u in backup.ids[band]}
        return sorted(self.words[band].keys() - copied)

    def step(self, reads: Sequence[Sequence[int]], writes: Sequence[Sequence[int]]) -> None:
        """Run a forward that reads and then writes pages; None of a band's content is not read."""
        self._steps += 1
        device = self.device
        self.chain.launch_step(self._steps)
        device.wait_event(Stream.FORWARD, device.record_event(Stream.SCHEDULE))
        for group in range(self.layout.layer_groups):
            names = [name for name, load in self.loads.items() if self._touches(load, reads)]
            self.tier.order_forward(Stream.FORWARD, names, group)
            for band, units in enumerate(reads):
                for unit, page in zip(units, self.chain.translate(band, units), strict=True):
                    wanted = self.words[band][unit]
                    size = self.layout.bands[band].page_bytes // self.layout.layer_groups
                    found = device.forward_reads(band, page, group)
                    assert wanted is None or found == wanted[group * size : (group + 1) * size]
        for name in [name for name, load in self.loads.items() if self._touches(load, writes)]:
            for group in range(self.layout.layer_groups):
                self.tier.order_forward(Stream.FORWARD, [name], group)
        for band, units in enumerate(writes):
            for unit, page in zip(units, self.chain.translate(band, units), strict=True):
                self.words[band][unit] = self.stamp(band)
                device.forward_writes(band, page, self.words[band][unit] or b"")
        event = device.record_event(Stream.FORWARD)
        self.chain.record_step(self._steps, event, writes)
        self.recorded.append((self._steps, event))

    @staticmethod
    def _touches(load: Loaded, ids: Sequence[Sequence[int]]) -> bool:
        return load.event is not None and any(
            not set(units).isdisjoint(own) for units, own in zip(ids, load.ids, strict=True)
        )

    def process(self) -> None:
        """The host waits for the oldest step."""
        number, event = self.recorded.pop(0)
        self.device.host_wait(event)
        self.chain.process_step(number)

    def stamp(self, band: int) -> bytes:
        """New content for a page."""
        self._stamps += 1
        return word(self._stamps, self.layout.bands[band].page_bytes)

    # Backups ------------------------------------------------------------------------------------

    def begin_backup(self, ids: Sequence[Sequence[int]]) -> str | None:
        """Begin a backup; its name, or None where the host is full."""
        name = self.name()
        counts = [len(units) for units in ids]
        try:
            copy = self._ask(lambda: self.tier.begin_backup(name, ids))
        except Shortage:
            frees = [pool.free_count for pool in self.tier.memory.pools]
            shared = bool(self.tier.memory.pairs)
            assert shared or any(n > free for n, free in zip(counts, frees, strict=True))
            return None
        assert [len(slots) for slots in copy.slots] == counts
        frozen = tuple(map(tuple, ids))
        self.backups[name] = Saved(frozen, self.pages(frozen), copy)
        return name

    def submit_backup(self, name: str) -> None:
        """Submit it, or see it refused because ids were freed."""
        backup = self.backups[name]
        if backup.is_lost:
            self.refused(OwnershipError, lambda: self.tier.submit_backup(name))
            return
        self.met["moved before submission"] += backup.pages != self.pages(backup.ids)
        backup.event = self.tier.submit_backup(name)
        backup.words = [
            [self.words[band][unit] or b"" for unit in units]
            for band, units in enumerate(backup.ids)
        ]

    # Loads --------------------------------------------------------------------------------------

    def begin_load(self, source: HostCopy, words: Words) -> str | None:
        """Begin a load; its name, or None where the chain has no room."""
        name = self.name()
        counts = [len(slots) for slots in source.slots]
        promised = self.chain.fits_load(counts)
        try:
            taken = self._ask(lambda: self.tier.begin_load(name, source))
        except Shortage:
            assert not promised
            return None
        assert promised
        assert (len(taken.ids), len(taken.slots)) == (
            counts[self.owner],
            counts[self.state] if self.state >= 0 else 0,
        )
        ids = [
            taken.slots if band == self.state else taken.ids[len(taken.ids) - count :]
            for band, count in enumerate(counts)
        ]
        for band in self.bands:
            assert self.words[band].keys().isdisjoint(ids[band])
        frozen = tuple(map(tuple, ids))
        self.loads[name] = Loaded(frozen, self.pages(frozen), source, words)
        return name

    def name_rows(self, name: str) -> None:
        """Name its rows, or see it refused because ids were freed."""
        load = self.loads[name]
        if load.is_lost:
            self.refused(UnikvError, lambda: self.tier.name_rows(name))
            return
        self.tier.name_rows(name)
        load.is_named = True

    def submit_load(self, name: str) -> None:
        """Submit it, or see it refused because ids were freed."""
        load = self.loads[name]
        if load.is_lost:
            self.refused(OwnershipError, lambda: self.tier.submit_load(name))
            return
        self.met["moved before submission"] += self.has_moved(load)
        events = self.tier.submit_load(name)
        assert len(events) == self.layout.layer_groups
        load.event = events[-1]
        for band, units in enumerate(load.ids):
            self.words[band].update(zip(units, load.words[band], strict=True))

    def has_moved(self, load: Loaded) -> bool:
        """Whether a page that a load fills lies elsewhere than when it began."""
        now = self.pages(load.ids)
        return any(
            was and was != is_now
            for old, new in zip(load.pages, now, strict=True)
            for was, is_now in zip(old, new, strict=True)
        )

    def free_early(self, name: str, band: int, ids: Sequence[int]) -> None:
        """Free what a load has taken before it is submitted."""
        self.free(band, ids)
        self.loads[name].is_lost = True

    # Both ---------------------------------------------------------------------------------------

    def acknowledge(self, name: str) -> None:
        """A copy has ended on every rank."""
        copy = self.backups.get(name) or self.loads[name]
        self.device.host_wait(copy.event)
        self.tier.acknowledge(name)
        if isinstance(copy, Saved):
            del self.backups[name]
            self.kept.append((copy.copy, copy.words or []))
        else:
            del self.loads[name]

    def cancel(self, name: str) -> None:
        """Give up a copy that is not submitted."""
        self.tier.cancel(name)
        if self.backups.pop(name, None) is None:
            del self.loads[name]

    def drop(self, index: int) -> None:
        """Drop a kept copy, or see it refused because a load reads it."""
        copy, _ = self.kept[index]
        own = [set(slots) for slots in copy.slots]
        if any(
            not slots.isdisjoint(read)
            for load in self.loads.values()
            for slots, read in zip(own, load.source.slots, strict=True)
        ):
            self.refused(OwnershipError, lambda: self.tier.drop(copy))
            return
        self.tier.drop(copy)
        del self.kept[index]

    def submitted(self) -> list[str]:
        """Names of the copies in flight."""
        backups = [name for name, backup in self.backups.items() if backup.event]
        return backups + [name for name, load in self.loads.items() if load.event]

    def pages(self, ids: Ids) -> list[list[int]]:
        """Where ids are now."""
        return [self.chain.translate(band, units) for band, units in enumerate(ids)]

    def name(self) -> str:
        """A name that was never used."""
        self._names += 1
        return f"copy {self._names}"

    # What must hold -----------------------------------------------------------------------------

    def refused(self, error: type[UnikvError], act: Callable[[], object]) -> str:
        """The call raises and changes nothing; its text."""
        before = self.everything()
        with pytest.raises(error) as refusal:
            act()
        assert self.everything() == before
        return str(refusal.value)

    def _ask(self, act: Callable[[], Answer]) -> Answer:
        before = self.everything()
        try:
            return act()
        except UnikvError:
            if self.everything() != before:
                raise AssertionError("a refusal changed something") from None
            raise

    def everything(self) -> object:
        """All that a call of the tier can change."""
        pools = [
            ([tuple(pool.slots_in(state)) for state in SlotState], pool.readers(), pool.span())
            for pool in self.tier.memory.pools
        ]
        copies = [(name, str(copy)) for name, copy in self.tier.copies.items()]
        return books(self.chain), pools, copies, len(self.device.calls)

    def check(self) -> None:
        """Everything that must hold between operations."""
        running = [set[int]() for _ in self.bands]
        for load in self.loads.values():
            for band, units in enumerate(load.ids):
                running[band].update(units)
        for band, part in enumerate(self.chain.bands):
            assert self.device.maps[band] == part.ids.forward
            bound = {unit for unit, page in enumerate(part.ids.forward) if page}
            assert bound <= self.words[band].keys() | running[band], "ids that nobody holds"
            for unit, content in self.words[band].items():
                assert part.ids.forward[unit]
                if content is not None and unit not in running[band]:
                    where = self.device.where(band, part.ids.forward[unit])
                    assert self.device.arena[where.start : where.stop] == content
        self._check_host()

    def _check_host(self) -> None:
        used: list[set[int]] = [set() for _ in self.device.host]
        backings = {band: i for i, part in enumerate(self.layout.host) for band in part.bands}
        held = [copy for copy, _ in self.kept] + [b.copy for b in self.backups.values()]
        for copy in held:
            for band, slots in enumerate(copy.slots):
                for slot in slots:
                    where = self.device.where(band, slot)
                    assert where.stop <= len(self.device.memory(band))
                    assert used[backings[band]].isdisjoint(where), "two slots share a byte"
                    used[backings[band]].update(where)
        for copy, words in self.kept:
            for band, slots in enumerate(copy.slots):
                for slot, content in zip(slots, words[band], strict=True):
                    where = self.device.where(band, slot)
                    assert self.device.memory(band)[where.start : where.stop] == content

    def check_thoroughly(self) -> None:
        """What costs more, because it looks at everything or tries it out."""
        self.check()
        assert self.storage.audit() == []
        for pool in self.tier.memory.pools:
            free = pool.free_count
            taken = pool.take(free)
            assert pool.free_count == 0
            pool.cancel(taken)
            assert pool.free_count == free
