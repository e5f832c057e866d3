"""What a storage may take of a device: bytes, rows, and how many state slots.

How much of a plan fits into it is `unikv.sizing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from unikv.errors import SizingError

__all__ = ["StateShare", "StateSlots", "StorageBudget"]


@dataclass(frozen=True, slots=True)
class StateSlots:
    """So many state slots; a budget that cannot hold them is refused."""

    count: int


@dataclass(frozen=True, slots=True)
class StateShare:
    """As many state slots as this share of the chain's bytes holds, rounded down.

    It yields twice: upward to the slots, and downward to the window rows, of one request.

    Raises:
        SizingError: if the percentage is outside 1..99.
    """

    percent: int

    def __post_init__(self) -> None:
        if not 1 <= self.percent <= 99:
            raise SizingError(f"StateShare: percent is {self.percent}; allowed: 1 to 99")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageBudget:
    """What one storage may take of a device, and how many requests share it.

    Attributes:
        total_bytes: everything, the arena and what lies beside it.
        row_count: rows of the request table; no more requests run at once.
        row_tokens: the longest request, prompt and output.
        row_scratch_bytes: what each request row has beside its table entries.
        scratch_bytes: scratch of the whole storage.
        state: how many slots; None exactly for a plan without state.

    Raises:
        SizingError: if a figure is impossible, with its value and what is allowed.
    """

    total_bytes: int
    row_count: int
    row_tokens: int
    row_scratch_bytes: int = 0
    scratch_bytes: int = 0
    state: StateSlots | StateShare | None = None

    def __post_init__(self) -> None:
        for name, value, least in (
            ("total_bytes", self.total_bytes, 0),
            ("row_count", self.row_count, 1),
            ("row_tokens", self.row_tokens, 1),
            ("row_scratch_bytes", self.row_scratch_bytes, 0),
            ("scratch_bytes", self.scratch_bytes, 0),
        ):
            if value < least:
                raise SizingError(f"StorageBudget: {name} is {value}; allowed: {least} or more")
