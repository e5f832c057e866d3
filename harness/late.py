"""What a forward does beside the pages of its batch, and what it leaves to a commit.

A commit runs when others may hold the rows and slots of the batch already, so it uses what the
metadata phase looked up and lies in the step's static buffer, and looks nothing up itself.  One
that another stage relays belongs to no step that launched a body: `harness.relay` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.batch import Batch
from harness.device.clock import Access
from harness.device.memory import Effect, PageBytes, ReadStaged, RunBody, Together
from harness.device.row_memory import UseRows
from harness.library import answer_of
from harness.requests import Request
from harness.scenario import CELL_BYTES, PLAIN, Commit
from harness.static_buffers import NOTHING, Filled
from harness.world import World
from unikv.device.port import Stream
from unikv.static_buffer import SINK


@dataclass(slots=True)
class Beside:
    """What the kernels of one step do beside, and how far they have come.

    Attributes:
        number: the step.
        rows: rows whose memory they use, with what it holds for the next kernel.
        filled: the step's static buffer.
        is_captured: whether the body is replayed from a graph, which finds its slots there.
    """

    number: int
    rows: list[tuple[int, int]]
    filled: Filled
    is_captured: bool


def begin(world: World, number: int, requests: Sequence[Request], batch: Batch) -> Beside:
    """Reset new rows, look at those of the batch, and fill its static buffer.

    Order: after the forward stream has waited the schedule stream, before the first kernel.
    """
    setup, beside = world.setup.backend, Beside(number, [], NOTHING, False)
    if setup is PLAIN:
        return beside
    if world.rows.is_kept:
        world.rows.reset_new(world)
        beside.rows = world.rows.use(world, requests, number)
    beside.is_captured = setup.captured and all(r.length >= r.prompt for r in requests)
    if beside.is_captured or setup.commit in (Commit.IN_STEP, Commit.SIDE_STREAM):
        statics = world.engine.statics
        values = batch.slot_pages or [request.row for request in requests]
        index = statics.take()
        beside.filled = answer_of(world, statics.fill, index, number, values)
        world.device.stage(beside.filled.staging, beside.filled.values, number)
    if beside.is_captured:
        world.probes["replayed_from_a_static_buffer"] += 1
        _write_padding(world, batch, beside.filled.values[len(batch.slot_pages) :])
    return beside


def _write_padding(world: World, batch: Batch, padding: Sequence[int]) -> None:
    """Padded rows of a graph write states as well: into the sink, unless somebody errs."""
    band = world.state_band
    pages = [page for page in dict.fromkeys(padding) if page != SINK] if batch.slot_pages else []
    if not pages:
        return
    size, cells = world.layout.bands[band].page_bytes, world.setup.bands[band].entry_cells
    assert size == cells * CELL_BYTES, "a state page is one slot"
    batch.writes[0] += [(page * size, page * size + size, world.stamps(cells)) for page in pages]
    if batch.written_ids[band]:
        batch.written_pages[band] = [*batch.written_pages[band], *pages]


def in_body(world: World, beside: Beside) -> tuple[list[Effect], list[Access]]:
    """What one kernel of the body does beside, and what of that it touches."""
    effects: list[Effect] = []
    touched: list[Access] = []
    if beside.is_captured:
        effects.append(_read_buffer(world, beside))
        touched.append(Access(world.device.staging, (beside.filled.staging,), False))
    if beside.rows:
        _use_rows(world, beside, 2 * beside.number, effects, touched)
    return effects, touched


def is_left_to_commit(world: World, band: int) -> bool:
    """Whether the body leaves the writes of a band to a commit."""
    return band == world.state_band and world.setup.backend.commit is not Commit.BODY


def commit(world: World, beside: Beside, batch: Batch) -> bool:
    """Enqueue what was left to a commit; whether it runs on the side stream.

    Order: behind the body.  Who records the step lets the forward stream wait the side stream.
    """
    where, stream = world.setup.backend.commit, world.forward_stream
    if where in (Commit.BODY, Commit.RELAYED):
        return False
    if where is Commit.SIDE_STREAM:
        world.engine.fork_side(stream)
        stream = Stream.SIDE
    device, band = world.device, world.state_band
    effects: list[Effect] = [_read_buffer(world, beside)]
    touched = [Access(device.staging, (beside.filled.staging,), False)]
    if batch.committed:
        writes: list[PageBytes] = batch.committed
        effects.append(RunBody((), (), writes, writes))
        touched.append(Access(device.arena, device.granules(band, batch.written_pages[band]), True))
    if beside.rows:
        _use_rows(world, beside, 2 * beside.number + 1, effects, touched)
    device.submit(stream, "commit", beside.number, Together(effects), touched)
    world.probes[f"committed_{where.value}"] += 1
    return where is Commit.SIDE_STREAM


def _read_buffer(world: World, beside: Beside) -> ReadStaged:
    filled = beside.filled
    values = answer_of(world, world.engine.statics.read_by, filled.buffer, beside.number)
    return ReadStaged(filled.staging, values)


def _use_rows(
    world: World, beside: Beside, after: int, effects: list[Effect], touched: list[Access]
) -> None:
    effects.append(UseRows(beside.rows, after))
    rows = [row for row, _ in beside.rows]
    touched += world.device.row_memory.accesses(rows)
    beside.rows = [(row, after) for row in rows]
    for row in rows:
        world.rows.expected[row] = after
