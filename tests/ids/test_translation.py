"""What kernels are given: physical slots to write, page tables to read, and how long they hold.

Pages have four slots.  `window` pages have four bytes and lie from page 2, `full` pages six bytes
from the top, and a state is a page of eight bytes.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.alloc.small_chain import DiaryDevice, layout_of, states, tokens, window
from unikv.alloc.invariants import InvariantLevel, Invariants
from unikv.device.port import StorageLayout
from unikv.errors import ArgumentError, OwnershipError, StaleIdsError
from unikv.storage import KVStorage

LAYOUT = layout_of(104, 8, states("state", 8), window("window"), tokens("full", 6))
ENDS = layout_of(104, 8, window("window"), tokens("full", 6))
STATE, WINDOW, FULL = range(3)


def built(layout: StorageLayout = LAYOUT) -> KVStorage:
    """Ids 1..4, and two states where there is a band of them."""
    storage = KVStorage(layout, DiaryDevice(layout), invariants=Invariants(InvariantLevel.OFF))
    storage.chain.take(4, 2 if layout is LAYOUT else 0)
    return storage


def pages(storage: KVStorage, band: int) -> list[int]:
    """Physical pages of ids 1.. in one band."""
    return storage.chain.translate(band, [1, 2, 3, 4])


# Writes -----------------------------------------------------------------------------------------


def test_a_token_keeps_its_offset_in_every_band() -> None:
    storage = built()
    ids = storage.ids.writes([4 * 2 + 3, 4 * 3], [2])
    second, third = pages(storage, WINDOW)[1:3]
    assert ids.slots(WINDOW).tolist() == [4 * second + 3, 4 * third]
    second, third = pages(storage, FULL)[1:3]
    assert ids.slots(FULL).tolist() == [4 * second + 3, 4 * third]


def test_a_state_slot_is_a_page() -> None:
    storage = built()
    ids = storage.ids.writes([], [2, 1])
    assert ids.slots(STATE).tolist() == storage.chain.translate(STATE, [2, 1])


def test_padding_is_written_to_the_sink() -> None:
    ids = built().ids.writes([0, 4, 0], [0])
    assert [part.tolist()[0] for part in ids] == [0, 0, 0]
    assert ids.slots(FULL).tolist()[2] == 0


@pytest.mark.parametrize("layout", [LAYOUT, ENDS])
def test_the_sink_has_one_slot_for_padding(layout: StorageLayout) -> None:
    storage = built(layout)
    end = layout.slots_per_page
    for lost in range(1, end):
        text = rf"writes: \[{lost}\], slots of id 0, .*; allowed: 0, .*, or {end}"
        with pytest.raises(ArgumentError, match=text):
            storage.ids.writes([0, lost, 0, end], [])


def test_slots_are_handed_to_array_libraries_without_a_copy() -> None:
    slots = built().ids.writes([4, 5], []).slots(FULL)
    array = np.asarray(slots)
    assert array.dtype == np.int64
    assert np.shares_memory(array, np.asarray(slots))


def test_nobody_changes_what_was_translated() -> None:
    slots = built().ids.writes([4], []).slots(FULL)
    with pytest.raises(TypeError):
        slots[0] = 9


def test_a_retired_row_is_no_target() -> None:
    storage = built()
    storage.chain.retire(WINDOW, [2])
    with pytest.raises(OwnershipError, match=r"band 'window': ids \[2\] are to be written"):
        storage.ids.writes([4, 8, 9], [])


def test_a_freed_page_is_no_target() -> None:
    storage = built()
    storage.chain.free([3])
    with pytest.raises(OwnershipError, match=r"'window': ids \[3\] are to be written"):
        storage.ids.writes([12], [])


def test_a_freed_slot_is_no_target() -> None:
    storage = built()
    storage.chain.free_slots([1])
    with pytest.raises(OwnershipError, match=r"'state': ids \[1\] are to be written"):
        storage.ids.writes([], [1])


@pytest.mark.parametrize(
    ("written", "slots"), [([400], []), ([-1], []), ([True], []), ([], [100]), ([], [1.0])]
)
def test_only_slots_of_the_id_space_are_written(written: list[int], slots: list[int]) -> None:
    with pytest.raises(ArgumentError, match="writes: "):
        built().ids.writes(written, slots)


def test_a_chain_without_states_has_no_slot_but_padding() -> None:
    storage = built(ENDS)
    assert [part.tolist() for part in storage.ids.writes([], [0])] == [[], []]
    with pytest.raises(ArgumentError, match=r"writes: \[1\]; allowed: 0\.\.0"):
        storage.ids.writes([], [1])


# Reads ------------------------------------------------------------------------------------------


def test_rows_are_read_where_their_pages_are() -> None:
    storage = built()
    ids = storage.ids.reads([[2, 1], [4]], [[1], [2]])
    for band in (WINDOW, FULL):
        first, second, _, fourth = pages(storage, band)
        assert [table.tolist() for table in ids.tables(band)] == [[second, first], [fourth]]
    assert [table.tolist() for table in ids.tables(STATE)] == [
        storage.chain.translate(STATE, [1]),
        storage.chain.translate(STATE, [2]),
    ]


def test_retired_rows_and_padding_read_the_sink() -> None:
    storage = built()
    storage.chain.retire(WINDOW, [1])
    ids = storage.ids.reads([[1, 2, 0]], [])
    assert ids.tables(WINDOW)[0].tolist() == [0, pages(storage, WINDOW)[1], 0]
    assert ids.tables(FULL)[0].tolist() == [*pages(storage, FULL)[:2], 0]


def test_a_freed_page_is_not_read() -> None:
    storage = built()
    storage.chain.free([3])
    with pytest.raises(OwnershipError, match=r"band 'full': ids \[3\] are to be read"):
        storage.ids.reads([[1, 0], [3, 0]], [])


def test_a_freed_state_is_not_read() -> None:
    storage = built()
    storage.chain.free_slots([2])
    with pytest.raises(OwnershipError, match=r"band 'state': ids \[2\] are to be read"):
        storage.ids.reads([], [[1], [2]])


@pytest.mark.parametrize("row", [[100], [-1], [True], [1.0]])
def test_only_ids_of_the_space_are_read(row: list[int]) -> None:
    with pytest.raises(ArgumentError, match="reads: "):
        built().ids.reads([[1], row], [])


# How long they hold -----------------------------------------------------------------------------


def with_a_hole() -> KVStorage:
    """The next flush moves one page of the window and none of the owner."""
    storage = built(ENDS)
    storage.chain.retire(0, [1])
    return storage


def test_ids_translated_before_a_move_are_refused() -> None:
    storage = with_a_hole()
    written, read = storage.ids.writes([8], []), storage.ids.reads([[2]], [])
    assert storage.chain.flush(4) == 1
    for use in (lambda: written.slots(0), lambda: read.tables(0), lambda: list(written)):
        with pytest.raises(StaleIdsError) as caught:
            use()
        assert str(caught.value) == (
            "ids.translated_before_a_move: band 'window': translated under move epoch 0, but pages"
            " have moved since and it is 1; translate again, behind the last take, flush or relief"
            " before the launch"
        )


def test_a_band_in_which_nothing_moved_keeps_its_ids() -> None:
    storage = with_a_hole()
    written, read = storage.ids.writes([8], []), storage.ids.reads([[2]], [])
    storage.chain.flush(4)
    assert written.slots(1).tolist() == [4 * pages(storage, 1)[1]]
    assert read.tables(1)[0].tolist() == [pages(storage, 1)[1]]


def test_ids_translated_after_a_move_are_those_of_the_map() -> None:
    storage = with_a_hole()
    storage.chain.flush(4)
    assert storage.ids.writes([16], []).slots(0).tolist() == [4 * pages(storage, 0)[3]]
    assert storage.ids.move_epochs() == (1, 0)


def test_a_relief_ends_a_translation_too() -> None:
    layout = layout_of(24, 4, states("state"), window("window"), tokens("full"))
    storage = KVStorage(layout, DiaryDevice(layout), invariants=Invariants(InvariantLevel.OFF))
    chain = storage.chain
    chain.take(1, 1)
    before = chain.translate(1, [1])
    ids = storage.ids.reads([[1]], [[1]])
    chain.take(0, 2)
    assert chain.translate(1, [1]) != before
    with pytest.raises(StaleIdsError, match="band 'window'"):
        ids.tables(1)
    assert ids.tables(2)[0].tolist() == chain.translate(2, [1])


def test_takes_and_frees_without_a_move_end_no_translation() -> None:
    storage = built()
    ids = storage.ids.writes([4], [1])
    storage.chain.take(1, 1)
    storage.chain.free([2])
    assert [len(part) for part in ids] == [1, 1, 1]


def test_translating_changes_nothing() -> None:
    storage = built()
    device = storage.chain.device
    assert isinstance(device, DiaryDevice)
    before, calls = storage.statistics(), list(device.calls)
    storage.ids.writes([4, 5], [1])
    storage.ids.reads([[1, 2]], [[2]])
    assert (storage.statistics(), device.calls) == (before, calls)
