"""The request table: rows are held by one caller, and the device replica follows the host."""

import pytest

from tests.alloc.small_chain import DiaryDevice, layout_of, tokens
from unikv.errors import ArgumentError, OwnershipError, Shortage
from unikv.requests import RequestTable
from unikv.storage import KVStorage

LAYOUT = layout_of(44, 4, tokens("full"))  # four rows of eight pages
ID_COUNT = LAYOUT.bands[-1].id_count


def table() -> tuple[RequestTable, DiaryDevice]:
    """An empty table of four rows."""
    device = DiaryDevice(LAYOUT)
    return RequestTable(LAYOUT.row_count, LAYOUT.row_pages, ID_COUNT, device), device


def test_rows_are_handed_out_from_the_first() -> None:
    rows, _ = table()
    assert [rows.take() for _ in range(4)] == [0, 1, 2, 3]
    assert rows.free_count == 0


def test_the_row_freed_last_is_handed_out_next() -> None:
    rows, _ = table()
    for _ in range(3):
        rows.take()
    rows.give_back(0)
    rows.give_back(2)
    assert [rows.take(), rows.take()] == [2, 0]


def test_a_full_table_is_short_of_rows() -> None:
    rows, _ = table()
    for _ in range(4):
        rows.take()
    with pytest.raises(Shortage) as caught:
        rows.take()
    assert (caught.value.kind, caught.value.asked, caught.value.free) == ("rows", 1, 0)


def test_pages_are_written_behind_those_that_the_row_names() -> None:
    rows, device = table()
    row = rows.take()
    rows.append(row, [5, 6])
    rows.append(row, [7])
    assert rows.rows[row] == [5, 6, 7]
    assert device.calls == [("row", 0, 0, (5, 6)), ("row", 0, 2, (7,))]


def test_the_device_replica_equals_the_row() -> None:
    rows, device = table()
    row = rows.take()
    rows.append(row, [5, 6])
    assert device.rows[row] == [5, 6, 0, 0, 0, 0, 0, 0]


def test_nothing_appended_is_nothing_written() -> None:
    rows, device = table()
    rows.append(rows.take(), [])
    assert device.calls == []


def test_a_row_may_be_filled_to_its_end() -> None:
    rows, _ = table()
    row = rows.take()
    rows.append(row, [1] * 8)
    assert len(rows.rows[row]) == 8


def test_a_row_that_would_grow_past_its_end_is_refused_whole() -> None:
    rows, device = table()
    row = rows.take()
    rows.append(row, [1] * 7)
    device.calls.clear()
    with pytest.raises(OwnershipError, match=r"row 0: 7 \+ 2 pages, a row names at most 8"):
        rows.append(row, [1, 2])
    assert len(rows.rows[row]) == 7
    assert device.calls == []


def test_a_new_holder_finds_an_empty_row() -> None:
    rows, _ = table()
    row = rows.take()
    rows.append(row, [5])
    rows.give_back(row)
    assert rows.rows[rows.take()] == []


@pytest.mark.parametrize("wrong", [-1, ID_COUNT + 1])
def test_an_id_that_no_take_answers_is_not_written(wrong: int) -> None:
    rows, device = table()
    row = rows.take()
    allowed = rf"append: \[{wrong}\]; allowed: 0\.\.{ID_COUNT}"
    with pytest.raises(ArgumentError, match=allowed):
        rows.append(row, [1, wrong, ID_COUNT])
    assert rows.rows[row] == []
    assert device.calls == []


def test_the_last_id_and_padding_are_written() -> None:
    rows, device = table()
    row = rows.take()
    rows.append(row, [ID_COUNT, 0])
    assert device.calls == [("row", 0, 0, (ID_COUNT, 0))]


@pytest.mark.parametrize("row", [1, 4, -1])
def test_a_row_that_nobody_holds_is_refused(row: int) -> None:
    rows, device = table()
    rows.take()
    with pytest.raises(OwnershipError, match=f"row {row}: append"):
        rows.append(row, [5])
    with pytest.raises(OwnershipError, match=f"row {row}: free"):
        rows.give_back(row)
    assert rows.free_count == 3
    assert device.calls == []


def test_a_row_is_given_back_once() -> None:
    rows, _ = table()
    row = rows.take()
    rows.give_back(row)
    with pytest.raises(OwnershipError):
        rows.give_back(row)
    assert rows.free_count == 4


def test_a_storage_has_an_allocator_and_a_table_on_one_device() -> None:
    device = DiaryDevice(LAYOUT)
    storage = KVStorage(LAYOUT, device)
    taken = storage.chain.take(2, 0)
    storage.requests.append(storage.requests.take(), taken.ids)
    assert device.names() == ["zero", "map", "row"]
    assert device.rows[0][:2] == [1, 2]
