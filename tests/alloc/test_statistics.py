"""Figures for people: true to the bands, complete to the last byte, and frozen."""

import json
from dataclasses import FrozenInstanceError, asdict, fields
from random import Random
from types import MappingProxyType

import pytest

from tests.alloc.small_chain import chain_of, drawn, layout_of, run_step, states, tokens, window
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.statistics import BandStatistics, Counters, Statistics
from unikv.errors import Shortage
from unikv.storage import KVStorage
from unikv.trace.still_device import StillDevice

LAYOUT = layout_of(61, 6, states("state", 6), window("window", 4), tokens("full", 5))
WINDOW = 1


def lived_in() -> ChainAllocator:
    """One page live and pending, holes, a reservation, and gaps with remainders."""
    chain, device = chain_of(LAYOUT)
    chain.take(3, 1)
    chain.retire(WINDOW, [2])
    chain.reserve(WINDOW, 1)
    run_step(chain, device, 1)
    chain.free([3])
    chain.retire(WINDOW, [1])
    assert [drawn(band) for band in chain.bands] == [
        "_L........",
        "__...pfp.......",
        "__.......pLL",
    ]
    return chain


def test_every_band_has_its_figures() -> None:
    assert lived_in().statistics().bands == (
        BandStatistics("state", 6, 1, 0, 0, 0, (1, 2), 0, 98),
        BandStatistics("window", 4, 0, 0, 2, 1, (5, 8), 8, 97),
        BandStatistics("full", 5, 2, 0, 1, 0, (9, 12), 13, 97),
    )


def test_what_lies_above_the_highest_span_is_a_gap_too() -> None:
    statistics = lived_in().statistics()
    assert statistics.top_gap_bytes == 1
    assert statistics.gap_bytes == 22
    assert statistics.steps_in_flight == 1


def test_an_empty_chain_is_one_gap() -> None:
    chain, _ = chain_of(LAYOUT)
    statistics = chain.statistics()
    assert statistics.gap_bytes == statistics.top_gap_bytes == 55
    assert all(band.span == (0, 0) for band in statistics.bands)


def test_totals_are_the_counters_by_name() -> None:
    chain = lived_in()
    totals = chain.statistics().totals
    assert totals == asdict(chain.counters)
    assert set(totals) == {field.name for field in fields(Counters)}
    assert totals["taken_pages"] == 8


def test_what_was_gathered_does_not_change_with_the_chain() -> None:
    chain = lived_in()
    statistics = chain.statistics()
    before = str(statistics)
    chain.process_step(1)
    assert str(statistics) == before
    assert chain.statistics() != statistics


def test_nobody_can_change_what_was_gathered() -> None:
    statistics = lived_in().statistics()
    for frozen in (statistics, statistics.bands[0]):
        for field in fields(frozen):
            with pytest.raises(FrozenInstanceError):
                setattr(frozen, field.name, 0)
    assert isinstance(statistics.totals, MappingProxyType)


def test_a_storage_tells_what_its_chain_tells() -> None:
    storage = KVStorage(LAYOUT, StillDevice())
    storage.chain.take(2, 1)
    assert storage.statistics() == storage.chain.statistics()


def test_totals_go_into_a_log_as_they_are() -> None:
    assert json.loads(json.dumps(dict(lived_in().statistics().totals)))["freed_pages"] == 4


@pytest.mark.parametrize("seed", range(5))
def test_sink_pages_and_gaps_are_the_arena(seed: int) -> None:
    rng = Random(seed)
    chain, device = chain_of(LAYOUT)
    held: list[int] = []
    slots: list[int] = []
    for step in range(1, 30):
        try:
            taken = chain.take(rng.randint(0, 2), rng.randint(0, 1))
            held += taken.ids
            slots += taken.slots
        except Shortage:
            chain.free_slots(slots)
            slots = []
        run_step(chain, device, step)
        rng.shuffle(held)
        chain.free(held[:1])
        del held[:1]
        if rng.random() < 0.5:
            chain.flush(2)
        assert_adds_up(chain.statistics())
        chain.process_step(step)
        assert_adds_up(chain.statistics())


def assert_adds_up(statistics: Statistics) -> None:
    """The laws of both classes."""
    spans = 0
    for band in statistics.bands:
        pages = band.span[1] - band.span[0]
        assert pages == band.live + band.holes + band.pending + band.fixed
        assert band.gap_bytes >= 0
        spans += pages * band.page_bytes
    assert LAYOUT.sink_bytes + spans + statistics.gap_bytes == LAYOUT.total_bytes
