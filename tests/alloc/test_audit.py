"""Audits of states that are spoiled by hand, one fact at a time, each in both directions."""

from collections.abc import Callable

import pytest

from tests.alloc.small_chain import DiaryDevice, drawn, layout_of, run_step, states, tokens, window
from unikv.alloc import audit, band_audit
from unikv.alloc.audit import Held, Lengths, idle_violations, row_violations, violations
from unikv.alloc.band import Band
from unikv.alloc.invariants import Finding
from unikv.alloc.use import Use
from unikv.ids.unit_ids import Operation
from unikv.storage import KVStorage

LAYOUT = layout_of(52, 4, states("state"), window("window"), tokens("full"))
STATE, WINDOW, FULL = range(3)


def stored() -> tuple[KVStorage, DiaryDevice]:
    """Three pages, three slots and a row that names the pages."""
    device = DiaryDevice(LAYOUT)
    storage = KVStorage(LAYOUT, device)
    ids = storage.chain.take(3, 3).ids
    storage.requests.append(storage.requests.take(), ids)
    assert [drawn(band) for band in storage.chain.bands] == [
        "_LLL.........",
        "_....LLL.....",
        "_.........LLL",
    ]
    return storage, device


def spoiled(spoil: Callable[[Band], None], band: int) -> list[Finding]:
    """What an audit finds after one band was spoiled."""
    storage, _ = stored()
    spoil(storage.chain.bands[band])
    return storage.audit()


def names(findings: list[Finding]) -> set[str]:
    """The rules that are broken."""
    return {found.invariant.name for found in findings}


def only(findings: list[Finding]) -> Finding:
    """The one finding."""
    assert len(findings) == 1, [str(found) for found in findings]
    return findings[0]


def test_a_sound_storage_has_no_findings() -> None:
    storage, device = stored()
    run_step(storage.chain, device, 1, [1], [2], [3])
    storage.chain.free_slots([1])
    storage.chain.flush(1)
    storage.chain.users.begin_send("send", [[], [1], [1]])
    storage.chain.retire(WINDOW, [1])
    storage.chain.reserve(WINDOW, 1)
    assert storage.audit() == []


def test_an_audit_changes_nothing() -> None:
    storage, device = stored()
    before, calls = storage.statistics(), len(device.calls)
    storage.audit()
    idle_violations(storage)
    assert storage.statistics() == before
    assert len(device.calls) == calls


def test_an_id_whose_page_names_nobody() -> None:
    def spoil(band: Band) -> None:
        band.ids.inverse[6] = 0

    assert names(spoiled(spoil, WINDOW)) == {"ids.map_bijective", "band.free_of_bound_page"}
    first = spoiled(spoil, WINDOW)[0]
    assert (first.place, first.pages, first.ids) == ("band 'window'", (6,), (2,))


def test_a_page_whose_id_names_nobody() -> None:
    def spoil(band: Band) -> None:
        band.ids.forward[2] = 0

    found = spoiled(spoil, WINDOW)
    assert names(found) == {"ids.map_bijective"}
    assert (only(found).pages, only(found).ids) == ((6,), (2,))


def test_two_ids_of_one_page() -> None:
    def spoil(band: Band) -> None:
        band.ids.forward[3] = band.ids.forward[2]

    found = spoiled(spoil, WINDOW)
    assert names(found) == {"ids.map_bijective"}
    assert [(one.pages, one.ids) for one in found] == [((6,), (3,)), ((7,), (3,))]


def test_a_window_row_whose_owner_id_is_free() -> None:
    storage, _ = stored()
    owner = storage.chain.owner
    pages = owner.ids.unbind([2], Operation(1, "free"))
    owner.release_live(pages)
    storage.chain.minted[FULL].give_back([2])
    assert "bound here and free in their owner, 'full'" in str(only(storage.audit()))


def test_an_id_that_is_free_and_bound() -> None:
    storage, _ = stored()
    storage.chain.minted[STATE].give_back([2])
    found = storage.audit()
    assert [one.what for one in found] == ["ids are free and bound"]
    assert (found[0].pages, found[0].ids) == ((2,), (2,))


def test_an_id_that_is_free_twice() -> None:
    storage, _ = stored()
    storage.chain.minted[STATE].give_back([50])
    assert only(storage.audit()).what == "ids are in the free list more than once"


def test_an_id_that_is_neither_free_nor_bound() -> None:
    storage, _ = stored()
    assert storage.chain.minted[STATE].mint(1) == [4]
    found = only(storage.audit())
    assert (found.what, found.ids) == ("ids are neither free nor bound", (4,))


def test_an_id_that_does_not_exist() -> None:
    storage, _ = stored()
    storage.chain.minted[FULL].give_back([100])
    assert only(storage.audit()).what == "ids are free that do not exist"


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (lambda band: band.release_live([6]), "a hole"),
        (lambda band: band.fix_live([6]), "fixed"),
    ],
)
def test_a_bound_page_that_is_not_live(change: Callable[[Band], None], state: str) -> None:
    found = only(spoiled(change, WINDOW))
    assert found.invariant.name == "band.free_of_bound_page"
    assert found.what == f"bound pages are {state}; a bound page is live"
    assert (found.pages, found.ids) == ((6,), (2,))


def test_a_live_page_without_an_id() -> None:
    def spoil(band: Band) -> None:
        band.ids.unbind([2], Operation(1, "free"))

    found = only(spoiled(spoil, WINDOW))
    assert found.invariant.name == "band.free_of_bound_page"
    assert found.pages == (6,)
    assert found.ids == ()


def test_a_page_that_is_bound_far_outside_the_arena() -> None:
    storage, _ = stored()
    ids = storage.chain.bands[FULL].ids
    ids.inverse += [0, 4]
    storage.chain.minted[FULL].mint(1)
    ids.forward[4] = len(ids.inverse) - 1
    assert "bound pages are outside the arena" in str(band_audit.free_of_bound_page(storage.chain))


def test_a_pending_page_in_new_hands() -> None:
    storage, device = stored()
    run_step(storage.chain, device, 1)
    storage.chain.retire(WINDOW, [2])
    band = storage.chain.bands[WINDOW]
    band.release_pending([6])
    band.occupy_holes([6])
    band.ids.bind([2], [6])
    found = only(violations(storage.chain))
    assert found.invariant.name == "band.handout_of_used_page"
    assert found.what == "pages are in use again, though the batch of step 1 keeps them"


def test_a_page_freed_under_a_transfer_in_new_hands() -> None:
    storage, _ = stored()
    storage.chain.users.begin_send("send", [[], [2], []])
    storage.chain.retire(WINDOW, [2])
    band = storage.chain.bands[WINDOW]
    band.release_pending([6])
    band.occupy_holes([6])
    band.ids.bind([2], [6])
    found = only(violations(storage.chain))
    assert found.what == "pages are in use again, though a transfer keeps them"


def test_counts_that_are_not_the_states() -> None:
    def spoil(band: Band) -> None:
        band.live -= 1
        band.holes += 1
        band.revision += 1

    found = only(spoiled(spoil, WINDOW))
    assert found.invariant.name == "band.count_conservation"
    assert found.what == "counts (2, 1, 0, 0), but the pages are (3, 0, 0, 0)"


def test_a_claimed_page_outside_the_span() -> None:
    def spoil(band: Band) -> None:
        band.high -= 1
        band.revision += 1

    found = spoiled(spoil, STATE)
    assert names(found) == {"band.count_conservation"}
    assert only(found).pages == (3,)


def test_an_unclaimed_page_inside_the_span() -> None:
    def spoil(band: Band) -> None:
        band.high += 1
        band.revision += 1

    assert only(spoiled(spoil, STATE)).pages == (4,)


def test_a_span_that_no_arena_has() -> None:
    def spoil(band: Band) -> None:
        band.high = 50
        band.revision += 1

    found = spoiled(spoil, STATE)
    assert found[0].what == "the span is depths 0..50 of 12"


def test_a_pending_page_that_nothing_keeps() -> None:
    storage, _ = stored()
    band = storage.chain.bands[WINDOW]
    band.pend_live(band.ids.unbind([2], Operation(1, "retire")))
    found = only(violations(storage.chain))
    assert (found.what, found.pages) == ("pages are pending, but nothing keeps them", (6,))


def test_a_page_that_is_kept_and_not_pending() -> None:
    storage, device = stored()
    run_step(storage.chain, device, 1)
    storage.chain.retire(WINDOW, [2])
    storage.chain.bands[WINDOW].release_pending([6])
    found = only(violations(storage.chain))
    assert (found.what, found.pages) == ("pages are kept as pending, but they are not", (6,))


def test_a_page_that_two_things_keep() -> None:
    storage, device = stored()
    run_step(storage.chain, device, 1)
    storage.chain.retire(WINDOW, [2])
    storage.chain.ledger.add(Use.VACATED, WINDOW, [6], 1)
    assert only(violations(storage.chain)).what == "pages are kept by two things at once"


def test_spans_that_cross() -> None:
    storage, _ = stored()
    storage.chain.bands[STATE].claim(1, 8)
    found = only(audit.bands_disjoint(storage.chain))
    assert (found.place, found.pages) == ("band 'window'", (5,))
    assert found.what == "starts at byte 20, but band 'state' ends at 32"


def test_a_span_in_the_sink() -> None:
    storage, _ = stored()
    chain = storage.chain
    chain.layout = chain.layout._replace(sink_bytes=12)
    assert only(audit.bands_disjoint(chain)).what == "starts at byte 4, but the sink ends at 12"


def test_a_span_past_the_arena() -> None:
    storage, _ = stored()
    chain = storage.chain
    chain.layout = chain.layout._replace(total_bytes=50)
    found = only(audit.bands_disjoint(chain))
    assert found.what == "band 'full' ends at byte 52; the arena ends at 50"


def test_an_end_that_left_its_wall() -> None:
    storage, _ = stored()
    storage.chain.bands[STATE].low = 1
    assert only(audit.bands_disjoint(storage.chain)).what == (
        "an end starts at depth 1; allowed: 0, its wall"
    )


def test_bytes_that_no_count_and_no_gap_explains() -> None:
    storage, _ = stored()
    storage.chain.bands[WINDOW].holes += 1
    found = only(audit.byte_conservation(storage.chain))
    assert found.what == "sink 4 + pages 40 + gaps 12 bytes are 56; the arena has 52"


@pytest.mark.parametrize("ranges", [((0, 4),), ((48, 56),), ((8, 8),)])
def test_a_copy_of_bytes_that_no_band_has(ranges: tuple[tuple[int, int], ...]) -> None:
    storage, _ = stored()
    storage.chain.ledger.fences.add(Use.COPY_WRITE, ranges, object())
    found = only(audit.byte_conservation(storage.chain))
    assert found.what == f"copy_write 1 touches bytes {list(ranges)}; allowed: [4, 52)"


def test_a_snapshot_that_is_out_of_date() -> None:
    storage, _ = stored()
    band = storage.chain.bands[STATE]
    storage.chain.fits(1, 1)
    band.claim(1, 5)
    band.revision -= 1
    found = only(violations(storage.chain))
    assert found.invariant.name == "chain.capacity_epoch"
    assert "high=4" in found.what
    assert "high=5" in found.what


@pytest.mark.parametrize(
    ("spoil", "what"),
    [
        (
            lambda steps: setattr(steps, "processed_through", 2),
            "processed, recorded and launched are [2, 1, 2]; they must ascend",
        ),
        (
            lambda steps: setattr(steps, "settled_through", 9),
            "settled through 9, but the newest recorded is 2",
        ),
    ],
)
def test_steps_that_are_out_of_turn(spoil: Callable[[object], None], what: str) -> None:
    storage, device = stored()
    for number in (1, 2):
        run_step(storage.chain, device, number)
    spoil(storage.chain.steps)
    assert what in [found.what for found in audit.steps_order(storage.chain)]


def test_a_write_of_a_step_that_is_over() -> None:
    storage, device = stored()
    for number in (1, 2):
        run_step(storage.chain, device, number, [1], [], [])
    storage.chain.steps.wait(1)
    assert only(audit.steps_order(storage.chain)).what == (
        "forward_write waits for step 1; allowed: 2..2"
    )


def test_a_batch_of_a_step_that_nobody_recorded() -> None:
    storage, device = stored()
    run_step(storage.chain, device, 1)
    storage.chain.bands[WINDOW].pending_pages.add(3, [6])
    assert only(audit.steps_order(storage.chain)).what == (
        "a batch waits for step 3; in flight are (1,)"
    )


def test_a_use_that_outlived_every_step() -> None:
    storage, _ = stored()
    storage.chain.ledger.add(Use.FORWARD_WRITE, WINDOW, [6], 1)
    found = only(violations(storage.chain))
    assert found.invariant.name == "steps.idle_has_no_pending_batch"
    assert found.what == "no step is in flight, but forward_write waits for step 1"


def test_a_row_that_is_free_and_held() -> None:
    storage, _ = stored()
    storage.requests._free.append(0)
    assert only(row_violations(storage.requests, 4)).ids == (0,)


def test_a_row_that_is_neither_free_nor_held() -> None:
    storage, _ = stored()
    storage.requests._free.remove(2)
    assert only(row_violations(storage.requests, 4)).ids == (2,)


def test_a_row_that_does_not_exist() -> None:
    storage, _ = stored()
    storage.requests._free.append(9)
    assert only(row_violations(storage.requests, 4)).what.endswith("unknown are [9]")


def test_a_row_that_is_marked_and_not_held() -> None:
    storage, _ = stored()
    storage.requests.resets.mark(3)
    found = only(row_violations(storage.requests, 4))
    assert (found.invariant.name, found.ids) == ("requests.row_state", (3,))
    assert found.what.startswith("rows are marked for a reset that nobody holds")


@pytest.mark.parametrize("lengths", [Lengths(0, 0), Lengths(9, 12), Lengths(12, 12)])
def test_lengths_that_a_row_can_have(lengths: Lengths) -> None:
    storage, _ = stored()
    assert storage.audit({0: lengths}) == []


@pytest.mark.parametrize(
    ("row", "lengths"),
    [(0, Lengths(5, 4)), (0, Lengths(5, 13)), (0, Lengths(-1, 4)), (1, Lengths(0, 1))],
)
def test_lengths_that_no_row_can_have(row: int, lengths: Lengths) -> None:
    storage, _ = stored()
    found = only(storage.audit({row: lengths}))
    assert found.invariant.name == "requests.length_bounds"
    assert found.place == f"request row {row}"


def test_a_row_that_names_too_much() -> None:
    storage, _ = stored()
    storage.requests.rows[0] = [1] * 9
    assert only(storage.audit()).what == "names 9 pages; a row names at most 8"


def emptied() -> tuple[KVStorage, DiaryDevice]:
    """A storage whose engine gave everything back."""
    storage, device = stored()
    run_step(storage.chain, device, 1, [1], [1], [1])
    storage.chain.free([1, 2, 3])
    storage.chain.free_slots([1, 2, 3])
    storage.requests.give_back(0)
    storage.chain.process_step(1)
    return storage, device


def test_nothing_is_left_at_rest_of_what_was_given_back() -> None:
    storage, _ = emptied()
    assert idle_violations(storage) == []


def test_what_the_engine_says_it_holds_is_no_leak() -> None:
    storage, _ = stored()
    assert idle_violations(storage, Held((3, 3, 3), rows=1)) == []


def test_what_the_engine_does_not_know_of_is_a_leak() -> None:
    storage, _ = stored()
    found = idle_violations(storage, Held((3, 2, 3)))
    assert [(one.place, one.what) for one in found] == [
        ("band 'window'", "3 live pages at rest; the engine holds 2"),
        ("the request table", "1 rows are held at rest; the engine holds 0"),
    ]


def test_what_the_engine_believes_to_hold_is_there() -> None:
    storage, _ = emptied()
    found = idle_violations(storage, Held((0, 1, 0)))
    assert only(found).what == "0 live pages at rest; the engine holds 1"


def test_a_step_in_flight_is_not_rest() -> None:
    storage, device = emptied()
    run_step(storage.chain, device, 2)
    storage.chain.launch_step(3)
    assert [one.what for one in idle_violations(storage)] == [
        "at rest, but step 3 is not over",
        "at rest, but step 2 is not over",
    ]


def test_a_reservation_is_not_rest() -> None:
    storage, _ = emptied()
    storage.chain.reserve(WINDOW, 1)
    assert only(idle_violations(storage)).what == "at rest, but pages are reserved for a load"


def test_a_copy_is_not_rest() -> None:
    storage, _ = emptied()
    storage.chain.users.begin_backup([[], [], []], object())
    assert only(idle_violations(storage)).what == "at rest, but copy_read 1 still fences ()"


def test_a_transfer_is_not_rest() -> None:
    storage, _ = stored()
    storage.chain.users.begin_send("send", [[], [2], []])
    found = only(idle_violations(storage, Held((3, 3, 3), rows=1)))
    assert found.what == "at rest, but network_send 'send' still holds pages"
    assert found.pages == (6,)
