"""The only source of chance.

Every decision of a run is one draw of a number below a bound, so a run is a function of a seed, of
some bytes, or of a recorded list.  `getrandbits` of Python's generator is the same on every
supported version; its higher-level methods are not relied on.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Choices(Protocol):
    """Where decisions come from."""

    def below(self, bound: int) -> int:
        """A number in `[0, bound)`; `bound` is at least 1."""
        ...


class SeedChoices:
    """Decisions from a seed.

    Args:
        seed: any integer; equal seeds give equal runs.
    """

    __slots__ = ("_bits",)

    def __init__(self, seed: int) -> None:
        self._bits = random.Random(seed).getrandbits

    def below(self, bound: int) -> int:
        """A number in `[0, bound)`."""
        return (self._bits(32) * bound) >> 32


class ByteChoices:
    """Decisions from bytes, for coverage-guided fuzzers; zeros once they are used up."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, bound: int) -> int:
        """A number in `[0, bound)`, from one byte where one is enough."""
        width = 1 if bound <= 256 else 4
        piece = self._data[self._at : self._at + width]
        self._at += width
        return (int.from_bytes(piece, "little") * bound) >> (8 * width)


class ListChoices:
    """Decisions from a recorded list; zeros once it is used up."""

    __slots__ = ("_at", "_recorded")

    def __init__(self, recorded: Sequence[int]) -> None:
        self._recorded = recorded
        self._at = 0

    def below(self, bound: int) -> int:
        """The next recorded number, brought below `bound`."""
        value = self._recorded[self._at] if self._at < len(self._recorded) else 0
        self._at += 1
        return value % bound


def between(choices: Choices, low: int, high: int) -> int:
    """A number in `[low, high]`; both ends are possible."""
    return low + choices.below(high - low + 1)


def percent(choices: Choices, chance: int) -> bool:
    """True in `chance` of 100 draws."""
    return choices.below(100) < chance


def one_of(choices: Choices, things: Sequence[T]) -> T | None:
    """One of `things`, each as likely; None, and no draw, when there are none."""
    return things[choices.below(len(things))] if things else None
