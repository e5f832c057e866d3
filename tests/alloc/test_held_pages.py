"""Receive holds and transfers on a chain, drawn page by page: what stays, sticks, moves and waits.

Pages have four bytes and page 0 is the sink.  Bands are drawn from the low end to the high end, one
string each, all of the same width: the same column is the same bytes.
"""

from collections.abc import Callable, Sequence

import pytest

from tests.alloc.small_chain import (
    DiaryDevice,
    chain_of,
    drawn,
    layout_of,
    run_step,
    tokens,
    window,
)
from tests.alloc.test_async_users import assert_refused, filled
from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.signals import HOLDS, Hold
from unikv.alloc.use import Use
from unikv.errors import OwnershipError, TransferError

ENDS = layout_of(52, 4, window("window"), tokens("full"))


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


# Names --------------------------------------------------------------------------------------


def lent() -> ChainAllocator:
    """A send of id 1, a receive of id 2 and a hold of id 3."""
    chain, _, _ = filled()
    chain.users.begin_send("send", [[1], []])
    chain.users.hold_receive("receive", [[2], []])
    chain.users.publish("receive", "receive")
    chain.users.hold_receive("hold", [[3], []])
    return chain


@pytest.mark.parametrize("name", ["send", "receive"])
def test_no_hold_takes_the_name_of_a_transfer(name: str) -> None:
    chain = lent()
    text = assert_refused(chain, TransferError, lambda: chain.users.hold_receive(name, [[4], []]))
    assert text.startswith(
        f"'{name}' begins as a receive hold, but is the name of a network {name}"
    )


@pytest.mark.parametrize("name", ["hold", "receive"])
def test_no_send_takes_the_name_of_another_use(name: str) -> None:
    chain = lent()
    assert_refused(chain, TransferError, lambda: chain.users.begin_send(name, [[4], []]))


@pytest.mark.parametrize("name", ["send", "receive"])
def test_no_hold_is_published_under_the_name_of_a_transfer(name: str) -> None:
    chain = lent()
    text = assert_refused(chain, TransferError, lambda: chain.users.publish("hold", name))
    assert "release it first, or take a name that was never used" in text


def test_no_hold_is_published_under_the_name_of_another_hold() -> None:
    chain = lent()
    chain.users.hold_receive("other", [[4], []])
    assert_refused(chain, TransferError, lambda: chain.users.publish("hold", "other"))


def test_a_send_that_grew_ends_whole() -> None:
    chain, _, _ = filled()
    chain.users.begin_send("send", [[1], []])
    chain.users.begin_send("send", [[2], []])
    chain.users.release("send")
    assert chain.ledger.held.holds() == ()


@pytest.mark.parametrize("begin", [AsyncUsers.hold_receive, AsyncUsers.begin_send])
def test_no_pages_at_all_are_not_held(
    begin: Callable[[AsyncUsers, str, Sequence[Sequence[int]]], None],
) -> None:
    chain, _, _ = filled()
    text = assert_refused(chain, TransferError, lambda: begin(chain.users, "name", [[], []]))
    assert text.startswith("'name' begins with no pages; allowed: 1 or more ids")


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
