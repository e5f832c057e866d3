"""What checks say of figures: one wording for each, without what both accounts have in common."""

from __future__ import annotations

import pytest

from harness.words import (
    apart,
    band_text,
    book_text,
    bytes_text,
    counted,
    demand_text,
    joined,
    places_text,
)
from unikv.device.port import BandLayout

BANDS = [
    BandLayout(name, 32, 4, 9, mints=True, zeroed=False) for name in ("state", "window128", "full")
]


def test_one_thing_has_no_plural() -> None:
    assert [counted(count, "page") for count in (0, 1, 2)] == ["0 pages", "1 page", "2 pages"]


@pytest.mark.parametrize(
    ("parts", "text"),
    [([], "none"), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_lists_end_with_an_and(parts: list[str], text: str) -> None:
    assert joined(parts) == text


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ((0, 0, 0), "no pages"),
        ((0, 0, 1), "1 page of 'full'"),
        ((1, 2, 3), "1 page of 'state', 2 of 'window128' and 3 of 'full'"),
        ((2, 0, 1), "2 pages of 'state' and 1 of 'full'"),
    ],
)
def test_a_demand_names_the_bands_that_it_is_of(counts: tuple[int, ...], text: str) -> None:
    assert demand_text(BANDS, counts) == text


def test_pages_are_named_band_by_band() -> None:
    places = [(2, 5), (1, 7), (2, 3)]
    assert places_text(BANDS, places) == "pages [7] of band 'window128' and [3, 5] of band 'full'"
    # An allocator's own account may name a band that there is not.
    assert places_text(BANDS, [(9, 1), (-1, 2)]) == (
        "pages [2] of band -1 (none) and [1] of band 9 (none)"
    )


@pytest.mark.parametrize(
    ("ranges", "text"),
    [
        ([(64, 96), (32, 64)], "bytes 32..96"),
        ([(0, 8), (16, 24), (24, 32)], "bytes 0..8 and 16..32"),
        ([(0, 32), (8, 16)], "bytes 0..32"),
        ([], "bytes none"),
    ],
)
def test_adjacent_bytes_are_one_range(ranges: list[tuple[int, int]], text: str) -> None:
    assert bytes_text(ranges) == text


def test_a_band_that_is_none_is_called_that() -> None:
    assert band_text(BANDS, 2) == "band 'full'"
    assert band_text(BANDS, -1) == "band -1 (none)"
    assert band_text(BANDS, 3) == "band 3 (none)"


def test_what_nobody_has_alone_is_not_said() -> None:
    assert apart(("ids", {3, 1}, "have no page"), ("ids", [], "are nobody's")) == (
        "ids [1, 3] have no page"
    )
    assert apart(("ids", [1], "have no page"), ("rows", [2], "are nobody's")) == (
        "ids [1] have no page; rows [2] are nobody's"
    )


def test_a_book_is_its_counts_and_its_span() -> None:
    assert book_text((1, 2, 3, 4), (5, 15)) == ("live 1, holes 2, pending 3, fixed 4 in span 5..15")
