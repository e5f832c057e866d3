"""What a storage may take of a device: bytes, rows, and how many state slots.

How much of a plan fits into it is `unikv.sizing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from unikv.arguments import check_figure, check_int
from unikv.errors import SizingError

__all__ = ["StateShare", "StateSlots", "StorageBudget"]


@dataclass(frozen=True, slots=True)
class StateSlots:
    """So many state slots; a budget that cannot hold them is refused.

    Raises:
        SizingError: if the count is no int.
    """

    count: int

    def __post_init__(self) -> None:
        check_int(SizingError, "StateSlots: count", self.count)


@dataclass(frozen=True, slots=True)
class StateShare:
    """As many state slots as this share of the chain's bytes holds, rounded down.

    It yields twice: upward to the slots, and downward to the window rows, of one request.

    Raises:
        SizingError: if the percentage is no int of 1..99.
    """

    percent: int

    def __post_init__(self) -> None:
        check_int(SizingError, "StateShare: percent", self.percent)
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
        for name in ("total_bytes", "row_scratch_bytes", "scratch_bytes"):
            check_figure(SizingError, f"StorageBudget: {name}", getattr(self, name), 0)
        for name in ("row_count", "row_tokens"):
            check_figure(SizingError, f"StorageBudget: {name}", getattr(self, name), 1)
