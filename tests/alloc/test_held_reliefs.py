"""Reliefs around pages that somebody else holds: what stays, what moves and who is waited for.

Pages have four bytes and page 0 is the sink.
"""

from collections.abc import Callable, Sequence

import pytest

from benchmarks.search.lending_account import books
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
from tests.alloc.test_async_users import assert_refused
from unikv.alloc.band import BandCounts
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.signals import NoTransfers
from unikv.errors import Shortage, TransferError

FLOAT = layout_of(52, 4, states("state"), window("window"), tokens("full"))


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


class DiaryPeers:
    """Peers that write into a device's diary when the host waits for them."""

    def __init__(self, device: DiaryDevice) -> None:
        self._device = device

    def wait(self, names: Sequence[str]) -> None:
        """They are over."""
        self._device.calls.append(("host", *names))


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


@each_loan
def test_the_release_of_a_transfer_that_a_relief_ended_changes_nothing(lend: Lend) -> None:
    chain, _, _ = float_reached()
    lend(chain, 1)
    chain.take(0, 1)
    before = books(chain)
    chain.users.release("transfer")
    assert books(chain) == before


@each_loan
def test_a_transfer_that_a_relief_ended_is_released_once(lend: Lend) -> None:
    chain, _, _ = float_reached()
    lend(chain, 1)
    chain.take(0, 1)
    chain.users.release("transfer")
    assert_refused(chain, TransferError, lambda: chain.users.release("transfer"))


def test_nothing_begins_under_a_name_whose_release_is_still_to_come() -> None:
    chain, _, _ = float_reached()
    lend_to_send(chain, 1)
    chain.users.hold_receive("hold", [[], [], [2]])
    chain.take(0, 1)
    again = "'transfer' begins again"
    assert again in assert_refused(chain, TransferError, lambda: lend_to_send(chain, 2))
    users = chain.users
    assert again in assert_refused(
        chain, TransferError, lambda: users.hold_receive("transfer", [[], [2], []])
    )
    assert again in assert_refused(chain, TransferError, lambda: users.publish("hold", "transfer"))


def test_a_name_is_free_again_after_its_release() -> None:
    chain, _, _ = float_reached()
    lend_to_send(chain, 1)
    chain.take(0, 1)
    chain.users.release("transfer")
    lend_to_send(chain, 2)
    assert {held.name for held in chain.ledger.held.holds()} == {"transfer"}


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


# Transfers that were given up --------------------------------------------------------------------


@each_loan
def test_a_question_counts_no_page_of_an_isolated_transfer(lend: Lend) -> None:
    chain, _, peers = float_reached()
    lend(chain, 1)
    chain.users.isolate("transfer")
    assert not chain.fits(0, 1)
    assert not chain.relieve(0, 1)
    assert_refused(chain, Shortage, lambda: chain.take(0, 1))
    assert peers.waited == []


@each_loan
def test_a_layout_around_an_isolated_transfer_is_found(lend: Lend) -> None:
    chain, _, peers = float_reached()
    lend(chain, 2)
    chain.users.isolate("transfer")
    chain.take(0, 1)
    assert lines(chain) == ["_LLLLLL......", "_......LL....", "_..........LL"]
    assert peers.waited == []


@each_loan
def test_the_release_of_an_isolated_transfer_makes_the_room(lend: Lend) -> None:
    chain, _, _ = float_reached()
    lend(chain, 1)
    chain.users.isolate("transfer")
    chain.users.release("transfer")
    assert chain.take(0, 1).slots == [6]
    assert chain.ledger.held.isolated == set()


def test_a_relief_waits_for_the_others_of_a_band_with_an_isolated_transfer() -> None:
    chain, _, peers = float_reached()
    chain.users.begin_send("given up", [[], [2], []])
    chain.users.begin_send("one", [[], [1], []])
    chain.users.isolate("given up")
    chain.take(0, 1)
    assert peers.waited == [["one"]]
    assert lines(chain)[1] == "_......LL...."


def test_a_page_freed_under_an_isolated_transfer_counts_as_used() -> None:
    chain, _, peers = walled_in()
    chain.users.isolate("transfer")
    assert not chain.relief.fits([0, 1, 0])
    assert_refused(chain, Shortage, lambda: chain.reserve(1, 1))
    assert peers.waited == []


def test_what_no_transfer_holds_is_not_isolated() -> None:
    chain, _, _ = float_reached()
    hold(chain, 1)
    users = chain.users
    for refused in (lambda: users.isolate("hold"), lambda: users.isolate("transfer")):
        assert "no transfer that holds pages" in assert_refused(chain, TransferError, refused)


def test_a_transfer_that_a_relief_ended_has_nothing_to_isolate() -> None:
    chain, _, _ = float_reached()
    lend_to_send(chain, 1)
    chain.take(0, 1)
    chain.users.isolate("transfer")
    assert chain.ledger.held.isolated == set()


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


def test_a_wait_in_vain_leaves_everything_as_it_was() -> None:
    device = DiaryDevice(FLOAT)
    chain = ChainAllocator(FLOAT, device, waiter=NoTransfers())
    chain.take(2, 2)
    chain.take(0, 3)
    lend_to_send(chain, 1)
    run_step(chain, device, 1)
    chain.free_slots([2])
    device.calls.clear()
    assert lines(chain) == ["_LpLLL.......", "_.....LL.....", "_..........LL"]
    text = assert_refused(chain, TransferError, lambda: chain.take(0, 2))
    assert "['transfer']" in text
    assert device.calls == []
    assert (chain.counters.reliefs, chain.counters.host_waits) == (0, 0)


def test_a_relief_waits_for_transfers_before_any_stream_waits() -> None:
    device = DiaryDevice(FLOAT)
    chain = ChainAllocator(FLOAT, device, waiter=DiaryPeers(device))
    chain.take(2, 2)
    chain.take(0, 3)
    lend_to_send(chain, 1)
    step = run_step(chain, device, 1)
    chain.free_slots([2])
    device.calls.clear()
    chain.take(0, 2)
    assert device.calls[:2] == [("host", "transfer"), ("wait", step)]


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
