"""The first copy of every band at start-up, and that a later move is never a device's first."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.search.lending_account import books
from tests.alloc.small_chain import (
    DiaryDevice,
    layout_of,
    run_step,
    states,
    tokens,
    window,
)
from unikv.alloc.chain import ChainAllocator
from unikv.device.port import StorageLayout, Stream
from unikv.errors import CallOrderError, StepOrderError

FLOAT = layout_of(52, 8, states("state", 8), window("window"), tokens("full"))


class CompilingDevice(DiaryDevice):
    """A device that compiles a kernel for a band when it is first used.

    Attributes:
        compiled: kernel and band of every first use, in order.
    """

    def __init__(self, layout: StorageLayout) -> None:
        super().__init__(layout)
        self.compiled: list[tuple[str, int]] = []

    def move_pages(
        self, stream: Stream, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Compile, then copy."""
        self._use("move", band)
        super().move_pages(stream, band, sources, targets)

    def write_map(
        self, stream: Stream, band: int, ids: Sequence[int], pages: Sequence[int]
    ) -> None:
        """Compile, then write."""
        self._use("map", band)
        super().write_map(stream, band, ids, pages)

    def _use(self, kernel: str, band: int) -> None:
        if (kernel, band) not in self.compiled:
            self.compiled.append((kernel, band))


def built(layout: StorageLayout = FLOAT) -> tuple[ChainAllocator, CompilingDevice]:
    """An empty chain on a device that has compiled nothing."""
    device = CompilingDevice(layout)
    return ChainAllocator(layout, device), device


def move_in_every_band(chain: ChainAllocator) -> None:
    """An end is compacted by a flush, the float is relocated by a relief."""
    chain.take(3, 2)
    chain.free_slots([1])
    chain.free([1])
    chain.flush(8)
    chain.take(0, 2)


def test_a_prewarm_copies_a_page_of_every_band_to_the_sink() -> None:
    chain, device = built()
    chain.prewarm()
    assert device.calls == [
        ("move", 0, (1,), (0,)),
        ("map", 0, (0,), (0,)),
        ("move", 1, (2,), (0,)),
        ("map", 1, (0,), (0,)),
        ("move", 2, (2,), (0,)),
        ("map", 2, (0,), (0,)),
    ]


def test_no_later_move_is_the_first() -> None:
    chain, device = built()
    chain.prewarm()
    compiled = list(device.compiled)
    move_in_every_band(chain)
    assert {call[0] for call in device.named("move")[3:]} == {0, 1, 2}
    assert device.compiled == compiled


def test_without_a_prewarm_every_first_move_is_a_first_use() -> None:
    chain, device = built()
    move_in_every_band(chain)
    assert {("move", band) for band in range(3)} <= set(device.compiled)


def test_a_prewarm_changes_no_book_and_counts_no_move() -> None:
    chain, _ = built()
    before, counted = books(chain), chain.statistics()
    chain.prewarm()
    assert (books(chain), chain.statistics()) == (before, counted)


def test_a_prewarm_writes_no_byte_outside_the_sink() -> None:
    chain, device = built()
    device.arena[:] = bytes(range(52))
    chain.prewarm()
    assert device.arena[8:] == bytes(range(8, 52))
    assert [maps[0] for maps in device.maps] == [0, 0, 0]


def test_a_prewarm_may_be_repeated_before_the_first_take() -> None:
    chain, device = built()
    chain.prewarm()
    chain.prewarm()
    assert len(device.compiled) == 6


def test_a_band_that_can_never_have_a_page_is_left_out() -> None:
    chain, device = built(layout_of(20, 8, states("state", 20), tokens("full")))
    chain.prewarm()
    assert device.named("move") == [(1, (2,), (0,))]


@pytest.mark.parametrize("give_back", [False, True])
def test_a_prewarm_comes_before_the_first_take(give_back: bool) -> None:
    chain, device = built()
    chain.take(1, 0)
    if give_back:
        chain.free([1])
    device.calls.clear()
    with pytest.raises(CallOrderError, match="prewarm after 2 pages were handed out"):
        chain.prewarm()
    assert device.calls == []


def test_a_reservation_is_a_take() -> None:
    chain, _ = built()
    chain.reserve(1, 1)
    with pytest.raises(CallOrderError, match="prewarm after 1 pages"):
        chain.prewarm()


def test_a_prewarm_comes_before_the_first_step() -> None:
    chain, device = built()
    run_step(chain, device, 1)
    with pytest.raises(CallOrderError, match="with step 1 in flight"):
        chain.prewarm()


def test_a_prewarm_is_no_part_of_a_step() -> None:
    chain, _ = built()
    chain.launch_step(1)
    with pytest.raises(StepOrderError, match="prewarm between launch and record"):
        chain.prewarm()
