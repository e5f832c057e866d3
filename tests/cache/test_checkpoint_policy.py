"""Checkpoint policies: boundaries, chunks that end on the grid, and what a request is priced."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unikv.cache.checkpoint_policy import (
    ADMISSION_SLOTS,
    REPLACEMENT_SLOTS,
    CheckpointPolicy,
    CheckpointStrategy,
)
from unikv.errors import ArgumentError

NO_BUFFER, EXTRA, LAZY = CheckpointStrategy
EIGHT = CheckpointPolicy(EXTRA, 8)


def test_every_strategy_says_what_it_needs() -> None:
    assert set(ADMISSION_SLOTS) == set(REPLACEMENT_SLOTS) == set(CheckpointStrategy)


@pytest.mark.parametrize(("strategy", "slots"), [(NO_BUFFER, 1), (EXTRA, 2), (LAZY, 1)])
def test_a_request_is_admitted_with_all_it_needs_to_finish(
    strategy: CheckpointStrategy, slots: int
) -> None:
    assert CheckpointPolicy(strategy, 8 * (strategy is not NO_BUFFER)).admission_slots == slots


@pytest.mark.parametrize(
    ("strategy", "interval", "allowed"),
    [(NO_BUFFER, 8, "0, it has no grid"), (EXTRA, 0, "1 or more"), (LAZY, -1, "1 or more")],
)
def test_an_interval_that_does_not_go_with_the_strategy_is_refused(
    strategy: CheckpointStrategy, interval: int, allowed: str
) -> None:
    with pytest.raises(ArgumentError, match=f"interval {interval} of .* allowed: {allowed}"):
        CheckpointPolicy(strategy, interval)


@pytest.mark.parametrize(
    ("first", "tokens", "boundary"),
    [(0, 7, 0), (0, 8, 8), (0, 30, 24), (8, 7, 0), (8, 8, 16), (7, 1, 8), (15, 1, 16), (16, 1, 0)],
)
def test_the_last_boundary_of_a_forward(first: int, tokens: int, boundary: int) -> None:
    assert EIGHT.last_boundary(first, tokens) == boundary


def test_without_a_grid_there_is_no_boundary() -> None:
    assert CheckpointPolicy(NO_BUFFER, 0).last_boundary(0, 100) == 0


@pytest.mark.parametrize(
    ("first", "limit", "prompt", "tokens"),
    # The prompt's last chunk may end anywhere, every other one ends on the grid.
    [(0, 20, 50, 16), (16, 20, 50, 16), (32, 20, 50, 18), (0, 7, 50, 0), (3, 7, 50, 5)],
)
def test_a_chunk_ends_on_the_grid_or_with_its_prompt(
    first: int, limit: int, prompt: int, tokens: int
) -> None:
    assert EIGHT.chunk_tokens(first, limit, prompt) == tokens


def test_without_a_grid_a_chunk_is_as_long_as_its_limit() -> None:
    assert CheckpointPolicy(NO_BUFFER, 0).chunk_tokens(3, 7, 50) == 7


@given(st.integers(1, 40), st.integers(0, 200), st.integers(0, 40), st.integers(1, 200))
def test_a_limit_of_one_interval_always_leaves_a_chunk(
    interval: int, first: int, more: int, left: int
) -> None:
    policy = CheckpointPolicy(EXTRA, interval)
    tokens = policy.chunk_tokens(first, interval + more, first + left)
    assert 1 <= tokens <= interval + more


@given(st.integers(1, 40), st.lists(st.integers(1, 50), max_size=20))
def test_a_request_that_tracks_every_boundary_stays_within_its_price(
    interval: int, forwards: list[int]
) -> None:
    policy = CheckpointPolicy(EXTRA, interval)
    length = floor = 0
    for tokens in forwards:
        floor = policy.last_boundary(length, tokens) or floor
        length += tokens
        assert length - floor <= policy.retained_tokens_max
