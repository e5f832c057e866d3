"""Copies by bytes: what is found, who waits, and when a copy is over.

Bytes are literal.  What the allocator does with all this is drawn in `test_async_users`.
"""

import pytest

from tests.alloc.small_chain import DiaryDevice, Mark, layout_of, tokens
from unikv.alloc.clearance import CLEARANCE, Clearance, ClearanceTable, InFlight, Toucher
from unikv.alloc.fences import IN_FLIGHT, CopyUse, Fences, Ranges, page_ranges, wait_copies
from unikv.alloc.use import Use

LAYOUT = layout_of(40, 4, tokens("full"))
OLD, NEW = Mark("old"), Mark("new")


def waited(
    fences: Fences, toucher: Toucher, ranges: Ranges, clearance: ClearanceTable = CLEARANCE
) -> list[tuple[object, ...]]:
    """The events that the schedule stream is told to wait for."""
    device = DiaryDevice(LAYOUT)
    wait_copies(device, clearance, fences, toucher, ranges)
    assert device.names() == ["wait"] * len(device.calls)
    return device.named("wait")


def two_copies() -> Fences:
    """A backup of bytes 8..16 and a load of bytes 12..20."""
    fences = Fences()
    fences.add(Use.COPY_READ, ((8, 16),), OLD)
    fences.add(Use.COPY_WRITE, ((12, 20),), NEW)
    return fences


# Bytes -------------------------------------------------------------------------------------


def test_a_page_is_as_many_bytes_as_the_band_says() -> None:
    assert page_ranges(6, [2, 5]) == ((12, 18), (30, 36))


def test_no_pages_are_no_bytes() -> None:
    assert page_ranges(6, []) == ()


@pytest.mark.parametrize(
    ("ranges", "found"),
    [
        (((0, 8),), []),
        (((0, 9),), [1]),
        (((8, 12),), [1]),
        (((9, 10),), [1]),
        (((12, 16),), [1, 2]),
        (((0, 40),), [1, 2]),
        (((16, 20),), [2]),
        (((19, 24),), [2]),
        (((20, 24),), []),
        (((0, 4), (18, 19)), [2]),
        ((), []),
    ],
)
def test_a_copy_is_found_by_any_byte_it_touches(ranges: Ranges, found: list[int]) -> None:
    assert [use.number for use in two_copies().touching(ranges)] == found


def test_a_copy_of_pages_is_found_by_pages_of_another_size() -> None:
    fences = Fences()
    fences.add(Use.COPY_READ, page_ranges(4, [7]), OLD)
    assert [page for page in range(7) if fences.touching(page_ranges(6, [page]))] == [4, 5]


# Numbers ------------------------------------------------------------------------------------


def test_copies_are_numbered_from_one() -> None:
    assert [use.number for use in two_copies().uses()] == [1, 2]


def test_a_number_is_never_given_again() -> None:
    fences = two_copies()
    fences.end(1)
    fences.end(2)
    assert fences.add(Use.COPY_READ, (), OLD) == 3


def test_a_copy_says_what_it_touches_and_what_follows_it() -> None:
    assert two_copies().uses()[1] == CopyUse(2, Use.COPY_WRITE, ((12, 20),), NEW)


def test_a_copy_that_ended_is_not_listed() -> None:
    fences = two_copies()
    fences.end(1)
    assert [use.number for use in fences.uses()] == [2]


def test_a_copy_ends_once() -> None:
    fences = two_copies()
    fences.end(1)
    fences.end(1)
    assert [use.number for use in fences.uses()] == [2]


def test_there_are_no_fences_once_every_copy_ended() -> None:
    fences = two_copies()
    assert fences
    fences.end(1)
    fences.end(2)
    assert not fences


@pytest.mark.parametrize("use", [use for use in Use if use not in IN_FLIGHT])
def test_what_is_no_copy_has_no_fence(use: Use) -> None:
    with pytest.raises(AssertionError):
        Fences().add(use, ((8, 12),), OLD)


# Waits --------------------------------------------------------------------------------------


def test_a_hand_out_waits_every_copy_of_its_bytes_in_order() -> None:
    assert waited(two_copies(), Toucher.HAND_OUT, ((12, 16),)) == [(OLD,), (NEW,)]


def test_a_hand_out_waits_no_copy_of_other_bytes() -> None:
    assert waited(two_copies(), Toucher.HAND_OUT, ((20, 24),)) == []


def test_the_source_of_a_move_waits_no_backup_and_every_load() -> None:
    assert waited(two_copies(), Toucher.MOVE_SOURCE, ((12, 16),)) == [(NEW,)]


def test_a_waited_copy_is_over() -> None:
    fences = two_copies()
    waited(fences, Toucher.HAND_OUT, ((8, 12),))
    assert [use.number for use in fences.uses()] == [2]


def test_a_waited_copy_is_not_waited_again() -> None:
    fences = two_copies()
    waited(fences, Toucher.HAND_OUT, ((8, 12),))
    assert waited(fences, Toucher.HAND_OUT, ((8, 12),)) == []


def test_a_copy_that_was_passed_by_is_not_over() -> None:
    fences = two_copies()
    waited(fences, Toucher.MOVE_SOURCE, ((8, 12),))
    assert [use.number for use in fences.uses()] == [1, 2]


@pytest.mark.parametrize("column", [InFlight.BACKUP, InFlight.LOAD])
def test_a_copy_is_waited_because_the_table_says_so(column: InFlight) -> None:
    silent = {**CLEARANCE, (Toucher.HAND_OUT, column): Clearance.SAME_STREAM}
    kept = {InFlight.BACKUP: NEW, InFlight.LOAD: OLD}[column]
    assert waited(two_copies(), Toucher.HAND_OUT, ((12, 16),), silent) == [(kept,)]
