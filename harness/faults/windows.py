"""Faults of the rule by which window rows are retired: rows go too early, or stay for nobody.

Every engine asks the same rule, so each of these is wrong wherever it is asked.
"""

from __future__ import annotations

from harness.faults.fault import Fault, Plant
from harness.faults.parts import become
from harness.windows import Retirement
from harness.world import World


class _ATokenShort(Retirement):
    __slots__ = ()

    def first_needed(self, position: int, window: int, slots_per_page: int) -> int:
        return super().first_needed(position, window - 1, slots_per_page)

    def first_retained(self, position: int, floor: int, window: int, slots_per_page: int) -> int:
        return super().first_retained(position, floor, window - 1, slots_per_page)


class _ATokenLong(Retirement):
    __slots__ = ()

    def first_needed(self, position: int, window: int, slots_per_page: int) -> int:
        return super().first_needed(position, window + 1, slots_per_page)

    def first_retained(self, position: int, floor: int, window: int, slots_per_page: int) -> int:
        return super().first_retained(position, floor, window + 1, slots_per_page)


class _ForgetsTheCheckpoint(Retirement):
    __slots__ = ()

    def first_retained(self, position: int, floor: int, window: int, slots_per_page: int) -> int:
        return super().first_retained(position, position, window, slots_per_page)


def _retire(broken: type[Retirement]) -> Plant:
    def plant(world: World) -> None:
        become(world.retirement, broken)

    return plant


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="window-a-token-short",
        planted="a window row is retired one token too early, wherever the rule is asked",
        plant=_retire(_ATokenShort),
        checks=("content", "initialised", "ledger"),
        scenario="hybrid",
    ),
    Fault(
        id="window-a-token-long",
        planted="a window row is kept one token too long, wherever the rule is asked",
        plant=_retire(_ATokenLong),
        checks=("ledger",),
        scenario="hybrid",
    ),
    Fault(
        id="window-without-its-checkpoint",
        planted="window rows are retired as if nobody could resume at the latest checkpoint",
        plant=_retire(_ForgetsTheCheckpoint),
        checks=("ledger",),
        scenario="everything",
    ),
)
