"""Virtual ids: bound one to one, freed once, and moved without being renamed."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unikv.errors import OwnershipError
from unikv.ids.unit_ids import NEVER, MintedIds, Operation, UnitIds

FREE = Operation(7, "free")


def bound(*pairs: tuple[int, int]) -> UnitIds:
    """Six ids and nine pages, with these `(id, page)` bound."""
    ids = UnitIds("full", 6, 9)
    ids.bind([unit for unit, _ in pairs], [page for _, page in pairs])
    return ids


def assert_refused(ids: UnitIds, act: Callable[..., object], *arguments: object) -> str:
    """The act raises and changes nothing; its text."""
    before = list(ids.forward), list(ids.inverse)
    with pytest.raises(OwnershipError) as caught:
        act(*arguments)
    assert (ids.forward, ids.inverse) == before
    assert "band 'full'" in str(caught.value)
    return str(caught.value)


def test_a_bound_id_names_its_page_and_the_page_its_id() -> None:
    ids = bound((2, 5), (1, 8))
    assert ids.forward == [0, 8, 5, 0, 0, 0, 0]
    assert ids.inverse == [0, 0, 0, 0, 0, 2, 0, 0, 1, 0]


def test_pages_come_in_the_order_of_the_ids() -> None:
    assert bound((2, 5), (1, 8)).pages_of([1, 2, 1]) == [8, 5, 8]


def test_a_bound_id_is_not_bound_again() -> None:
    ids = bound((2, 5))
    text = assert_refused(ids, ids.bind, [1, 2], [3, 4])
    assert "bind of id 2 to page 4" in text
    assert "names page 5" in text


def test_an_owned_page_gets_no_second_id() -> None:
    ids = bound((2, 5))
    text = assert_refused(ids, ids.bind, [1, 3], [4, 5])
    assert "page 5 belongs to id 2" in text


def test_a_freed_id_gives_up_its_page() -> None:
    ids = bound((2, 5), (1, 8))
    assert ids.unbind([2, 1], FREE) == [5, 8]
    assert not any(ids.forward)
    assert not any(ids.inverse)


def test_a_freed_id_may_be_bound_again() -> None:
    ids = bound((2, 5))
    ids.unbind([2], FREE)
    ids.bind([2], [6])
    assert ids.pages_of([2]) == [6]


def test_a_double_free_names_what_freed_the_id_before() -> None:
    ids = bound((2, 5), (1, 8))
    ids.unbind([2], FREE)
    text = assert_refused(ids, ids.unbind, [1, 2], FREE)
    assert "ids [2] name no page (id 2 freed by operation 7, free)" in text


def test_the_last_free_is_the_one_that_is_named() -> None:
    ids = bound((2, 5))
    ids.unbind([2], Operation(3, "retire"))
    ids.bind([2], [5])
    ids.unbind([2], FREE)
    assert "operation 7" in assert_refused(ids, ids.unbind, [2], FREE)


def test_an_id_that_was_never_bound_says_so() -> None:
    ids = bound((2, 5))
    assert "id 3 never bound" in assert_refused(ids, ids.unbind, [3], FREE)
    assert str(NEVER) == "never bound"


def test_an_id_listed_twice_is_refused() -> None:
    ids = bound((2, 5), (1, 8))
    text = assert_refused(ids, ids.unbind, [2, 1, 2], FREE)
    assert "free lists ids [2] more than once" in text


@pytest.mark.parametrize("last", [2, 3, 7, -1])
def test_a_refused_free_leaves_who_freed_an_id_before(last: int) -> None:
    ids = bound((2, 5), (1, 8))
    ids.unbind([2], Operation(3, "retire"))
    ids.bind([2], [5])
    assert_refused(ids, ids.unbind, [2, 1, last], FREE)
    assert ids.freed_by([2, 1]) == (Operation(3, "retire"), NEVER)


@pytest.mark.parametrize("last", [(1, 7), (3, 8), (4, 7), (0, 7), (7, 7), (-1, 7)])
def test_a_refused_bind_binds_none_of_the_ids_before(last: tuple[int, int]) -> None:
    ids = bound((1, 8))
    unit, page = last
    assert_refused(ids, ids.bind, [4, 2, unit], [7, 5, page])


@pytest.mark.parametrize("unit", [0, -1, 7])
def test_an_id_outside_the_space_is_refused(unit: int) -> None:
    ids = bound((2, 5))
    assert f"ids [{unit}] are outside 1..6" in assert_refused(ids, ids.pages_of, [2, unit])
    assert f"ids [{unit}] are outside 1..6" in assert_refused(ids, ids.unbind, [2, unit], FREE)


def test_no_ids_name_no_pages() -> None:
    assert bound().pages_of([]) == []


def test_a_moved_page_takes_its_id_along() -> None:
    ids = bound((2, 5), (1, 8))
    assert ids.rebind([8, 5], [3, 4]) == [1, 2]
    assert ids.pages_of([1, 2]) == [3, 4]
    assert [ids.inverse[page] for page in (3, 4, 5, 8)] == [1, 2, 0, 0]


@pytest.mark.parametrize(("source", "target"), [(4, 3), (5, 8)])
def test_a_move_from_an_unowned_page_or_to_an_owned_one_is_a_mistake(
    source: int, target: int
) -> None:
    ids = bound((2, 5), (1, 8))
    with pytest.raises(AssertionError):
        ids.rebind([source], [target])


moves = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 9)), max_size=30)


@given(moves)
def test_the_two_maps_are_inverse_to_each_other_whatever_happens(
    script: list[tuple[int, int]],
) -> None:
    ids = UnitIds("full", 6, 9)
    naive: dict[int, int] = {}
    for unit, page in script:
        if unit not in naive and page not in naive.values():
            ids.bind([unit], [page])
            naive[unit] = page
        elif unit in naive and page not in naive.values():
            assert ids.rebind([naive[unit]], [page]) == [unit]
            naive[unit] = page
        elif naive.get(unit) == page:
            assert ids.unbind([unit], FREE) == [naive.pop(unit)]
        assert {unit: page for unit, page in enumerate(ids.forward) if page} == naive
        assert {unit: page for page, unit in enumerate(ids.inverse) if unit} == naive


def test_ids_are_minted_from_one() -> None:
    minted = MintedIds(4)
    assert minted.mint(3) == [1, 2, 3]
    assert minted.free_count == 1


def test_the_id_freed_last_is_minted_first() -> None:
    minted = MintedIds(4)
    minted.mint(3)
    minted.give_back([1, 3])
    assert minted.mint(3) == [3, 1, 4]


def test_minting_nothing_takes_nothing() -> None:
    minted = MintedIds(4)
    assert minted.mint(0) == []
    assert minted.free_count == 4


def test_more_than_there_are_is_a_mistake() -> None:
    minted = MintedIds(2)
    with pytest.raises(AssertionError):
        minted.mint(3)


@given(st.lists(st.integers(0, 5), max_size=20))
def test_an_id_is_free_or_with_one_caller(script: list[int]) -> None:
    minted, held = MintedIds(5), list[int]()
    for count in script:
        if count <= minted.free_count:
            held += minted.mint(count)
        else:
            minted.give_back(held[:count])
            del held[:count]
        assert len(set(held)) == len(held)
        assert minted.free_count == 5 - len(held)
