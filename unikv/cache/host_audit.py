"""Host slots against their own rule, and a host tier that asks it after every call.

The pools know the state of a slot and how many loads read it; the tier knows the backups and loads
that are not over.  Each must follow from the other.  As with the allocator, a checked tier is a
subclass chosen when a storage is built, so a tier whose level is off pays nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, ClearanceTable
from unikv.alloc.invariants import SLOT_UNIQUE, Finding, Invariants
from unikv.cache.host_copies import Backup
from unikv.cache.host_tier import HostCopy, HostTier, LoadTake, PerBand
from unikv.device.port import CopyDevice, Event, StorageLayout, Stream
from unikv.errors import InvariantError, UnikvError, listed
from unikv.memory.host import HostPool, SlotState


def slot_unique(tier: HostTier) -> list[Finding]:
    """Every host slot has one holder, and nobody reads what is not there."""
    found: list[Finding] = []
    for band, pool in enumerate(tier.memory.pools):
        copies = tier.copies.values()
        filled = Counter(
            s for copy in copies if isinstance(copy, Backup) for s in copy.target[band]
        )
        read = Counter(
            s for copy in copies if not isinstance(copy, Backup) for s in copy.source[band]
        )
        filling, full = set(pool.slots_in(SlotState.FILLING)), set(pool.slots_in(SlotState.FULL))
        known = pool.readers()
        low, high = pool.span()
        size = pool.slot_bytes
        for what, slots in (
            ("are filled by two backups", {slot for slot, count in filled.items() if count > 1}),
            ("are being filled, but by no backup", filling - set(filled)),
            ("belong to a backup, but are not being filled", set(filled) - filling),
            ("are read, but hold no copy", set(read) - full),
            (
                "have another number of readers than loads read them",
                {slot for slot in {*read, *known} if known.get(slot, 0) != read[slot]},
            ),
            (
                "are in use outside of the bytes that the pool has claimed",
                {s for s in filling | full if not low <= s * size < (s + 1) * size <= high},
            ),
        ):
            if slots:
                place = f"host pool {pool.name!r}"
                found.append(Finding(SLOT_UNIQUE, place, f"slots {listed(sorted(slots))} {what}"))
    return found + [overlap for pair in tier.memory.pairs for overlap in _overlap(*pair)]


def _overlap(low: HostPool, high: HostPool) -> list[Finding]:
    """Used slots of two pools in one backing that share a byte."""
    used = [
        [slot for state in (SlotState.FILLING, SlotState.FULL) for slot in pool.slots_in(state)]
        for pool in (low, high)
    ]
    end = max(((slot + 1) * low.slot_bytes for slot in used[0]), default=0)
    over = sorted(slot for slot in used[1] if slot * high.slot_bytes < end)
    if not over:
        return []
    what = f"slots {listed(over)} begin before byte {end}, where {low.name!r} ends"
    return [Finding(SLOT_UNIQUE, f"host pool {high.name!r}", what)]


class CheckedHostTier(HostTier):
    """`HostTier` with every call checked, also one that is refused."""

    def __init__(
        self,
        layout: StorageLayout,
        chain: ChainAllocator,
        device: CopyDevice,
        invariants: Invariants,
        clearance: ClearanceTable = CLEARANCE,
    ) -> None:
        super().__init__(layout, chain, device, clearance)
        self._invariants = invariants

    def begin_backup(self, name: str, ids: PerBand) -> HostCopy:
        """As `HostTier.begin_backup`."""
        with self._audited():
            return super().begin_backup(name, ids)

    def submit_backup(self, name: str) -> Event:
        """As `HostTier.submit_backup`."""
        with self._audited():
            return super().submit_backup(name)

    def begin_load(self, name: str, source: HostCopy) -> LoadTake:
        """As `HostTier.begin_load`."""
        with self._audited():
            return super().begin_load(name, source)

    def name_rows(self, name: str) -> None:
        """As `HostTier.name_rows`."""
        with self._audited():
            super().name_rows(name)

    def submit_load(self, name: str) -> tuple[Event, ...]:
        """As `HostTier.submit_load`."""
        with self._audited():
            return super().submit_load(name)

    def order_forward(self, stream: Stream, names: Sequence[str], layer_group: int) -> None:
        """As `HostTier.order_forward`."""
        with self._audited():
            super().order_forward(stream, names, layer_group)

    def acknowledge(self, name: str) -> None:
        """As `HostTier.acknowledge`."""
        with self._audited():
            super().acknowledge(name)

    def cancel(self, name: str) -> None:
        """As `HostTier.cancel`."""
        with self._audited():
            super().cancel(name)

    def drop(self, copy: HostCopy) -> None:
        """As `HostTier.drop`."""
        with self._audited():
            super().drop(copy)

    @contextmanager
    def _audited(self) -> Iterator[None]:
        try:
            yield
        except InvariantError:
            raise  # the first finding is the cause; what the audit adds would bury it
        except UnikvError:
            self._invariants.report(slot_unique(self))
            raise
        self._invariants.report(slot_unique(self))
