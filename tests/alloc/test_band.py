"""One band's page states: drawn page by page, then against a dictionary of pages.

A drawing has one letter per page: `L` live, `h` hole, `p` pending, `f` fixed, `.` unclaimed.
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alloc.small_chain import LETTERS, drawn, tokens
from unikv.alloc.axis import Axis
from unikv.alloc.band import FIXED, LIVE, Band, BandCounts, EndBand
from unikv.alloc.float_band import FloatBand

PAGES = 10


def up() -> Band:
    """An end at the low wall: pages 0..9, page 0 first."""
    return EndBand(0, tokens("up"), Axis(0, 1), PAGES)


def down() -> Band:
    """An end at the high wall: pages 0..9, page 9 first."""
    return EndBand(1, tokens("down"), Axis(PAGES - 1, -1), PAGES)


def floating() -> Band:
    """A band between two others: pages 0..9, none of them its own for ever."""
    return FloatBand(1, tokens("float"), Axis(0, 1), PAGES)


KINDS: dict[str, Callable[[], Band]] = {"up": up, "down": down, "float": floating}
each_kind = pytest.mark.parametrize("kind", KINDS)


def band_of(kind: str, drawing: str) -> Band:
    """A band whose pages are in the drawn states."""
    band = KINDS[kind]()
    claimed = [page for page, letter in enumerate(drawing) if letter != "."]
    if claimed:
        band.claim(claimed[0], claimed[-1] + 1)
    band.take_holes(band.holes)
    band.release_live([page for page in claimed if drawing[page] == "h"])
    band.pend_live([page for page in claimed if drawing[page] == "p"])
    assert drawn(band) == drawing
    return band


def test_a_new_band_claims_nothing() -> None:
    assert drawn(up()) == ".........."
    assert up().span() == (0, 0)


@pytest.mark.parametrize(
    ("kind", "low", "high", "drawing"),
    [
        ("up", 0, 3, "hhh......."),
        ("down", 8, 10, "........hh"),
        ("float", 4, 6, "....hh...."),
    ],
)
def test_claimed_pages_are_holes(kind: str, low: int, high: int, drawing: str) -> None:
    band = KINDS[kind]()
    band.claim(low, high)
    assert drawn(band) == drawing
    assert band.span() == (low, high)
    assert band.counts == BandCounts(0, high - low, 0, 0)


@pytest.mark.parametrize(
    ("kind", "before", "low", "high", "after"),
    [
        ("up", "LL........", 0, 4, "LLhh......"),
        ("down", "........LL", 6, 10, "......hhLL"),
        ("float", "....LL....", 3, 7, "...hLLh..."),
    ],
)
def test_growth_adds_holes_beyond_the_frontier(
    kind: str, before: str, low: int, high: int, after: str
) -> None:
    band = band_of(kind, before)
    band.claim(low, high)
    assert drawn(band) == after


@each_kind
def test_a_claim_gives_nothing_up(kind: str) -> None:
    drawing = {"up": "LLL.......", "down": ".......LLL", "float": "...LLL...."}[kind]
    band = band_of(kind, drawing)
    low, high = band.span()
    with pytest.raises(AssertionError):
        band.claim(low, high - 1) if kind != "down" else band.claim(low + 1, high)
    assert drawn(band) == drawing


@pytest.mark.parametrize(
    ("kind", "before", "pages", "after"),
    [
        ("up", "LhLhh.....", [1, 3], "LLLLh....."),
        ("down", ".....hhLhL", [8, 6], ".....hLLLL"),
        ("float", "..Lhhh....", [3, 4], "..LLLh...."),
    ],
)
def test_holes_are_taken_lowest_depth_first(
    kind: str, before: str, pages: list[int], after: str
) -> None:
    band = band_of(kind, before)
    assert band.take_holes(2) == pages
    assert drawn(band) == after


def test_holes_are_taken_one_after_the_other() -> None:
    band = band_of("up", "Lhhh......")
    assert [band.take_holes(1) for _ in range(3)] == [[1], [2], [3]]


@each_kind
def test_a_take_of_holes_ends_with_the_holes(kind: str) -> None:
    band = band_of(kind, {"up": "Lhh.......", "down": ".......hhL", "float": "...Lhh...."}[kind])
    assert len(band.take_holes(5)) == 2
    assert band.take_holes(5) == []


def test_a_page_freed_in_front_of_the_last_take_is_taken_next() -> None:
    band = band_of("up", "LLLLhh....")
    band.take_holes(1)
    band.release_live([1])
    assert band.take_holes(2) == [1, 5]


def test_growth_is_taken_after_a_search_that_found_nothing() -> None:
    band = band_of("up", "LL........")
    assert band.take_holes(1) == []
    band.claim(0, 3)
    assert band.take_holes(1) == [2]


@each_kind
@pytest.mark.parametrize(
    ("act", "before", "after"),
    [
        (Band.release_live, "L", "h"),
        (Band.pend_live, "L", "p"),
        (Band.release_pending, "p", "h"),
        (Band.occupy_holes, "h", "L"),
    ],
)
def test_a_page_changes_only_from_the_state_it_is_in(
    kind: str, act: Callable[[Band, list[int]], None], before: str, after: str
) -> None:
    page = {"up": 1, "down": 8, "float": 4}[kind]
    band = band_of(kind, f"L{before}L".rjust(page + 2, ".").ljust(PAGES, "."))
    act(band, [page])
    assert drawn(band)[page] == after
    with pytest.raises(AssertionError):
        act(band, [page])


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("up", "hLhLhh....", "hLhL......"),
        ("down", "....hhLhLh", "......LhLh"),
        ("float", ".hhLhLh...", "...LhL...."),
        ("up", "LLp.......", "LLp......."),
        ("up", "Lph.......", "Lp........"),
        ("float", "..hpLph...", "...pLp...."),
        ("up", "hhh.......", ".........."),
        ("down", ".......hhh", ".........."),
        ("float", "...hhh....", ".........."),
    ],
)
def test_holes_at_a_moving_edge_leave_the_span(kind: str, before: str, after: str) -> None:
    band = band_of(kind, before)
    assert band.retreat() == before.count("h") - after.count("h")
    assert drawn(band) == after
    assert band.counts.holes == after.count("h")


@each_kind
def test_an_empty_band_has_no_span(kind: str) -> None:
    band = band_of(kind, {"up": "hh........", "down": "........hh", "float": "....hh...."}[kind])
    band.retreat()
    assert band.span() == (0, 0)


def test_an_empty_float_may_claim_anywhere() -> None:
    band = band_of("float", "......hh..")
    band.retreat()
    band.claim(1, 3)
    assert band.take_holes(2) == [1, 2]
    assert drawn(band) == ".LL......."


@pytest.mark.parametrize(
    ("kind", "before", "low", "high", "moved", "after"),
    [
        # An end gives up its far part: the live page from there has a new place.
        ("up", "LhLL......", 0, 3, [1], "LLL......."),
        ("down", "......LLhL", 7, 10, [8], ".......LLL"),
        # A float steps aside, partly and wholly, and one gains room for a take.
        ("float", "..LL......", 3, 5, [4], "...LL....."),
        ("float", "..LL......", 6, 9, [6, 7], "......LLh."),
        ("float", "..LhL.....", 1, 4, [1], ".LLh......"),
    ],
)
def test_a_relocated_band_keeps_what_stays_and_takes_in_what_moved(
    kind: str, before: str, low: int, high: int, moved: list[int], after: str
) -> None:
    band = band_of(kind, before)
    band.relocate(low, high, moved)
    assert drawn(band) == after
    assert band.span() == (low, high)
    assert band.counts == BandCounts(after.count("L"), after.count("h"), 0, 0)


def test_a_relocated_band_takes_its_holes_in_order() -> None:
    band = band_of("float", "......LL..")
    band.relocate(1, 5, [2, 3])
    assert band.take_holes(2) == [1, 4]


def test_a_relocated_band_keeps_its_fixed_pages() -> None:
    band = band_of("float", "..LLL.....")
    band.states[3], band.fixed, band.live = FIXED, 1, 2
    band.relocate(3, 7, [5])
    assert drawn(band) == "...fLLh..."
    assert band.counts == BandCounts(2, 1, 0, 1)


def test_a_band_with_pending_pages_stays() -> None:
    band = band_of("float", "..LpL.....")
    with pytest.raises(AssertionError, match="settles"):
        band.relocate(5, 8, [5, 6])


def test_a_relocation_that_loses_a_page_is_a_mistake() -> None:
    band = band_of("float", "..LL......")
    with pytest.raises(AssertionError, match="lost"):
        band.relocate(3, 5, [])


def test_a_float_parked_by_a_relocation_claims_again() -> None:
    band = FloatBand(1, tokens("float"), Axis(4, 1), PAGES)
    band.claim(5, 8)
    band.relocate(0, 0, [])
    assert band.span() == (0, 0)
    band.claim(6, 8)
    assert band.take_holes(2) == [6, 7]


@pytest.mark.parametrize("kind", KINDS)
def test_a_revision_changes_with_every_count(kind: str) -> None:
    band = band_of(kind, {"up": "LLhh......", "down": "......hhLL", "float": "..LLhh...."}[kind])
    first = band.axis.page_at(band.low)
    seen = [band.revision]
    for change in (
        lambda: band.retreat(),
        lambda: band.pend_live([first]),
        lambda: band.release_pending([first]),
        lambda: band.take_holes(1),
        lambda: band.claim(*band.axis.pages_of_span(band.low, band.high + 1)),
        lambda: band.relocate(*band.axis.pages_of_span(band.low, band.high - 1), []),
    ):
        change()
        seen.append(band.revision)
    assert len(set(seen)) == len(seen)


def test_ids_cover_every_page_of_the_band() -> None:
    high_end = EndBand(1, tokens("full"), Axis(9, -1), 7)
    assert len(high_end.ids.inverse) == 11
    assert len(EndBand(0, tokens("low"), Axis(3, 1), 7).ids.inverse) == 11


# Against a dictionary ----------------------------------------------------------------------


class NaiveBand:
    """A dictionary from page to letter, and the span spelt out."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.pages: dict[int, str] = {}

    def by_depth(self, letter: str) -> list[int]:
        """Pages in one state, lowest depth first."""
        return sorted(
            (page for page, state in self.pages.items() if state == letter),
            reverse=self.kind == "down",
        )

    def grow(self, below: int, above: int) -> tuple[int, int]:
        """The pages of a span that is longer by so much where it may be."""
        if self.kind == "up":
            low, high = 0, len(self.pages) + above
        elif self.kind == "down":
            low, high = PAGES - len(self.pages) - below, PAGES
        else:
            low = min(self.pages, default=4) - below
            high = max(self.pages, default=3) + 1 + above
        return max(0, low), min(PAGES, high)

    def retreat(self) -> None:
        """Drop holes at the moving edges."""
        while self.pages and self.kind != "down" and self.pages[max(self.pages)] == "h":
            del self.pages[max(self.pages)]
        while self.pages and self.kind != "up" and self.pages[min(self.pages)] == "h":
            del self.pages[min(self.pages)]

    def drawing(self) -> str:
        """One letter per page."""
        return "".join(self.pages.get(page, ".") for page in range(PAGES))


def change_both(band: Band, naive: NaiveBand, act: str, first: int, count: int) -> None:
    """Do one thing to the band and to the dictionary."""
    change = {"free": "Lh", "pend": "Lp", "clear": "ph", "occupy": "hL"}.get(act)
    if act == "take":
        wanted = naive.by_depth("h")[:count]
        assert band.take_holes(count) == wanted
        naive.pages.update(dict.fromkeys(wanted, "L"))
    elif act == "grow":
        low, high = naive.grow(first % 3, count % 3)
        band.claim(low, high)
        naive.pages = {page: naive.pages.get(page, "h") for page in range(low, high)}
    elif act == "retreat":
        band.retreat()
        naive.retreat()
    else:
        assert change is not None
        ready = naive.by_depth(change[0])
        pages = ready[first % (len(ready) + 1) :][:count]
        acts = {
            "free": band.release_live,
            "pend": band.pend_live,
            "clear": band.release_pending,
            "occupy": band.occupy_holes,
        }
        acts[act](pages)
        naive.pages.update(dict.fromkeys(pages, change[1]))


ACTS = ("take", "free", "pend", "clear", "occupy", "grow", "retreat")
changes = st.tuples(st.sampled_from(ACTS), st.integers(0, 9), st.integers(0, 4))


@each_kind
@settings(max_examples=50)
@given(script=st.lists(changes, min_size=15, max_size=40))
def test_any_sequence_of_changes_is_that_of_a_dictionary(
    kind: str, script: list[tuple[str, int, int]]
) -> None:
    band, naive = KINDS[kind](), NaiveBand(kind)
    for act, first, count in script:
        change_both(band, naive, act, first, count)
        drawing = naive.drawing()
        assert drawn(band) == drawing
        assert band.counts == tuple(drawing.count(letter) for letter in LETTERS[1:])
        assert sum(band.counts) == band.high - band.low
        claimed = sorted(naive.pages)
        assert band.span() == ((claimed[0], claimed[-1] + 1) if claimed else (0, 0))


@each_kind
@given(start=st.integers(0, 8), length=st.integers(1, 6), extra=st.integers(0, 2))
def test_any_relocation_keeps_every_live_page(
    kind: str, start: int, length: int, extra: int
) -> None:
    band = band_of(kind, {"up": "LhLLh.....", "down": ".....hLLhL", "float": "...LhLL..."}[kind])
    length = max(length, band.live) + extra
    low = {"up": 0, "down": PAGES - length}.get(kind, min(start, PAGES - length))
    live_before = [page for page, letter in enumerate(drawn(band)) if letter == "L"]
    outside = [page for page in live_before if not low <= page < low + length]
    free = [page for page in range(low, low + length) if page not in live_before]
    band.relocate(low, low + length, free[: len(outside)])
    stay = set(live_before) - set(outside)
    letters = ["L" if page in stay | set(free[: len(outside)]) else "h" for page in range(PAGES)]
    assert drawn(band)[low : low + length] == "".join(letters[low : low + length])
    assert band.states.count(0) == PAGES - length


def test_every_state_has_a_letter() -> None:
    assert (LETTERS[LIVE], LETTERS[FIXED]) == ("L", "f")
    assert len(LETTERS) == FIXED + 1
