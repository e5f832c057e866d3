"""A recorder: the same answers as its storage, and every call on a line."""

import errno
import io
import json
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.alloc.small_chain import layout_of, states, tokens, window
from tests.trace.stories import STORED, STORIES, tell
from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.audit import Lengths
from unikv.alloc.chain import ChainAllocator
from unikv.cache.host_tier import HostCopy, HostTier
from unikv.device.port import BandLayout, HostLayout, StorageLayout, Stream
from unikv.errors import ArgumentError, OwnershipError, Shortage, StepOrderError, TraceError
from unikv.ids.translation import Translation
from unikv.requests import RequestTable
from unikv.trace.calls import CALLS, Part, plain
from unikv.trace.lines import MAX_ARGUMENT_BYTES, MAX_ROW_ENTRIES, Trace, encode_header
from unikv.trace.record import KEPT_EVENTS, Recorder, record
from unikv.trace.replay import replay
from unikv.trace.still_device import build_still

LAYOUT = layout_of(104, 8, states("state", 8), window("window"), tokens("full"))
TIERED = LAYOUT._replace(host=(HostLayout(64, (2,)),))
STATE, WINDOW, FULL = range(3)
READING = {"statistics", "free_count", "row_pages", "free_rows", "held_rows", "rows"}
READING |= {"state_of", "resets"}


def recorder() -> tuple[Recorder, io.BytesIO]:
    """A recorder on an empty storage, and what it writes to."""
    out = io.BytesIO()
    return Recorder(build_still(LAYOUT), out), out


class FullDisk(io.BytesIO):
    """Takes the header and no line behind it."""

    def write(self, line: Any) -> int:
        """All of the header, and nothing more."""
        if self.tell():
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(line)


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def take_on_a_full_disk(path: Path, size: int, *pages: int) -> None:
    """Takes, each with an answer, into a trace that may not grow beyond `size` bytes."""
    with files_of_at_most(size), record(build_still(LAYOUT), path) as storage:
        for count in pages:
            assert len(storage.chain.take(count, 0).ids) == count


def long_recorder() -> tuple[Recorder, io.BytesIO]:
    """A recorder on an empty storage with more ids than a line can hold."""
    out = io.BytesIO()
    band = BandLayout("full", 4, 1, 250_000, mints=True, zeroed=True)
    return Recorder(build_still(StorageLayout(4, 1_000_004, (band,), 1, 1, 1)), out), out


def lines(out: io.BytesIO) -> list[dict[str, Any]]:
    """The lines behind the header."""
    return [json.loads(line) for line in out.getvalue().splitlines()[1:]]


@pytest.mark.parametrize("name", STORIES)
def test_a_story_told_again_is_the_stored_trace(name: str, tmp_path: Path) -> None:
    tell(name, tmp_path / name)
    again = (tmp_path / name).read_text(encoding="utf-8")
    stored = (STORED / name).read_text(encoding="utf-8")
    assert again == stored, f"if the change is meant, delete {name} and call tell() to write it"


def test_the_header_has_the_memory_spaces() -> None:
    _, out = recorder()
    header = json.loads(out.getvalue())
    assert (header["format"], header["version"], header["why"]) == ("unikv-trace", 1, "")
    assert header["layout"]["bands"][STATE] == LAYOUT.bands[STATE]._asdict()
    assert header["layout"]["total_bytes"] == 104


def test_a_call_and_its_answer_are_one_line() -> None:
    storage, out = recorder()
    taken = storage.chain.take(2, 1)
    assert (taken.ids, taken.slots) == ([1, 2], [1])
    assert storage.chain.fits(pages=1, slots=0)
    assert lines(out) == [
        {"call": "chain.take", "args": [2, 1], "answer": [[1, 2], [1]]},
        {"call": "chain.fits", "args": [1, 0], "answer": True},
    ]


def test_an_error_is_written_by_its_type_and_passed_on() -> None:
    storage, out = recorder()
    with pytest.raises(Shortage):
        storage.chain.take(50, 0)
    with pytest.raises(OwnershipError):
        storage.chain.free([3])
    with pytest.raises(ArgumentError, match="counts are 0 or more"):
        storage.chain.take(-1, 0)
    with pytest.raises(ArgumentError, match="band 5"):
        storage.chain.translate(5, [1])
    assert [line["error"] for line in lines(out)] == [
        "Shortage:bytes",
        "OwnershipError",
        "ArgumentError",
        "ArgumentError",
    ]


def test_events_are_numbers_in_the_order_they_are_met() -> None:
    storage, out = recorder()
    events = [object(), object()]
    ids = storage.chain.take(1, 0).ids
    storage.chain.launch_step(1)
    storage.chain.record_step(1, events[0], [[], ids, ids])
    storage.chain.users.begin_backup([[], ids, ids], events[1])
    storage.chain.launch_step(2)
    with pytest.raises(StepOrderError, match="the event of an earlier step"):
        storage.chain.record_step(number=2, event=events[0], writes=[[], [], []])
    assert [line["args"] for line in lines(out) if "record" in line["call"]] == [
        [1, 1, [[], [1], [1]]],
        [2, 1, [[], [], []]],
    ]
    assert lines(out)[3]["args"] == [[[], [1], [1]], 2]


def test_old_events_are_forgotten() -> None:
    storage, _ = recorder()
    for _ in range(KEPT_EVENTS + 5):
        storage.users.begin_backup([[], [], []], object())
    assert len(storage._events) == KEPT_EVENTS


def test_calls_of_rows_holds_and_transfers_are_recorded() -> None:
    storage, out = recorder()
    row = storage.requests.take()
    ids = storage.chain.take(2, 0).ids
    storage.requests.append(row, tuple(ids))
    storage.users.hold_receive("hold", [[], ids, []])
    assert storage.users.publish("hold", "receive") == {WINDOW: [12, 13]}
    storage.users.release("receive")
    storage.requests.give_back(row)
    assert [line["call"] for line in lines(out)] == [
        "requests.take",
        "chain.take",
        "requests.append",
        "users.hold_receive",
        "users.publish",
        "users.release",
        "requests.give_back",
    ]
    assert lines(out)[4]["answer"] == [[WINDOW, [12, 13]]]


def test_translated_ids_are_written_band_by_band() -> None:
    storage, out = recorder()
    storage.chain.take(2, 1)
    written = storage.ids.writes([4, 9], [1])
    storage.chain.ids.reads([[2, 1], [2]], [[1], []])
    assert storage.ids.move_epochs() == (0, 0, 0)
    translated = [storage.chain.translate(band, [1, 2]) for band in (WINDOW, FULL)]
    slots = [[4 * first, 4 * second + 1] for first, second in translated]
    tables = [[[second, first], [second]] for first, second in translated]
    state = storage.chain.translate(STATE, [1])
    assert written.slots(FULL).tolist() == slots[1]
    assert [line["answer"] for line in lines(out)[1:4]] == [
        [state, *slots],
        [[state, []], *tables],
        [0, 0, 0],
    ]


def test_what_is_no_call_is_passed_through() -> None:
    storage, out = recorder()
    assert storage.chain.bands[FULL] is storage.storage.chain.bands[FULL]
    assert storage.requests.free_count == 4
    assert storage.statistics() == storage.storage.statistics()
    assert storage.audit() == []
    assert storage.layout is LAYOUT
    assert lines(out) == []


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (Part.CHAIN, ChainAllocator),
        (Part.USERS, AsyncUsers),
        (Part.REQUESTS, RequestTable),
        (Part.IDS, Translation),
        (Part.HOST, HostTier),
    ],
)
def test_every_public_call_of_a_storage_can_be_recorded(part: Part, kind: type[object]) -> None:
    public = {name for name in vars(kind) if not name.startswith("_")} - READING
    assert {call.method for call in CALLS.values() if call.part is part} == public


def test_a_call_that_no_trace_can_hold_is_not_made() -> None:
    storage, out = recorder()
    with pytest.raises(TraceError, match=r"chain.take cannot be recorded: 1.5 is a float"):
        storage.chain.take(1.5, 0)
    with pytest.raises(TraceError, match=r"chain.take args: Expected `int`, got `array`"):
        storage.chain.take([1], 0)
    assert storage.statistics().totals["taken_pages"] == 0
    assert lines(out) == []


def test_ids_that_no_line_can_hold_stay_live() -> None:
    storage, out = long_recorder()
    ids = storage.storage.chain.take(200_000, 0).ids
    with pytest.raises(TraceError, match=rf"chain\.free: .* a trace takes {MAX_ARGUMENT_BYTES}"):
        storage.chain.free(ids)
    assert storage.storage.chain.owner.live == 200_000
    storage.chain.free(ids[:1])
    assert [line["args"] for line in lines(out)] == [[[1]]]


def test_ids_that_no_line_can_hold_are_answered() -> None:
    storage, out = long_recorder()
    assert storage.chain.take(1, 0).ids == [1]
    assert len(storage.chain.take(200_000, 0).ids) == 200_000
    assert len(lines(out)) == 1


def test_no_call_is_made_behind_one_that_the_trace_lacks() -> None:
    storage, out = long_recorder()
    storage.chain.take(200_000, 0)
    for _ in range(2):
        with pytest.raises(
            TraceError, match=r"chain\.take: its line has \d+ bytes; .* with 0 in it"
        ):
            storage.chain.free([1])
    assert storage.storage.chain.owner.live == 200_000
    assert lines(out) == []
    with pytest.raises(TraceError, match=r"chain\.take: its line has"):
        storage.check_complete()


def test_an_answer_is_not_lost_with_its_line() -> None:
    storage = Recorder(build_still(LAYOUT), FullDisk())
    assert storage.chain.take(1, 0).ids == [1]
    with pytest.raises(TraceError, match=r"chain\.take: .*No space left on device"):
        storage.chain.take(1, 0)
    assert storage.storage.chain.owner.live == 1


def test_an_error_is_not_lost_with_its_line() -> None:
    storage = Recorder(build_still(LAYOUT), FullDisk())
    with pytest.raises(OwnershipError):
        storage.chain.free([3])
    with pytest.raises(TraceError, match=r"chain\.free: .*No space left on device"):
        storage.check_complete()


def test_an_error_that_no_trace_can_hold_ends_the_recording(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    storage, out = recorder()

    def fail(*_: object) -> None:
        raise RuntimeError("launch failed")

    monkeypatch.setattr(type(storage.storage.chain.device), "zero_pages", fail)
    with pytest.raises(RuntimeError):
        storage.chain.take(1, 0)
    with pytest.raises(TraceError, match=r"chain\.take raised RuntimeError"):
        storage.chain.fits(1, 0)
    assert lines(out) == []


def test_a_trace_on_a_full_disk_is_readable_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    header = len(encode_header(LAYOUT, ""))
    # Room for one whole line, and for a part of the next one.
    with pytest.raises(TraceError, match=r"chain\.take: .*File too large.* with 1 in it"):
        take_on_a_full_disk(path, header + 80, 1, 1)
    assert [call.outcome.answer for call in Trace(path).calls()] == [[[1], []]]


def test_an_error_of_the_block_tells_of_a_call_that_the_trace_lacks(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    with pytest.raises(Shortage) as raised:
        take_on_a_full_disk(path, len(encode_header(LAYOUT, "")) + 20, 50)
    (note,) = raised.value.__notes__
    assert "chain.take: its line was not written: File too large" in note


def test_no_call_is_made_when_the_recording_has_ended(tmp_path: Path) -> None:
    with record(build_still(LAYOUT), tmp_path / "trace.jsonl") as storage:
        storage.chain.take(1, 0)
    with pytest.raises(TraceError, match=r"chain\.take: the recording has ended"):
        storage.chain.take(1, 0)
    assert storage.storage.chain.owner.live == 1


def test_a_header_that_is_not_written_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    with (
        pytest.raises(TraceError, match=r"full\.jsonl: cannot be written: File too large"),
        files_of_at_most(20),
        record(build_still(LAYOUT), path),
    ):
        pass
    assert not path.exists()


def test_a_refused_layout_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    storage = build_still(LAYOUT._replace(row_pages=MAX_ROW_ENTRIES))
    for _ in range(2):
        with pytest.raises(TraceError, match="in all rows"), record(storage, path):
            pass
    assert not path.exists()


def test_requests_can_be_audited() -> None:
    storage, _ = recorder()
    row = storage.requests.take()
    lengths = {row: Lengths(committed=2, allocated=1)}
    found = storage.audit(lengths)
    assert [finding.invariant.name for finding in found] == ["requests.length_bounds"]
    assert found == storage.storage.audit(lengths)


def copied(storage: Any) -> HostCopy:
    """A backup of one page, which is over."""
    copy: HostCopy = storage.host.begin_backup("b", [[], [], storage.chain.take(1, 0).ids])
    storage.host.submit_backup("b")
    storage.host.acknowledge("b")
    return copy


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda s: s.chain.free(np.array([1])), r"chain\.free .* is a ndarray"),
        (lambda s: s.chain.free([np.int64(1)]), r"chain\.free .* is a int64"),
        (lambda s: s.chain.free([Stream.FORWARD]), r"chain\.free .* is a Stream"),
        (lambda s: s.chain.free(unit for unit in [1]), r"chain\.free .* is a generator"),
        (lambda s: s.chain.take(np.int64(1), 0), r"chain\.take .* is a int64"),
        (lambda s: s.chain.take(Stream.FORWARD, 0), r"chain\.take .* is a Stream"),
        (lambda s: s.users.release(np.str_("b")), r"users\.release .* is a str_"),
        (lambda s: s.users.release("\ud800"), r"users\.release .* surrogates"),
        (lambda s: s.users.begin_backup([[], [], []]), r"users\.begin_backup args: .* length 2"),
        (lambda s: s.host.drop(tuple(copied(s))), r"host\.drop .* a HostCopy, as begin_backup"),
        (lambda s: s.host.begin_load("l", [[], [], []]), r"host\.begin_load .* a HostCopy, as"),
        (lambda s: s.host.order_forward(9, [], 0), r"host\.order_forward args: .*enum value 9"),
    ],
)
def test_what_would_be_read_back_as_something_else_is_refused(
    tmp_path: Path, wrong: Callable[[Any], object], words: str
) -> None:
    path = tmp_path / "wrong.jsonl"
    with record(build_still(TIERED), path) as storage:
        storage.chain.take(1, 0)
        with pytest.raises(TraceError, match=words):
            wrong(storage)
        assert storage.host is not None
        storage.host.order_forward(Stream.FORWARD, [], 0)
        assert storage.chain.take(1, 0).ids
    assert list(replay(path)) == []


def test_a_layout_that_could_not_be_read_back_is_refused() -> None:
    with pytest.raises(TraceError, match="pages and ids in all bands"):
        encode_header(LAYOUT._replace(total_bytes=1 << 40), "")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("mine", encoding="utf-8")
    with (
        pytest.raises(TraceError, match=r"mine\.jsonl: cannot be written: File exists"),
        record(build_still(LAYOUT), path),
    ):
        pass
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_call_is_in_the_file_when_it_has_come_back(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    with record(build_still(LAYOUT), path) as storage:
        storage.chain.take(1, 0)
        assert path.read_bytes().count(b"\n") == 2
    assert path.read_bytes().endswith(b'"answer":[[1],[]]}\n')


def test_plain_values_are_what_json_has() -> None:
    assert plain({2: (3, [4]), 1: ()}) == [[1, []], [2, [3, [4]]]]
    assert plain(Stream.FORWARD) == 1
    assert plain(range(2)) == [0, 1]
    with pytest.raises(TypeError, match="a trace holds numbers, words and lists"):
        plain(0.5)
