"""Faults of layouts that no operation can show, planted in chains that are driven call by call."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from benchmarks.search.lending_engine import LendingEngine
from benchmarks.search.lending_player import Player, random_layout
from harness.faults.parts import become
from unikv.alloc.pricing import Spans, Step, move_order, plan
from unikv.alloc.relief import Relief
from unikv.alloc.snapshot import BandView, ChainView
from unikv.alloc.use import Use

CHAINS = 400
"""Random chains among which a fault has to show."""


class TakesAPinForAWall(Relief):
    """A float with one page that must stay keeps all of them where they are."""

    __slots__ = ()

    def _snapshot(self, pinned: Sequence[frozenset[Use]]) -> ChainView:
        view = super()._snapshot(pinned)
        low, *floats, high = (
            view.bands if len(view.bands) > 2 else (*view.bands[:1], view.bands[-1])
        )
        walls = [
            band._replace(pin_low=band.low, pin_high=band.high)
            if band.pin_low < band.pin_high
            else band
            for band in floats
        ]
        return view._replace(bands=(low, *walls, high)) if walls else view


class PlansWithoutStuckPages(Relief):
    """Pages freed under a transfer count as free where transfers are left alone."""

    __slots__ = ()

    def _snapshot(self, pinned: Sequence[frozenset[Use]]) -> ChainView:
        view = super()._snapshot(pinned)
        used = [band.live + band.fixed for band in self._bands]
        bands = [part._replace(used=count) for part, count in zip(view.bands, used, strict=True)]
        return view._replace(bands=tuple(bands))


def play_chains(broken: type[Relief]) -> None:
    """Chains with a broken relief; the engine asserts that every answer is true."""
    for number in range(CHAINS):
        rng = Random(number)
        engine = LendingEngine(random_layout(rng))
        become(engine.chain.relief, broken)
        Player(rng, engine).play(rng.randint(8, 24))


def waits_on_overlap_only(view: ChainView, spans: Spans) -> tuple[int, ...]:
    """Floats in an order in which none lands on another that has yet to leave; some may pass it."""
    left = [
        index
        for index, band in enumerate(view.bands)
        if 0 < index < len(view.bands) - 1 and (band.low, band.high) != spans[index]
    ]
    order = []
    while left:
        free = next(index for index in left if not _lands_on_one(view, spans, index, left))
        left.remove(free)
        order.append(free)
    return tuple(order)


def _lands_on_one(view: ChainView, spans: Spans, index: int, left: Sequence[int]) -> bool:
    size = view.bands[index].page_bytes
    low, high = spans[index][0] * size, spans[index][1] * size
    return any(
        band.low * band.page_bytes < high and low < band.high * band.page_bytes
        for other, band in enumerate(view.bands)
        if other in left and other != index
    )


def crosses(
    view: ChainView, spans: Spans, order: Callable[[ChainView, Spans], tuple[int, ...]]
) -> bool:
    """Whether two floats are out of chain order between two copies."""
    now = [(band.low, band.high) for band in view.bands]
    for index in order(view, spans):
        now[index] = spans[index]
        edges = [edge for span in now[1:-1] for edge in span]
        if edges != sorted(edges):
            return True
    return False


@pytest.mark.parametrize("broken", [TakesAPinForAWall, PlansWithoutStuckPages])
def test_broken_relief_is_seen_by_an_exhaustive_search(broken: type[Relief]) -> None:
    with pytest.raises(AssertionError):
        play_chains(broken)


def test_order_of_moves_that_waits_on_overlap_only_lets_a_float_jump_over_another() -> None:
    # Two floats of one page at 1 and 2.  The low end wants 1 and 2, so they go to 3 and 4.
    low, high = BandView(1, 1, 1, 1, 0, 0, 0), BandView(1, 6, 6, 6, 0, 0, 0)
    first, second = BandView(1, 0, 1, 2, 1, 0, 0), BandView(1, 0, 2, 3, 1, 0, 0)
    view = ChainView(1, 6, (low, first, second, high))
    spans = plan(view, (2, 0, 0, 0), Step.RELAYOUT)
    assert spans == ((1, 3), (3, 4), (4, 5), (6, 6))
    assert waits_on_overlap_only(view, spans) == (1, 2)
    assert crosses(view, spans, waits_on_overlap_only)
    assert not crosses(view, spans, move_order)
