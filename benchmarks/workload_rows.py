"""Prefill, decode, free and the two worst rearrangements: rows that need no traffic.

What is timed is one call of the allocator, and in a decode step also the choice of the requests
that need a page.  Expanding pages to token slots is left to the kernels, which read the page map.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from statistics import median

from benchmarks.workload_pool import (
    Measured,
    PoolSize,
    median_us,
    pool_of,
    pool_with_state,
    timed,
)
from unikv.alloc.chain import ChainAllocator
from unikv.errors import Shortage

BACKGROUND_PAGES = 16
PREFILL_TOKENS = (512, 1024, 2048, 4096)
PREFILLS, PREFILLS_DROPPED = 40, 5
DECODES, DECODE_TOKENS, DECODE_STEPS, DECODES_DROPPED = 64, 256, 256, 16
FILLED_PER_MILLE = 900
STATE_SLOTS = 16
REPEATS = 3


def prefill_and_free(size: PoolSize) -> Iterator[Measured]:
    """W1 and W3: half the pool is held; a prompt comes and goes."""
    chain = pool_of(size)
    for _ in range(size.pages // 2 // BACKGROUND_PAGES):
        chain.take(BACKGROUND_PAGES, 0)
    frees = []
    for tokens in PREFILL_TOKENS:
        pages = size.pages_of(tokens)
        take_us = free_us = None
        note = "more than a quarter of the pool"
        if pages <= size.pages // 4:
            taken = [_prefill(chain, pages) for _ in range(PREFILLS)][PREFILLS_DROPPED:]
            take_us, free_us = (median_us(times) for times in zip(*taken, strict=True))
            note = ""
        yield Measured(f"W1 prefill, {tokens} tokens", "us", take_us, note)
        frees.append(Measured(f"W3 free, {tokens} tokens", "us", free_us, note))
    yield from frees


def _prefill(chain: ChainAllocator, pages: int) -> tuple[int, int]:
    """Nanoseconds of a take and of the free that follows."""
    taken = timed(chain.take, pages, 0)
    return taken.nanoseconds, timed(chain.free, taken.answer.ids).nanoseconds


class Decode:
    """Requests that all grow by one token a step."""

    def __init__(self, chain: ChainAllocator, slots: int) -> None:
        self._chain = chain
        self._slots = slots
        self._lengths = [DECODE_TOKENS + number for number in range(DECODES)]
        self._ids = [chain.take(-(-length // slots), 0).ids for length in self._lengths]

    def step(self) -> None:
        """One more token each, and a page for those whose last one is full."""
        slots, lengths = self._slots, self._lengths
        growing = [number for number, length in enumerate(lengths) if not length % slots]
        units = self._chain.take(len(growing), 0).ids
        for number, unit in zip(growing, units, strict=True):
            self._ids[number].append(unit)
        self._lengths = [length + 1 for length in lengths]


def decode(size: PoolSize) -> Iterator[Measured]:
    """W2: a batch takes what its next token needs, all in one call."""
    times: list[int] = []
    try:
        batch = Decode(pool_of(size), size.slots)
        for _ in range(DECODE_STEPS):
            times.append(timed(batch.step).nanoseconds)
    except Shortage as short:
        note = f"after {len(times)} steps: {short}"
    else:
        note = ""
    kept = times[DECODES_DROPPED:]
    yield Measured("W2 decode step", "us", median_us(kept) if kept else None, note)


def worst_compaction(size: PoolSize, seed: int) -> Iterator[Measured]:
    """W6: a random half of a full pool goes at once, and one flush closes every hole."""
    times, moved = [], []
    for repeat in range(REPEATS):
        chain = pool_of(size)
        # One batch for all of the one-page requests: it leaves the same pages and ids.
        held = chain.take(size.pages * FILLED_PER_MILLE // 1000, 0).ids
        chain.free(Random(seed + repeat).sample(held, len(held) // 2))
        times.append(timed(chain.flush, 4 * size.pages).nanoseconds)
        moved.append(chain.counters.moved_pages)
        assert all(band.holes == 0 for band in chain.bands)
    yield from _rearranged("W6 worst compaction", times, moved)


def worst_float(size: PoolSize, seed: int) -> Iterator[Measured]:
    """W7: a random half of the window's pages goes, and then its float must move over.

    A float moves only where a layout asks for it, so what is timed is a `relieve` for one state
    slot more than the gap below the float holds.  It copies about a quarter of the float's pages,
    as closing its holes would.
    """
    times, moved = [], []
    for repeat in range(REPEATS):
        chain = pool_with_state(size)
        held = chain.take(size.pages * FILLED_PER_MILLE // 1000, STATE_SLOTS).ids
        chain.retire(1, Random(seed + repeat).sample(held, len(held) // 2))
        window_low, state_high = chain.bands[1].span()[0], chain.bands[0].span()[1]
        slots = window_low - state_high + 1
        times.append(timed(chain.relieve, 0, slots).nanoseconds)
        moved.append(chain.counters.moved_pages)
        assert chain.counters.relocations == 1
    note = "timed: a relieve for state slots, which relocates the float"
    yield from _rearranged("W7 worst float", times, moved, note)


def _rearranged(row: str, times: list[int], moved: list[int], note: str = "") -> Iterator[Measured]:
    pages = median(moved)
    yield Measured(row, "us", median_us(times), note)
    yield Measured(f"{row}, pages moved", "pages", pages)
    yield Measured(f"{row}, one page", "ns", median(times) / pages)
