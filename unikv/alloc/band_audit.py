"""The rules of one band: its states, counts, maps, and what keeps its pending pages.

Each rule compares two records of one fact, in both directions.  Neighbours, bytes and steps are
the business of `unikv.alloc.audit`, which also says when all of these hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from unikv.alloc.band import FIXED, HOLE, LIVE, PENDING, UNCLAIMED, Band, BandCounts
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.invariants import (
    COUNT_CONSERVATION,
    FREE_OF_BOUND_PAGE,
    HANDOUT_OF_USED_PAGE,
    MAP_BIJECTIVE,
    Finding,
    Invariant,
)
from unikv.alloc.use import Use

STATES = {
    UNCLAIMED: "unclaimed",
    LIVE: "live",
    HOLE: "a hole",
    PENDING: "pending",
    FIXED: "fixed",
}


def about(
    rule: Invariant,
    band: Band,
    what: str,
    pages: Iterable[int] = (),
    ids: Iterable[int] = (),
) -> Finding:
    """A finding in one band."""
    return Finding(rule, f"band {band.layout.name!r}", what, tuple(pages), tuple(ids))


def pages_in(band: Band, state: int) -> list[int]:
    """The pages of a band that are in `state`, wherever the span is, by depth."""
    pages = []
    depth = band.states.find(state)
    while depth >= 0:
        pages.append(band.axis.page_at(depth))
        depth = band.states.find(state, depth + 1)
    return pages


def map_bijective(chain: ChainAllocator) -> list[Finding]:
    """Both page maps of each band agree, and minted ids are bound, the others free."""
    found = []
    owned = {unit for unit, page in enumerate(chain.owner.ids.forward) if page}
    for band in chain.bands:
        forward, inverse = band.ids.forward, band.ids.inverse
        bound = {unit: page for unit, page in enumerate(forward) if page}
        lost = [u for u, p in bound.items() if not 0 < p < len(inverse) or inverse[p] != u]
        if lost:
            what = "ids name pages that name another id or none"
            found.append(about(MAP_BIJECTIVE, band, what, [bound[u] for u in lost], lost))
        named = {page: unit for page, unit in enumerate(inverse) if unit}
        stray = [p for p, u in named.items() if not 0 < u < len(forward) or forward[u] != p]
        if stray:
            what = "pages name ids that name another page or none"
            found.append(about(MAP_BIJECTIVE, band, what, stray, [named[p] for p in stray]))
        if band.layout.mints:
            found += _minted(chain, band, set(bound))
        elif orphans := sorted(set(bound) - owned):
            what = f"ids are bound here and free in their owner, {chain.owner.layout.name!r}"
            pages = [bound[unit] for unit in orphans]
            found.append(about(MAP_BIJECTIVE, band, what, pages, orphans))
    return found


def free_of_bound_page(chain: ChainAllocator) -> list[Finding]:
    """Bound pages are live, and live pages are bound."""
    found = []
    for band in chain.bands:
        low, high = band.axis.pages_of_span(0, len(band.states))
        by_state: dict[str, list[int]] = {}
        for page, unit in enumerate(band.ids.inverse):
            if unit:
                state = band.states[band.axis.depth_of(page)] if low <= page < high else None
                if state != LIVE:
                    name = "outside the arena" if state is None else STATES[state]
                    by_state.setdefault(name, []).append(page)
        for name, pages in by_state.items():
            what = f"bound pages are {name}; a bound page is live"
            ids = [band.ids.inverse[page] for page in pages]
            found.append(about(FREE_OF_BOUND_PAGE, band, what, pages, ids))
        unbound = [page for page in pages_in(band, LIVE) if not band.ids.inverse[page]]
        if unbound:
            what = "live pages are named by no id, so nobody can free them"
            found.append(about(FREE_OF_BOUND_PAGE, band, what, unbound))
    return found


def handout_of_used_page(chain: ChainAllocator) -> list[Finding]:
    """No page that a forward or a transfer keeps pending is in somebody's hands."""
    found = []
    for band in chain.bands:
        low, high = band.axis.pages_of_span(0, len(band.states))
        for reason, pages in _kept(chain, band):
            taken = [
                page
                for page in pages
                if low <= page < high and band.states[band.axis.depth_of(page)] in (LIVE, FIXED)
            ]
            if taken:
                what = f"pages are in use again, though {reason} keeps them"
                found.append(about(HANDOUT_OF_USED_PAGE, band, what, taken))
    return found


def count_conservation(chain: ChainAllocator) -> list[Finding]:
    """Counts equal states, states fill the span, and pending pages are kept by one thing each."""
    found = []
    for band in chain.bands:
        states = band.states
        counted = BandCounts(*(states.count(state) for state in (LIVE, HOLE, PENDING, FIXED)))
        if counted != band.counts:
            what = f"counts {tuple(band.counts)}, but the pages are {tuple(counted)}"
            found.append(about(COUNT_CONSERVATION, band, what))
        if not 0 <= band.low <= band.high <= len(states):
            what = f"the span is depths {band.low}..{band.high} of {len(states)}"
            found.append(about(COUNT_CONSERVATION, band, what))
            continue
        wrong = [
            depth
            for depth, state in enumerate(states)
            if (state != UNCLAIMED) != (band.low <= depth < band.high)
        ]
        if wrong:
            what = f"pages are claimed outside the span, or unclaimed in it, {band.span()}"
            found.append(about(COUNT_CONSERVATION, band, what, map(band.axis.page_at, wrong)))
        found += _pending(chain, band)
    return found


def _minted(chain: ChainAllocator, band: Band, bound: set[int]) -> list[Finding]:
    free = Counter(chain.minted[band.index].free_ids())
    every = range(1, len(band.ids.forward))
    found = []
    for what, ids in (
        ("ids are free and bound", sorted(set(free) & bound)),
        ("ids are in the free list more than once", sorted(u for u, n in free.items() if n > 1)),
        ("ids are neither free nor bound", [u for u in every if u not in free and u not in bound]),
        ("ids are free that do not exist", sorted(set(free) - set(every))),
    ):
        if ids:
            pages = [band.ids.forward[unit] for unit in ids if unit in bound]
            found.append(about(MAP_BIJECTIVE, band, what, pages, ids))
    return found


def _kept(chain: ChainAllocator, band: Band) -> list[tuple[str, tuple[int, ...]]]:
    """What keeps pages of a band pending: batches, vacated uses and transfers."""
    kept = [(f"the batch of step {step}", pages) for step, pages in band.pending_pages.batches()]
    kept += [
        (f"a vacated use of step {use.step}", tuple(sorted(use.pages)))
        for use in chain.ledger.uses()
        if use.use is Use.VACATED and use.band == band.index
    ]
    stuck = chain.ledger.held.stuck(band.index)
    if stuck:
        kept.append(("a transfer", tuple(sorted(stuck))))
    return kept


def _pending(chain: ChainAllocator, band: Band) -> list[Finding]:
    keepers = Counter(page for _, pages in _kept(chain, band) for page in pages)
    pending = set(pages_in(band, PENDING))
    # A page that is live or fixed all the same is the graver matter of its hand-out.
    taken = {page for state in (LIVE, FIXED) for page in pages_in(band, state)}
    found = []
    for what, pages in (
        ("pages are pending, but nothing keeps them", pending - set(keepers)),
        ("pages are kept as pending, but they are not", set(keepers) - pending - taken),
        ("pages are kept by two things at once", {p for p, n in keepers.items() if n > 1}),
    ):
        if pages:
            found.append(about(COUNT_CONSERVATION, band, what, sorted(pages)))
    return found
