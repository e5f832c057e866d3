"""Receive holds and transfers on a chain, drawn page by page: what stays, sticks, moves and waits.

Pages have four bytes and page 0 is the sink.  Bands are drawn from the low end to the high end, one
string each, all of the same width: the same column is the same bytes.
"""

from collections.abc import Callable, Sequence

import pytest

from tests.alloc.lending_engine import books
from tests.alloc.small_chain import (
    DiaryDevice,
    chain_of,
    drawn,
    layout_of,
    run_step,
    states,
    tokens,
    window,
)
from tests.alloc.test_async_users import assert_refused, filled
from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.band import Band, BandCounts
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.signals import HOLDS, Hold, NoTransfers
from unikv.alloc.use import Use
from unikv.errors import OwnershipError, TransferError

ENDS = layout_of(52, 4, window("window"), tokens("full"))
FLOAT = layout_of(52, 4, states("state"), window("window"), tokens("full"))


# Holds --------------------------------------------------------------------------------------


def test_a_flush_leaves_held_pages_alone() -> None:
    chain, _, band = filled()
    chain.users.hold_receive("hold", [[4], []])
    chain.retire(0, [1, 2])
    assert chain.flush(8) == 1
    assert drawn(band) == "_LhhL........"
    assert chain.translate(0, [3, 4]) == [1, 4]


def test_a_published_hold_names_the_pages_that_may_leave() -> None:
    chain, _, _ = filled()
    chain.users.hold_receive("hold", [[2, 4], [2]])
    assert chain.users.publish("hold", "receive") == {0: [2, 4], 1: [11]}


def test_a_hold_that_grew_is_published_whole() -> None:
    chain, _, _ = filled()
    chain.users.hold_receive("hold", [[2], []])
    chain.users.hold_receive("hold", [[4], [4]])
    assert chain.users.publish("hold", "receive") == {0: [2, 4], 1: [9]}


def test_there_is_no_gap_between_a_hold_and_its_receive() -> None:
    chain, _, _ = filled()
    chain.users.hold_receive("hold", [[2], []])
    chain.users.publish("hold", "receive")
    assert chain.ledger.held.holds() == (Hold("receive", Use.NETWORK_RECEIVE, 0, frozenset({2})),)


def test_a_released_hold_lets_its_pages_move() -> None:
    chain, _, band = filled()
    chain.users.hold_receive("hold", [[4], []])
    chain.users.release("hold")
    chain.retire(0, [1])
    assert chain.flush(8) == 1
    assert drawn(band) == "_LLL........."


def test_a_page_freed_under_a_hold_is_a_hole_at_once() -> None:
    chain, _, band = filled()
    chain.users.hold_receive("hold", [[2, 4], []])
    chain.retire(0, [2])
    assert drawn(band) == "_LhLL........"


def test_a_page_freed_under_a_hold_is_not_published() -> None:
    chain, _, _ = filled()
    chain.users.hold_receive("hold", [[2, 4], []])
    chain.retire(0, [2])
    chain.take(1, 0)
    assert chain.translate(0, [5]) == [2]
    assert chain.users.publish("hold", "receive") == {0: [4]}


@pytest.mark.parametrize("begin", [AsyncUsers.hold_receive, AsyncUsers.begin_send])
def test_an_unbound_id_is_not_held(
    begin: Callable[[AsyncUsers, str, Sequence[Sequence[int]]], None],
) -> None:
    chain, _, _ = filled()
    assert_refused(chain, OwnershipError, lambda: begin(chain.users, "name", [[1, 2], [9]]))


def test_an_unknown_hold_is_not_published() -> None:
    chain, _, _ = filled()
    chain.users.hold_receive("hold", [[2], []])
    chain.users.begin_send("send", [[3], []])
    text = assert_refused(chain, TransferError, lambda: chain.users.publish("send", "receive"))
    assert "['hold']" in text


def test_an_unknown_name_is_not_released() -> None:
    chain, _, _ = filled()
    chain.users.hold_receive("hold", [[2], []])
    chain.users.begin_send("send", [[3], []])
    text = assert_refused(chain, TransferError, lambda: chain.users.release("lost"))
    assert "['hold', 'send']" in text


# Transfers: stuck pages ---------------------------------------------------------------------


def send(chain: ChainAllocator, units: list[int]) -> None:
    """A peer reads the window's pages of some ids."""
    chain.users.begin_send("transfer", [units, []])


def receive(chain: ChainAllocator, units: list[int]) -> None:
    """A peer may write the window's pages of some ids."""
    chain.users.hold_receive("hold", [units, []])
    chain.users.publish("hold", "transfer")


Begin = Callable[[ChainAllocator, list[int]], None]
each_transfer = pytest.mark.parametrize("begin", [send, receive])


def stuck(begin: Begin) -> tuple[ChainAllocator, DiaryDevice, Band]:
    """Page 2 of the window was freed under a transfer of pages 2 and 3."""
    chain, device, band = filled()
    begin(chain, [2, 3])
    chain.retire(0, [2])
    device.calls.clear()
    return chain, device, band


@each_transfer
def test_a_page_freed_under_a_transfer_is_pending(begin: Begin) -> None:
    chain, _, band = stuck(begin)
    assert drawn(band) == "_LpLL........"
    assert chain.ledger.held.stuck(0) == {2}


@each_transfer
def test_a_stuck_page_is_in_no_batch(begin: Begin) -> None:
    chain, device, band = filled()
    begin(chain, [2, 3])
    run_step(chain, device, 1)
    chain.retire(0, [2])
    assert drawn(band) == "_LpLL........"
    assert band.pending_pages.batches() == ()


@each_transfer
def test_a_free_parts_what_is_stuck_from_what_is_not(begin: Begin) -> None:
    chain, device, band = filled()
    begin(chain, [2, 3])
    run_step(chain, device, 1)
    chain.free([1, 2])
    assert drawn(band) == "_ppLL........"
    assert band.pending_pages.batches() == ((1, (1,)),)
    assert chain.owner.pending_pages.batches() == ((1, (12, 11)),)


@each_transfer
def test_a_stuck_page_is_not_offered(begin: Begin) -> None:
    chain, device, band = stuck(begin)
    chain.take(1, 0)
    assert drawn(band) == "_LpLLL......."
    assert device.calls[0] == ("zero", 0, (5,))


@each_transfer
def test_no_wait_settles_a_stuck_page(begin: Begin) -> None:
    chain, device, band = stuck(begin)
    run_step(chain, device, 1)
    chain.retire(0, [4])
    chain.reclaim.settle_all()
    assert drawn(band) == "_LpL........."


@each_transfer
def test_a_stuck_page_alone_is_nothing_to_settle(begin: Begin) -> None:
    chain, device, band = filled()
    begin(chain, [2, 3])
    run_step(chain, device, 1)
    chain.retire(0, [2])
    device.calls.clear()
    chain.reclaim.settle(band, 1)
    chain.reclaim.settle_all()
    assert device.calls == []


@each_transfer
def test_no_processed_step_returns_a_stuck_page(begin: Begin) -> None:
    chain, device, band = filled()
    begin(chain, [2, 3])
    run_step(chain, device, 1)
    chain.retire(0, [2])
    chain.process_step(1)
    assert drawn(band) == "_LpLL........"


@each_transfer
def test_a_stuck_page_returns_on_release(begin: Begin) -> None:
    chain, _, band = stuck(begin)
    chain.users.release("transfer")
    assert drawn(band) == "_LhLL........"
    assert chain.ledger.held.stuck(0) == frozenset()


@each_transfer
def test_a_stuck_page_at_the_frontier_leaves_on_release(begin: Begin) -> None:
    chain, _, band = filled()
    begin(chain, [4])
    chain.retire(0, [4])
    assert drawn(band) == "_LLLp........"
    chain.users.release("transfer")
    assert drawn(band) == "_LLL........."


@each_transfer
def test_a_stuck_page_released_under_a_step_pends_on_the_newest(begin: Begin) -> None:
    chain, device, band = stuck(begin)
    run_step(chain, device, 1)
    run_step(chain, device, 2)
    chain.users.release("transfer")
    assert drawn(band) == "_LpLL........"
    assert band.pending_pages.batches() == ((2, (2,)),)


@each_transfer
def test_a_stuck_page_released_under_a_step_returns_with_it(begin: Begin) -> None:
    chain, device, band = stuck(begin)
    run_step(chain, device, 1)
    chain.users.release("transfer")
    chain.process_step(1)
    assert drawn(band) == "_LhLL........"


@each_transfer
def test_a_stuck_page_released_under_a_settled_step_waits_for_nothing_more(begin: Begin) -> None:
    chain, device, band = stuck(begin)
    run_step(chain, device, 1)
    chain.steps.wait(1)
    chain.users.release("transfer")
    assert drawn(band) == "_LpLL........"
    device.calls.clear()
    chain.reclaim.settle(band, 1)
    assert drawn(band) == "_LhLL........"
    assert device.calls == []


@each_transfer
def test_a_stuck_page_is_used_in_the_careful_view_and_free_in_the_full_one(begin: Begin) -> None:
    chain, _, _ = stuck(begin)
    view = chain.relief.snapshot([HOLDS, HOLDS]).bands[0]
    assert (view.used, view.pin_low, view.pin_high) == (4, 2, 4)
    view = chain.relief.snapshot().bands[0]
    assert (view.used, view.pin_low, view.pin_high) == (3, 0, 0)


@each_transfer
def test_a_flush_leaves_pages_under_transfers_alone(begin: Begin) -> None:
    chain, _, band = filled()
    begin(chain, [4])
    chain.retire(0, [1, 2])
    assert chain.flush(8) == 1
    assert drawn(band) == "_LhhL........"


def test_pages_stick_because_the_table_says_so() -> None:
    chain, _ = chain_of(
        ENDS, {**CLEARANCE, (Toucher.HAND_OUT, InFlight.NETWORK): Clearance.AT_HAND_OUT}
    )
    chain.take(4, 0)
    send(chain, [2, 3])
    chain.retire(0, [2])
    assert drawn(chain.bands[0]) == "_LhLL........"


# Reliefs --------------------------------------------------------------------------------------


class Peers:
    """Transfers that end as soon as somebody waits for them.

    Attributes:
        waited: the names of every wait.
    """

    def __init__(self) -> None:
        self.waited: list[list[str]] = []

    def wait(self, names: Sequence[str]) -> None:
        """They are over."""
        self.waited.append(list(names))


def lines(chain: ChainAllocator) -> list[str]:
    """Every band's drawing."""
    return [drawn(band) for band in chain.bands]


def float_reached() -> tuple[ChainAllocator, DiaryDevice, Peers]:
    """The low end has grown up to the float, which holds ids 1 and 2."""
    device, peers = DiaryDevice(FLOAT), Peers()
    chain = ChainAllocator(FLOAT, device, waiter=peers)
    chain.take(2, 2)
    chain.take(0, 3)
    device.calls.clear()
    assert lines(chain) == ["_LLLLL.......", "_.....LL.....", "_..........LL"]
    return chain, device, peers


Lend = Callable[[ChainAllocator, int], None]


def lend_to_send(chain: ChainAllocator, unit: int) -> None:
    """A peer reads the float's page of an id."""
    chain.users.begin_send("transfer", [[], [unit], []])


def lend_to_receive(chain: ChainAllocator, unit: int) -> None:
    """A peer may write it."""
    chain.users.hold_receive("hold", [[], [unit], []])
    chain.users.publish("hold", "transfer")


def hold(chain: ChainAllocator, unit: int) -> None:
    """It is held for a receive."""
    chain.users.hold_receive("hold", [[], [unit], []])


each_loan = pytest.mark.parametrize("lend", [lend_to_send, lend_to_receive])


@pytest.mark.parametrize("lend", [lend_to_send, lend_to_receive, hold])
def test_a_float_closes_up_around_a_page_that_stays(lend: Lend) -> None:
    chain, device, peers = float_reached()
    lend(chain, 2)
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_......LL....", "_..........LL"]
    assert device.named("move") == [(1, (6,), (8,))]
    assert peers.waited == []


def test_a_held_page_moves_where_nothing_else_serves() -> None:
    chain, _, peers = float_reached()
    hold(chain, 1)
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_.......LL...", "_..........LL"]
    assert peers.waited == []


def test_a_hold_follows_a_relief() -> None:
    chain, _, _ = float_reached()
    hold(chain, 1)
    chain.take(0, 1)
    assert chain.translate(1, [1]) == [8]
    assert chain.users.publish("hold", "receive") == {1: [8]}


@each_loan
def test_a_held_page_moves_before_anybody_waits_for_a_transfer(lend: Lend) -> None:
    chain, device, peers = float_reached()
    lend(chain, 2)
    hold(chain, 1)
    chain.take(0, 1)
    assert device.named("move") == [(1, (6,), (8,))]
    assert peers.waited == []


@each_loan
def test_a_relief_waits_for_a_transfer_where_nothing_else_serves(lend: Lend) -> None:
    chain, _, peers = float_reached()
    lend(chain, 1)
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_.......LL...", "_..........LL"]
    assert peers.waited == [["transfer"]]
    assert chain.counters.host_waits == 1


@each_loan
def test_a_transfer_that_a_relief_waited_for_holds_nothing(lend: Lend) -> None:
    chain, _, _ = float_reached()
    lend(chain, 1)
    chain.take(0, 1)
    assert chain.ledger.held.holds() == ()


def test_a_relief_waits_for_no_transfer_of_a_band_that_can_stay() -> None:
    chain, _, peers = float_reached()
    chain.users.begin_send("below", [[1, 5], [], []])
    chain.users.begin_send("float", [[], [1], []])
    chain.users.begin_send("above", [[], [], [1]])
    chain.take(0, 1)
    assert peers.waited == [["float"]]
    assert {held.name for held in chain.ledger.held.holds()} == {"below", "above"}


def test_a_relief_waits_for_every_transfer_of_a_band_that_cannot_stay() -> None:
    chain, _, peers = float_reached()
    chain.users.begin_send("one", [[], [1], []])
    chain.users.begin_send("two", [[], [2], [2]])
    chain.take(0, 1)
    assert peers.waited == [["one", "two"]]


def test_a_held_page_stays_where_the_wait_for_a_transfer_was_enough() -> None:
    chain, device, peers = float_reached()
    lend_to_send(chain, 1)
    hold(chain, 2)
    chain.take(0, 1)
    assert peers.waited == [["transfer"]]
    assert device.named("move") == [(1, (6,), (8,))]
    assert chain.users.publish("hold", "receive") == {1: [7]}


def test_a_question_counts_what_the_end_of_a_transfer_would_free() -> None:
    chain, _, peers = float_reached()
    lend_to_send(chain, 1)
    assert [chain.fits(0, slots) for slots in (3, 4)] == [True, False]
    assert peers.waited == []


def test_the_view_of_a_question_does_not_change_with_what_is_lent() -> None:
    chain, _, _ = float_reached()
    view = chain.relief.snapshot()
    lend_to_send(chain, 1)
    hold(chain, 2)
    assert chain.relief.snapshot() is view


def test_a_refused_demand_waits_for_no_transfer() -> None:
    chain, device, peers = float_reached()
    lend_to_send(chain, 1)
    before = books(chain)
    assert not chain.relieve(0, 4)
    assert books(chain) == before
    assert (peers.waited, device.calls) == ([], [])


def test_the_host_waits_because_the_table_says_so() -> None:
    device, peers = DiaryDevice(FLOAT), Peers()
    silent = {**CLEARANCE, (Toucher.MOVE_SOURCE, InFlight.NETWORK): Clearance.NONE}
    chain = ChainAllocator(FLOAT, device, silent, peers)
    chain.take(2, 2)
    chain.take(0, 3)
    lend_to_send(chain, 1)
    chain.take(0, 1)
    assert peers.waited == []


# Reliefs around stuck pages -------------------------------------------------------------------


@each_loan
def test_a_float_closes_up_around_a_stuck_page(lend: Lend) -> None:
    chain, device, peers = float_reached()
    lend(chain, 2)
    chain.retire(1, [2])
    assert lines(chain)[1] == "_.....Lp....."
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_......pL....", "_..........LL"]
    assert chain.bands[1].counts == BandCounts(live=1, holes=0, pending=1, fixed=0)
    assert device.named("move") == [(1, (6,), (8,))]
    assert peers.waited == []


def test_an_end_is_compacted_around_a_stuck_page() -> None:
    chain, _ = chain_of(layout_of(44, 4, window("window"), tokens("full")))
    chain.take(5, 0)
    chain.users.begin_send("transfer", [[3], []])
    chain.retire(0, [2, 3])
    assert lines(chain) == ["_LhpLL.....", "_.....LLLLL"]
    chain.reserve(1, 1)
    assert lines(chain) == ["_LLpL......", "_....fLLLLL"]
    assert chain.bands[0].counts == BandCounts(live=3, holes=0, pending=1, fixed=0)


def walled_in() -> tuple[ChainAllocator, DiaryDevice, Peers]:
    """A float between two full ends: one page is live, one is stuck."""
    layout = layout_of(24, 4, states("state"), window("window"), tokens("full"))
    device, peers = DiaryDevice(layout), Peers()
    chain = ChainAllocator(layout, device, waiter=peers)
    chain.take(2, 1)
    lend_to_send(chain, 2)
    chain.retire(1, [2])
    device.calls.clear()
    assert lines(chain) == ["_L....", "_.Lp..", "_...LL"]
    return chain, device, peers


def test_a_stuck_page_with_nowhere_else_to_grow_is_waited_for() -> None:
    chain, _, peers = walled_in()
    assert chain.relief.fits([0, 1, 0])
    assert chain.reserve(1, 1) == [3]
    assert peers.waited == [["transfer"]]


def test_a_stuck_page_that_was_waited_for_settles_under_a_step() -> None:
    chain, device, _ = walled_in()
    step = run_step(chain, device, 1)
    assert chain.reserve(1, 1) == [3]
    assert device.calls == [("wait", step)]


def test_the_end_of_a_transfer_alone_may_make_the_room() -> None:
    chain, device, _ = walled_in()
    chain.reserve(1, 1)
    assert device.calls == []


@each_loan
def test_a_frontier_that_was_stuck_retreats_before_anything_is_planned_again(lend: Lend) -> None:
    chain, device, peers = float_reached()
    lend(chain, 1)
    chain.retire(1, [1])
    step = run_step(chain, device, 1)
    device.calls.clear()
    assert lines(chain) == ["_LLLLL.......", "_.....pL.....", "_..........LL"]
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_......L.....", "_..........LL"]
    assert peers.waited == [["transfer"]]
    assert device.calls == [("wait", step), ("map", 0, (6,), (6,))]


# Waits in vain --------------------------------------------------------------------------------


def test_a_wait_in_vain_leaves_everything_but_what_was_settled() -> None:
    device = DiaryDevice(FLOAT)
    chain = ChainAllocator(FLOAT, device, waiter=NoTransfers())
    chain.take(2, 2)
    chain.take(0, 3)
    lend_to_send(chain, 1)
    step = run_step(chain, device, 1)
    chain.free_slots([2])
    held = chain.ledger.held.holds()
    device.calls.clear()
    assert lines(chain) == ["_LpLLL.......", "_.....LL.....", "_..........LL"]
    with pytest.raises(TransferError, match=r"\['transfer'\]"):
        chain.take(0, 2)
    assert lines(chain) == ["_LhLLL.......", "_.....LL.....", "_..........LL"]
    assert device.calls == [("wait", step)]
    assert chain.ledger.held.holds() == held
    assert chain.counters.host_waits == 0


def test_a_take_after_a_wait_in_vain_is_served() -> None:
    device = DiaryDevice(FLOAT)
    chain = ChainAllocator(FLOAT, device)
    chain.take(2, 2)
    chain.take(0, 3)
    lend_to_send(chain, 1)
    with pytest.raises(TransferError):
        chain.take(0, 1)
    chain.users.release("transfer")
    assert chain.take(0, 1).slots == [6]
