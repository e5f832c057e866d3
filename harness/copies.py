"""Truth about copies between arena and host memory: what each host slot must hold, what is in use.

It learns from answers which slots and pages somebody holds, and from what the allocator *submitted*
what was copied where.  It reads no bookkeeping of the allocator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.copy_pairs import CopyPairs
from harness.device.launches import ModeledEvent
from unikv.device.port import StorageLayout

Ranges = tuple[tuple[int, int], ...]
"""Byte ranges `[low, high)` of the arena, ascending."""


class CopyUse(NamedTuple):
    """A submitted copy that is not over.

    Attributes:
        kind: `copy_read` for a backup, `copy_write` for a load.
        ranges: the bytes of the arena that it touches.
        event: after it.
    """

    kind: str
    ranges: Ranges
    event: ModeledEvent


class CopyTruth:
    """What must hold now, as far as copies are concerned.

    Attributes:
        saved: per band and host slot, the bytes of the page that was last backed up there; None
            where something was copied that nobody had written.
        uses: submitted copies that are not over, by name.
        reserved: per band, pages handed to loads that no id names yet, with the load's name.
        holders: per band and host slot, the copy that it was handed out to.
        waits: copies that the schedule stream has waited for.
        pairs: which page each host slot is for.
        revision: changes with `uses`.
    """

    def __init__(self, layout: StorageLayout) -> None:
        self._layout = layout
        self._page_bytes = [band.page_bytes for band in layout.bands]
        self._groups = layout.layer_groups
        self.saved: list[dict[int, bytes | None]] = [{} for _ in layout.bands]
        self.uses: dict[str, CopyUse] = {}
        self.reserved: list[dict[int, str]] = [{} for _ in layout.bands]
        self.holders: list[dict[int, str]] = [{} for _ in layout.bands]
        self.waits = 0
        self.revision = 0
        self.pairs = CopyPairs(len(layout.bands))
        self._ranges: list[tuple[int, int]] = []
        self._sharers = {band: part.bands for part in layout.host for band in part.bands}

    def place(self, piece: int, byte: int) -> str:
        """What to call a byte of a piece of host memory: the slot that it is part of, if any is."""
        for band in self._layout.host[piece].bands:
            slot = byte // self._page_bytes[band]
            if slot in self.holders[band]:
                name = self._layout.bands[band].name
                return f"host slot {slot} of band {name!r} ({self.holders[band][slot]})"
        return f"byte {byte} of host memory {piece}, in no slot that is handed out"

    # Handed out and given back ---------------------------------------------------------------

    def slots_handed_out(self, name: str, slots: Sequence[Sequence[int]]) -> list[str]:
        """A backup was given host slots; what is wrong with them, in words."""
        problems = []
        for band, units in enumerate(slots):
            for slot in units:
                holder = self._holder(band, slot)
                if holder:
                    place = f"host slot {slot} of band {self._layout.bands[band].name!r}"
                    problems.append(f"{place} is handed out and still belongs to {holder!r}")
                self.holders[band][slot] = name
                # What an earlier copy has left there is nobody's.
                self.saved[band].pop(slot, None)
                self.pairs.kept[band].pop(slot, None)
        return problems

    def slots_given_back(self, slots: Sequence[Sequence[int]]) -> None:
        """Nobody wants these host slots any more."""
        for band, units in enumerate(slots):
            for slot in units:
                self.holders[band].pop(slot, None)

    def _holder(self, band: int, slot: int) -> str:
        """Who holds a byte of a host slot, also under another band that shares the memory."""
        size = self._page_bytes[band]
        for other in self._sharers[band]:
            width = self._page_bytes[other]
            first, last = slot * size // width, (slot * size + size - 1) // width
            for unit in range(first, last + 1):
                if unit in self.holders[other]:
                    return self.holders[other][unit]
        return ""

    # Submitted -------------------------------------------------------------------------------

    def backed_up(
        self, band: int, pages: Sequence[int], slots: Sequence[int], content: Sequence[bytes | None]
    ) -> None:
        """The allocator submits a copy of `pages`, which must hold `content`, to host slots."""
        self._touch(band, pages)
        for slot, data in zip(slots, content, strict=True):
            self.saved[band][slot] = data

    def loaded(
        self, band: int, layer_group: int, slots: Sequence[int], pages: Sequence[int]
    ) -> list[bytes | None]:
        """The allocator submits a load of one layer group; what each page's piece then holds."""
        piece = self._page_bytes[band] // self._groups
        low = layer_group * piece
        self._touch(band, pages)
        saved = [self.saved[band].get(slot) for slot in slots]
        return [data if data is None else data[low : low + piece] for data in saved]

    def began(self, name: str, kind: str, event: ModeledEvent) -> None:
        """The copy whose kernels were submitted in this call is in flight until it is over."""
        self.revision += 1
        self.uses[name] = CopyUse(kind, tuple(sorted(set(self._ranges))), event)
        self._ranges.clear()

    def waited(self, event: ModeledEvent) -> None:
        """The allocator lets the schedule stream wait for `event`: a copy that it ends is over."""
        if self.uses:
            left = {name: use for name, use in self.uses.items() if use.event is not event}
            self.waits += len(self.uses) - len(left)
            self.uses = left
            self.revision += 1

    def acknowledged(self, name: str) -> None:
        """Every rank has seen the copy end."""
        self.revision += 1
        self.uses.pop(name, None)

    def _touch(self, band: int, pages: Sequence[int]) -> None:
        size = self._page_bytes[band]
        self._ranges += [(page * size, page * size + size) for page in pages]
