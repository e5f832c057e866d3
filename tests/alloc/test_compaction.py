"""Closing holes: plans drawn page by page in both directions, then carried out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.alloc.small_chain import (
    DiaryDevice,
    chain_of,
    drawn,
    layout_of,
    run_step,
    tokens,
    window,
)
from tests.alloc.test_band import KINDS, band_of
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.compaction import MovePlan, plan_compaction, plan_relocation
from unikv.device.port import Stream

NO_LIMIT = 99


@pytest.mark.parametrize(
    ("kind", "drawing", "plan"),
    [
        ("up", "LhLhL.....", MovePlan((4,), (1,))),
        ("down", ".....LhLhL", MovePlan((5,), (8,))),
        ("up", "hhLLL.....", MovePlan((4, 3), (0, 1))),
        ("down", ".....LLLhh", MovePlan((5, 6), (9, 8))),
        # A pending page is neither a place to move to nor a page to move.
        ("up", "LhpLp.....", MovePlan((3,), (1,))),
        ("up", "LpLLp.....", MovePlan((), ())),
        ("up", "LLL.......", MovePlan((), ())),
        ("up", "..........", MovePlan((), ())),
    ],
)
def test_the_deepest_live_page_goes_to_the_lowest_hole(
    kind: str, drawing: str, plan: MovePlan
) -> None:
    assert plan_compaction(band_of(kind, drawing), NO_LIMIT) == plan


@pytest.mark.parametrize("limit", range(4))
def test_a_plan_keeps_to_its_limit(limit: int) -> None:
    plan = plan_compaction(band_of("up", "hhhhLLLL.."), limit)
    assert plan == MovePlan((7, 6, 5)[:limit], (0, 1, 2)[:limit])


@pytest.mark.parametrize(
    ("kind", "drawing", "span", "plan"),
    [
        ("up", "LhLL......", (0, 3), MovePlan((3,), (1,))),
        ("down", "......LLhL", (7, 10), MovePlan((6,), (8,))),
        ("float", "..LL......", (3, 5), MovePlan((2,), (4,))),
        ("float", "..LL......", (6, 9), MovePlan((2, 3), (6, 7))),
        ("float", "..LhL.....", (1, 4), MovePlan((4,), (1,))),
        ("float", "..LL......", (1, 6), MovePlan((), ())),
    ],
)
def test_a_relocation_copies_only_what_lies_outside(
    kind: str, drawing: str, span: tuple[int, int], plan: MovePlan
) -> None:
    assert plan_relocation(band_of(kind, drawing), span) == plan


@pytest.mark.parametrize("state", ["p", "f"])
def test_a_page_that_is_not_free_is_no_place_to_relocate_to(state: str) -> None:
    band = band_of("float", "..LpLL....")
    band.states[3] = {"p": 3, "f": 4}[state]
    assert plan_relocation(band, (3, 7)) == MovePlan((2,), (6,))


def test_a_plan_that_copies_onto_a_source_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        MovePlan((1, 2), (2, 3))


def test_a_plan_with_a_source_too_many_is_a_mistake() -> None:
    with pytest.raises(AssertionError):
        MovePlan((1, 2), (3,))


drawings = st.text("Lhp", min_size=1, max_size=10)
end_kinds = st.sampled_from(("up", "down"))


def end_of(kind: str, by_depth: str) -> Band:
    """An end whose pages, from its wall inward, are in these states."""
    drawing = by_depth.ljust(10, ".")
    return band_of(kind, drawing if kind == "up" else drawing[::-1])


@given(end_kinds, drawings)
def test_a_compaction_leaves_no_hole_in_front_of_a_live_page(kind: str, by_depth: str) -> None:
    band = end_of(kind, by_depth)
    plan = plan_compaction(band, NO_LIMIT)
    after = list(by_depth)
    for source, target in zip(plan.sources, plan.targets, strict=True):
        assert after[band.axis.depth_of(source)] == "L"
        assert after[band.axis.depth_of(target)] == "h"
        after[band.axis.depth_of(source)], after[band.axis.depth_of(target)] = "v", "L"
    assert "h" not in "".join(after).rpartition("L")[0]


@given(end_kinds, drawings)
def test_a_compaction_makes_the_fewest_moves(kind: str, by_depth: str) -> None:
    plan = plan_compaction(end_of(kind, by_depth), NO_LIMIT)
    # Live pages end up in the first places that are not pending; the others have to move.
    places = [depth for depth, letter in enumerate(by_depth) if letter != "p"]
    kept = places[: by_depth.count("L")]
    assert len(plan.sources) == sum(by_depth[depth] == "h" for depth in kept)


@given(st.sampled_from(tuple(KINDS)), st.text("Lh", min_size=1, max_size=8), st.integers(0, 9))
def test_a_relocation_makes_the_fewest_moves(kind: str, by_depth: str, at: int) -> None:
    start = min(at, 10 - len(by_depth))
    drawing = f"{'.' * start}{by_depth}".ljust(10, ".")
    band = band_of("float", drawing) if kind == "float" else end_of(kind, by_depth)
    live = [page for page, letter in enumerate(drawn(band)) if letter == "L"]
    low = {"up": 0, "down": 10 - band.live}.get(kind, (at * 3) % (11 - band.live))
    plan = plan_relocation(band, (low, low + band.live))
    inside = range(low, low + band.live)
    assert set(plan.sources) == set(live) - set(inside)
    assert set(plan.targets) == set(inside) - set(live)


# Carried out -------------------------------------------------------------------------------

LAYOUT = layout_of(52, 4, window("window"), tokens("full"))


def holed(
    clearance: dict[tuple[Toucher, InFlight], Clearance] | None = None,
) -> tuple[ChainAllocator, DiaryDevice]:
    """Four live pages and a hole in the window band: `LhLLL` from page 1, page n + 9 for id n."""
    chain, device = chain_of(LAYOUT, {**CLEARANCE, **(clearance or {})})
    taken = chain.take(5, 0)
    assert taken.ids == [1, 2, 3, 4, 5]
    for unit in taken.ids:
        device.arena[device.bytes_of(0, unit)] = bytes([unit] * 4)
    chain.retire(0, [2])
    device.calls.clear()
    assert drawn(chain.bands[0]) == "_LhLLL......."
    return chain, device


def test_a_move_is_one_copy_and_one_map_write() -> None:
    chain, device = holed()
    assert chain.flush(8) == 1
    assert device.calls == [("move", 0, (5,), (2,)), ("map", 0, (5,), (2,))]


def test_a_moved_page_keeps_its_id_and_its_bytes() -> None:
    chain, device = holed()
    chain.flush(8)
    assert chain.translate(0, [5]) == [2]
    assert device.arena[device.bytes_of(0, 2)] == bytes([5] * 4)


def test_a_source_that_no_step_reads_leaves_the_span() -> None:
    chain, _ = holed()
    chain.flush(8)
    assert drawn(chain.bands[0]) == "_LLLL........"


def test_a_source_that_a_step_may_read_pends() -> None:
    chain, device = holed()
    run_step(chain, device, 1)
    chain.flush(8)
    assert drawn(chain.bands[0]) == "_LLLLp......."


def test_a_move_does_not_wait_for_readers() -> None:
    chain, device = holed()
    run_step(chain, device, 1, [1, 3, 4], [5])
    chain.flush(8)
    assert device.names() == ["move", "map"]


def test_a_move_waits_for_the_newest_writer_of_a_source() -> None:
    chain, device = holed()
    run_step(chain, device, 1, [5], [])
    writer = run_step(chain, device, 2, [5], [])
    run_step(chain, device, 3, [4], [])
    chain.flush(8)
    assert device.calls[0] == ("wait", writer)
    assert device.names() == ["wait", "move", "map"]


def test_a_retired_writer_is_not_waited() -> None:
    chain, device = holed()
    run_step(chain, device, 1, [5], [])
    chain.process_step(1)
    chain.flush(8)
    assert device.names() == ["move", "map"]


def test_a_waited_writer_has_no_write_left_in_the_ledger() -> None:
    chain, device = holed()
    run_step(chain, device, 1, [5], [])
    chain.flush(8)
    assert chain.ledger.uses() == ()


def test_writers_are_waited_because_the_table_says_so() -> None:
    chain, device = holed({(Toucher.MOVE_SOURCE, InFlight.FORWARD): Clearance.SAME_STREAM})
    run_step(chain, device, 1, [5], [])
    chain.flush(8)
    assert device.names() == ["move", "map"]


def unknown_step(chain: ChainAllocator, device: DiaryDevice, number: int) -> None:
    """A recorded step that may write anything."""
    chain.launch_step(number)
    chain.record_step_of_unknown_writes(number, device.record_event(Stream.FORWARD))


def test_nothing_moves_while_a_step_may_write_anything() -> None:
    chain, device = holed()
    unknown_step(chain, device, 1)
    run_step(chain, device, 2)
    assert chain.flush(8) == 0
    assert device.calls == []


def test_pages_move_again_once_the_unknown_writer_retired() -> None:
    chain, device = holed()
    unknown_step(chain, device, 1)
    chain.process_step(1)
    assert chain.flush(8) == 1
    assert device.names() == ["move", "map"]


def test_unknown_writers_keep_pages_still_because_the_table_says_so() -> None:
    chain, device = holed({(Toucher.MOVE_SOURCE, InFlight.UNKNOWN_FORWARD): Clearance.SAME_STREAM})
    unknown_step(chain, device, 1)
    assert chain.flush(8) == 1


def test_a_flush_settles_nothing() -> None:
    chain, device = holed()
    run_step(chain, device, 1)
    chain.retire(0, [1])
    device.calls.clear()
    chain.flush(8)
    assert drawn(chain.bands[0]) == "_pLLLp......."
    assert chain.counters.settles == 0


def test_a_flush_has_one_limit_for_both_ends() -> None:
    chain, device = chain_of(LAYOUT)
    chain.take(6, 0)
    chain.free([1, 2, 3])
    assert drawn(chain.bands[1]) == "_......LLLhhh"
    assert chain.flush(4) == 4
    assert drawn(chain.bands[0]) == "_LLL........."
    assert drawn(chain.bands[1]) == "_.......LLhhL"
    assert device.named("move") == [(0, (6, 5, 4), (1, 2, 3)), (1, (7,), (12,))]


def test_a_flush_without_holes_moves_nothing() -> None:
    chain, device = chain_of(LAYOUT)
    chain.take(3, 0)
    device.calls.clear()
    assert chain.flush(8) == 0
    assert device.calls == []
