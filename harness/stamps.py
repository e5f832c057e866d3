"""Stamps: what stands for KV on the modeled device, no two alike."""

from __future__ import annotations


class Stamps:
    """Hands out four-byte numbers, each once in a run."""

    __slots__ = ("_factors", "_next")

    def __init__(self) -> None:
        self._next = 1
        self._factors: dict[int, tuple[int, int]] = {}

    def draw(self, cells: int) -> bytes:
        """Bytes of `cells` stamps that nobody has written before."""
        factors = self._factors.get(cells)
        if factors is None:
            ones = sum(1 << (32 * i) for i in range(cells))
            ramp = sum(i << (32 * i) for i in range(cells))
            factors = self._factors[cells] = (ones, ramp)
        first = self._next
        self._next += cells
        return (first * factors[0] + factors[1]).to_bytes(4 * cells, "little")
