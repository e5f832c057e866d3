"""Host memory of the modeled device: its clocks, and copies between it and the arena.

A copy is a launch like any other: checked against the clocks of both spaces when it is submitted,
run as early and as late as ordering allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TYPE_CHECKING

from harness.device.clock import Access, SpaceClock
from harness.device.memory import ARENA, CopyBytes

if TYPE_CHECKING:
    from harness.device.modeled import ModeledDevice


class HostMemory:
    """Every piece of host memory of one device, and which band keeps its copies where.

    Attributes:
        spaces: clock of each piece, in granules that divide the slots of its bands.
        granules: bytes of one granule, per piece.
        piece_of: per band with host memory, the index of its piece.
    """

    def __init__(self, device: ModeledDevice) -> None:
        self._device = device
        self._groups = device.layout.layer_groups
        sizes = device.page_bytes
        parts = device.layout.host
        self.granules = [
            gcd(*(sizes[band] for band in part.bands)) // self._groups for part in parts
        ]
        self.spaces = [
            SpaceClock(f"host:{index}", part.total_bytes // granule)
            for index, (part, granule) in enumerate(zip(parts, self.granules, strict=True))
        ]
        self.piece_of = {band: index for index, part in enumerate(parts) for band in part.bands}

    def low(self, index: int, unit: int) -> int:
        """First byte of a granule of a piece."""
        return self.granules[index] * unit

    def copy_to_host(
        self, stream: int, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Copy whole pages of the arena into host slots."""
        device, size, index = self._device, self._device.page_bytes[band], self.piece_of[band]
        arena = device.program.arena
        copies = [(a * size, b * size, size) for a, b in zip(pages, slots, strict=True)]
        before = [bytes(arena[low : low + length]) for low, _, length in copies]
        touched = (
            Access(device.arena, device.granules(band, pages), False),
            Access(self.spaces[index], self._units(index, band, slots), True),
        )
        device.submit(stream, "backup", 0, CopyBytes(ARENA, index, copies, before), touched)

    def copy_from_host(
        self, stream: int, band: int, group: int, slots: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Copy one layer group of host slots into pages of the arena."""
        device, size, index = self._device, self._device.page_bytes[band], self.piece_of[band]
        piece = size // self._groups
        low = group * piece
        host = device.program.host[index]
        copies = [
            (slot * size + low, page * size + low, piece)
            for slot, page in zip(slots, pages, strict=True)
        ]
        before = [bytes(host[source : source + length]) for source, _, length in copies]
        touched = (
            Access(self.spaces[index], self._units(index, band, slots, group), False),
            Access(device.arena, device.group_granules(band, pages, group), True),
        )
        device.submit(stream, "load", 0, CopyBytes(index, ARENA, copies, before), touched)

    def _units(
        self, index: int, band: int, slots: Sequence[int], group: int | None = None
    ) -> list[int]:
        """Granules of whole slots, or of one layer group of each."""
        each = self._device.page_bytes[band] // self.granules[index]
        low, high = 0, each
        if group is not None:
            low, high = group * each // self._groups, (group + 1) * each // self._groups
        return [unit for slot in slots for unit in range(slot * each + low, slot * each + high)]
