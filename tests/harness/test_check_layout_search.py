"""The judge of refusals: every layout of a small arena, written out."""

import pytest

from harness.check.layout_search import layout_exists

BYTES = (1, 0, 0, 0)  # pages of one byte, none used, none pinned


@pytest.mark.parametrize(
    ("total", "sink", "bands", "demand", "answer"),
    [
        # One band: ten bytes above a sink of two are four pages of two, with the wall at ten.
        (10, 2, [(2, 0, 0, 0)], [4], True),
        (10, 2, [(2, 0, 0, 0)], [5], False),
        # The sink's remainder and the wall's are lost: pages of three fit at 3 and at 6 only.
        (11, 1, [(3, 0, 0, 0)], [2], True),
        (11, 1, [(3, 0, 0, 0)], [3], False),
        # Two ends share what is between them.
        (10, 0, [(1, 3, 0, 0), (1, 4, 0, 0)], [1, 2], True),
        (10, 0, [(1, 3, 0, 0), (1, 4, 0, 0)], [2, 2], False),
        # A float lies where its stride lets it: [0,3) and [8,10) leave bytes 3..8, one page of 4.
        (10, 0, [(3, 1, 0, 0), (4, 0, 0, 0), (2, 1, 0, 0)], [0, 1, 0], True),
        (10, 0, [(3, 2, 0, 0), (4, 0, 0, 0), (2, 1, 0, 0)], [0, 1, 0], False),
        # A float that needs no page is no obstacle.
        (6, 0, [BYTES, (4, 0, 0, 0), BYTES], [3, 0, 3], True),
        # A pinned float does not step aside.
        (10, 0, [BYTES, (1, 2, 4, 6), BYTES], [4, 0, 4], True),
        (10, 0, [BYTES, (1, 2, 4, 6), BYTES], [5, 0, 4], False),
        (10, 0, [BYTES, (1, 2, 4, 6), BYTES], [4, 0, 5], False),
        (10, 0, [BYTES, (1, 2, 4, 6), BYTES], [5, 0, 3], False),
        # A pin keeps an end from shrinking though it has few used pages.
        (10, 0, [(1, 1, 4, 5), BYTES], [0, 5], True),
        (10, 0, [(1, 1, 4, 5), BYTES], [0, 6], False),
    ],
)
def test_a_demand_fits_exactly_if_some_layout_holds_it(
    total: int,
    sink: int,
    bands: list[tuple[int, int, int, int]],
    demand: list[int],
    answer: bool,
) -> None:
    assert layout_exists(total, sink, bands, demand) is answer


def test_a_chain_without_a_band_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        layout_exists(10, 0, [], [])
