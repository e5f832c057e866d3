"""The modeled device: work starts early and ends late, and what raced shows in the bytes.

A write of a page map entry stands for any work: it is there once it started, and there again, over
whatever came in between, once it ended.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.device.clock import Access
from harness.device.launches import ModeledEvent
from harness.device.memory import ReadTables, RunBody
from harness.device.modeled import ModeledDevice
from harness.device.rank_port import RankPort
from tests.alloc.small_chain import layout_of, tokens
from unikv.device.port import Stream

S, F, LOAD = Stream.SCHEDULE, Stream.FORWARD, Stream.LOAD
LAYOUT = layout_of(44, 4, tokens("full"))


def device_of(ranks: int = 1) -> ModeledDevice:
    """A device with one band of four-byte pages."""
    return ModeledDevice(LAYOUT, ranks)


def work(device: ModeledDevice, stream: Stream, value: int, entry: int = 1) -> ModeledEvent:
    """Work that sets one map entry, and the event behind it."""
    device.write_map(stream, 0, [entry], [value])
    return device.record_event(stream)


def entry(device: ModeledDevice, rank: int = 0, at: int = 1) -> int:
    """A map entry as one rank has it."""
    return device.ranks[rank].image.maps[0][at]


def kinds(device: ModeledDevice) -> list[tuple[str, int, int]]:
    """Every race: its space and the streams of the two accesses."""
    return [(race.space, race.earlier.stream, race.later.stream) for race in device.races]


# Starting early, ending late ---------------------------------------------------------------


def test_work_on_an_idle_stream_starts_at_once() -> None:
    device = device_of()
    work(device, S, 5)
    assert entry(device) == 5
    assert device.started() == [(0, S)]


def test_work_behind_running_work_does_not_start() -> None:
    device = device_of()
    work(device, S, 5)
    work(device, S, 6)
    assert entry(device) == 5


def test_work_starts_when_the_work_in_front_of_it_ends() -> None:
    device = device_of()
    work(device, S, 5)
    work(device, S, 6)
    assert device.complete(0, S, 1) == 1
    assert entry(device) == 6


def test_work_that_ends_writes_once_more() -> None:
    device = device_of()
    work(device, S, 5)
    work(device, F, 6)
    assert entry(device) == 6
    device.complete(0, S, 1)
    assert entry(device) == 5


def test_nothing_ends_by_itself() -> None:
    device = device_of()
    event = work(device, S, 5)
    work(device, F, 6, entry=2)
    assert not device.passed(0, event)


@pytest.mark.parametrize(("count", "ended"), [(1, 1), (2, 2), (9, 3)])
def test_as_much_ends_as_was_asked_for_and_is_there(count: int, ended: int) -> None:
    device = device_of()
    for value in (5, 6, 7):
        work(device, S, value)
    assert device.complete(0, S, count) == ended


def test_nothing_ends_on_an_idle_stream() -> None:
    assert device_of().complete(0, S, 1) == 0


def test_an_event_has_passed_when_all_work_before_it_ended() -> None:
    device = device_of()
    work(device, S, 5)
    event = work(device, S, 6)
    device.complete(0, S, 1)
    assert not device.passed(0, event)
    device.complete(0, S, 1)
    assert device.passed(0, event)


# Waits -------------------------------------------------------------------------------------


def test_work_behind_a_wait_starts_when_the_event_has_passed() -> None:
    device = device_of()
    device.wait_event(F, work(device, S, 5))
    work(device, F, 6)
    assert entry(device) == 5
    device.complete(0, S, 1)
    assert entry(device) == 6


def test_a_wait_for_an_event_that_has_passed_holds_nothing_back() -> None:
    device = device_of()
    event = work(device, S, 5)
    device.complete(0, S, 1)
    device.wait_event(F, event)
    work(device, F, 6)
    assert entry(device) == 6


def test_a_wait_passes_through_a_stream_without_work_of_its_own() -> None:
    device = device_of()
    device.wait_event(LOAD, work(device, S, 5))
    device.wait_event(F, device.record_event(LOAD))
    work(device, F, 6)
    assert entry(device) == 5
    device.complete(0, S, 1)
    assert entry(device) == 6
    assert device.races == []


def test_work_in_front_of_a_wait_is_not_held_back() -> None:
    device = device_of()
    event = work(device, S, 5)
    work(device, F, 7, entry=2)
    device.wait_event(F, event)
    assert entry(device, at=2) == 7


def test_the_host_forces_what_it_waits_for() -> None:
    device = device_of()
    device.wait_event(F, work(device, S, 5))
    event = work(device, F, 6)
    device.host_wait(event)
    assert device.passed(0, event)
    assert device.started() == []


def test_the_host_forces_nothing_else() -> None:
    device = device_of()
    event = work(device, S, 5)
    later = work(device, S, 6)
    other = work(device, F, 7, entry=2)
    device.host_wait(event)
    assert device.passed(0, event)
    assert not device.passed(0, later)
    assert not device.passed(0, other)


# Ranks -------------------------------------------------------------------------------------


def test_work_ends_on_one_rank_alone() -> None:
    device = device_of(ranks=2)
    event = work(device, S, 5)
    work(device, S, 6)
    device.complete(1, S, 1)
    assert [device.passed(rank, event) for rank in (0, 1)] == [False, True]
    assert [entry(device, rank) for rank in (0, 1)] == [5, 6]


def test_the_host_waits_for_every_rank() -> None:
    device = device_of(ranks=2)
    event = work(device, S, 5)
    device.host_wait(event)
    assert [device.passed(rank, event) for rank in (0, 1)] == [True, True]


def test_a_race_is_found_once_for_all_ranks() -> None:
    device = device_of(ranks=2)
    work(device, S, 5)
    work(device, F, 6)
    assert kinds(device) == [("map:full", S, F)]


# Images and reads --------------------------------------------------------------------------


def test_a_race_shows_on_the_rank_whose_schedule_brings_it_out() -> None:
    device = device_of(ranks=2)
    work(device, S, 5)
    work(device, F, 6)
    device.complete(0, F, 1)
    device.complete(0, S, 1)
    device.complete(1, S, 1)
    device.complete(1, F, 1)
    assert device.program.maps[0][1] == 6
    assert [entry(device, rank) for rank in (0, 1)] == [5, 6]


def body(device: ModeledDevice, page: int, data: bytes) -> ModeledEvent:
    """A forward that reads one page, which holds `data` in program order; the event behind it."""
    view = [(page * 4, page * 4 + 4, data)]
    reads = Access(device.arena, device.granules(0, [page]), False)
    device.submit(F, "body", 1, RunBody([], view, [], []), (reads,))
    return device.record_event(F)


def fill(device: ModeledDevice, page: int, data: bytes) -> None:
    """A forward that writes one page and has ended everywhere."""
    view = [(page * 4, page * 4 + 4, data)]
    writes = Access(device.arena, device.granules(0, [page]), True)
    device.submit(F, "body", 1, RunBody([], [], view, view), (writes,))
    device.host_wait(device.record_event(F))


def test_a_read_that_is_overtaken_finds_other_bytes() -> None:
    device = device_of(ranks=2)
    fill(device, 3, b"word")
    body(device, 3, b"word")
    device.operation = 9
    device.zero_pages(S, 0, [3])
    device.complete(1, F, 1)
    (read,) = device.bad_reads
    assert (read.rank, read.launch.kind, read.space, read.unit) == (1, "body", "arena", 3)
    (race,) = device.races
    assert (race.earlier.kind, race.later.kind, race.later.operation) == ("body", "zero", 9)
    assert (race.earlier_wrote, race.later_wrote) == (False, True)


def test_a_wrong_read_of_a_table_names_its_entry() -> None:
    device = device_of()
    read = ReadTables([], [(0, [2], [7])])
    device.submit(F, "metadata", 1, read, [Access(device.maps[0], [2], False)])
    (found,) = device.bad_reads
    assert (found.space, found.unit, found.place) == ("map:full", 2, "map:full 2")


def test_a_read_behind_its_writer_finds_its_bytes() -> None:
    device = device_of(ranks=2)
    fill(device, 3, b"word")
    event = body(device, 3, b"word")
    device.wait_event(S, event)
    device.zero_pages(S, 0, [3])
    device.drain()
    assert device.bad_reads == []
    assert device.races == []


def test_a_move_whose_source_is_overwritten_meanwhile_spoils_its_target() -> None:
    device = device_of()
    fill(device, 3, b"word")
    device.move_pages(S, 0, [3], [5])
    device.zero_pages(LOAD, 0, [3])
    device.drain()
    assert [read.launch.kind for read in device.bad_reads] == ["move"]
    assert device.program.arena[20:24] == b"word"
    assert device.ranks[0].image.arena[20:24] == bytes(4)


def test_pages_of_unequal_bands_meet_in_the_same_granules() -> None:
    device = ModeledDevice(layout_of(96, 8, tokens("low", 6), tokens("high", 8)), 1)
    assert device.granule == 2
    assert list(device.granules(0, [2])) == [6, 7, 8]
    assert list(device.granules(1, [1, 3])) == [4, 5, 6, 7, 12, 13, 14, 15]
    device.zero_pages(S, 0, [2])
    device.zero_pages(F, 1, [1])
    assert [(race.space, race.unit) for race in device.races] == [("arena", 6)]


acts = st.tuples(
    st.sampled_from(("zero", "move", "map", "row", "wait", "wait", "end", "end", "host")),
    st.sampled_from((S, F, LOAD)),
    st.integers(0, 6),
    st.integers(0, 6),
)


def play(device: ModeledDevice, act: str, stream: Stream, one: int, two: int) -> None:
    """One act of a script on a device of two ranks."""
    if act == "zero":
        device.zero_pages(stream, 0, [1 + one])
    elif act == "move" and one != two:
        device.move_pages(stream, 0, [1 + one], [1 + two])
    elif act == "map":
        device.write_map(stream, 0, [1 + one], [1 + two])
    elif act == "row":
        device.write_row(stream, one % 4, two, [1 + one])
    elif act == "wait":
        device.wait_event(stream, device.record_event((S, F, LOAD)[one % 3]))
    elif act == "end":
        device.complete(one % 2, stream, 1 + two % 2)
    elif act == "host" and two == 0:
        device.host_wait(device.record_event(stream))


@settings(max_examples=60)
@given(st.lists(acts, min_size=10, max_size=30))
def test_images_of_a_run_without_a_race_agree_at_rest(
    script: list[tuple[str, Stream, int, int]],
) -> None:
    device = device_of(ranks=2)
    for page in range(1, 8):
        fill(device, page, bytes([page] * 4))
    for act, stream, one, two in script:
        raced = len(device.races)
        play(device, act, stream, one, two)
        if len(device.races) > raced:
            return  # what follows a race proves nothing
    device.drain()
    assert device.bad_reads == []
    assert device.started() == []
    for rank in device.ranks:
        assert rank.image.arena == device.program.arena
        assert rank.image.maps == device.program.maps
        assert rank.image.rows == device.program.rows


# Staging buffers ---------------------------------------------------------------------------


def test_the_host_fills_a_staging_buffer_at_once_on_every_rank() -> None:
    device = device_of(ranks=2)
    device.stage(0, [4, 5], 1)
    assert [rank.image.staging[0] for rank in device.ranks] == [[4, 5], [4, 5]]


# Ports -------------------------------------------------------------------------------------


def submit_everything(port: RankPort, event: ModeledEvent) -> None:
    """One call of every kernel and wait."""
    port.wait_event(S, event)
    port.zero_pages(S, 0, [3])
    port.move_pages(S, 0, [3], [4])
    port.write_map(S, 0, [1], [4])
    port.write_row(S, 0, 0, [1])
    port.record_event(S)


def ports_of(device: ModeledDevice) -> list[RankPort]:
    """One port per rank."""
    return [RankPort(device, rank) for rank in range(len(device.ranks))]


def test_equal_submissions_make_equal_logs() -> None:
    device = device_of(ranks=2)
    event = work(device, F, 7, entry=2)
    ports = ports_of(device)
    for port in ports:
        submit_everything(port, event)
    assert ports[0].log == ports[1].log
    assert [name for name, *_ in ports[0].log] == ["wait", "zero", "move", "map", "row", "record"]


@pytest.mark.parametrize(
    "second",
    [
        lambda port: port.zero_pages(S, 0, [4]),
        lambda port: port.zero_pages(F, 0, [3]),
        lambda port: port.zero_pages(S, 0, [3, 4]),
        lambda port: None,
    ],
)
def test_another_submission_makes_another_log(second: object) -> None:
    first, other = ports_of(device_of(ranks=2))
    first.zero_pages(S, 0, [3])
    assert callable(second)
    second(other)
    assert first.log != other.log


def test_only_the_first_rank_drives_the_program() -> None:
    device = device_of(ranks=2)
    first, other = ports_of(device)
    other.write_map(S, 0, [1], [4])
    assert device.program.maps[0][1] == 0
    first.write_map(S, 0, [1], [4])
    assert device.program.maps[0][1] == 4
    assert [entry(device, rank) for rank in (0, 1)] == [4, 4]


def test_a_new_operation_starts_an_empty_log() -> None:
    (port,) = ports_of(device_of())
    port.zero_pages(S, 0, [3])
    port.wait_event(S, port.record_event(S))
    port.query(port.record_event(S))
    port.begin_operation()
    assert port.log == []
    assert port.host_reads == []


def noted_reads(port: RankPort, calls: Sequence[str], event: ModeledEvent) -> list[str]:
    """What is noted of some calls one after the other."""
    for call in calls:
        if call == "wait":
            port.wait_event(S, event)
        elif call == "query":
            port.query(event)
        elif call == "host_wait":
            port.host_wait(event)
        else:
            port.begin_call("take")
    return port.host_reads


@pytest.mark.parametrize(
    ("calls", "noted"),
    [
        (("query", "host_wait", "wait"), []),
        (("wait", "query"), ["query"]),
        (("wait", "host_wait", "query"), ["host_wait", "query"]),
        (("wait", "next call", "query"), []),
    ],
)
def test_a_host_read_behind_a_wait_of_the_same_call_is_noted(
    calls: tuple[str, ...], noted: list[str]
) -> None:
    device = device_of()
    assert noted_reads(ports_of(device)[0], calls, work(device, F, 7)) == noted


def test_a_query_tells_the_truth_of_its_own_rank() -> None:
    device = device_of(ranks=2)
    event = work(device, F, 7)
    device.complete(1, F, 1)
    assert [port.query(event) for port in ports_of(device)] == [False, True]
