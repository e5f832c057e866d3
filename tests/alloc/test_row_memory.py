"""Memory of request rows: who resets, saves and restores it, and behind what that runs.

A device here executes what it is asked at once and keeps clocks of it, so that a wrong order is a
race even though the bytes come out right.
"""

import random
from collections.abc import Callable

import pytest

from harness.device.clock import Clocks, Conflict, SpaceClock
from unikv.alloc.clearance import CLEARANCE, Clearance, ClearanceTable, InFlight, Toucher
from unikv.device.port import Event, RowContent, Stream
from unikv.errors import ArgumentError, OwnershipError
from unikv.requests import RequestTable, RowMemory, RowResets, RowState
from unikv.trace.still_device import StillDevice

S, F, SIDE = Stream.SCHEDULE, Stream.FORWARD, Stream.SIDE
ROWS = 4
Words = tuple[str, ...]


class Race(AssertionError):
    """Two accesses that nothing orders."""


class DriverError(Exception):
    """What a device raises that has failed."""


class RowDevice(StillDevice):
    """Rows as words that forwards have written, entries as ids, and a clock for each of the two.

    Attributes:
        memory: per row, what its forwards wrote since it was reset; None where nobody ever did.
        calls: kernels on row memory, in order.
        is_failing: whether it refuses resets.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_failing = False
        self.clocks = Clocks()
        self.entries = SpaceClock("entries", ROWS)
        self.cells = SpaceClock("row memory", ROWS)
        self.memory: list[Words | None] = [None] * ROWS
        self.calls: list[tuple[object, ...]] = []

    def touch(self, stream: Stream, space: SpaceClock, rows: tuple[int, ...], kind: str) -> None:
        """One access; one that nothing orders it behind is an error."""
        epoch = self.clocks.tick(stream)
        check = space.read if kind == "reads" else space.write
        conflict: Conflict | None = check(
            epoch=epoch, lane=stream, clock=self.at(stream), units=rows
        )
        if conflict:
            other = Stream(conflict.lane).name
            raise Race(f"{stream.name} {kind} {space.name} {conflict.unit}, unordered with {other}")

    def at(self, stream: Stream) -> tuple[int, ...]:
        """What later work of a stream is behind."""
        return tuple(self.clocks.clocks[stream])

    def record_event(self, stream: Stream) -> Event:
        """The clock of the stream."""
        return self.at(stream)

    def wait_event(self, stream: Stream, event: Event) -> None:
        """Join it."""
        assert isinstance(event, tuple)
        self.clocks.join(stream, event)

    def write_row(self, stream: Stream, row: int, first: int, ids: object) -> None:
        """Entries change."""
        self.touch(stream, self.entries, (row,), "writes")

    def reset_rows(self, stream: Stream, rows: object) -> None:
        """Rows of no words."""
        assert isinstance(rows, tuple)
        if self.is_failing:
            raise DriverError(str(rows))
        self.calls.append(("reset", stream, rows))
        self.touch(stream, self.cells, rows, "writes")
        for row in rows:
            self.memory[row] = ()

    def save_row(self, stream: Stream, row: int) -> RowContent:
        """The words."""
        self.calls.append(("save", stream, row))
        self.touch(stream, self.cells, (row,), "reads")
        return self.memory[row]

    def restore_row(self, stream: Stream, row: int, content: RowContent) -> None:
        """The words again."""
        assert isinstance(content, tuple)
        self.calls.append(("restore", stream, row))
        self.touch(stream, self.cells, (row,), "writes")
        self.memory[row] = content


class Rows:
    """An engine's part of it: rows, forwards over them, and the barrier."""

    def __init__(self, clearance: ClearanceTable = CLEARANCE) -> None:
        self.device = RowDevice()
        self.table = RequestTable(ROWS, 8, 8, self.device)
        self.memory = RowMemory(self.table, self.device, clearance)
        self.expected: dict[int, Words] = {}

    def take(self) -> int:
        """A row for a new request, with one page."""
        row = self.table.take()
        self.table.append(row, [1])
        self.expected[row] = ()
        return row

    def reset(self) -> None:
        """What a launch does before its kernels."""
        self.memory.reset_new_rows(F)

    def order_launch(self) -> None:
        """The forward stream waits the schedule stream."""
        self.device.wait_event(F, self.device.record_event(S))

    def look_up(self, stream: Stream, *rows: int) -> None:
        """A kernel that reads entries of rows."""
        self.device.touch(stream, self.device.entries, rows, "reads")

    def run(self, *rows: int, word: str = "w") -> None:
        """One forward over rows, with a barrier behind its look-ups."""
        self.order_launch()
        self.reset()
        self.look_up(F, *rows)
        read_end = self.device.record_event(F)
        self.body(*rows, word=word)
        self.device.wait_event(S, read_end)

    def body(self, *rows: int, word: str = "w") -> None:
        """The kernels of a forward that use row memory: on its stream, and on one that joins it."""
        self.device.wait_event(SIDE, self.device.record_event(F))
        for stream in (F, SIDE):
            self.device.touch(stream, self.device.cells, rows, "reads")
            self.device.touch(stream, self.device.cells, rows, "writes")
            self.device.wait_event(SIDE, self.device.record_event(F))
        self.device.wait_event(F, self.device.record_event(SIDE))
        for row in rows:
            found, expected = self.device.memory[row], self.expected[row]
            assert found == expected, f"a forward finds {found} in row {row}, not {expected}"
            self.expected[row] = (*self.expected[row], word)
            self.device.memory[row] = self.expected[row]

    def end(self, row: int) -> None:
        """The request of a row is over, under whatever still runs."""
        self.table.give_back(row)
        del self.expected[row]


def test_a_row_is_marked_when_it_is_handed_out() -> None:
    table = RequestTable(2, 8, 8, StillDevice())
    assert table.state_of(0) is RowState.FREE
    row = table.take()
    assert table.state_of(row) is RowState.MARKED
    assert table.resets.marked() == (0,)


def test_a_launch_resets_the_marked_rows_of_any_batch() -> None:
    rows = Rows()
    first, second = rows.take(), rows.take()
    rows.run(first)
    assert rows.device.calls == [("reset", F, (first, second))]
    assert rows.table.state_of(second) is RowState.CLEAN


def test_a_row_is_reset_once() -> None:
    rows = Rows()
    row = rows.take()
    rows.run(row)
    rows.run(row)
    assert rows.device.calls == [("reset", F, (row,))]


def test_a_row_whose_reset_failed_is_reset_by_the_next_launch() -> None:
    rows = Rows()
    row = rows.take()
    rows.device.is_failing = True
    with pytest.raises(DriverError):
        rows.reset()
    assert rows.table.state_of(row) is RowState.MARKED
    rows.device.is_failing = False
    assert rows.memory.reset_new_rows(F) == (row,)
    assert rows.table.state_of(row) is RowState.CLEAN


def test_a_row_given_back_marked_is_not_reset() -> None:
    rows = Rows()
    rows.end(rows.take())
    rows.run()
    assert rows.device.calls == []


def test_marked_rows_are_taken_once() -> None:
    resets = RowResets()
    resets.mark(3)
    resets.mark(1)
    assert resets.take_marked() == (1, 3)
    assert resets.take_marked() == ()


def test_a_row_changes_hands_under_the_last_chunk_of_an_aborted_request() -> None:
    rows = Rows()
    row = rows.take()
    rows.run(row, word="old")
    rows.end(row)
    assert rows.take() == row
    rows.run(row, word="new")
    assert rows.device.memory[row] == ("new",)


def test_a_row_restored_is_not_reset() -> None:
    rows = Rows()
    row = rows.take()
    rows.run(row, word="a")
    content = rows.memory.save(row)
    rows.end(row)
    again = rows.take()
    rows.memory.restore(again, content)
    rows.expected[again] = ("a",)
    assert rows.table.state_of(again) is RowState.CLEAN
    rows.run(again, word="b")
    assert rows.device.memory[again] == ("a", "b")
    assert [call[0] for call in rows.device.calls] == ["reset", "save", "restore"]


def test_what_was_saved_is_not_what_the_next_holder_of_the_row_writes() -> None:
    rows = Rows()
    row = rows.take()
    rows.run(row, word="mine")
    content = rows.memory.save(row)
    rows.end(row)
    other = rows.take()
    rows.run(other, word="theirs")
    back = rows.take()
    rows.memory.restore(back, content)
    rows.expected[back] = ("mine",)
    rows.run(other, back, word="more")
    assert rows.device.memory[back] == ("mine", "more")


def test_a_row_that_a_launch_has_reset_may_be_restored() -> None:
    rows = Rows()
    saved, fresh = rows.take(), rows.take()
    rows.run(saved)
    rows.memory.restore(fresh, rows.memory.save(saved))
    rows.expected[fresh] = ("w",)
    rows.run(saved, fresh)


def test_memory_of_a_row_that_nobody_holds_is_neither_saved_nor_restored() -> None:
    rows = Rows()
    with pytest.raises(OwnershipError, match="row 2: restore of its memory while it is free"):
        rows.memory.restore(2, ())
    with pytest.raises(OwnershipError, match="row 2: save of its memory while it is free"):
        rows.memory.save(2)
    with pytest.raises(OwnershipError, match=r"row 4: there is none; rows are 0\.\.3"):
        rows.memory.save(4)
    with pytest.raises(ArgumentError, match="row is True"):
        rows.memory.save(True)
    assert rows.device.calls == []


def test_the_memory_of_a_marked_row_is_not_saved() -> None:
    rows = Rows()
    row = rows.take()
    with pytest.raises(OwnershipError, match="while it is marked; allowed: clean"):
        rows.memory.save(row)


def test_a_resumed_request_with_a_shorter_prefix_starts_a_row_anew() -> None:
    rows = Rows()
    row = rows.take()
    rows.table.append(row, [2, 3])
    rows.end(row)
    assert rows.take() == row
    assert rows.table.rows[row] == [1]
    rows.table.append(row, [7])
    assert rows.table.rows[row] == [1, 7]


def play(rows: Rows, seed: int) -> None:
    """Rows change hands at random, under forwards, with and without what was saved."""
    chance = random.Random(seed)
    saved: list[tuple[RowContent, Words]] = []
    for turn in range(60):
        held = rows.table.held_rows()
        match chance.randrange(6):
            case 0 | 1 if rows.table.free_count:
                row = rows.take()
                if saved and chance.random() < 0.5:
                    content, expected = saved.pop()
                    rows.memory.restore(row, content)
                    rows.expected[row] = expected
            case 2 if held:
                row = chance.choice(held)
                if rows.table.state_of(row) is RowState.CLEAN and chance.random() < 0.5:
                    saved.append((rows.memory.save(row), rows.expected[row]))
                rows.end(row)
            case _:
                batch = [row for row in held if chance.random() < 0.7]
                rows.run(*batch, word=f"{seed}.{turn}")


def play_all(make: Callable[[], Rows]) -> None:
    """The first seeds, each from an empty table."""
    for seed in range(20):
        play(make(), seed)


@pytest.mark.parametrize("seed", range(20))
def test_no_order_of_hand_outs_and_forwards_is_a_race(seed: int) -> None:
    play(Rows(), seed)


class ResetsAtHandOut(Rows):
    """Resets on the schedule stream when a row is handed out."""

    def take(self) -> int:
        """Under a forward that still writes the row."""
        row = super().take()
        self.memory.reset_new_rows(S)
        return row


class ResetsTooEarly(Rows):
    """Resets before the forward stream waits the schedule stream."""

    def order_launch(self) -> None:
        """A row restored for an earlier holder may be written after its reset."""
        self.reset()
        super().order_launch()


class NeverResets(Rows):
    """Launches without a reset."""

    def reset(self) -> None:
        """Whatever is in the row stays."""


class LooksUpLate(Rows):
    """A kernel behind the read end looks the row up again."""

    def body(self, *rows: int, word: str = "w") -> None:
        """The row may be the next request's by then."""
        super().body(*rows, word=word)
        self.look_up(F, *rows)


class MarksStay(RowMemory):
    """A restored row is reset all the same."""

    def restore(self, row: int, content: RowContent) -> None:
        """And loses what was restored."""
        super().restore(row, content)
        self._table.resets.mark(row)


def unordered_restore() -> Rows:
    """The cell of the table that orders a restore is dropped."""
    cell = (Toucher.ROW_RESTORE, InFlight.FORWARD)
    return Rows({**CLEARANCE, cell: Clearance.NONE})


def restored_and_reset() -> Rows:
    """Marks stay on restored rows."""
    rows = Rows()
    rows.memory = MarksStay(rows.table, rows.device)
    return rows


@pytest.mark.parametrize(
    ("plant", "what"),
    [
        (ResetsAtHandOut, r"SCHEDULE writes row memory \d, unordered with (FORWARD|SIDE)"),
        (ResetsTooEarly, r"FORWARD writes row memory \d, unordered with SCHEDULE"),
        (NeverResets, "a forward finds None in row"),
        (LooksUpLate, r"SCHEDULE writes entries \d, unordered with FORWARD"),
        (unordered_restore, r"SCHEDULE \w+ row memory \d, unordered with (FORWARD|SIDE)"),
        (restored_and_reset, r"a forward finds \(\) in row"),
    ],
)
def test_a_planted_bug_is_seen(plant: Callable[[], Rows], what: str) -> None:
    with pytest.raises(AssertionError, match=what):
        play_all(plant)
