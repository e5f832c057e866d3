"""Work that a host wait ends at one stroke leaves what work that ends piece by piece leaves."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.device.clock import Access
from harness.device.launches import ModeledEvent
from harness.device.memory import Image, PageBytes, RunBody
from harness.device.modeled import ModeledDevice
from tests.alloc.small_chain import layout_of, tokens
from unikv.device.port import Stream

LAYOUT = layout_of(44, 4, tokens("full"))
STREAMS = (Stream.SCHEDULE, Stream.FORWARD, Stream.LOAD)
PAGES = 4

Command = tuple[str, int, int, int]


class PieceByPiece(ModeledDevice):
    """Starts and ends every launch alone, and asks everybody who waits to look again each time."""

    def _end(self, rank: int, stream: int, through: int) -> None:
        self.ranks[rank].awaited[stream] = 0
        super()._end(rank, stream, 0)


def body(device: ModeledDevice, stream: int, page: int, value: int) -> None:
    """A forward that reads every page and writes one, as program order has them."""
    arena = device.program.arena
    low = page * 4
    fresh = value.to_bytes(4, "little")
    reads: list[PageBytes] = [(at, at + 4, bytes(arena[at : at + 4])) for at in range(0, 16, 4)]
    written: list[PageBytes] = [(low, low + 4, fresh)]
    before, kept = reads[page : page + 1], reads[:page] + reads[page + 1 :]
    touched = (Access(device.arena, range(PAGES), False), Access(device.arena, [page], True))
    device.submit(stream, "body", value, RunBody(before, kept, written, written), touched)


def play(device: ModeledDevice, commands: Sequence[Command]) -> list[object]:
    """What every rank holds after each command, and every read that went wrong."""
    marks: list[ModeledEvent] = [device.record_event(Stream.SCHEDULE)]
    seen: list[object] = []
    for number, (kind, a, b, c) in enumerate(commands, start=1):
        device.operation = number
        stream, other, page = STREAMS[a % 3], marks[b % len(marks)], c % PAGES
        if kind == "map":
            device.write_map(stream, 0, [1 + b % 3], [number])
        elif kind == "zero":
            device.zero_pages(stream, 0, [page])
        elif kind == "move":
            device.move_pages(stream, 0, [page], [(page + 1 + b % 3) % PAGES])
        elif kind == "body":
            body(device, stream, page, number)
        elif kind == "mark":
            marks.append(device.record_event(stream))
        elif kind == "wait":
            device.wait_event(stream, other)
        elif kind == "sync":
            device.host_wait(other)
        else:
            device.complete(a % 2, stream, 1 + c % 3)
        for rank in device.ranks:
            seen.append((bytes(rank.image.arena), list(rank.image.maps[0]), list(rank.started)))
        seen.append({(read.rank, read.launch.operation) for read in device.bad_reads})
    return seen


KINDS = ("map", "zero", "move", "body", "mark", "mark", "wait", "wait", "sync", "complete")
COMMANDS = st.tuples(
    st.sampled_from(KINDS), st.integers(0, 5), st.integers(0, 20), st.integers(0, 20)
)


@settings(max_examples=60)
@given(st.lists(COMMANDS, min_size=20, max_size=50))
def test_at_one_stroke_is_piece_by_piece(commands: list[Command]) -> None:
    assert play(ModeledDevice(LAYOUT, 2), commands) == play(PieceByPiece(LAYOUT, 2), commands)


def test_who_waits_for_a_mark_starts_before_work_behind_it_ends() -> None:
    schedule, forward, _ = STREAMS
    device = ModeledDevice(LAYOUT, 1)
    device.write_map(schedule, 0, [1], [5])
    device.wait_event(forward, device.record_event(schedule))
    device.write_map(forward, 0, [1], [7])
    device.write_map(schedule, 0, [1], [6])
    device.host_wait(device.record_event(schedule))
    # The forward wrote its 7 when the mark was passed; the 6 that ended after it came over that.
    assert device.started() == [(0, forward)]
    assert device.ranks[0].image.maps[0][1] == 6


def test_a_launch_that_forced_work_has_woken_starts_once() -> None:
    schedule, forward, _ = STREAMS
    device = ModeledDevice(LAYOUT, 1)
    device.zero_pages(schedule, 0, [0])
    device.wait_event(forward, device.record_event(schedule))
    body(device, forward, 0, 9)
    device.host_wait(device.record_event(forward))
    # Started a second time it would read its own write where it expects what was there before.
    assert device.bad_reads == []


@pytest.mark.parametrize("spoiled", [0, 4, 8])
def test_a_body_at_one_stroke_reads_what_it_reads_in_two(spoiled: int) -> None:
    reads: list[PageBytes] = [(0, 4, b"kept")]
    before: list[PageBytes] = [(4, 8, b"here")]
    written: list[PageBytes] = [(4, 8, b"ours")]
    effect = RunBody(before, reads, written, written)
    found = []
    for stroke in (True, False):
        image = Image(LAYOUT, 1)
        image.arena[:8] = b"kepthere"
        image.arena[spoiled] = 0
        found.append(effect.run(image) if stroke else effect.start(image) or effect.end(image))
    assert found[0] == found[1]
    assert (found[0] is None) == (spoiled == 8)
