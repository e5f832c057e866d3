"""What an allocator's own words are about."""

import pytest

from harness.mistakes import answers_apart, broken_promise, named_sites
from harness.subject import Answer, RoundAnswer
from harness.violation import Site, id_sites, page_sites
from tests.alloc.small_chain import layout_of, tokens

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


@pytest.mark.parametrize(
    ("first", "other", "text"),
    [
        (2, 0, "flush(2): rank 0 says 2, rank 1 says 0"),
        (((7,), ()), ((6,), (1,)), "flush(2): rank 0 says [7] and [], rank 1 says [6] and [1]"),
        (
            RoundAnswer((("a", "sent"), ("b", "failed")), ()),
            RoundAnswer((), ()),
            "flush(2): ended is a sent and b failed on rank 0 and none on rank 1",
        ),
        (
            Answer([1], []),
            Answer([2], []),
            "flush(2): ids is [1] on rank 0 and [2] on rank 1",
        ),
    ],
)
def test_what_ranks_answer_apart_is_told_in_words(first: object, other: object, text: str) -> None:
    assert answers_apart("flush", (2,), first, 1, other) == text


def test_a_failed_assertion_is_told_by_its_own_words() -> None:
    layout = layout_of(44, 4, tokens("full"))
    try:
        assert object() is None, "nothing pends"
    except AssertionError as error:
        problem = broken_promise("take", (1, 0), error, layout)
        at = f"{__name__}:{error.__traceback__.tb_lineno if error.__traceback__ else 0}"
    assert problem.what == f"take(1, 0): AssertionError at {at}: nothing pends"
    assert problem.detail == "AssertionError in take"
