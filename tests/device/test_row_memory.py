"""Memory of rows on the modeled device: who wrote a row last shows in what is read next."""

import pytest

from harness.device.memory import NEVER_WRITTEN, Effect
from harness.device.modeled import ModeledDevice
from harness.device.rank_port import RankPort
from harness.device.row_memory import BLANK, SavedRow, UseRows
from tests.alloc.small_chain import layout_of, tokens
from unikv.device.port import RowMemoryDevice, Stream

S, F, SIDE = Stream.SCHEDULE, Stream.FORWARD, Stream.SIDE
LAYOUT = layout_of(44, 4, tokens("full"))


def device_of(ranks: int = 1) -> ModeledDevice:
    """A device with a few rows."""
    return ModeledDevice(LAYOUT, ranks)


def use(device: ModeledDevice, stream: Stream, before: int, after: int, row: int = 0) -> None:
    """A forward that uses one row."""
    effect: Effect = UseRows([(row, before)], after)
    device.submit(stream, "body", 1, effect, device.row_memory.accesses((row,)))


def wait(device: ModeledDevice, stream: Stream, other: Stream) -> None:
    """Put a stream behind another."""
    device.wait_event(stream, device.record_event(other))


def kinds(device: ModeledDevice) -> list[tuple[str, str, str]]:
    """Every race: its space and the kinds of the two launches."""
    return [(race.space, race.earlier.kind, race.later.kind) for race in device.races]


def test_a_row_holds_nothing_before_its_first_reset() -> None:
    device = device_of()
    assert device.program.row_memory[0] == NEVER_WRITTEN
    device.row_memory.reset(F, (0,))
    assert device.program.row_memory[0] == BLANK


def test_a_reset_on_the_stream_of_the_forwards_is_behind_them() -> None:
    device = device_of()
    device.row_memory.reset(F, (0,))
    use(device, F, BLANK, 2)
    device.row_memory.reset(F, (0,))
    use(device, F, BLANK, 4)
    device.drain()
    assert kinds(device) == []
    assert device.bad_reads == []


def test_a_reset_on_another_stream_races_with_the_forward() -> None:
    device = device_of()
    use(device, F, NEVER_WRITTEN, 2)
    device.row_memory.reset(S, (0,))
    assert kinds(device) == [("row memory", "body", "reset")]
    device.drain()
    assert device.bad_reads


def test_a_forward_that_finds_something_else_reads_badly() -> None:
    device = device_of()
    use(device, F, BLANK, 2)
    assert [(bad.space, bad.unit) for bad in device.bad_reads] == [("row memory", 0)]


def test_a_saved_row_is_a_copy() -> None:
    device = device_of()
    use(device, F, NEVER_WRITTEN, 2)
    wait(device, S, F)
    device.row_memory.save(S, 0, 1)
    wait(device, F, S)
    use(device, F, 2, 4)
    wait(device, S, F)
    device.row_memory.restore(S, 1, 1)
    device.drain()
    assert device.ranks[0].image.row_memory[:2] == [4, 2]
    assert kinds(device) == []


def test_a_save_that_waits_for_nobody_races() -> None:
    device = device_of()
    use(device, F, NEVER_WRITTEN, 2)
    device.row_memory.save(S, 0, 1)
    assert kinds(device) == [("row memory", "body", "save")]


def test_a_restore_that_overtakes_its_save_finds_nothing() -> None:
    device = device_of()
    device.row_memory.reset(S, (0,))
    device.row_memory.save(S, 0, 1)
    device.row_memory.restore(SIDE, 1, 1)
    assert device.ranks[0].image.row_memory[1] == NEVER_WRITTEN


def test_every_rank_names_a_copy_alike() -> None:
    device = device_of(2)
    ports = [RankPort(device, rank) for rank in range(2)]
    assert [port.save_row(S, 0) for port in ports] == [SavedRow(1), SavedRow(1)]
    assert [port.save_row(S, 1) for port in ports] == [SavedRow(2), SavedRow(2)]


def test_a_port_is_known_by_its_calls() -> None:
    assert isinstance(RankPort(device_of(), 0), RowMemoryDevice)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_submission_is_in_the_log_of_every_rank(rank: int) -> None:
    device = device_of(2)
    port = RankPort(device, rank)
    port.reset_rows(F, (0,))
    port.restore_row(S, 0, port.save_row(S, 0))
    assert [entry[0] for entry in port.log] == ["reset", "save", "restore"]
    assert len(device.program.saved_rows) == (rank == 0)
