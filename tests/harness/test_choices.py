"""The only source of chance: equal inputs give equal decisions, on every version of Python."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.choices import ByteChoices, Choices, ListChoices, SeedChoices, between, percent

bounds = st.lists(st.integers(1, 1 << 20), max_size=20)


def draws(choices: Choices, bound: int, count: int) -> list[int]:
    """The next decisions, all below one bound."""
    return [choices.below(bound) for _ in range(count)]


def test_a_seed_gives_these_decisions_on_every_version_of_python() -> None:
    choices = SeedChoices(7)
    assert draws(choices, 100, 8) == [32, 94, 15, 39, 65, 4, 7, 82]
    assert draws(choices, 7, 8) == [3, 0, 2, 4, 0, 6, 3, 1]


def test_other_seeds_give_other_decisions() -> None:
    assert len({tuple(draws(SeedChoices(seed), 1000, 3)) for seed in range(50)}) == 50


def test_a_small_decision_takes_one_byte() -> None:
    choices = ByteChoices(bytes([0, 128, 255]))
    assert draws(choices, 100, 3) == [0, 50, 99]


def test_a_large_decision_takes_four_bytes() -> None:
    choices = ByteChoices(bytes([0, 0, 0, 128, 255]))
    assert [choices.below(1000), choices.below(256)] == [500, 255]


def test_bytes_that_are_used_up_decide_for_zero() -> None:
    choices = ByteChoices(b"\xff")
    assert draws(choices, 10, 3) == [9, 0, 0]


def test_recorded_decisions_are_repeated() -> None:
    assert draws(ListChoices([3, 1, 4]), 10, 3) == [3, 1, 4]


def test_recorded_decisions_are_brought_below_the_bound() -> None:
    assert draws(ListChoices([13, 10]), 10, 2) == [3, 0]


def test_recorded_decisions_that_are_used_up_decide_for_zero() -> None:
    assert draws(ListChoices([3]), 10, 3) == [3, 0, 0]


@settings(max_examples=30)
@given(st.integers(), bounds)
def test_a_seeded_decision_is_below_its_bound(seed: int, wanted: list[int]) -> None:
    choices = SeedChoices(seed)
    assert all(0 <= choices.below(bound) < bound for bound in wanted)


@settings(max_examples=30)
@given(st.binary(max_size=40), bounds)
def test_a_decision_from_bytes_is_below_its_bound(data: bytes, wanted: list[int]) -> None:
    choices = ByteChoices(data)
    assert all(0 <= choices.below(bound) < bound for bound in wanted)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 1 << 40), max_size=10), bounds)
def test_a_recorded_decision_is_below_its_bound(recorded: list[int], wanted: list[int]) -> None:
    choices = ListChoices(recorded)
    assert all(0 <= choices.below(bound) < bound for bound in wanted)


def test_both_ends_of_a_range_are_possible() -> None:
    choices = SeedChoices(1)
    assert {between(choices, 3, 5) for _ in range(100)} == {3, 4, 5}


def test_a_range_of_one_number_is_that_number() -> None:
    assert between(SeedChoices(1), 4, 4) == 4


@pytest.mark.parametrize(("chance", "drawn"), [(0, {False}), (100, {True}), (50, {False, True})])
def test_a_chance_is_in_percent(chance: int, drawn: set[bool]) -> None:
    choices = SeedChoices(1)
    assert {percent(choices, chance) for _ in range(100)} == drawn


def test_a_chance_is_met_as_often_as_it_says() -> None:
    choices = SeedChoices(1)
    assert sum(percent(choices, 30) for _ in range(10_000)) == pytest.approx(3000, abs=150)
