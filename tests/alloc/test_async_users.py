"""Copies and reservations on a chain, drawn page by page.

Pages have four bytes and page 0 is the sink, but where a test is about page sizes.  Holds and
transfers are drawn in `test_held_pages`.
"""

from collections.abc import Callable, Sequence

import pytest

from benchmarks.search.lending_account import books
from tests.alloc.small_chain import (
    DiaryDevice,
    Mark,
    chain_of,
    drawn,
    layout_of,
    run_step,
    states,
    tokens,
    window,
)
from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.band import Band, BandCounts
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.use import Use
from unikv.errors import ArgumentError, OwnershipError, Shortage, StepOrderError

ENDS = layout_of(52, 4, window("window"), tokens("full"))
FLOAT = layout_of(52, 4, states("state"), window("window"), tokens("full"))
UNEVEN = layout_of(52, 12, states("state"), tokens("full", 6))
COPY = Mark("copy")

Begin = Callable[[AsyncUsers, Sequence[Sequence[int]], object], int]
each_copy = pytest.mark.parametrize("begin", [AsyncUsers.begin_backup, AsyncUsers.begin_load])


def filled() -> tuple[ChainAllocator, DiaryDevice, Band]:
    """Four live pages in each band: ids 1..4 on the window's pages 1..4 and on pages 12..9."""
    chain, device = chain_of(ENDS)
    chain.take(4, 0)
    device.calls.clear()
    assert drawn(chain.bands[0]) == "_LLLL........"
    return chain, device, chain.bands[0]


def assert_refused(chain: ChainAllocator, error: type[Exception], act: Callable[[], object]) -> str:
    """The act raises and changes nothing; its text."""
    before = books(chain)
    with pytest.raises(error) as caught:
        act()
    assert books(chain) == before
    return str(caught.value)


# Copies: what is freed ----------------------------------------------------------------------


def test_a_page_freed_under_a_copy_is_a_hole_at_once() -> None:
    chain, device, band = filled()
    chain.users.begin_backup([[2], []], COPY)
    chain.retire(0, [2])
    assert drawn(band) == "_LhLL........"
    assert device.names() == ["map"]


def test_a_page_freed_under_a_copy_may_leave_the_band() -> None:
    chain, _, band = filled()
    chain.users.begin_backup([[4], []], COPY)
    chain.retire(0, [4])
    assert drawn(band) == "_LLL........."


def test_a_free_ends_no_copy() -> None:
    chain, _, _ = filled()
    chain.users.begin_backup([[2], []], COPY)
    chain.retire(0, [2])
    assert [use.ranges for use in chain.ledger.fences.uses()] == [((8, 12),)]


def test_a_copy_touches_the_pages_of_every_band() -> None:
    chain, _, _ = filled()
    chain.users.begin_load([[2], [1, 2]], COPY)
    (use,) = chain.ledger.fences.uses()
    assert (use.use, use.ranges) == (Use.COPY_WRITE, ((8, 12), (48, 52), (44, 48)))


# Copies: who may write ----------------------------------------------------------------------


def record_writes(chain: ChainAllocator, ids: Sequence[Sequence[int]]) -> Callable[[], None]:
    """Step 1 is open, and to be recorded as the writer of `ids`."""
    chain.launch_step(1)
    return lambda: chain.record_step(1, Mark("end"), ids)


def test_a_step_writes_no_page_under_a_backup() -> None:
    chain, _, _ = filled()
    chain.users.begin_backup([[2], []], COPY)
    text = assert_refused(chain, OwnershipError, record_writes(chain, [[1, 2, 3], []]))
    assert "step 1 writes pages [2] of band 'window', which a backup still reads" in text
    assert chain.steps.launched == 1


def test_a_step_that_wrote_under_a_backup_is_recorded_as_one_of_unknown_writes() -> None:
    chain, _, _ = filled()
    chain.users.begin_backup([[2], []], COPY)
    text = assert_refused(chain, OwnershipError, record_writes(chain, [[2], []]))
    assert "this step is still open, and record_step_of_unknown_writes records it" in text
    chain.record_step_of_unknown_writes(1, Mark("end"))
    chain.process_step(1)
    assert (chain.steps.launched, chain.steps.processed_through) == (0, 1)


def test_the_same_id_is_another_page_in_another_band() -> None:
    chain, _, _ = filled()
    chain.users.begin_backup([[2], []], COPY)
    record_writes(chain, [[1, 3, 4], [2]])()
    assert chain.steps.newest == 1


def test_a_page_is_written_again_once_its_backup_is_over() -> None:
    chain, _, _ = filled()
    chain.users.end_copy(chain.users.begin_backup([[2], []], COPY))
    record_writes(chain, [[2], []])()
    assert chain.steps.newest == 1


def test_a_step_that_waited_for_a_load_writes_the_page_it_fills() -> None:
    chain, _, _ = filled()
    chain.users.begin_load([[2], []], COPY)
    record_writes(chain, [[2], []])()
    assert chain.steps.newest == 1


# Copies: who waits --------------------------------------------------------------------------


@each_copy
def test_a_hole_under_a_copy_is_taken_behind_its_event(begin: Begin) -> None:
    chain, device, _ = filled()
    begin(chain.users, [[2], []], COPY)
    chain.retire(0, [2])
    device.calls.clear()
    chain.take(1, 0)
    assert device.calls[:3] == [("wait", COPY), ("zero", 0, (2,)), ("map", 0, (5,), (2,))]


def test_a_hole_beside_a_copy_waits_for_nothing() -> None:
    chain, device, _ = filled()
    chain.users.begin_backup([[3], []], COPY)
    chain.retire(0, [2])
    device.calls.clear()
    chain.take(1, 0)
    assert "wait" not in device.names()


def test_a_copy_is_found_by_another_band_after_its_bytes_left_the_first() -> None:
    chain, device = chain_of(UNEVEN)
    chain.take(0, 5)
    chain.users.begin_backup([[5], []], COPY)
    chain.free_slots([5])
    assert drawn(chain.bands[0]) == "___LLLL......"
    device.calls.clear()
    chain.take(2, 0)
    assert "wait" not in device.names()
    chain.take(1, 0)
    assert drawn(chain.bands[1]) == "__...LLL"
    assert device.calls[-3:] == [("wait", COPY), ("zero", 1, (5,)), ("map", 1, (3,), (5,))]


def test_a_reservation_waits_the_copies_of_its_bytes() -> None:
    chain, device, _ = filled()
    chain.users.begin_backup([[2], []], COPY)
    chain.retire(0, [2])
    device.calls.clear()
    assert chain.reserve(0, 1) == [2]
    assert device.calls == [("wait", COPY)]


def test_a_move_does_not_wait_for_a_backup_of_its_source() -> None:
    chain, device, _ = filled()
    chain.users.begin_backup([[4], []], COPY)
    chain.retire(0, [2])
    device.calls.clear()
    chain.flush(1)
    assert device.calls == [("move", 0, (4,), (2,)), ("map", 0, (4,), (2,))]


def test_a_move_waits_a_load_of_its_source() -> None:
    chain, device, _ = filled()
    chain.users.begin_load([[4], []], COPY)
    chain.retire(0, [2])
    device.calls.clear()
    chain.flush(1)
    assert device.calls == [("wait", COPY), ("move", 0, (4,), (2,)), ("map", 0, (4,), (2,))]


@each_copy
def test_a_move_waits_every_copy_of_its_target(begin: Begin) -> None:
    chain, device, _ = filled()
    begin(chain.users, [[2], []], COPY)
    chain.retire(0, [2])
    device.calls.clear()
    chain.flush(1)
    assert device.names() == ["wait", "move", "map"]


def test_the_source_of_a_move_is_handed_out_behind_the_backup_that_reads_it() -> None:
    chain, device, _ = filled()
    chain.users.begin_backup([[4], []], COPY)
    chain.retire(0, [2])
    chain.flush(1)
    assert drawn(chain.bands[0]) == "_LLL........."
    device.calls.clear()
    chain.take(1, 0)
    assert device.calls[:2] == [("wait", COPY), ("zero", 0, (4,))]


@pytest.mark.parametrize(
    ("toucher", "column"),
    [
        (Toucher.HAND_OUT, InFlight.BACKUP),
        (Toucher.HAND_OUT, InFlight.LOAD),
        (Toucher.MOVE_SOURCE, InFlight.LOAD),
    ],
)
def test_copies_are_waited_because_the_table_says_so(toucher: Toucher, column: InFlight) -> None:
    chain, device = chain_of(ENDS, {**CLEARANCE, (toucher, column): Clearance.SAME_STREAM})
    chain.take(4, 0)
    begin = {InFlight.BACKUP: chain.users.begin_backup, InFlight.LOAD: chain.users.begin_load}
    begin[column]([[2 if toucher is Toucher.HAND_OUT else 4], []], COPY)
    chain.retire(0, [2])
    chain.flush(1)
    assert "move" in device.names()
    assert "wait" not in device.names()


# Copies: when they are over -----------------------------------------------------------------


def test_a_copy_that_the_schedule_stream_waited_is_over() -> None:
    chain, device, _ = filled()
    chain.users.begin_backup([[2], []], COPY)
    chain.retire(0, [2])
    chain.take(1, 0)
    assert chain.ledger.fences.uses() == ()
    chain.retire(0, [5])
    device.calls.clear()
    chain.take(1, 0)
    assert "wait" not in device.names()


def test_an_acknowledged_copy_is_over() -> None:
    chain, device, _ = filled()
    number = chain.users.begin_backup([[2], []], COPY)
    chain.retire(0, [2])
    chain.users.end_copy(number)
    device.calls.clear()
    chain.take(1, 0)
    assert "wait" not in device.names()


def test_the_end_of_a_copy_is_not_that_of_another() -> None:
    chain, device, _ = filled()
    first = chain.users.begin_backup([[2], []], Mark("first"))
    chain.users.begin_backup([[2], []], COPY)
    chain.retire(0, [2])
    chain.users.end_copy(first)
    device.calls.clear()
    chain.take(1, 0)
    assert device.named("wait") == [(COPY,)]


def test_a_copy_may_be_acknowledged_after_it_was_waited() -> None:
    chain, _, _ = filled()
    number = chain.users.begin_backup([[2], []], COPY)
    chain.retire(0, [2])
    chain.take(1, 0)
    chain.users.end_copy(number)
    assert chain.ledger.fences.uses() == ()


@pytest.mark.parametrize("number", [-1, 0, 2])
def test_the_end_of_a_copy_that_nobody_submitted_is_refused(number: int) -> None:
    chain, _, _ = filled()
    chain.users.begin_backup([[2], []], COPY)
    assert_refused(chain, ArgumentError, lambda: chain.users.end_copy(number))


@each_copy
def test_a_copy_of_an_unbound_id_is_refused(begin: Begin) -> None:
    chain, _, _ = filled()
    assert_refused(chain, OwnershipError, lambda: begin(chain.users, [[1, 9], []], COPY))


# Reservations -------------------------------------------------------------------------------


def reserved() -> tuple[ChainAllocator, DiaryDevice, Band]:
    """Pages 5 and 6 of the window band are reserved."""
    chain, device, band = filled()
    assert chain.reserve(0, 2) == [5, 6]
    return chain, device, band


def test_reserved_pages_are_fixed() -> None:
    _, _, band = reserved()
    assert drawn(band) == "_LLLLff......"
    assert band.counts == BandCounts(4, 0, 0, 2)


def test_reserved_pages_are_neither_zeroed_nor_mapped() -> None:
    _, device, _ = reserved()
    assert device.calls == []


def test_reserved_pages_count_as_used() -> None:
    chain, _, _ = reserved()
    view = chain.relief.snapshot().bands[0]
    assert (view.used, view.pin_low, view.pin_high) == (6, 5, 7)
    assert [chain.fits(pages, 0) for pages in (1, 2)] == [True, False]


def test_a_flush_leaves_reserved_pages_alone() -> None:
    chain, _, band = reserved()
    chain.retire(0, [1, 2])
    assert chain.flush(8) == 2
    assert drawn(band) == "_LLhhff......"


def test_a_reservation_settles_where_the_holes_do_not_cover_it() -> None:
    chain, device, band = filled()
    step = run_step(chain, device, 1)
    chain.retire(0, [2, 3])
    device.calls.clear()
    assert chain.reserve(0, 2) == [2, 3]
    assert drawn(band) == "_LffL........"
    assert device.calls == [("wait", step)]


def test_a_reservation_settles_nothing_where_the_holes_cover_it() -> None:
    chain, device, band = filled()
    chain.retire(0, [1, 2])
    run_step(chain, device, 1)
    chain.retire(0, [3])
    device.calls.clear()
    assert chain.reserve(0, 2) == [1, 2]
    assert drawn(band) == "_ffpL........"
    assert device.calls == []


def test_a_reservation_of_nothing_changes_nothing() -> None:
    chain, device, _ = filled()
    before = books(chain)
    assert chain.reserve(0, 0) == []
    assert books(chain) == before
    assert device.calls == []


def test_a_reservation_that_does_not_fit_is_refused() -> None:
    chain, _, _ = filled()
    text = assert_refused(chain, Shortage, lambda: chain.reserve(0, 5))
    assert text == "short of bytes: 5 pages asked of window, 0 free in place"


def test_a_reservation_of_less_than_nothing_is_refused() -> None:
    chain, _, _ = filled()
    assert_refused(chain, ValueError, lambda: chain.reserve(0, -1))


def float_around_a_reservation() -> tuple[ChainAllocator, DiaryDevice]:
    """The low end has grown up to a float whose page 8 is reserved."""
    chain, device = chain_of(FLOAT)
    chain.take(2, 2)
    chain.take(0, 3)
    assert chain.reserve(1, 1) == [8]
    chain.retire(1, [2])
    device.calls.clear()
    assert [drawn(band) for band in chain.bands[:2]] == ["_LLLLL.......", "_.....Lhf...."]
    return chain, device


@pytest.mark.parametrize(
    ("slots", "low", "band", "move"),
    [
        (1, "_LLLLLL......", "_.......fL...", (1, (6,), (9,))),
        (2, "_LLLLLLL.....", "_.......fL...", (1, (6,), (9,))),
    ],
)
def test_a_float_closes_up_around_a_reserved_page(
    slots: int, low: str, band: str, move: tuple[object, ...]
) -> None:
    chain, device = float_around_a_reservation()
    chain.take(0, slots)
    assert [drawn(band) for band in chain.bands[:2]] == [low, band]
    assert device.named("move") == [move]


def test_a_demand_that_only_a_reserved_page_is_in_the_way_of_is_refused() -> None:
    chain, _ = float_around_a_reservation()
    assert not chain.fits(0, 3)
    assert_refused(chain, Shortage, lambda: chain.take(0, 3))


def test_naming_makes_reserved_pages_live() -> None:
    chain, device, band = reserved()
    chain.retire(0, [1, 2])
    device.calls.clear()
    chain.users.name_reserved(0, [2, 1], [5, 6])
    assert drawn(band) == "_hhLLLL......"
    assert chain.translate(0, [1, 2]) == [6, 5]
    assert device.calls == [("map", 0, (2, 1), (5, 6))]


def test_named_pages_may_move() -> None:
    chain, _, band = reserved()
    chain.retire(0, [1, 2])
    chain.users.name_reserved(0, [1, 2], [5, 6])
    assert chain.flush(8) == 2
    assert drawn(band) == "_LLLL........"


def test_a_part_of_a_reservation_may_be_named() -> None:
    chain, _, band = reserved()
    chain.retire(0, [1])
    chain.users.name_reserved(0, [1], [6])
    assert drawn(band) == "_hLLLfL......"


@pytest.mark.parametrize(
    ("ids", "pages"), [([3], [5]), ([1], [7]), ([1], [4]), ([1, 2], [5, 5]), ([1, 2], [5, 1])]
)
def test_only_free_ids_may_name_reserved_pages(ids: list[int], pages: list[int]) -> None:
    chain, device, _ = reserved()
    chain.retire(0, [1, 2])
    device.calls.clear()
    assert_refused(chain, OwnershipError, lambda: chain.users.name_reserved(0, ids, pages))
    assert device.calls == []


def test_a_cancelled_reservation_lets_the_frontier_retreat() -> None:
    chain, device, band = reserved()
    chain.users.cancel_reservation(0, [6, 5])
    assert drawn(band) == "_LLLL........"
    assert device.calls == []


def test_a_cancelled_reservation_leaves_a_hole_behind_the_frontier() -> None:
    chain, _, band = reserved()
    chain.users.cancel_reservation(0, [5])
    assert drawn(band) == "_LLLLhf......"


@pytest.mark.parametrize("pages", [[4], [7], [5, 5], [5, 6, 7], [0], [99]])
def test_only_reserved_pages_are_cancelled(pages: list[int]) -> None:
    chain, _, _ = reserved()
    text = assert_refused(chain, OwnershipError, lambda: chain.users.cancel_reservation(0, pages))
    assert text.startswith(f"band 'window': pages {pages} are not a part of those reserved, [5, 6]")


# Between launch and record -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("reserve", lambda chain: chain.reserve(0, 1)),
        ("name_reserved", lambda chain: chain.users.name_reserved(0, [1], [5])),
        ("cancel_reservation", lambda chain: chain.users.cancel_reservation(0, [5])),
        ("begin_backup", lambda chain: chain.users.begin_backup([[2], []], COPY)),
        ("begin_load", lambda chain: chain.users.begin_load([[2], []], COPY)),
        ("end_copy", lambda chain: chain.users.end_copy(1)),
        ("hold_receive", lambda chain: chain.users.hold_receive("other", [[4], []])),
        ("publish", lambda chain: chain.users.publish("hold", "receive")),
        ("begin_send", lambda chain: chain.users.begin_send("other", [[4], []])),
        ("release", lambda chain: chain.users.release("send")),
    ],
)
def test_nothing_is_lent_or_given_back_between_launch_and_record(
    name: str, act: Callable[[ChainAllocator], object]
) -> None:
    chain, _, _ = reserved()
    chain.users.begin_backup([[2], []], COPY)
    chain.users.hold_receive("hold", [[2], []])
    chain.users.begin_send("send", [[3], []])
    chain.retire(0, [1, 3])
    chain.launch_step(1)
    text = assert_refused(chain, StepOrderError, lambda: act(chain))
    assert text.startswith(f"{name} between launch and record of step 1")
