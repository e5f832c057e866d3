"""Pricing against an exhaustive search, and plans carried out on bytes.

Chains are small and crowded, because the rules that are easy to get wrong
(remainders, walls, pins that need both sides) only decide an answer where hardly
anything is free.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from random import Random

import pytest

from benchmarks.search.concrete_chains import (
    PINNED_CAREFUL,
    USED_CAREFUL,
    DrawnBand,
    DrawnChain,
    careful,
    draw,
    full,
    random_chain,
    random_chains,
)
from benchmarks.search.pricing_judge import exists, in_bytes, is_in_order
from unikv.alloc.pricing import (
    Spans,
    Step,
    assert_plan,
    feasible,
    first_plan,
    most_pages,
    move_order,
    plan,
)
from unikv.alloc.snapshot import ChainView

# Together 20,000 cases; in portions, so that each test is short and they can share the cores.
SEEDS = range(10)
CASES_PER_SEED = 2_000

each_seed = pytest.mark.parametrize("seed", SEEDS)


@cache
def cases(seed: int) -> tuple[tuple[DrawnChain, tuple[int, ...]], ...]:
    """Chains, each with a demand."""
    return tuple(random_chains(seed, CASES_PER_SEED))


# The judge itself.


def exists_by_product(chain: DrawnChain, demand: Sequence[int]) -> bool:
    """Every combination of spans, each looked at on its own."""
    view = full(chain)
    last = len(view.bands) - 1
    choices: list[list[tuple[int, int]]] = []
    for index, band in enumerate(view.bands):
        top = chain.total_bytes // band.page_bytes
        runs = [(low, high) for low in range(top + 1) for high in range(low, top + 1)]
        if index == last:
            runs = [(low, high) for low, high in runs if high == band.wall]
        elif index == 0:
            runs = [(low, high) for low, high in runs if low == band.wall]
        need = band.used + demand[index]
        stays = range(band.pin_low, band.pin_high)
        choices.append(
            [
                (low * band.page_bytes, high * band.page_bytes)
                for low, high in runs
                if high - low >= need and all(low <= page < high for page in stays)
            ]
        )
    return any(is_in_order(spans, chain.sink_bytes) for spans in product(*choices))


@each_seed
def test_the_search_agrees_with_every_combination_of_spans(seed: int) -> None:
    small = [case for case in cases(seed) if len(case[0].bands) <= 3 and case[0].total_bytes <= 7]
    answers = set()
    for chain, demand in small[:30]:
        expected = exists_by_product(chain, demand)
        assert exists(full(chain), demand, Step.RELAYOUT) == expected, (chain, demand)
        answers.add(expected)
    assert answers == {False, True}


# Yes and no.


@each_seed
def test_feasible_is_what_the_exhaustive_search_says(seed: int) -> None:
    yes_count = 0
    for chain, demand in cases(seed):
        view = full(chain)
        expected = exists(view, demand, Step.RELAYOUT)
        assert feasible(view, demand) == expected, (chain, demand)
        yes_count += expected
    assert 0.2 < yes_count / CASES_PER_SEED < 0.8


@each_seed
@pytest.mark.parametrize("step", Step)
def test_a_plan_exists_exactly_if_the_exhaustive_search_finds_one(seed: int, step: Step) -> None:
    yes_count = 0
    for chain, demand in cases(seed):
        view = careful(chain)
        spans = plan(view, demand, step)
        assert (spans is not None) == exists(view, demand, step), (chain, demand)
        if spans is not None:
            yes_count += 1
            assert_plan(view, demand, step, spans)
    assert 0.15 < yes_count / CASES_PER_SEED < 0.8


@each_seed
def test_feasible_is_whether_a_relayout_has_a_plan(seed: int) -> None:
    for chain, demand in cases(seed)[:1000]:
        for view in (full(chain), careful(chain)):
            expected = plan(view, demand, Step.RELAYOUT) is not None
            assert feasible(view, demand) == expected, (chain, demand)


def test_larger_arenas_are_priced_like_small_ones() -> None:
    rng = Random(2)
    answers = set()
    for _ in range(12):
        total_bytes = rng.randint(200, 260)
        chain = draw(
            total_bytes,
            7,
            (7, 1, "LLhL"),
            (5, rng.randint(8, 17), "LhF"),
            (4, rng.randint(26, 40), "FhL"),
            (4, total_bytes // 4 - 2, "LL"),
        )
        view = full(chain)
        demand = (rng.randint(0, 5), rng.randint(0, 12), rng.randint(0, 12), rng.randint(0, 9))
        expected = exists(view, demand, Step.RELAYOUT)
        assert feasible(view, demand) == expected, (chain, demand)
        answers.add(expected)
    assert answers == {False, True}


# Monotony.


@each_seed
def test_a_smaller_demand_keeps_a_yes(seed: int) -> None:
    for chain, demand in cases(seed)[:600]:
        view = full(chain)
        if not feasible(view, demand):
            continue
        for index, wanted in enumerate(demand):
            if wanted:
                less = (*demand[:index], wanted - 1, *demand[index + 1 :])
                assert feasible(view, less), (chain, demand, index)


def redraw(chain: DrawnChain, index: int, band: DrawnBand) -> DrawnChain:
    return chain._replace(bands=(*chain.bands[:index], band, *chain.bands[index + 1 :]))


@each_seed
def test_a_freed_or_unfixed_page_keeps_a_yes(seed: int) -> None:
    becomes = {"L": "p", "H": "q", "F": "L", "q": "h"}
    for chain, demand in cases(seed)[:300]:
        if not feasible(full(chain), demand):
            continue
        for index, band in enumerate(chain.bands):
            for depth, letter in enumerate(band.pages):
                after = becomes.get(letter, letter)
                pages = band.pages[:depth] + after + band.pages[depth + 1 :]
                freed = redraw(chain, index, band._replace(pages=pages))
                assert feasible(full(freed), demand), (chain, demand, index, depth)


def settled(chain: DrawnChain) -> DrawnChain:
    """The chain with pending pages cleared and free edges given up."""
    last = len(chain.bands) - 1
    bands = []
    for index, (page_bytes, first, letters) in enumerate(chain.bands):
        pages = letters.replace("p", "h")
        if index == last or index > 0:
            first += len(pages) - len(pages.lstrip("h"))
            pages = pages.lstrip("h")
        if index < last:
            pages = pages.rstrip("h")
        bands.append(DrawnBand(page_bytes, first, pages))
    return chain._replace(bands=tuple(bands))


@each_seed
def test_settling_changes_no_answer(seed: int) -> None:
    for chain, demand in cases(seed)[:600]:
        expected = feasible(full(chain), demand)
        assert feasible(full(settled(chain)), demand) == expected, (chain, demand)


# The other questions.


@each_seed
def test_first_plan_is_the_least_step_with_a_plan(seed: int) -> None:
    seen = set()
    for chain, demand in cases(seed)[:600]:
        view = careful(chain)
        plans = ((step, plan(view, demand, step)) for step in Step)
        least = next(((step, spans) for step, spans in plans if spans is not None), None)
        assert first_plan(view, demand) == least, (chain, demand)
        seen.add(least and least[0])
    assert seen == {None, *Step}


@each_seed
def test_most_pages_is_where_stepping_stops(seed: int) -> None:
    for chain, demand in cases(seed)[:200]:
        view = full(chain)
        for band in range(len(view.bands)):
            most = 0
            while exists(view, (*demand[:band], most + 1, *demand[band + 1 :]), Step.RELAYOUT):
                most += 1
            assert most_pages(view, demand, band) == most, (chain, demand, band)


# Plans carried out on bytes.


# Band and first depth of a page, which stay with its content when it is moved.
Tag = tuple[int, int]


def random_spans(rng: Random, view: ChainView, demand: Sequence[int]) -> Spans | None:
    """Spans that serve a demand, placed without any policy, if a few throws find some."""
    for _ in range(12):
        boundary = view.sink_bytes
        spans = []
        for index, band in enumerate(view.bands):
            spans.append(random_span(rng, view, index, demand[index], boundary))
            boundary = max(boundary, spans[-1][1] * band.page_bytes)
        if is_in_order(in_bytes(view, spans), view.sink_bytes):
            return tuple(spans)
    return None


def random_span(
    rng: Random, view: ChainView, index: int, wanted: int, boundary: int
) -> tuple[int, int]:
    """A span long enough and around the pin, above `boundary` if there is room."""
    band = view.bands[index]
    pages = band.used + wanted
    is_pinned = band.pin_low < band.pin_high
    if index == len(view.bands) - 1:
        return min(band.wall - pages, band.pin_low if is_pinned else band.wall), band.wall
    if index == 0:
        return band.wall, max(band.wall + pages, band.pin_high if is_pinned else 0)
    if is_pinned:
        pages = max(pages, band.pin_high - band.pin_low)
        low = rng.randint(band.pin_high - pages, band.pin_low)
    elif pages:
        lowest = -(-boundary // band.page_bytes)
        low = rng.randint(lowest, max(lowest, view.total_bytes // band.page_bytes - pages))
    else:
        low = 0
    return low, low + pages


class Arena:
    """Which used page every byte holds, and where every band's used pages are."""

    def __init__(self, chain: DrawnChain) -> None:
        self.holder: list[Tag | None] = [None] * chain.total_bytes
        self.used: list[dict[int, Tag]] = [{} for _ in chain.bands]
        for index, (page_bytes, first, letters) in enumerate(chain.bands):
            for depth, letter in enumerate(letters):
                if letter in USED_CAREFUL:
                    self.used[index][first + depth] = (index, depth)
                    self._write(page_bytes, first + depth, (index, depth))

    def copy_outside(self, index: int, page_bytes: int, low: int, high: int) -> int:
        """Copy a band's pages outside `[low, high)` into it, in one batch; how many."""
        used = self.used[index]
        sources = [page for page in used if not low <= page < high]
        targets = [page for page in range(low, high) if page not in used]
        assert len(sources) <= len(targets)
        for source, target in zip(sources, targets, strict=False):
            assert self.read(page_bytes, target) == {None}, "a used byte is overwritten"
            used[target] = used.pop(source)
            self._write(page_bytes, target, used[target])
        for source in sources:
            self._write(page_bytes, source, None)
        return len(sources)

    def read(self, page_bytes: int, page: int) -> set[Tag | None]:
        return set(self.holder[page * page_bytes : (page + 1) * page_bytes])

    def _write(self, page_bytes: int, page: int, tag: Tag | None) -> None:
        self.holder[page * page_bytes : (page + 1) * page_bytes] = [tag] * page_bytes


def carry_out(chain: DrawnChain, spans: Spans) -> int:
    """Copy pages in move order with the arena checked on the way; gives back the copies."""
    view = careful(chain)
    last = len(view.bands) - 1
    arena = Arena(chain)
    claimed = [(band.low, band.high) for band in view.bands]
    copy_count = 0
    for index in move_order(view, spans):
        (now_low, now_high), (low, high) = claimed[index], spans[index]
        if index in (0, last):
            # What an end gains is claimed by the takes that follow the copies.
            low, high = max(low, now_low), min(high, now_high)
        elif low < high and now_low < now_high:
            # While it is copied, a float occupies both spans and what lies between.
            claimed[index] = (min(low, now_low), max(high, now_high))
            assert is_in_order(in_bytes(view, claimed), chain.sink_bytes), (chain, spans)
        copy_count += arena.copy_outside(index, view.bands[index].page_bytes, low, high)
        claimed[index] = (low, high)
        assert is_in_order(in_bytes(view, claimed), chain.sink_bytes), (chain, spans)
    assert_kept(chain, arena, spans)
    return copy_count


def assert_kept(chain: DrawnChain, arena: Arena, spans: Spans) -> None:
    """No used page was lost or lies outside its span, and those that must stay have stayed."""
    for index, (page_bytes, first, letters) in enumerate(chain.bands):
        low, high = spans[index]
        used = arena.used[index]
        assert len(used) == sum(letter in USED_CAREFUL for letter in letters)
        for page, (_, depth) in used.items():
            assert low <= page < high
            assert arena.read(page_bytes, page) == {(index, depth)}
            assert letters[depth] not in PINNED_CAREFUL or page == first + depth


@each_seed
def test_planned_moves_overwrite_nothing(seed: int) -> None:
    copy_count = 0
    for chain, demand in cases(seed)[:800]:
        view = careful(chain)
        for step in (Step.FLUSH_ENDS, Step.RELAYOUT):
            spans = plan(view, demand, step)
            if spans is not None:
                copy_count += carry_out(chain, spans)
    assert copy_count > 100


@each_seed
def test_moves_into_any_layout_overwrite_nothing(seed: int) -> None:
    rng = Random(seed)
    copy_count = 0
    for _ in range(500):
        chain = random_chain(rng)
        view = careful(chain)
        demand = tuple(rng.choice((0, 0, 0, 0, 1)) for _ in chain.bands)
        spans = random_spans(rng, view, demand)
        if spans is not None:
            assert_plan(view, demand, Step.RELAYOUT, spans)
            copy_count += carry_out(chain, spans)
    assert copy_count > 100


@each_seed
def test_the_order_names_exactly_the_bands_that_change(seed: int) -> None:
    for chain, demand in cases(seed)[:400]:
        view = careful(chain)
        spans = plan(view, demand, Step.RELAYOUT)
        if spans is None:
            continue
        changed = [
            index
            for index, (band, (low, high)) in enumerate(zip(view.bands, spans, strict=True))
            if (low, high) != (band.low, band.high) and (low < high or band.low < band.high)
        ]
        assert sorted(move_order(view, spans)) == changed, (chain, demand)
