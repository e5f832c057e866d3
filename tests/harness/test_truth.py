"""Truth: what it makes of answers, map writes, waits and steps, with literal pages."""

from harness.device.launches import ModeledEvent
from harness.device.modeled import ModeledDevice
from harness.truth import Truth
from tests.alloc.small_chain import layout_of, states, tokens, window
from unikv.device.port import Stream

S, F = Stream.SCHEDULE, Stream.FORWARD
STATE, WINDOW, FULL = range(3)
LAYOUT = layout_of(100, 8, states("state", 8, 5), window("window", 4, 5), tokens("full", 4, 5))


def fresh() -> tuple[Truth, ModeledDevice]:
    """A truth that has seen nothing, and its device."""
    device = ModeledDevice(LAYOUT, 1)
    return Truth(LAYOUT, device), device


def bind(truth: Truth, device: ModeledDevice, band: int, unit: int, page: int) -> None:
    """The allocator submits one map entry."""
    truth.map_written(band, [unit], [page])
    device.write_map(S, band, [unit], [page])


def step(truth: Truth, device: ModeledDevice, number: int, *, known: bool = True) -> ModeledEvent:
    """A step is recorded that writes no page; its event."""
    device.write_row(F, 0, 0, [number])
    event = device.record_event(F)
    truth.recorded(number, event, [[], [], []], known=known)
    return event


def notes(truth: Truth) -> list[tuple[str, str]]:
    """What was noted: the promise and the kind of break."""
    return [(problem.check, problem.detail) for problem in truth.problems]


# Ids ---------------------------------------------------------------------------------------


def test_ids_are_held_from_answer_to_free() -> None:
    truth, _ = fresh()
    truth.handed_out(FULL, [1, 3])
    assert list(truth.held[FULL]) == [0, 1, 0, 1, 0, 0]
    truth.given_back(FULL, [1])
    assert list(truth.held[FULL]) == [0, 0, 0, 1, 0, 0]
    assert truth.held_count[FULL] == 1


def test_an_id_handed_out_twice_is_noted() -> None:
    truth, _ = fresh()
    truth.handed_out(FULL, [1])
    truth.handed_out(FULL, [2, 1])
    assert notes(truth) == [("ownership", "id handed out twice")]
    assert truth.held_count[FULL] == 2


def test_owner_ids_promise_zeros_in_every_token_band() -> None:
    truth, _ = fresh()
    truth.handed_out(FULL, [2])
    assert truth.content[FULL][2] == bytearray(4)
    assert truth.content[WINDOW][2] == bytearray(4)
    assert truth.content[STATE][2] is None


def test_a_state_slot_promises_nothing() -> None:
    truth, _ = fresh()
    truth.content[STATE][2] = bytearray(b"old words")
    truth.handed_out(STATE, [2])
    assert truth.content[STATE][2] is None


def test_an_id_that_comes_back_promises_zeros_again() -> None:
    truth, _ = fresh()
    truth.handed_out(FULL, [2])
    truth.content[FULL][2] = bytearray(b"word")
    truth.given_back(FULL, [2])
    truth.handed_out(FULL, [2])
    assert truth.content[FULL][2] == bytearray(4)


# Pages -------------------------------------------------------------------------------------


def test_a_map_write_binds_a_page() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    assert truth.owner[FULL][24] == 2
    assert truth.live[FULL][24] == 1
    assert truth.bound == [0, 0, 1]


def test_a_map_write_of_zero_frees_the_page() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    bind(truth, device, FULL, 2, 0)
    assert truth.owner[FULL][24] == 0
    assert truth.live[FULL][24] == 0
    assert truth.bound == [0, 0, 0]


def test_a_map_write_over_another_page_is_a_move() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    bind(truth, device, FULL, 2, 23)
    assert [truth.owner[FULL][page] for page in (23, 24)] == [2, 0]
    assert truth.bound == [0, 0, 1]


def test_bytes_with_two_owners_are_noted_across_bands() -> None:
    truth, device = fresh()
    bind(truth, device, STATE, 1, 2)  # bytes 16..24
    bind(truth, device, WINDOW, 1, 3)  # bytes 12..16
    bind(truth, device, FULL, 1, 6)  # bytes 24..28
    assert notes(truth) == []
    truth.map_written(WINDOW, [2], [5])  # bytes 20..24
    assert notes(truth) == [("ownership", "page with two owners")]
    assert "band 'window' page 5" in truth.problems[0].what
    assert "id 1 of band 'state'" in truth.problems[0].what


def test_pages_in_the_sink_or_past_the_end_are_noted() -> None:
    truth, _ = fresh()
    truth.map_written(WINDOW, [1], [1])
    truth.map_written(STATE, [1], [12])
    assert notes(truth) == [("ownership", "page outside the arena")] * 2
    assert "its pages are 2..24" in truth.problems[0].what
    assert "its pages are 1..11" in truth.problems[1].what


def test_bytes_are_described_by_their_owner() -> None:
    truth, device = fresh()
    bind(truth, device, STATE, 3, 2)
    assert device.granule == 4
    assert truth.describe("arena", 5) == ("live", "page 2 of band 'state' (id 3)")
    assert truth.describe("arena", 6) == ("free", "free arena byte 24")


def test_bytes_that_wait_for_a_step_are_described_as_pending() -> None:
    truth, device = fresh()
    bind(truth, device, STATE, 3, 2)
    step(truth, device, 1)
    bind(truth, device, STATE, 3, 0)
    assert truth.describe("arena", 5) == ("pending", "freed page 2 of band 'state'")


def test_tables_are_described_by_entry() -> None:
    truth, _ = fresh()
    assert truth.describe("map:full", 3) == ("map", "page map entry 3 of band 'full'")
    assert truth.describe("rows", 1) == ("rows", "request row 1")
    assert truth.describe("staging", 0) == ("staging", "staging buffer 0")


# Steps -------------------------------------------------------------------------------------


def test_a_free_without_a_step_waits_for_nothing() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    bind(truth, device, FULL, 2, 0)
    assert truth.pending == [{}, {}, {}]


def test_a_free_waits_for_the_newest_recorded_step() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    step(truth, device, 1)
    step(truth, device, 2)
    bind(truth, device, FULL, 2, 0)
    assert truth.pending[FULL] == {24: 2}


def test_a_processed_step_releases_what_waited_for_it() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    bind(truth, device, FULL, 3, 23)
    step(truth, device, 1)
    bind(truth, device, FULL, 2, 0)
    step(truth, device, 2)
    bind(truth, device, FULL, 3, 0)
    truth.processed(1)
    assert truth.pending[FULL] == {23: 2}
    assert truth.newest_recorded == 2


def test_a_settled_step_is_retired_and_a_free_still_waits_for_it() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    truth.waited(step(truth, device, 1))
    assert truth.retired_through == 1
    bind(truth, device, FULL, 2, 0)
    assert truth.pending[FULL] == {24: 1}


def test_a_move_waits_only_for_steps_that_are_not_retired() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    truth.waited(step(truth, device, 1))
    bind(truth, device, FULL, 2, 23)
    assert truth.pending[FULL] == {}
    step(truth, device, 2)
    bind(truth, device, FULL, 2, 22)
    assert truth.pending[FULL] == {23: 2}


def test_a_wait_for_something_else_retires_nothing() -> None:
    truth, device = fresh()
    step(truth, device, 1)
    truth.waited(device.record_event(S))
    assert truth.retired_through == 0


def test_a_wait_for_an_older_step_takes_nothing_back() -> None:
    truth, device = fresh()
    older, newer = step(truth, device, 1), step(truth, device, 2)
    truth.waited(newer)
    truth.waited(older)
    assert truth.retired_through == 2


def test_a_page_that_is_bound_again_pends_no_longer() -> None:
    truth, device = fresh()
    bind(truth, device, FULL, 2, 24)
    step(truth, device, 1)
    bind(truth, device, FULL, 2, 0)
    bind(truth, device, FULL, 3, 24)
    assert truth.pending[FULL] == {}


def test_a_move_is_noted_while_a_step_may_write_anything() -> None:
    truth, device = fresh()
    event = step(truth, device, 1, known=False)
    assert truth.newest_unknown == 1
    truth.moved(FULL, [])
    assert notes(truth) == [("ledger", "move under unknown writes")]
    truth.problems.clear()
    truth.waited(event)
    truth.moved(FULL, [])
    assert notes(truth) == []


def test_a_move_is_not_noted_under_steps_of_known_writes() -> None:
    truth, device = fresh()
    step(truth, device, 1)
    truth.moved(FULL, [])
    assert notes(truth) == []


def test_whatever_the_state_checks_compare_with_changes_the_revision() -> None:
    truth, device = fresh()
    seen = [truth.revision]
    bind(truth, device, FULL, 2, 24)
    seen.append(truth.revision)
    event = step(truth, device, 1)
    seen.append(truth.revision)
    truth.waited(event)
    seen.append(truth.revision)
    truth.processed(1)
    seen.append(truth.revision)
    assert len(set(seen)) == len(seen)
