"""Pages that somebody outside our streams holds: who holds what, what is stuck, and until when.

`state` is band 0, `window` band 1.  What the allocator does with all this is drawn in
`test_async_users`.
"""

import pytest

from unikv.alloc.signals import HOLDS, TRANSFERS, HeldPages, Hold, NoTransfers
from unikv.alloc.use import Use
from unikv.errors import TransferError

SEND, RECEIVE, HOLD = Use.NETWORK_SEND, Use.NETWORK_RECEIVE, Use.RECEIVE_HOLD


def held() -> HeldPages:
    """A send of two bands, a receive, and a hold of two bands."""
    pages = HeldPages()
    pages.add("send", SEND, 0, [4, 5])
    pages.add("send", SEND, 1, [7])
    pages.add("receive", RECEIVE, 1, [8])
    pages.add("hold", HOLD, 0, [6])
    pages.add("hold", HOLD, 1, [9, 10])
    return pages


# What is held -------------------------------------------------------------------------------


def test_nothing_is_held_at_first() -> None:
    assert not HeldPages()


def test_a_hold_says_whose_it_is_and_what_it_keeps() -> None:
    assert held().holds()[0] == Hold("send", SEND, 0, frozenset({4, 5}))


def test_holds_are_listed_oldest_first() -> None:
    assert [(hold.name, hold.band) for hold in held().holds()] == [
        ("send", 0),
        ("send", 1),
        ("receive", 1),
        ("hold", 0),
        ("hold", 1),
    ]


def test_a_band_without_pages_is_not_listed() -> None:
    pages = HeldPages()
    pages.add("send", SEND, 0, [])
    assert pages.holds() == ()


@pytest.mark.parametrize("use", [use for use in Use if use not in HOLDS])
def test_what_is_no_hold_keeps_no_page_still(use: Use) -> None:
    with pytest.raises(AssertionError):
        HeldPages().add("send", use, 0, [4])


@pytest.mark.parametrize(
    ("uses", "pages"),
    [
        (HOLDS, {7, 8, 9, 10}),
        (TRANSFERS, {7, 8}),
        ([SEND], {7}),
        ([RECEIVE], {8}),
        ([HOLD], {9, 10}),
        ([], set()),
    ],
)
def test_held_pages_are_found_by_band_and_kind(uses: list[Use], pages: set[int]) -> None:
    assert held().pages(1, uses) == pages


@pytest.mark.parametrize(
    ("bands", "names"),
    [([0], ["send"]), ([1], ["send", "receive"]), ([0, 1], ["send", "receive"]), ([], [])],
)
def test_the_transfers_of_bands_are_named_once(bands: list[int], names: list[str]) -> None:
    assert held().transfers(bands) == names


# Moves --------------------------------------------------------------------------------------


def test_a_hold_follows_its_pages() -> None:
    pages = held()
    pages.moved(1, [9, 12], [2, 3])
    assert pages.pages(1, [HOLD]) == {2, 10}


def test_a_hold_stays_where_pages_of_another_band_move() -> None:
    pages = held()
    pages.moved(0, [9], [2])
    assert pages.pages(1, [HOLD]) == {9, 10}


def test_a_hold_stays_where_only_other_pages_move() -> None:
    pages = held()
    pages.moved(1, [12], [2])
    assert pages.pages(1, HOLDS) == {7, 8, 9, 10}


@pytest.mark.parametrize("page", [7, 8])
def test_a_page_under_a_transfer_does_not_move(page: int) -> None:
    with pytest.raises(AssertionError, match="under a transfer"):
        held().moved(1, [page], [2])


# Frees --------------------------------------------------------------------------------------


def test_a_freed_page_leaves_its_hold() -> None:
    pages = held()
    pages.leave(1, [10, 12])
    assert pages.pages(1, [HOLD]) == {9}


def test_a_freed_page_leaves_no_transfer() -> None:
    pages = held()
    pages.leave(1, [7, 8])
    assert pages.pages(1, TRANSFERS) == {7, 8}


def test_a_freed_page_leaves_no_hold_of_another_band() -> None:
    pages = held()
    pages.leave(0, [9, 10])
    assert pages.pages(1, [HOLD]) == {9, 10}


def test_a_hold_without_pages_is_still_known() -> None:
    pages = held()
    pages.leave(0, [6])
    pages.leave(1, [9, 10])
    assert pages.end("hold") == {}


def test_a_receive_without_pages_is_nothing_to_wait_for() -> None:
    pages = held()
    pages.leave(0, [6])
    pages.publish("hold", "late")
    assert pages.transfers([0]) == ["send"]


# Ends ---------------------------------------------------------------------------------------


def test_an_ended_transfer_holds_nothing_in_any_band() -> None:
    pages = held()
    pages.end("send")
    assert pages.pages(0, TRANSFERS) | pages.pages(1, TRANSFERS) == {8}


def test_a_page_that_was_not_freed_is_not_given_back() -> None:
    assert held().end("send") == {}


def test_the_end_of_a_transfer_gives_back_its_stuck_pages() -> None:
    pages = held()
    pages.stick(0, [5])
    pages.stick(1, [7])
    assert pages.end("send") == {0: [5], 1: [7]}


def test_stuck_pages_are_given_back_once() -> None:
    pages = held()
    pages.stick(0, [5])
    pages.end("send")
    assert pages.stuck(0) == frozenset()


def test_a_stuck_page_waits_for_the_last_transfer() -> None:
    pages = held()
    pages.add("other", SEND, 1, [7])
    pages.stick(1, [7])
    assert pages.end("send") == {}
    assert pages.stuck(1) == {7}
    assert pages.end("other") == {1: [7]}


def test_the_end_of_another_transfer_gives_nothing_back() -> None:
    pages = held()
    pages.stick(1, [7])
    assert pages.end("receive") == {}
    assert pages.stuck(1) == {7}


def test_the_end_of_an_unknown_name_says_which_are_known() -> None:
    with pytest.raises(TransferError, match=r"'lost' .* \['hold', 'receive', 'send'\]"):
        held().end("lost")


def test_a_name_ends_once() -> None:
    pages = held()
    pages.end("send")
    with pytest.raises(TransferError, match=r"'send' .* \['hold', 'receive'\]"):
        pages.end("send")


# Publication --------------------------------------------------------------------------------


def test_a_published_hold_is_a_receive_of_the_same_pages() -> None:
    pages = held()
    assert pages.publish("hold", "late") == [
        Hold("late", RECEIVE, 0, frozenset({6})),
        Hold("late", RECEIVE, 1, frozenset({9, 10})),
    ]
    assert pages.pages(1, [HOLD]) == set()
    assert pages.pages(1, [RECEIVE]) == {8, 9, 10}


def test_a_hold_is_published_where_it_is_now() -> None:
    pages = held()
    pages.moved(0, [6], [2])
    assert pages.publish("hold", "late")[0] == Hold("late", RECEIVE, 0, frozenset({2}))


@pytest.mark.parametrize("name", ["lost", "send", "receive"])
def test_what_is_no_hold_is_not_published(name: str) -> None:
    pages = held()
    before = pages.holds()
    with pytest.raises(TransferError, match=rf"'{name}' is no receive hold; .* \['hold'\]"):
        pages.publish(name, "late")
    assert pages.holds() == before


def test_a_hold_is_published_once() -> None:
    pages = held()
    pages.publish("hold", "late")
    with pytest.raises(TransferError, match="'hold' is no receive hold"):
        pages.publish("hold", "later")


def test_a_transfer_that_ended_early_ends_once_more() -> None:
    pages = held()
    pages.stick(0, [4])
    assert pages.end_early("send") == {0: [4]}
    assert pages.ended_early() == {"send"}
    assert pages.end("send") == {}
    with pytest.raises(TransferError, match="'send' holds no pages"):
        pages.end("send")


def test_a_name_that_ended_early_is_not_taken_again_before_its_release() -> None:
    pages = held()
    pages.end_early("send")
    with pytest.raises(TransferError, match="'send' begins again"):
        pages.check_ended("send")
    pages.end("send")
    pages.check_ended("send")


# The waiter of a storage without peers ------------------------------------------------------


def test_a_storage_without_peers_waits_for_nobody() -> None:
    with pytest.raises(TransferError, match=r"no waiter .* \['send'\]"):
        NoTransfers().wait(["send"])
