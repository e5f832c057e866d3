"""What an engine calls: takes, frees, steps and flushes, with literal ids and pages.

Two ends of four-byte pages: `window` grows up from page 1, `full` down from page 12.  Chains with a
state band are drawn in `test_relief`.
"""

from collections.abc import Callable

import pytest

from tests.alloc.small_chain import (
    DiaryDevice,
    Mark,
    chain_of,
    drawn,
    layout_of,
    picture,
    run_step,
    states,
    tokens,
    window,
)
from unikv.alloc.axis import Axis
from unikv.alloc.chain import ChainAllocator, Taken
from unikv.alloc.chain_bands import build_bands
from unikv.alloc.float_band import FloatBand
from unikv.alloc.page_usage import Use
from unikv.errors import OwnershipError, Shortage, StepOrderError

ENDS = layout_of(52, 4, window("window"), tokens("full"))
FEW_IDS = layout_of(52, 4, states("state", ids=2), window("window", ids=3), tokens("full", ids=3))


def filled() -> tuple[ChainAllocator, DiaryDevice]:
    """Ids 1..4 on pages 1..4 and 12..9."""
    chain, device = chain_of(ENDS)
    assert chain.take(4, 0) == Taken([1, 2, 3, 4], [])
    device.calls.clear()
    return chain, device


def assert_refused(
    chain: ChainAllocator,
    device: DiaryDevice,
    error: type[Exception],
    act: Callable[[], object],
) -> str:
    """The act raises and changes nothing; its text."""
    before, calls = picture(chain), list(device.calls)
    with pytest.raises(error) as caught:
        act()
    assert picture(chain) == before
    assert device.calls == calls
    return str(caught.value)


# Takes -------------------------------------------------------------------------------------


def test_a_take_binds_its_ids_in_every_token_band() -> None:
    chain, device = filled()
    assert drawn(chain.bands[0]) == "_LLLL........"
    assert drawn(chain.bands[1]) == "_........LLLL"
    assert chain.translate(0, [1, 2, 3, 4]) == [1, 2, 3, 4]
    assert chain.translate(1, [1, 2, 3, 4]) == [12, 11, 10, 9]
    assert [maps[1:5] for maps in device.maps] == [[1, 2, 3, 4], [12, 11, 10, 9]]


def test_an_unbound_id_is_translated_to_the_sink() -> None:
    chain, _ = filled()
    assert chain.translate(0, [7, 1]) == [0, 1]


def test_pages_are_zeroed_before_they_are_mapped() -> None:
    chain, device = filled()
    chain.take(1, 0)
    assert device.calls == [
        ("zero", 0, (5,)),
        ("map", 0, (5,), (5,)),
        ("zero", 1, (8,)),
        ("map", 1, (5,), (8,)),
    ]


def test_state_slots_are_not_zeroed() -> None:
    chain, device = chain_of(FEW_IDS)
    assert chain.take(0, 2) == Taken([], [1, 2])
    assert device.calls == [("map", 0, (1, 2), (1, 2))]


def test_a_take_of_nothing_asks_nothing() -> None:
    chain, device = filled()
    assert chain.take(0, 0) == Taken([], [])
    assert device.calls == []


def test_holes_are_taken_before_pending_pages() -> None:
    chain, device = filled()
    chain.retire(0, [1])
    run_step(chain, device, 1)
    chain.retire(0, [2])
    assert drawn(chain.bands[0]) == "_hpLL........"
    device.calls.clear()
    chain.take(1, 0)
    assert drawn(chain.bands[0]) == "_LpLL........"
    assert device.named("wait") == []


def test_the_oldest_batch_is_taken_before_the_band_grows() -> None:
    chain, device = filled()
    oldest = run_step(chain, device, 1)
    chain.retire(0, [3])
    run_step(chain, device, 2)
    chain.retire(0, [2])
    device.calls.clear()
    chain.take(1, 0)
    assert drawn(chain.bands[0]) == "_LpLL........"
    assert device.calls[0] == ("wait", oldest)
    assert len(device.named("wait")) == 1


def test_batches_cover_only_what_the_holes_leave_short() -> None:
    chain, device = filled()
    chain.retire(0, [1])
    oldest = run_step(chain, device, 1)
    chain.retire(0, [3])
    run_step(chain, device, 2)
    chain.retire(0, [2])
    device.calls.clear()
    chain.take(2, 0)
    assert drawn(chain.bands[0]) == "_LpLL........"
    assert device.named("wait") == [(oldest,)]


def test_the_band_grows_by_what_every_batch_leaves_short() -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.retire(0, [3])
    newest = run_step(chain, device, 2)
    chain.retire(0, [2])
    device.calls.clear()
    chain.take(3, 0)
    assert drawn(chain.bands[0]) == "_LLLLL......."
    assert device.named("wait") == [(newest,)]


def test_a_pending_page_is_zeroed_behind_the_wait_for_it() -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.retire(0, [3])
    device.calls.clear()
    chain.take(1, 0)
    assert device.names() == ["wait", "zero", "map", "zero", "map"]


def test_a_batch_larger_than_the_demand_returns_whole() -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.retire(0, [1, 2, 3])
    chain.take(1, 0)
    assert drawn(chain.bands[0]) == "_LhhL........"


def test_taken_pages_are_counted_in_every_band() -> None:
    chain, _ = filled()
    assert (chain.counters.taken_pages, chain.counters.freed_pages) == (8, 0)


@pytest.mark.parametrize(
    ("pages", "slots", "band", "asked", "free"),
    [(4, 0, "full", 4, 3), (0, 3, "state", 3, 2), (4, 3, "state", 3, 2)],
)
def test_short_ids_are_named_with_their_band(
    pages: int, slots: int, band: str, asked: int, free: int
) -> None:
    chain, device = chain_of(FEW_IDS)
    assert not chain.fits(pages, slots)
    assert_refused(chain, device, Shortage, lambda: chain.take(pages, slots))
    with pytest.raises(Shortage) as caught:
        chain.take(pages, slots)
    shortage = caught.value
    assert (shortage.kind, shortage.band) == ("ids", band)
    assert (shortage.asked, shortage.free) == (asked, free)


def test_short_bytes_are_told_from_short_ids() -> None:
    chain, device = filled()
    assert not chain.fits(3, 0)
    text = assert_refused(chain, device, Shortage, lambda: chain.take(3, 0))
    assert text.startswith("short of bytes")
    assert chain.counters.shortages == 1


def test_a_refused_take_settles_nothing() -> None:
    chain, device = filled()
    run_step(chain, device, 1, [1], [1])
    chain.free([2, 4])
    chain.retire(0, [3])
    assert_refused(chain, device, Shortage, lambda: chain.take(6, 0))


def test_everything_can_be_taken_once_it_was_freed() -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.free([1, 2, 3, 4])
    assert chain.fits(6, 0)
    assert chain.take(6, 0).ids == [4, 3, 2, 1, 5, 6]


# Frees -------------------------------------------------------------------------------------


def test_a_free_unbinds_in_every_band_that_still_binds() -> None:
    chain, device = filled()
    chain.retire(0, [2])
    device.calls.clear()
    chain.free([2, 3])
    assert device.calls == [("map", 1, (2, 3), (0, 0)), ("map", 0, (3,), (0,))]
    assert drawn(chain.bands[0]) == "_LhhL........"
    assert drawn(chain.bands[1]) == "_........LhhL"


def test_a_free_pends_only_under_a_recorded_step() -> None:
    chain, device = filled()
    chain.free([2])
    run_step(chain, device, 1)
    chain.free([3])
    assert drawn(chain.bands[0]) == "_LhpL........"
    assert drawn(chain.bands[1]) == "_........LphL"


def test_a_processed_step_makes_frees_immediate_again() -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.process_step(1)
    chain.free([2])
    assert drawn(chain.bands[0]) == "_LhLL........"


def test_ids_return_at_once_under_a_running_step() -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.free([2])
    assert chain.take(1, 0).ids == [2]


def test_a_reused_id_gets_another_page_while_its_old_one_is_read() -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.retire(0, [1])
    chain.process_step(1)
    run_step(chain, device, 2)
    chain.free([2])
    chain.take(1, 0)
    assert chain.translate(0, [2]) == [1]
    assert drawn(chain.bands[0]) == "_LpLL........"


def test_a_free_of_nothing_is_nothing() -> None:
    chain, device = filled()
    chain.free([])
    assert device.calls == []


def test_a_slot_returns_to_its_own_ids() -> None:
    chain, _ = chain_of(FEW_IDS)
    chain.take(1, 2)
    chain.free_slots([1])
    assert chain.take(0, 1).slots == [1]
    assert chain.translate(0, [1, 2]) == [1, 2]


def test_a_double_free_names_the_operation_that_freed_it_before() -> None:
    chain, device = filled()
    chain.free([1])
    chain.free([3, 2])
    text = assert_refused(chain, device, OwnershipError, lambda: chain.free([4, 2]))
    assert "'full'" in text
    assert "id 2 freed by operation 3, free" in text


def test_a_row_retired_twice_names_the_first_time() -> None:
    chain, device = filled()
    chain.retire(0, [2])
    text = assert_refused(chain, device, OwnershipError, lambda: chain.retire(0, [2]))
    assert "'window'" in text
    assert "id 2 freed by operation 2, retire" in text


def test_a_slot_freed_twice_names_the_first_time() -> None:
    chain, device = chain_of(FEW_IDS)
    chain.take(0, 1)
    chain.free_slots([1])
    text = assert_refused(chain, device, OwnershipError, lambda: chain.free_slots([1]))
    assert "id 1 freed by operation 2, free_slots" in text


def test_an_id_that_was_never_handed_out_is_no_double_free() -> None:
    chain, device = filled()
    text = assert_refused(chain, device, OwnershipError, lambda: chain.free([9]))
    assert "id 9 never bound" in text


@pytest.mark.parametrize("unit", [0, -1, 100])
def test_an_id_outside_the_space_is_refused(unit: int) -> None:
    chain, device = filled()
    text = assert_refused(chain, device, OwnershipError, lambda: chain.free([1, unit]))
    assert f"[{unit}] are outside 1..99" in text


def test_an_id_listed_twice_is_refused() -> None:
    chain, device = filled()
    text = assert_refused(chain, device, OwnershipError, lambda: chain.free([1, 3, 1]))
    assert "[1]" in text


# Steps -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "act",
    [
        lambda chain: chain.take(1, 0),
        lambda chain: chain.free([1]),
        lambda chain: chain.retire(0, [1]),
        lambda chain: chain.free_slots([1]),
        lambda chain: chain.flush(1),
        lambda chain: chain.relieve(1, 0),
        lambda chain: chain.process_step(1),
        lambda chain: chain.launch_step(3),
    ],
)
def test_nothing_is_taken_freed_or_moved_between_launch_and_record(
    act: Callable[[ChainAllocator], object],
) -> None:
    chain, device = filled()
    run_step(chain, device, 1)
    chain.launch_step(2)
    text = assert_refused(chain, device, StepOrderError, lambda: act(chain))
    assert "between launch and record of step 2" in text


def test_a_recorded_step_writes_the_pages_of_its_ids() -> None:
    chain, device = filled()
    run_step(chain, device, 1, [2, 3], [3])
    uses = [(use.band, sorted(use.pages), use.step) for use in chain.ledger.uses()]
    assert uses == [(0, [2, 3], 1), (1, [10], 1)]


def test_a_step_that_writes_an_unbound_id_is_refused() -> None:
    chain, device = filled()
    chain.launch_step(1)
    end = Mark("end")
    assert_refused(chain, device, OwnershipError, lambda: chain.record_step(1, end, [[9], []]))


def test_a_step_recorded_out_of_turn_writes_nothing() -> None:
    chain, device = filled()
    chain.launch_step(1)
    end = Mark("end")
    assert_refused(chain, device, StepOrderError, lambda: chain.record_step(2, end, [[1], [1]]))


def test_a_step_of_unknown_writes_may_write_every_band() -> None:
    chain, _ = filled()
    chain.launch_step(1)
    chain.record_step_of_unknown_writes(1, Mark("end"))
    uses = [(use.use, use.band, use.step) for use in chain.ledger.uses()]
    assert uses == [(Use.UNKNOWN_WRITE, 0, 1), (Use.UNKNOWN_WRITE, 1, 1)]


def test_a_step_of_unknown_writes_is_recorded_in_turn() -> None:
    chain, device = filled()
    chain.launch_step(1)
    end = Mark("end")
    assert_refused(
        chain, device, StepOrderError, lambda: chain.record_step_of_unknown_writes(2, end)
    )


def test_a_processed_step_has_no_use_left() -> None:
    chain, device = filled()
    run_step(chain, device, 1, [1], [1])
    chain.process_step(1)
    assert chain.ledger.uses() == ()


# Bands -------------------------------------------------------------------------------------


def test_the_first_band_grows_up_and_the_last_one_down() -> None:
    low, middle, high = build_bands(
        layout_of(70, 5, states("state", 6), window("window", 4), tokens("full", 8))
    )
    assert (low.axis, len(low.states)) == (Axis(1, 1), 10)
    assert (middle.axis, len(middle.states)) == (Axis(2, 1), 15)
    assert (high.axis, len(high.states)) == (Axis(7, -1), 7)
    assert isinstance(middle, FloatBand)


def test_a_single_band_grows_down() -> None:
    (only,) = build_bands(layout_of(50, 4, tokens("full")))
    assert (only.axis, len(only.states)) == (Axis(11, -1), 11)


def test_a_single_band_serves_an_engine() -> None:
    chain, device = chain_of(layout_of(24, 4, tokens("full")))
    chain.take(5, 0)
    assert not chain.fits(1, 0)
    chain.free([5, 1])
    assert drawn(chain.owner) == "_.LLLh"
    assert chain.flush(1) == 1
    assert device.named("move") == [(0, (2,), (5,))]
