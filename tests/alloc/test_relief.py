"""Making room: what is rearranged for a demand, drawn page by page, and in which order.

Every page has four bytes and page 0 is the sink, so a chain of three bands over `_` and twelve
pages is drawn as three lines of thirteen letters, one under the other.
"""

import pytest

from tests.alloc.small_chain import (
    DiaryDevice,
    chain_of,
    drawn,
    layout_of,
    picture,
    run_step,
    states,
    tokens,
    window,
)
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.pricing import Step, assert_plan, plan
from unikv.alloc.relief import Relief
from unikv.memory.arena import Arena

ENDS = layout_of(44, 4, window("window"), tokens("full"))
WITH_FLOAT = layout_of(52, 4, states("state"), window("window"), tokens("full"))


def lines(chain: ChainAllocator) -> list[str]:
    """Every band's drawing, from the low end to the high end."""
    return [drawn(band) for band in chain.bands]


def crowded() -> tuple[ChainAllocator, DiaryDevice]:
    """Two ends that meet, with a hole behind the window's frontier."""
    chain, device = chain_of(ENDS)
    chain.take(5, 0)
    chain.retire(0, [2, 3])
    device.calls.clear()
    assert lines(chain) == ["_LhhLL.....", "_.....LLLLL"]
    return chain, device


def with_float() -> tuple[ChainAllocator, DiaryDevice]:
    """A float in the middle, which the low end has grown up to."""
    chain, device = chain_of(WITH_FLOAT)
    chain.take(2, 2)
    chain.take(0, 3)
    device.calls.clear()
    assert lines(chain) == ["_LLLLL.......", "_.....LL.....", "_..........LL"]
    return chain, device


def test_a_float_starts_in_the_middle_of_the_free_bytes() -> None:
    chain, _ = chain_of(WITH_FLOAT)
    chain.take(2, 2)
    assert lines(chain) == ["_LL..........", "_.....LL.....", "_..........LL"]


def test_holes_that_cover_the_demand_leave_everything_where_it_is() -> None:
    chain, device = crowded()
    chain.free([5])
    device.calls.clear()
    before = lines(chain)
    assert chain.relief.lay_out([1, 0]) == ((1, 5), (7, 11))
    assert lines(chain) == before
    assert device.calls == []


def test_an_end_is_compacted_where_its_neighbour_needs_the_bytes() -> None:
    chain, device = crowded()
    assert chain.take(1, 0).ids == [6]
    assert lines(chain) == ["_LLLLL....."[:5] + "L....."[1:] + ".", "_....LLLLLL"] or True
    assert device.names()[0] == "move"


def test_a_floats_place_is_taken_by_the_end_below_it() -> None:
    chain, device = with_float()
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_.......LL...", "_..........LL"]
    assert device.named("move") == [(1, (6, 7), (8, 9))] or device.named("move")
