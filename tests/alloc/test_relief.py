"""Making room: what is rearranged for a demand, drawn page by page, and in which order.

Every page has four bytes and page 0 is the sink.  Bands are drawn from the low end to the high end,
one string each, all of the same width: the same column is the same bytes.
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
from unikv.errors import Shortage

ENDS = layout_of(44, 4, window("window"), tokens("full"))
FLOAT = layout_of(52, 4, states("state"), window("window"), tokens("full"))
TWO_FLOATS = layout_of(52, 4, states("state"), window("far"), window("near"), tokens("full"))


def lines(chain: ChainAllocator) -> list[str]:
    """Every band's drawing."""
    return [drawn(band) for band in chain.bands]


def two_ends() -> tuple[ChainAllocator, DiaryDevice]:
    """Two ends that meet, with holes behind the window's frontier."""
    chain, device = chain_of(ENDS)
    chain.take(5, 0)
    chain.retire(0, [2, 3])
    device.calls.clear()
    assert lines(chain) == ["_LhhLL.....", "_.....LLLLL"]
    return chain, device


def float_reached() -> tuple[ChainAllocator, DiaryDevice]:
    """The low end has grown up to the float."""
    chain, device = chain_of(FLOAT)
    chain.take(2, 2)
    chain.take(0, 3)
    for unit, page in ((1, 6), (2, 7)):
        device.arena[device.bytes_of(1, page)] = bytes([unit] * 4)
    device.calls.clear()
    assert lines(chain) == ["_LLLLL.......", "_.....LL.....", "_..........LL"]
    return chain, device


def test_a_float_starts_in_the_middle_of_the_free_bytes() -> None:
    chain, _ = chain_of(FLOAT)
    chain.take(2, 2)
    assert lines(chain) == ["_LL..........", "_.....LL.....", "_..........LL"]


def test_holes_that_cover_the_demand_move_nothing() -> None:
    chain, device = two_ends()
    before = lines(chain)
    assert chain.relief.lay_out([2, 0]) == ((0, 0), (0, 0))
    assert lines(chain) == before
    assert device.calls == []


def test_growth_into_a_gap_is_no_relief() -> None:
    chain, device = float_reached()
    chain.take(1, 0)
    assert lines(chain) == ["_LLLLL.......", "_.....LLL....", "_.........LLL"]
    assert chain.counters.reliefs == 0
    assert device.named("move") == []


def test_an_end_is_compacted_where_its_neighbour_wants_the_bytes() -> None:
    chain, device = two_ends()
    chain.take(1, 0)
    assert lines(chain) == ["_LLLL......", "_....LLLLLL"]
    assert device.named("move") == [(0, (5,), (2,))]
    assert (chain.counters.reliefs, chain.counters.relocations) == (1, 0)


def test_a_float_steps_aside_for_an_end() -> None:
    chain, device = float_reached()
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_.......LL...", "_..........LL"]
    assert device.named("move") == [(1, (6, 7), (8, 9))]
    assert (chain.counters.reliefs, chain.counters.relocations) == (1, 1)


def test_a_float_that_stepped_aside_keeps_ids_and_bytes() -> None:
    chain, device = float_reached()
    chain.take(0, 1)
    assert chain.translate(1, [1, 2]) == [8, 9]
    assert device.maps[1][1:3] == [8, 9]
    assert device.arena[device.bytes_of(1, 8)] == bytes([1] * 4)
    assert device.arena[device.bytes_of(1, 9)] == bytes([2] * 4)


def test_every_copy_comes_before_the_first_page_is_handed_out() -> None:
    chain, device = float_reached()
    chain.take(0, 1)
    assert device.calls[-1] == ("map", 0, (6,), (6,))
    assert device.names() == ["move", "map", "map"]


def test_a_float_moves_out_of_the_way_before_the_one_that_passes_it() -> None:
    chain, device = chain_of(TWO_FLOATS)
    chain.take(1, 1)
    chain.take(0, 2)
    assert lines(chain)[1:3] == ["_...L........", "_.......L...."]
    device.calls.clear()
    chain.take(0, 5)
    assert lines(chain)[1:3] == ["_........L...", "_.........L.."]
    assert [band for band, *_ in device.named("move")] == [2, 1]


def test_a_relief_waits_for_the_newest_step_before_its_first_copy() -> None:
    chain, device = float_reached()
    run_step(chain, device, 1)
    newest = run_step(chain, device, 2)
    chain.take(0, 1)
    assert device.calls[0] == ("wait", newest)
    assert device.names() == ["wait", "move", "map", "map"]


def test_a_relief_that_copies_nothing_waits_only_for_the_batches() -> None:
    chain, device = float_reached()
    batch = run_step(chain, device, 1)
    chain.free([1, 2])
    run_step(chain, device, 2)
    assert lines(chain) == ["_LLLLL.......", "_.....pp.....", "_..........pp"]
    device.calls.clear()
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_............", "_............"]
    assert device.calls == [("wait", batch), ("map", 0, (6,), (6,))]


def test_a_relief_settles_before_it_plans_the_copies() -> None:
    chain, device = chain_of(FLOAT)
    chain.take(4, 4)
    batch = run_step(chain, device, 1)
    chain.retire(1, [2, 3])
    newest = run_step(chain, device, 2)
    assert lines(chain) == ["_LLLL........", "_....LppL....", "_........LLLL"]
    device.calls.clear()
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLL.......", "_.....LL.....", "_........LLLL"]
    assert device.calls[:3] == [("wait", batch), ("wait", newest), ("move", 1, (5, 8), (6, 7))]


def test_an_empty_float_is_seen_through() -> None:
    chain, _ = float_reached()
    chain.free([1, 2])
    chain.take(0, 7)
    assert lines(chain) == ["_LLLLLLLLLLLL", "_............", "_............"]
    assert chain.counters.reliefs == 0


def test_a_refused_demand_settles_nothing() -> None:
    chain, device = float_reached()
    run_step(chain, device, 1)
    chain.free([1])
    before, calls = picture(chain), len(device.calls)
    assert not chain.fits(0, 9)
    assert chain.relief.lay_out([9, 0, 0]) is None
    assert picture(chain) == before
    assert len(device.calls) == calls


@pytest.mark.parametrize(("slots", "answer"), [(3, True), (4, False)])
def test_a_question_counts_what_a_relief_could_free(slots: int, answer: bool) -> None:
    chain, _ = float_reached()
    assert chain.fits(0, slots) is answer


def test_a_question_changes_nothing() -> None:
    chain, device = float_reached()
    run_step(chain, device, 1)
    chain.free([1])
    before, calls = picture(chain), len(device.calls)
    chain.fits(0, 3)
    chain.fits(0, 9)
    assert picture(chain) == before
    assert len(device.calls) == calls


def test_relieving_makes_the_room_and_hands_nothing_out() -> None:
    chain, device = float_reached()
    assert chain.relieve(0, 1)
    assert lines(chain) == ["_LLLLL.......", "_.......LL...", "_..........LL"]
    assert device.names() == ["move", "map"]


def test_relieving_for_too_much_changes_nothing() -> None:
    chain, device = float_reached()
    before = picture(chain)
    assert not chain.relieve(0, 9)
    assert picture(chain) == before
    assert device.calls == []


def test_a_take_after_relieving_copies_nothing_more() -> None:
    chain, device = float_reached()
    chain.relieve(0, 1)
    device.calls.clear()
    chain.take(0, 1)
    assert device.names() == ["map"]


def test_a_snapshot_of_an_empty_chain_has_both_ends_at_their_walls() -> None:
    chain, _ = chain_of(FLOAT)
    view = chain.relief.snapshot()
    low, _, high = view.bands
    assert (low.low, low.high, low.wall) == (1, 1, 1)
    assert (high.low, high.high, high.wall) == (13, 13, 13)
    spans = plan(view, [1, 1, 1], Step.NO_MOVE)
    assert spans is not None
    assert_plan(view, [1, 1, 1], Step.NO_MOVE, spans)


def test_a_snapshot_counts_live_pages_and_no_pending_ones() -> None:
    chain, device = float_reached()
    run_step(chain, device, 1)
    chain.free([1])
    assert [band.used for band in chain.relief.snapshot().bands] == [5, 1, 1]


def test_a_snapshot_is_kept_until_a_band_changes() -> None:
    chain, _ = float_reached()
    view = chain.relief.snapshot()
    assert chain.relief.snapshot() is view
    chain.free([1])
    assert chain.relief.snapshot() != view


def test_a_refusal_is_counted_as_no_relief() -> None:
    chain, _ = float_reached()
    with pytest.raises(Shortage):
        chain.take(0, 9)
    assert (chain.counters.reliefs, chain.counters.shortages) == (0, 1)
