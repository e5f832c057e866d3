"""From freed to free: what pends, what returns, and which step the schedule stream waits for.

The chains are two ends of four-byte pages: `window` grows up from page 1, `full` down from page 12.
"""

import pytest

from tests.alloc.small_chain import (
    DiaryDevice,
    chain_of,
    drawn,
    layout_of,
    run_step,
    tokens,
    window,
)
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.page_usage import Use

LAYOUT = layout_of(52, 4, window("window"), tokens("full"))


def filled() -> tuple[ChainAllocator, DiaryDevice, Band]:
    """Six live pages in each band; the window's are pages 1..6."""
    chain, device = chain_of(LAYOUT)
    chain.take(6, 0)
    device.calls.clear()
    assert drawn(chain.bands[0]) == "_LLLLLL......"
    return chain, device, chain.bands[0]


def waits(device: DiaryDevice) -> list[object]:
    """The events that the schedule stream was told to wait for."""
    return [event for (event,) in device.named("wait")]


def test_a_free_without_a_step_in_flight_is_a_hole_at_once() -> None:
    chain, _, band = filled()
    chain.reclaim.free(band, [2])
    assert drawn(band) == "_LhLLLL......"


def test_a_hole_at_the_frontier_leaves_the_span_at_once() -> None:
    chain, _, band = filled()
    chain.reclaim.free(band, [5, 6])
    assert drawn(band) == "_LLLL........"
    assert chain.counters.retreats == 2


def test_a_free_under_a_recorded_step_pends_on_it() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.free(band, [2, 6])
    assert drawn(band) == "_LpLLLp......"
    assert band.pending_pages.batches() == ((1, (2, 6)),)


def test_a_free_waits_for_nothing() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.free(band, [2])
    assert device.calls == []


def test_a_free_pends_on_the_newest_step() -> None:
    chain, device, band = filled()
    for number in (1, 2, 3):
        run_step(chain, device, number)
    chain.reclaim.free(band, [2])
    assert band.pending_pages.newest() == 3


def test_a_processed_step_lets_the_frontier_retreat() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.free(band, [5, 6])
    chain.process_step(1)
    assert drawn(band) == "_LLLL........"


def three_batches() -> tuple[ChainAllocator, DiaryDevice, Band, list[object]]:
    """Pages 1 and 2 wait for step 1, page 3 for step 2, page 4 for step 3; and their events."""
    chain, device, band = filled()
    events: list[object] = []
    for number, pages in ((1, [1, 2]), (2, [3]), (3, [4])):
        events.append(run_step(chain, device, number))
        chain.reclaim.free(band, pages)
    assert drawn(band) == "_ppppLL......"
    return chain, device, band, events


def test_a_processed_step_returns_its_batch_and_no_newer_one() -> None:
    chain, _, band, _ = three_batches()
    chain.process_step(1)
    assert drawn(band) == "_hhppLL......"
    assert band.pending_pages.batches() == ((2, (3,)), (3, (4,)))


@pytest.mark.parametrize(
    ("count", "step", "after"),
    [
        (1, 1, "_hhppLL......"),
        (2, 1, "_hhppLL......"),
        (3, 2, "_hhhpLL......"),
        (4, 3, "_hhhhLL......"),
        (9, 3, "_hhhhLL......"),
    ],
)
def test_settling_waits_for_the_oldest_whole_batches_that_cover_it(
    count: int, step: int, after: str
) -> None:
    chain, device, band, events = three_batches()
    chain.reclaim.settle(band, count)
    assert waits(device) == [events[step - 1]]
    assert drawn(band) == after
    assert chain.counters.settles == 1


def test_settling_without_pending_pages_waits_for_nothing() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.settle(band, 3)
    assert device.calls == []
    assert chain.counters.settles == 0


def test_settling_leaves_the_batches_of_other_bands() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.free(band, [2])
    chain.reclaim.free(chain.owner, [9])
    chain.reclaim.settle(band, 1)
    assert drawn(band) == "_LhLLLL......"
    assert drawn(chain.owner) == "_......LLpLLL"


def test_settled_is_not_processed() -> None:
    chain, _, band, _ = three_batches()
    chain.reclaim.settle(band, 9)
    chain.reclaim.free(band, [5])
    assert drawn(band) == "_hhhhpL......"
    assert band.pending_pages.batches() == ((3, (5,)),)


def test_a_settled_step_is_not_waited_again() -> None:
    chain, device, band, _ = three_batches()
    chain.reclaim.settle(band, 9)
    chain.reclaim.free(band, [5])
    device.calls.clear()
    chain.reclaim.settle(band, 1)
    assert device.calls == []
    assert drawn(band) == "_hhhhhL......"


def test_settling_everything_waits_once_for_the_newest_batch() -> None:
    chain, device, band, events = three_batches()
    chain.reclaim.free(chain.owner, [12])
    run_step(chain, device, 4)
    chain.reclaim.settle_all()
    assert waits(device) == [events[2]]
    assert drawn(band) == "_hhhhLL......"
    assert drawn(chain.owner) == "_......LLLLLh"


def test_settling_everything_lets_every_frontier_retreat() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.free(band, [6])
    chain.reclaim.free(chain.owner, [7])
    chain.reclaim.settle_all()
    assert band.span() == (1, 6)
    assert chain.owner.span() == (8, 13)


def test_settling_everything_without_pending_pages_waits_for_nothing() -> None:
    chain, device, _ = filled()
    run_step(chain, device, 1)
    chain.reclaim.settle_all()
    assert device.calls == []


def test_a_vacated_page_pends_on_the_newest_unretired_step() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    run_step(chain, device, 2)
    chain.reclaim.vacate(band, [6])
    assert drawn(band) == "_LLLLLp......"
    assert [(use.use, use.step) for use in chain.ledger.uses()] == [(Use.VACATED, 2)]


def test_a_vacated_page_is_in_no_batch() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.vacate(band, [6])
    assert band.pending_pages.batches() == ()


def test_a_vacated_page_that_no_step_can_read_is_free_at_once() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.steps.wait(1)
    chain.reclaim.vacate(band, [5, 6])
    assert drawn(band) == "_LLLL........"
    assert chain.ledger.uses() == ()


def test_a_processed_step_returns_what_it_vacated() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    run_step(chain, device, 2)
    chain.reclaim.vacate(band, [5, 6])
    chain.process_step(1)
    assert drawn(band) == "_LLLLpp......"
    chain.process_step(2)
    assert drawn(band) == "_LLLL........"


def test_settling_counts_the_vacated_pages_of_a_step_with_its_batch() -> None:
    chain, device, band = filled()
    first = run_step(chain, device, 1)
    chain.reclaim.free(band, [1])
    chain.reclaim.vacate(band, [2])
    run_step(chain, device, 2)
    chain.reclaim.free(band, [3])
    chain.reclaim.settle(band, 2)
    assert waits(device) == [first]
    assert drawn(band) == "_hhpLLL......"


def test_a_vacated_page_of_an_older_step_returns_before_a_newer_batch() -> None:
    chain, device, band = filled()
    first = run_step(chain, device, 1)
    chain.reclaim.vacate(band, [2])
    run_step(chain, device, 2)
    chain.reclaim.free(band, [3])
    chain.reclaim.settle(band, 1)
    assert waits(device) == [first]
    assert drawn(band) == "_LhpLLL......"


def test_settling_everything_returns_vacated_pages_too() -> None:
    chain, device, band = filled()
    step = run_step(chain, device, 1)
    chain.reclaim.vacate(band, [2])
    chain.reclaim.settle_all()
    assert waits(device) == [step]
    assert drawn(band) == "_LhLLLL......"


def test_a_vacated_page_of_another_band_leaves_its_span_when_it_is_settled() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1)
    chain.reclaim.free(band, [2])
    chain.reclaim.vacate(chain.owner, [7])
    chain.reclaim.settle(band, 1)
    assert drawn(chain.owner) == "_.......LLLLL"
    assert chain.owner.span() == (8, 13)


def test_settling_ends_the_writes_of_the_steps_it_waited() -> None:
    chain, device, band = filled()
    run_step(chain, device, 1, [3], [])
    chain.reclaim.free(band, [1])
    run_step(chain, device, 2, [4], [])
    chain.reclaim.settle(band, 1)
    assert [use.step for use in chain.ledger.uses()] == [2]


@pytest.mark.parametrize("toucher", [Toucher.HAND_OUT, Toucher.GROWTH])
def test_pages_pend_because_the_table_says_so(toucher: Toucher) -> None:
    chain, device = chain_of(
        LAYOUT, {**CLEARANCE, (toucher, InFlight.FORWARD): Clearance.SAME_STREAM}
    )
    chain.take(6, 0)
    run_step(chain, device, 1)
    chain.reclaim.free(chain.bands[0], [2])
    chain.reclaim.vacate(chain.bands[0], [3])
    assert drawn(chain.bands[0]) == "_LhhLLL......"
