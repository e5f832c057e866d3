"""What an allocator's own words are about."""

import pytest

from harness.mistakes import named_sites
from harness.violation import Site, id_sites, page_sites

BANDS = ("window", "full")
NOTHING: tuple[Site, ...] = ()


@pytest.mark.parametrize(
    ("words", "sites"),
    [
        ("free of ids [4, 2]: nobody holds them", id_sites(1, [2, 4])),
        ("id 3 of band 'window' is free", id_sites(0, [3])),
        ("band 'full': pages [1, 2] are live", page_sites(1, [1, 2])),
        # A page says more than an id, which may have lost its page.
        ("band 'full': id 7 names page 2", page_sites(1, [2])),
        ("request row 2: free, but nobody holds it", (Site("row", -1, 2),)),
        ("band 'other': id 1 is free", NOTHING),
        ("id 1 of band 'window' or of band 'full'", NOTHING),
        ("12 pages are free, 3 of them pending", NOTHING),
    ],
)
def test_what_a_sentence_names(words: str, sites: tuple[Site, ...]) -> None:
    assert named_sites(words, BANDS) == sites
