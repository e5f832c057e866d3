"""Chains written out page by page, and the views a capacity question has of them.

A band is drawn as one letter per claimed page:

    L  live                      H  live, under an unreleased transfer
    F  fixed by a reservation    q  freed, but under an unreleased transfer (stuck)
    h  hole                      p  freed or vacated, not yet cleared

Views are computed from the letters by their definition and by nothing else, so
that a test of a rule does not lean on an allocator.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from unikv.alloc.snapshot import BandView, ChainView

USED_FULL = "LFH"
USED_CAREFUL = "LFHq"
PINNED_FULL = "F"
PINNED_CAREFUL = "FHq"


class DrawnBand(NamedTuple):
    """One band: its page bytes, its first claimed page, and a letter per claimed page."""

    page_bytes: int
    first: int
    pages: str


class DrawnChain(NamedTuple):
    """An arena and its bands from low to high; a chain of one band is a high end."""

    total_bytes: int
    sink_bytes: int
    bands: tuple[DrawnBand, ...]


def draw(total_bytes: int, sink_bytes: int, *bands: tuple[int, int, str]) -> DrawnChain:
    """A chain from `(page_bytes, first page, letters)` per band."""
    return DrawnChain(total_bytes, sink_bytes, tuple(DrawnBand(*band) for band in bands))


def full(chain: DrawnChain) -> ChainView:
    """The view in which only fixed pages stay and stuck pages are free."""
    return _view(chain, USED_FULL, PINNED_FULL)


def careful(chain: DrawnChain) -> ChainView:
    """The view in which pages under transfers stay and stuck pages count as used."""
    return _view(chain, USED_CAREFUL, PINNED_CAREFUL)


def _view(chain: DrawnChain, used: str, pinned: str) -> ChainView:
    last = len(chain.bands) - 1
    views = []
    for index, (page_bytes, first, pages) in enumerate(chain.bands):
        wall = 0
        if index == last:
            wall = chain.total_bytes // page_bytes
        elif index == 0:
            wall = -(-chain.sink_bytes // page_bytes)
        stays = [first + depth for depth, letter in enumerate(pages) if letter in pinned]
        views.append(
            BandView(
                page_bytes=page_bytes,
                wall=wall,
                low=first,
                high=first + len(pages),
                used=sum(letter in used for letter in pages),
                pin_low=stays[0] if stays else 0,
                pin_high=stays[-1] + 1 if stays else 0,
            )
        )
    return ChainView(chain.sink_bytes, chain.total_bytes, tuple(views))


def random_chains(seed: int, count: int) -> Iterator[tuple[DrawnChain, tuple[int, ...]]]:
    """Small crowded chains of one to six bands, each with a demand."""
    rng = Random(seed)
    for _ in range(count):
        chain = random_chain(rng)
        yield chain, random_demand(rng, chain)


def random_demand(rng: Random, chain: DrawnChain) -> tuple[int, ...]:
    """A demand that is often zero for a band and rarely more than the arena holds."""
    return tuple(rng.choice((0, 0, 0, 1, 1, 2, 3)) for _ in chain.bands)


def random_chain(rng: Random) -> DrawnChain:
    """A chain of one to six bands with pages of 1 to 7 bytes, in all six states."""
    while True:
        band_count = rng.choice((1, 2, 2, 3, 3, 3, 4, 4, 5, 6))
        total_bytes = rng.randint(4, 14 if band_count < 6 else 20)
        sink_bytes = rng.choice((0, 0, 1, 2))
        largest = rng.choice((1, 2, 3, 7))
        strides = [rng.randint(1, largest) for _ in range(band_count)]
        lowest = sink_bytes
        if band_count > 1:
            lowest = -(-sink_bytes // strides[0]) * strides[0]
        highest = total_bytes // strides[-1] * strides[-1]
        if lowest <= highest:
            return _fill(rng, total_bytes, sink_bytes, strides, highest)


def _fill(
    rng: Random, total_bytes: int, sink_bytes: int, strides: list[int], highest: int
) -> DrawnChain:
    # Few states per chain, so that chains without pins or without transfers are common.
    letters = rng.choice(("L", "Lh", "Lp", "LLF", "LLhpF", "LLHq", "LLLhpFHq"))
    boundary = sink_bytes
    bands = []
    last = len(strides) - 1
    for index, page_bytes in enumerate(strides):
        first = -(-boundary // page_bytes)
        room = highest // page_bytes - first
        if index == last:
            length = rng.randint(0, min(room, 4))
            first = highest // page_bytes - length
        elif index == 0:
            length = rng.randint(0, min(room, 3))
        else:
            first += rng.choice((0, 0, 1, 2))
            length = max(0, min(highest // page_bytes - first, rng.choice((0, 1, 1, 2, 3))))
        if length:
            boundary = (first + length) * page_bytes
        elif 0 < index < last:
            first = 0
        elif index == 0:
            boundary = first * page_bytes
        pages = "".join(rng.choice(letters) for _ in range(length))
        bands.append(DrawnBand(page_bytes, first, pages))
    return DrawnChain(total_bytes, sink_bytes, tuple(bands))
