"""Host memory for copies of pages: one pool of slots per band, and who may use a slot.

A slot holds one page, laid out as the page is in the arena.  Slots never move, so a pool is a band
without pending pages: what a copy in flight still touches is locked instead, until the copy is
acknowledged on every rank.  Nothing here knows what the bytes mean or when a copy runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum

from unikv.alloc.axis import Axis
from unikv.device.port import BandLayout, StorageLayout
from unikv.errors import OwnershipError, Shortage, listed


class SlotState(IntEnum):
    """What may be done with a slot.

    FREE: handed out next.  FILLING: a backup writes it, nobody may read it.  FULL: it holds a copy.
    """

    FREE = 0
    FILLING = 1
    FULL = 2


class HostPool:
    """The slots of one band.

    Slot `s` covers bytes `[s * slot_bytes, (s + 1) * slot_bytes)` of its backing, as pages do in
    the arena.  The `check_` calls refuse and change nothing; the others change and assert that
    their caller has checked.

    Law: a slot is FREE, or it belongs to one holder; only a FULL slot has readers, and only a FULL
    slot without readers goes back.

    Attributes:
        name: the band's name.
        slot_bytes: bytes of one slot, those of one page.
    """

    __slots__ = ("_axis", "_frontier", "_other", "_readers", "_states", "name", "slot_bytes")

    def __init__(self, name: str, slot_bytes: int, axis: Axis, slot_count: int) -> None:
        self.name = name
        self.slot_bytes = slot_bytes
        self._axis = axis
        self._states = bytearray(slot_count)  # by depth, as numbers of `SlotState`
        self._readers: Counter[int] = Counter()  # by slot
        self._frontier = 0  # depth from which on every slot is FREE
        self._other: HostPool | None = None

    @property
    def free_count(self) -> int:
        """Slots that can be taken now; exact, also where another pool shares the bytes."""
        used = self._frontier - self._states.count(SlotState.FREE, 0, self._frontier)
        return self._limit() - used

    def slots_in(self, state: SlotState) -> list[int]:
        """Slots in one state, ascending."""
        wanted = int(state)
        depths = [depth for depth, number in enumerate(self._states) if number == wanted]
        return sorted(map(self._axis.page_at, depths))

    def readers(self) -> Mapping[int, int]:
        """How many loads read each slot that any load reads."""
        return dict(self._readers)

    def span(self) -> tuple[int, int]:
        """Bytes `[low, high)` of the backing that the other pool must leave alone."""
        low, high = self._axis.pages_of_span(0, self._frontier)
        return low * self.slot_bytes, high * self.slot_bytes

    def share_with(self, other: HostPool) -> None:
        """Let two pools that start at opposite ends of one backing know each other.

        The two end bands of a chain share the arena's bytes, and so their copies share host bytes:
        what one does not need is the other's.  No slot of one covers a byte of a used slot of the
        other.
        """
        self._other, other._other = other, self

    def check_full(self, slots: Sequence[int], action: str) -> None:
        """Refuse slots that hold no copy.

        Raises:
            OwnershipError: if a slot is free, still being filled, listed twice or none of these.
        """
        for slot in slots:
            depth = self._axis.depth_of(slot)
            inside = 0 <= depth < len(self._states)
            if not inside or self._states[depth] != SlotState.FULL:
                state = SlotState(self._states[depth]).name if inside else "no slot of this pool"
                raise OwnershipError(
                    f"host pool {self.name!r}: {action} of slot {slot}, which is {state}; allowed:"
                    " slots that are FULL, from the acknowledgement of their backup to their drop"
                )
        if len(set(slots)) < len(slots):
            twice = sorted(slot for slot, count in Counter(slots).items() if count > 1)
            raise OwnershipError(
                f"host pool {self.name!r}: {action} lists slots {listed(twice)} more than once;"
                " list each once"
            )

    def check_idle(self, slots: Sequence[int], action: str) -> None:
        """Refuse slots that cannot be given back now.

        Raises:
            OwnershipError: as `check_full`, and if a load that is not over reads a slot.
        """
        self.check_full(slots, action)
        busy = [slot for slot in slots if slot in self._readers]
        if busy:
            raise OwnershipError(
                f"host pool {self.name!r}: {action} of slots {listed(busy)}, which loads still"
                " read; acknowledge the loads on every rank first"
            )

    def take(self, count: int) -> list[int]:
        """Hand out `count` slots to be filled, those nearest to the pool's own end first.

        Raises:
            Shortage: if fewer are free; nothing has changed then.
        """
        free = self.free_count
        if count > free:
            raise Shortage("host slots", self.name, count, free)
        states, free_slot, filling = self._states, int(SlotState.FREE), int(SlotState.FILLING)
        taken: list[int] = []
        depth = -1
        for _ in range(count):
            depth = states.find(free_slot, depth + 1)
            states[depth] = filling
            taken.append(self._axis.page_at(depth))
        self._frontier = max(self._frontier, depth + 1)
        return taken

    def filled(self, slots: Sequence[int]) -> None:
        """The backup into `slots` is over on every rank: they may be read."""
        self._change(slots, SlotState.FILLING, SlotState.FULL)

    def cancel(self, slots: Sequence[int]) -> None:
        """Give back slots that no copy was submitted for."""
        self._change(slots, SlotState.FILLING, SlotState.FREE)
        self._retreat()

    def begin_read(self, slots: Sequence[int]) -> None:
        """A load will read `slots`: they stay as they are until it is over."""
        self._readers.update(slots)

    def end_read(self, slots: Sequence[int]) -> None:
        """One load less reads `slots`."""
        for slot in slots:
            assert self._readers[slot], "a read ends once"
            self._readers[slot] -= 1
            if not self._readers[slot]:
                del self._readers[slot]

    def give_back(self, slots: Sequence[int]) -> None:
        """Give back slots whose copy nobody wants any more."""
        self._change(slots, SlotState.FULL, SlotState.FREE)
        self._retreat()

    def _limit(self) -> int:
        """Slots from the pool's own end up to what the other pool of the backing has claimed."""
        count = len(self._states)
        low, high = self._other.span() if self._other else (0, 0)
        if low == high:
            return count
        if self._axis.step == 1:
            return min(count, low // self.slot_bytes)
        # The other pool may reach into the bytes that are left over above this one's last slot.
        return max(0, count - -(-high // self.slot_bytes))

    def _change(self, slots: Sequence[int], before: SlotState, after: SlotState) -> None:
        states, was, becomes = self._states, int(before), int(after)
        for slot in slots:
            depth = self._axis.depth_of(slot)
            assert states[depth] == was
            states[depth] = becomes

    def _retreat(self) -> None:
        self._frontier = len(self._states[: self._frontier].rstrip(b"\0"))


Slots = tuple[tuple[int, ...], ...]
"""Host slots of every band, in the order of the chain."""


class HostMemory:
    """The pools of every band; a call is about slots of all of them and is refused as a whole.

    Attributes:
        pools: one per band, in the order of the chain; a band without host memory has no slots.
        pairs: those that share a backing, the one from its low end first.
    """

    __slots__ = ("pairs", "pools")

    def __init__(self, layout: StorageLayout) -> None:
        """All of the host memory of a layout, free."""
        pools = [_low_pool(band, 0) for band in layout.bands]
        for backing in layout.host:
            low = backing.bands[0]
            pools[low] = _low_pool(layout.bands[low], backing.total_bytes)
            for high in backing.bands[1:]:
                pools[high] = _high_pool(layout.bands[high], backing.total_bytes)
                pools[low].share_with(pools[high])
        self.pools = tuple(pools)
        shared = [backing.bands for backing in layout.host if len(backing.bands) == 2]
        self.pairs = tuple((pools[low], pools[high]) for low, high in shared)

    def take(self, counts: Sequence[int]) -> Slots:
        """Hand out so many slots of each band, to be filled.

        Raises:
            Shortage: if a pool is short; nothing has changed then.
        """
        taken: list[tuple[int, ...]] = []
        for pool, count in zip(self.pools, counts, strict=True):
            try:
                taken.append(tuple(pool.take(count)))
            except Shortage:
                # Pools share bytes, so whether the later ones are short is only known by taking.
                for earlier, slots in zip(self.pools, taken, strict=False):
                    earlier.cancel(slots)
                raise
        return tuple(taken)

    def filled(self, slots: Slots) -> None:
        """As `HostPool.filled`."""
        for pool, own in zip(self.pools, slots, strict=True):
            pool.filled(own)

    def cancel(self, slots: Slots) -> None:
        """As `HostPool.cancel`."""
        for pool, own in zip(self.pools, slots, strict=True):
            pool.cancel(own)

    def check_full(self, slots: Slots, action: str) -> None:
        """Refuse slots that hold no copy.

        Raises:
            OwnershipError: as `HostPool.check_full`.
        """
        for pool, own in zip(self.pools, slots, strict=True):
            pool.check_full(own, action)

    def begin_read(self, slots: Slots) -> None:
        """As `HostPool.begin_read`."""
        for pool, own in zip(self.pools, slots, strict=True):
            pool.begin_read(own)

    def end_read(self, slots: Slots) -> None:
        """As `HostPool.end_read`."""
        for pool, own in zip(self.pools, slots, strict=True):
            pool.end_read(own)

    def drop(self, slots: Slots) -> None:
        """Give back slots whose copy nobody wants any more.

        Raises:
            OwnershipError: as `HostPool.check_idle`; nothing has changed then.
        """
        for pool, own in zip(self.pools, slots, strict=True):
            pool.check_idle(own, "drop")
        for pool, own in zip(self.pools, slots, strict=True):
            pool.give_back(own)


def _low_pool(band: BandLayout, total_bytes: int) -> HostPool:
    return HostPool(band.name, band.page_bytes, Axis(0, 1), total_bytes // band.page_bytes)


def _high_pool(band: BandLayout, total_bytes: int) -> HostPool:
    count = total_bytes // band.page_bytes
    return HostPool(band.name, band.page_bytes, Axis(count - 1, -1), count)
