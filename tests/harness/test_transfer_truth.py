"""Truth of copies and transfers: what is in use, what is stuck, and from when on it is not."""

import pytest

from harness.copies import CopyTruth
from harness.device.launches import ModeledEvent
from harness.transfers import TransferTruth
from unikv.device.port import BandLayout, HostLayout, StorageLayout, Stream


def layout() -> StorageLayout:
    """Two bands of unequal pages, whose copies share one piece of host memory."""
    bands = (
        BandLayout("window", 8, 2, 9, mints=False, zeroed=True),
        BandLayout("full", 12, 2, 9, mints=True, zeroed=True),
    )
    return StorageLayout(12, 120, bands, 2, 4, 2, 2, (HostLayout(48, (0, 1)),))


def event() -> ModeledEvent:
    return ModeledEvent(Stream.BACKUP, 1, 1, (0,) * 9)


# Copies ------------------------------------------------------------------------------------


def test_a_copy_is_in_use_until_the_schedule_stream_waits_its_event() -> None:
    copies, end = CopyTruth(layout()), event()
    copies.backed_up(1, [3, 2], [0, 1], [b"x" * 12, None])
    copies.began("copy1", "copy_read", end)
    assert copies.uses["copy1"].ranges == ((24, 36), (36, 48))
    copies.waited(event())
    assert copies.waits == 0
    copies.waited(end)
    assert (copies.uses, copies.waits) == ({}, 1)


def test_a_copy_is_in_use_until_every_rank_has_seen_it_end() -> None:
    copies = CopyTruth(layout())
    copies.backed_up(0, [5], [0], [b"y" * 8])
    copies.began("copy1", "copy_read", event())
    copies.acknowledged("copy1")
    assert copies.uses == {}


def test_a_load_brings_back_what_was_saved_piece_by_piece() -> None:
    copies = CopyTruth(layout())
    copies.backed_up(1, [3], [2], [b"abcdefghijkl"])
    copies.began("copy1", "copy_read", event())
    assert copies.loaded(1, 0, [2], [5]) == [b"abcdef"]
    assert copies.loaded(1, 1, [2], [5]) == [b"ghijkl"]
    copies.began("copy2", "copy_write", event())
    assert copies.uses["copy2"].ranges == ((60, 72),)


def test_a_load_of_what_nobody_wrote_brings_nothing() -> None:
    copies = CopyTruth(layout())
    copies.backed_up(1, [3], [2], [None])
    assert copies.loaded(1, 0, [2, 1], [5, 6]) == [None, None]


@pytest.mark.parametrize(("band", "slot", "is_taken"), [(1, 0, True), (1, 2, False), (0, 1, True)])
def test_a_host_slot_has_one_holder_whatever_the_band(band: int, slot: int, is_taken: bool) -> None:
    copies = CopyTruth(layout())
    assert copies.slots_handed_out("copy1", [[1], []]) == []
    holders: list[list[int]] = [[], []]
    holders[band] = [slot]
    problems = copies.slots_handed_out("copy2", holders)
    assert bool(problems) == is_taken
    assert all("still belongs to 'copy1'" in problem for problem in problems)


def test_a_slot_that_was_given_back_has_no_holder() -> None:
    copies = CopyTruth(layout())
    copies.slots_handed_out("copy1", [[1], [2]])
    copies.slots_given_back([[1], [2]])
    assert copies.slots_handed_out("copy2", [[1], [2]]) == []


# Transfers ---------------------------------------------------------------------------------


def test_a_page_freed_under_a_transfer_is_stuck_until_it_is_over() -> None:
    transfers = TransferTruth(2)
    transfers.began("send1", "network_send", [[], [4, 5]])
    transfers.freed(1, 4)
    transfers.freed(1, 7)
    assert transfers.stuck == [{}, {4: {"send1"}}]
    assert transfers.bound(1, 4) == "send1"
    assert transfers.over("send1") == [(1, 4)]
    assert (transfers.stuck, transfers.bound(1, 4)) == ([{}, {}], "")


def test_a_page_under_two_transfers_is_stuck_until_both_are_over() -> None:
    transfers = TransferTruth(2)
    transfers.began("send1", "network_send", [[], [4]])
    transfers.began("send2", "network_send", [[], [4]])
    transfers.freed(1, 4)
    assert transfers.over("send1") == []
    assert transfers.over("send2") == [(1, 4)]


def test_a_receive_is_held_until_its_engine_is_handed_the_pages() -> None:
    transfers = TransferTruth(2)
    transfers.held["receive1"] = [[1], [1]]
    transfers.began("receive1", "network_receive", [[3], [0, 6]])
    assert transfers.held == {}
    assert transfers.uses["receive1"].pages == [{3}, {6}]


def test_a_part_adds_to_what_its_transfer_uses() -> None:
    transfers = TransferTruth(1)
    transfers.began("send1", "network_send", [[1]])
    transfers.began("send1", "network_send", [[2]])
    assert transfers.uses["send1"].pages == [{1, 2}]
    assert transfers.moving(0, [2, 9]) == "send1"
    assert transfers.moving(0, [3]) == ""


def test_a_part_that_was_waited_for_is_over_and_the_others_are_not() -> None:
    transfers = TransferTruth(1)
    transfers.began("send1", "network_send", [[1]])
    transfers.began("send1", "network_send", [[2]])
    transfers.freed(0, 1)
    transfers.freed(0, 2)
    assert transfers.over("send1", [0]) == [(0, 1)]
    assert transfers.uses["send1"].pages == [{2}]
    transfers.began("send1", "network_send", [[3]])
    assert transfers.over("send1", [1]) == [(0, 2)]
    assert transfers.uses["send1"].pages == [{3}]
    assert transfers.over("send1") == []
    assert transfers.uses == {}


def test_the_end_of_a_transfer_that_is_over_changes_nothing() -> None:
    assert TransferTruth(1).over("send1") == []


def test_parts_are_known_in_the_order_in_which_they_came_to_hold_pages() -> None:
    transfers = TransferTruth(1)
    transfers.holds("receive1", [[1]])
    transfers.began("send1", "network_send", [[1]])
    transfers.began("receive1", "network_receive", [[5]])
    transfers.began("send1", "network_send", [[2]])
    assert list(transfers.begun) == [("receive1", 0), ("send1", 0), ("send1", 1)]
    transfers.over("send1", [0])
    assert list(transfers.begun) == [("receive1", 0), ("send1", 1)]
    transfers.over("receive1")
    assert list(transfers.begun) == [("send1", 1)]
