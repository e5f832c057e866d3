"""Replays: what was answered is answered again, and files from strangers are refused in words."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.loading import load_scenario
from harness.runner import run_seed
from harness.unikv_subject import UnikvSubject
from tests.alloc.small_chain import layout_of, states, tokens, window
from tests.trace.high_holes import build_high
from tests.trace.stories import STORED, STORIES
from unikv.alloc.invariants import InvariantLevel, Invariants
from unikv.device.port import CopyDevice, StorageLayout
from unikv.errors import TraceError
from unikv.storage import KVStorage
from unikv.trace.lines import MAX_LINE_BYTES, MAX_UNITS, Trace
from unikv.trace.record import Recorder, record
from unikv.trace.replay import replay
from unikv.trace.still_device import StillDevice, build_still

SCENARIOS = STORED.parent
SLOTS = STORED / "state_slots_exhausted.jsonl"


def build_checked(layout: StorageLayout) -> KVStorage:
    """This package's storage with every rule checked."""
    return KVStorage(layout, StillDevice(), invariants=Invariants(InvariantLevel.STRICT))


def edited(tmp_path: Path, line: int, change: Callable[[Any], object]) -> Path:
    """A copy of a stored trace in which one line, counted from 1, was changed."""
    lines = SLOTS.read_text(encoding="utf-8").splitlines()
    content = json.loads(lines[line - 1])
    change(content)
    lines[line - 1] = json.dumps(content)
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def refused(path: Path) -> str:
    """The words in which a replay of a file is refused, without the folder."""
    with pytest.raises(TraceError) as raised:
        list(replay(path))
    return str(raised.value).replace(f"{path}", path.name)


@pytest.mark.parametrize("name", STORIES)
def test_a_stored_trace_replays_without_a_difference(name: str) -> None:
    assert list(replay(STORED / name)) == []


@pytest.mark.parametrize("name", STORIES)
def test_a_stored_trace_breaks_no_rule(name: str) -> None:
    assert list(replay(STORED / name, build_checked)) == []


@pytest.mark.parametrize("name", STORIES)
def test_a_stored_trace_says_why_it_is_there(name: str) -> None:
    trace = Trace(STORED / name)
    assert trace.why == STORIES[name].why
    assert trace.layout == STORIES[name].layout


def test_every_stored_trace_has_its_story() -> None:
    assert {path.name for path in STORED.iterdir()} == set(STORIES)


@pytest.mark.parametrize("name", ["smoke", "hybrid"])
def test_what_an_engine_asked_replays_without_a_difference(name: str, tmp_path: Path) -> None:
    written: list[io.BytesIO] = []

    class Recorded(UnikvSubject):
        """A subject whose storage writes its calls down."""

        def __init__(self, layout: StorageLayout, device: CopyDevice) -> None:
            super().__init__(layout, device)
            written.append(io.BytesIO())
            recorder: Any = Recorder(self.storage, written[-1])
            self.storage = recorder

    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    plain = run_seed(scenario, name, 2, 60)
    recorded = run_seed(scenario, name, 2, 60, subject=Recorded)
    assert recorded.digest == plain.digest
    first, second = (stream.getvalue() for stream in written)
    assert first == second
    path = tmp_path / "run.jsonl"
    path.write_bytes(first)
    assert list(replay(path, build_checked)) == []


def test_another_build_differs_where_it_puts_pages() -> None:
    first = next(replay(SLOTS, build_high))
    assert first.call.kind.name == "chain.translate"
    assert str(first) == (
        "call 10, chain.translate(1, [1, 2, 3, 4, 5, 6]): the trace answers"
        " [13, 14, 11, 12, 15, 16], this build answers [14, 13, 12, 11, 15, 16]"
    )


def test_an_edited_answer_is_a_difference(tmp_path: Path) -> None:
    path = edited(tmp_path, 3, lambda line: line.update(answer=[[1, 2], [2]]))
    (found,) = replay(path)
    assert (found.number, found.recorded.answer) == (2, [[1, 2], [2]])
    assert found.replayed.answer == [[1, 2], [1]]


def test_an_error_in_place_of_an_answer_is_a_difference(tmp_path: Path) -> None:
    def refuse(line: dict[str, object]) -> None:
        del line["answer"]
        line["error"] = "Shortage:rows"

    (found,) = replay(edited(tmp_path, 2, refuse))
    assert str(found).endswith("the trace raises Shortage:rows, this build answers 0")


def test_differences_come_as_they_are_met(tmp_path: Path) -> None:
    path = edited(tmp_path, 2, lambda line: line.update(answer=3))
    with path.open("ab") as file:
        file.write(b"not a trace any more\n")
    differences = replay(path)
    assert next(differences).number == 1
    with pytest.raises(TraceError, match="line 35"):
        list(differences)


@pytest.mark.parametrize(
    ("line", "change", "words"),
    [
        (1, lambda c: c.update(format="other"), "line 1: format 'other', version 1; allowed:"),
        (1, lambda c: c.update(version=2), "line 1: format 'unikv-trace', version 2; allowed:"),
        (1, lambda c: c.update(extra=1), "unknown field `extra`"),
        (1, lambda c: c.pop("layout"), "required field `layout`"),
        (1, lambda c: c["layout"].update(sink_bytes=0), "`int` >= 1"),
        (1, lambda c: c["layout"].update(bands=[]), "length >= 1"),
        (1, lambda c: c["layout"].update(total_bytes=4), "a sink of 8 bytes in 4; no room"),
        (1, lambda c: c["layout"].update(total_bytes=1 << 45), f"allowed: {MAX_UNITS}"),
        (1, lambda c: c["layout"].update(row_pages=1 << 21), "rows of 2097152 pages; allowed:"),
        (1, lambda c: c["layout"]["bands"][2].update(mints=False), "mints no ids"),
        (1, lambda c: c["layout"]["bands"][2].update(name="state"), "a name of its own"),
        (1, lambda c: c.update(why="x" * 1001), "length <= 1000"),
        (2, lambda c: c.update(call="chain.explode"), "call 'chain.explode'; allowed: chain.fits"),
        (2, lambda c: c.update(call="chain._begin"), "call 'chain._begin'; allowed: chain.fits"),
        (2, lambda c: c.update(more=1), "unknown field `more`"),
        (2, lambda c: c.update(args=[1]), "requests.take args: Expected `array` of length 0"),
        (2, lambda c: c.update(error="Shortage"), "an answer or an error, and not both"),
        (2, lambda c: c.pop("answer"), "an answer or an error, and not both"),
        (2, lambda c: c.update(answer="0"), "requests.take answer: Expected `int`, got `str`"),
        (3, lambda c: c.update(args=[2, True]), "chain.take args: Expected `int`, got `bool`"),
        (3, lambda c: c.update(args=[2, 1 << 60]), "chain.take args: Expected `int` <="),
        (3, lambda c: c.update(args=[2]), "chain.take args: Expected `array` of length 2"),
        (3, lambda c: c.update(error="a b", answer=None), "matching regex"),
    ],
)
def test_a_line_of_another_shape_is_refused_with_its_place(
    tmp_path: Path, line: int, change: Callable[[Any], object], words: str
) -> None:
    said = refused(edited(tmp_path, line, change))
    assert said.startswith(f"trace.jsonl, line {line}: ")
    assert words in said


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "line 1: no header; allowed: a JSON object of format 'unikv-trace'"),
        (b"\n", "line 1: no header"),
        (b"name: smoke\n", "line 1: no header"),
        (b'{"format":"unikv-trace"', "line 1: does not end: the file was cut off"),
        (b"\xff\xfe{}\n", "line 1: no header"),
        (b"[" * 100_000 + b"\n", "line 1: no header"),
        (b"x" * (MAX_LINE_BYTES + 1), f"line 1: longer than {MAX_LINE_BYTES} bytes"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    assert words in refused(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"call":"chain.free","args":[[1', "line 35: does not end: the file was cut off"),
        (b'{"call":"chain.free","args":[[1]]\n', "line 35: "),
        (b'{"call":"chain.free","args":' + b"[" * 99_999 + b"\n", "line 35: "),
        (b'{"call":"\xff","args":[]}\n', "line 35: "),
        (b"\n", "line 35: "),
        (b'{"call":"chain.flush","args":[1e400],"answer":1}\n', "chain.flush args: "),
        (b"x" * (MAX_LINE_BYTES + 1), f"line 35: longer than {MAX_LINE_BYTES} bytes"),
    ],
)
def test_a_spoiled_line_is_refused(tmp_path: Path, line: bytes, words: str) -> None:
    path = tmp_path / "spoiled"
    path.write_bytes(SLOTS.read_bytes() + line)
    assert words in refused(path)


def test_a_trace_of_too_many_calls_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unikv.trace.lines.MAX_CALLS", 5)
    assert refused(SLOTS) == (
        "state_slots_exhausted.jsonl, line 7: more than 5 calls; split the trace"
    )


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path / "gone.jsonl")
    assert said == "gone.jsonl: cannot be read: No such file or directory; name a trace file"


def test_a_wait_for_a_transfer_is_replayed(tmp_path: Path) -> None:
    layout = layout_of(52, 4, states("state"), window("window"), tokens("full"))
    path = tmp_path / "wait.jsonl"
    with record(build_still(layout), path) as storage:
        storage.chain.prewarm()
        storage.chain.take(2, 2)
        storage.chain.take(0, 3)
        storage.chain.users.begin_send("transfer", [[], [1], []])
        storage.ids.reads([[1, 2]], [[1]])
        storage.chain.take(0, 1)
        storage.chain.users.release("transfer")
        assert storage.ids.move_epochs() == (0, 1, 0)
        assert storage.statistics().totals["host_waits"] == 1
    assert list(replay(path)) == []


def test_numbers_that_no_storage_has_are_errors_of_the_call(tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    odd = [
        ("chain.translate", [9, [1]], "ArgumentError"),
        ("chain.free", [[-5]], "OwnershipError"),
        ("chain.reserve", [0, 1 << 40], "Shortage:bytes"),
        ("users.release", ["nobody"], "TransferError"),
        ("requests.give_back", [99], "OwnershipError"),
    ]
    lines = [json.dumps({"call": name, "args": args, "error": error}) for name, args, error in odd]
    header = SLOTS.read_text(encoding="utf-8").splitlines()[0]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    assert list(replay(path)) == []
