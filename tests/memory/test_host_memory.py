"""Host pools slot by slot, and as a search: bytes are never shared and counts are exact."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.alloc.small_chain import layout_of, tokens, window
from unikv.device.port import HostLayout, StorageLayout
from unikv.errors import OwnershipError, Shortage
from unikv.memory.host import HostMemory, HostPool, SlotState

FREE, FILLING, FULL = SlotState


def layout(low_bytes: int, high_bytes: int, *host: HostLayout) -> StorageLayout:
    """Two bands with pages of these sizes, and their host memory."""
    bands = window("window", low_bytes), tokens("full", high_bytes)
    return layout_of(1000, 100, *bands)._replace(host=host)


def alone(count: int = 4) -> HostPool:
    """A pool of its own with slots of four bytes, and three bytes too many."""
    return HostMemory(layout(4, 4, HostLayout(4 * count + 3, (0,)))).pools[0]


def pair(low_bytes: int, high_bytes: int, total_bytes: int) -> tuple[HostPool, HostPool]:
    """Two pools that share their bytes."""
    low, high = HostMemory(layout(low_bytes, high_bytes, HostLayout(total_bytes, (0, 1)))).pools
    return low, high


def full_slots(pool: HostPool, count: int) -> list[int]:
    """Slots that hold a copy."""
    slots = pool.take(count)
    pool.filled(slots)
    return slots


def drop(pool: HostPool, slots: Sequence[int]) -> None:
    """As the memory does it."""
    pool.check_idle(slots, "drop")
    pool.give_back(slots)


# One pool -----------------------------------------------------------------------------------


def test_a_pool_has_as_many_slots_as_whole_pages_fit() -> None:
    assert alone().free_count == 4


def test_a_band_without_host_memory_has_no_slots() -> None:
    memory = HostMemory(layout(4, 4, HostLayout(16, (1,))))
    assert [pool.free_count for pool in memory.pools] == [0, 4]


def test_slots_nearest_to_the_pools_own_end_come_first() -> None:
    low, high = pair(4, 4, 40)
    assert (low.take(2), high.take(2)) == ([0, 1], [9, 8])


def test_a_slot_that_came_back_is_taken_before_new_ones() -> None:
    pool = alone()
    drop(pool, [full_slots(pool, 3)[1]])
    assert pool.take(2) == [1, 3]


def test_a_take_of_more_than_is_free_changes_nothing() -> None:
    pool = alone()
    pool.take(1)
    with pytest.raises(Shortage, match="short of host slots: 4 host slots asked of window, 3 free"):
        pool.take(4)
    assert (pool.free_count, pool.slots_in(FILLING)) == (3, [0])


def test_a_take_of_nothing_is_served_by_a_full_pool() -> None:
    pool = alone(1)
    pool.take(1)
    assert pool.take(0) == []


def test_a_slot_is_filled_between_its_take_and_the_end_of_the_backup() -> None:
    pool = alone()
    slots = pool.take(2)
    assert pool.slots_in(FILLING) == slots
    pool.filled(slots)
    assert (pool.slots_in(FILLING), pool.slots_in(FULL)) == ([], slots)


def test_cancelled_slots_are_free() -> None:
    pool = alone()
    pool.cancel(pool.take(4))
    assert (pool.free_count, pool.span()) == (4, (0, 0))


@pytest.mark.parametrize(
    ("slots", "text"),
    [
        ([3], "read of slot 3, which is FREE"),
        ([1], "read of slot 1, which is FILLING"),
        ([4], "read of slot 4, which is no slot of this pool"),
        ([-1], "read of slot -1, which is no slot of this pool"),
        ([0, 0], r"read lists slots \[0\] more than once"),
    ],
)
def test_what_holds_no_copy_is_not_read(slots: list[int], text: str) -> None:
    pool = alone()
    full_slots(pool, 1)
    pool.take(1)
    with pytest.raises(OwnershipError, match=f"host pool 'window': {text}"):
        pool.check_full(slots, "read")


def test_a_copy_is_read_by_any_number_of_loads_and_idle_after_the_last() -> None:
    pool = alone()
    slots = full_slots(pool, 2)
    pool.begin_read(slots)
    pool.begin_read(slots[:1])
    pool.end_read(slots)
    assert pool.readers() == {0: 1}
    with pytest.raises(OwnershipError, match=r"drop of slots \[0\], which loads still read"):
        pool.check_idle(slots, "drop")
    pool.check_idle(slots[1:], "drop")
    pool.end_read(slots[:1])
    pool.check_idle(slots, "drop")


def test_a_copy_is_dropped_once() -> None:
    pool = alone()
    slots = full_slots(pool, 1)
    drop(pool, slots)
    with pytest.raises(OwnershipError, match="slot 0, which is FREE"):
        drop(pool, slots)


# Two pools in one backing -------------------------------------------------------------------


def test_either_pool_may_have_all_of_the_bytes() -> None:
    low, high = pair(4, 6, 24)
    assert (low.free_count, high.free_count) == (6, 4)
    slots = low.take(6)
    assert high.free_count == 0
    low.cancel(slots)
    assert len(high.take(4)) == 4
    assert low.free_count == 0


def test_an_empty_pool_claims_no_byte_that_its_own_slots_would_not_use() -> None:
    # Three slots of three bytes end at byte 9, and the second slot of five bytes at 10.
    low, _ = pair(5, 3, 10)
    assert low.free_count == 2


def test_a_pool_whose_last_slots_bytes_are_gone_has_none_free() -> None:
    low, high = pair(5, 3, 10)
    low.take(2)
    assert high.free_count == 0
    assert high.take(0) == []


def test_a_hole_is_no_room_for_the_other_pool() -> None:
    low, high = pair(4, 4, 16)
    slots = full_slots(low, 3)
    drop(low, slots[:2])
    assert (low.free_count, high.free_count) == (3, 1)
    drop(low, slots[2:])
    assert (low.free_count, high.free_count) == (4, 4)


def test_slots_of_two_sizes_meet_without_a_shared_byte() -> None:
    low, high = pair(5, 3, 16)
    assert low.take(2) == [0, 1]  # bytes 0..9
    assert high.free_count == 1
    assert high.take(1) == [4]  # bytes 12..14
    assert low.free_count == 0


# All pools ----------------------------------------------------------------------------------


def test_a_take_with_one_pool_short_takes_of_none() -> None:
    memory = HostMemory(layout(4, 4, HostLayout(16, (0,)), HostLayout(8, (1,))))
    with pytest.raises(Shortage, match="3 host slots asked of full, 2 free"):
        memory.take([2, 3])
    assert [pool.free_count for pool in memory.pools] == [4, 2]
    assert [pool.span() for pool in memory.pools] == [(0, 0), (0, 0)]


def test_pools_that_share_bytes_are_not_both_promised_them() -> None:
    memory = HostMemory(layout(4, 4, HostLayout(16, (0, 1))))
    with pytest.raises(Shortage, match="2 host slots asked of full, 1 free"):
        memory.take([3, 2])
    assert [pool.free_count for pool in memory.pools] == [4, 4]


def test_a_drop_with_one_slot_busy_drops_none() -> None:
    memory = HostMemory(layout(4, 4, HostLayout(16, (0,)), HostLayout(8, (1,))))
    slots = memory.take([1, 1])
    memory.filled(slots)
    memory.pools[1].begin_read(slots[1])
    with pytest.raises(OwnershipError, match="which loads still read"):
        memory.drop(slots)
    assert [pool.slots_in(FULL) for pool in memory.pools] == [[0], [0]]


ACTS = st.lists(
    st.tuples(st.sampled_from("tfcrd"), st.integers(0, 1), st.integers(0, 7)), max_size=40
)


@given(st.integers(1, 7), st.integers(1, 7), st.integers(14, 40), st.booleans(), ACTS)
def test_no_byte_is_in_two_slots(
    low_bytes: int, high_bytes: int, total: int, shared: bool, acts: list[tuple[str, int, int]]
) -> None:
    pairs = (HostLayout(total, (0, 1)),)
    apart = (HostLayout(total, (0,)), HostLayout(total, (1,)))
    memory = HostMemory(layout(low_bytes, high_bytes, *(pairs if shared else apart)))
    filling: list[set[int]] = [set(), set()]
    full: list[set[int]] = [set(), set()]
    for act, band, number in acts:
        pool = memory.pools[band]
        some = sorted(full[band] if act == "d" else filling[band])[:number]
        if act == "t":
            free = pool.free_count
            with pytest.raises(Shortage):
                pool.take(free + 1)
            filling[band].update(pool.take(min(number, free)))
        elif act == "f":
            pool.filled(some)
            filling[band].difference_update(some)
            full[band].update(some)
        elif act == "c":
            pool.cancel(some)
            filling[band].difference_update(some)
        elif act == "d":
            drop(pool, some)
            full[band].difference_update(some)
        used = [
            (byte if shared else (index, byte))
            for index, pool in enumerate(memory.pools)
            for slot in sorted(filling[index] | full[index])
            for byte in range(slot * pool.slot_bytes, (slot + 1) * pool.slot_bytes)
        ]
        assert len(set(used)) == len(used)
        for index, pool in enumerate(memory.pools):
            assert pool.slots_in(FILLING) == sorted(filling[index])
            assert pool.slots_in(FULL) == sorted(full[index])
