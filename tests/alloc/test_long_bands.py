"""Bands long enough to be handled piece by piece, against the same done page by page."""

from collections.abc import Callable
from random import Random

import pytest

from tests.alloc.small_chain import tokens
from unikv.alloc.axis import Axis
from unikv.alloc.band import FIXED, HOLE, LIVE, PENDING, UNCLAIMED, Band, EndBand
from unikv.alloc.compaction import plan_compaction, plan_relocation
from unikv.alloc.float_band import FloatBand
from unikv.alloc.page_search import highest, lowest

PAGES = 400
SEEDS = range(6)
Run = tuple[int, int]
"""A state and how many neighbouring pages are in it."""


def end_up(pages: int) -> Band:
    """An end at the low wall."""
    return EndBand(0, tokens("up", ids=pages), Axis(3, 1), pages)


def end_down(pages: int) -> Band:
    """An end at the high wall."""
    return EndBand(1, tokens("down", ids=pages), Axis(pages + 2, -1), pages)


def floating(pages: int) -> Band:
    """A band between two others."""
    return FloatBand(1, tokens("float", ids=pages), Axis(3, 1), pages)


KINDS: dict[str, Callable[[int], Band]] = {"up": end_up, "down": end_down, "float": floating}
each_kind = pytest.mark.parametrize("kind", KINDS)
each_seed = pytest.mark.parametrize("seed", SEEDS)


def in_states(kind: str, start: int, runs: list[Run], pages: int = PAGES) -> Band:
    """A band that claims these runs from depth `start` on."""
    band = KINDS[kind](pages)
    states = b"".join(bytes([state]) * count for state, count in runs)
    band.states[start : start + len(states)] = states
    band.low, band.high = start, start + len(states)
    band.live, band.holes = states.count(LIVE), states.count(HOLE)
    band.pending, band.fixed = states.count(PENDING), states.count(FIXED)
    return band


def random_runs(rng: Random, longest: int, total: int, states: tuple[int, ...]) -> list[Run]:
    """Runs of pages that make up at most `total`."""
    runs: list[Run] = []
    while total >= max(3, longest):
        runs.append((rng.choice(states), rng.choice((1, 2, 3, longest))))
        total -= runs[-1][1]
    return runs


def pages_in(band: Band, state: int, low: int, high: int) -> list[int]:
    """Pages of one state, lowest depth first, looked at one by one."""
    depths = range(low, min(high, len(band.states)))
    return [band.axis.page_at(depth) for depth in depths if band.states[depth] == state]


@each_kind
@each_seed
def test_a_search_finds_what_a_scan_finds(kind: str, seed: int) -> None:
    rng = Random(seed)
    longest = rng.choice((1, 70, 5000))
    runs = random_runs(rng, longest, 9_000, (LIVE, HOLE, PENDING))
    band = in_states(kind, 0, runs, 10_000)
    for limit in (1, 65, 4200, 10_000):
        low, high = sorted(rng.sample(range(10_000), 2))
        for state in (LIVE, HOLE):
            scanned = pages_in(band, state, low, high)
            assert lowest(band, state, low, high, limit) == scanned[:limit]
            assert highest(band, state, low, high, limit) == scanned[::-1][:limit]


def test_an_empty_stretch_has_no_pages() -> None:
    band = in_states("up", 0, [(LIVE, 20)])
    assert lowest(band, LIVE, 7, 7, 9) == lowest(band, LIVE, 9, 7, 9) == []
    assert highest(band, LIVE, 7, 7, 9) == highest(band, LIVE, 9, 7, 9) == []


def assert_as_counted(band: Band) -> None:
    """The counts and the span are those of the states."""
    assert list(band.counts) == [band.states.count(state) for state in (LIVE, HOLE, PENDING, FIXED)]
    assert sum(band.counts) == band.high - band.low
    assert UNCLAIMED not in band.states[band.low : band.high]


@each_kind
@each_seed
def test_marking_many_pages_marks_each_of_them(kind: str, seed: int) -> None:
    rng = Random(seed)
    band = in_states(kind, 5, random_runs(rng, 60, 300, (LIVE, LIVE, HOLE, PENDING)))
    acts: tuple[tuple[int, int, Callable[[list[int]], None]], ...] = (
        (LIVE, HOLE, band.release_live),
        (HOLE, LIVE, band.occupy_holes),
        (LIVE, PENDING, band.pend_live),
        (PENDING, HOLE, band.release_pending),
    )
    for _ in range(30):
        before, after, act = rng.choice(acts)
        pages = pages_in(band, before, band.low, band.high)
        first = rng.randint(0, len(pages))
        chosen = pages[first : first + rng.choice((1, 15, 16, 17, 100))]
        rng.choice((rng.shuffle, list.reverse, list.sort))(chosen)
        wanted = bytearray(band.states)
        for page in chosen:
            wanted[band.axis.depth_of(page)] = after
        act(chosen)
        assert band.states == wanted
        assert_as_counted(band)


def test_marking_pages_in_another_state_is_a_mistake() -> None:
    band = in_states("up", 0, [(LIVE, 10), (PENDING, 1), (LIVE, 10)])
    with pytest.raises(AssertionError):
        band.release_live(list(band.axis.pages(0, 21)))


@each_kind
@each_seed
def test_many_holes_are_taken_lowest_depth_first(kind: str, seed: int) -> None:
    rng = Random(seed)
    band = in_states(kind, 5, random_runs(rng, 60, 300, (LIVE, HOLE, PENDING)))
    while band.holes:
        wanted = pages_in(band, HOLE, band.low, band.high)[: rng.choice((1, 2, 30, 90))]
        assert band.take_holes(len(wanted)) == wanted
        assert_as_counted(band)
    assert band.take_holes(3) == []


@each_kind
@each_seed
def test_growing_by_a_take_is_a_claim_and_then_a_take(kind: str, seed: int) -> None:
    rng = Random(seed)
    for runs in ([(LIVE, 30)], [(LIVE, 5), (PENDING, 2)], [(HOLE, 1), (LIVE, 9)], []):
        start = 100 if kind == "float" else 0
        grown, claimed = in_states(kind, start, runs), in_states(kind, start, runs)
        low = start - (rng.randint(0, 3) if kind == "float" else 0)
        span = grown.axis.pages_of_span(low, grown.high + rng.randint(20, 40))
        claimed.claim(*span)
        assert grown.grow(*span, 20) == claimed.take_holes(20)
        assert_as_counted(grown)
        assert (grown.states, grown.counts) == (claimed.states, claimed.counts)
        assert (grown.low, grown.high) == (claimed.low, claimed.high)
        assert grown.take_holes(grown.holes) == claimed.take_holes(claimed.holes)


@each_kind
def test_the_last_page_of_the_arena_is_taken_like_any_other(kind: str) -> None:
    band = in_states(kind, 0, [(HOLE, 2), (LIVE, 3), (HOLE, 1)], pages=6)
    assert band.take_holes(2) == list(band.axis.pages(0, 2))
    assert band.take_holes(0) == []
    assert band.take_holes(2) == list(band.axis.pages(5, 6))


@each_kind
@pytest.mark.parametrize("holes", [0, 1, 15, 16, 17, 80, 81, 200, 333])
def test_a_frontier_gives_up_all_the_holes_it_touches(kind: str, holes: int) -> None:
    band = in_states(kind, 0, [(LIVE, 1), (HOLE, 2), (LIVE, 1), (HOLE, holes)])
    assert band.retreat() == holes
    assert band.span() == band.axis.pages_of_span(0, 4)
    assert band.states[4:] == bytes(PAGES - 4)
    assert_as_counted(band)


@each_kind
def test_a_band_of_holes_gives_up_its_whole_span(kind: str) -> None:
    band = in_states(kind, 0, [(HOLE, 300)])
    assert band.retreat() == 300
    assert band.span() == (0, 0)
    assert not any(band.states)


def test_both_edges_of_a_float_give_up_many_holes() -> None:
    band = in_states("float", 10, [(HOLE, 90), (LIVE, 2), (HOLE, 120)])
    assert band.retreat() == 210
    assert band.span() == band.axis.pages_of_span(100, 102)
    assert_as_counted(band)


@each_seed
@pytest.mark.parametrize("span", [(0, 250), (30, 270), (130, 380), (60, 200)])
def test_a_float_of_many_pages_is_relocated_page_by_page(seed: int, span: tuple[int, int]) -> None:
    rng = Random(seed)
    band = in_states("float", 40, random_runs(rng, 30, 200, (LIVE, HOLE, HOLE)))
    low, high = span
    outside = [
        page
        for page in pages_in(band, LIVE, band.low, band.high)
        if not low <= band.axis.depth_of(page) < high
    ]
    free = [depth for depth in range(low, high) if band.states[depth] != LIVE]
    plan = plan_relocation(band, band.axis.pages_of_span(low, high))
    assert list(plan.sources) == outside
    assert list(plan.targets) == [band.axis.page_at(depth) for depth in free[: len(outside)]]
    kept = set(pages_in(band, LIVE, low, high))
    band.relocate(*band.axis.pages_of_span(low, high), plan.targets)
    assert set(pages_in(band, LIVE, 0, PAGES)) == kept | set(plan.targets)
    assert (band.low, band.high) == span
    assert_as_counted(band)


def moves_one_by_one(band: Band, limit: int, pinned: set[int]) -> list[tuple[int, int]]:
    """The deepest live page that may move into the lowest hole, for as long as that is lower."""
    holes = pages_in(band, HOLE, 0, PAGES)
    live = [page for page in pages_in(band, LIVE, 0, PAGES)[::-1] if page not in pinned]
    depth_of = band.axis.depth_of
    moves = [
        (source, target)
        for source, target in zip(live, holes, strict=False)
        if depth_of(target) < depth_of(source)
    ]
    return moves[:limit]


@pytest.mark.parametrize("kind", ["up", "down"])
@pytest.mark.parametrize("seed", range(20))
def test_a_long_compaction_pairs_the_deepest_page_with_the_lowest_hole(
    kind: str, seed: int
) -> None:
    rng = Random(seed)
    others = rng.choice(((), (PENDING, FIXED)))
    band = in_states(kind, 0, random_runs(rng, 40, 380, (LIVE, LIVE, HOLE, *others)))
    live = pages_in(band, LIVE, 0, PAGES)
    for limit in (0, 1, 20, PAGES):
        pinned = set(rng.choice(([], rng.sample(live, 3), live[len(live) // 2 :], live)))
        plan = plan_compaction(band, limit, pinned)
        moves = moves_one_by_one(band, limit, pinned)
        assert list(zip(plan.sources, plan.targets, strict=True)) == moves
