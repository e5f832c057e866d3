"""Commits that another stage relays: what a body leaves is written later, by work of its own.

What was accepted comes back from another stage when that step is long recorded.  So its commit is a
step of its own for the allocator, and it looks up rows and slots when it is enqueued: between the
two a compaction may have moved any of them.  All that the engine owes it is that the requests still
have their rows and slots by then.

One world has one stage.  The other one is played here, by handing over what the body left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.check import translation
from harness.device.clock import Access
from harness.device.memory import Effect, PageBytes, ReadTables, RunBody, Together
from harness.device.row_memory import UseRows
from harness.engine import Step
from harness.requests import Request

if TYPE_CHECKING:
    from harness.world import World

NO_STAGING = -1
"""A commit looks tables up on the device and has no upload."""


class Accepted(NamedTuple):
    """A state that one request is left with, on its way through the other stage.

    Attributes:
        slot: the state slot that it belongs in.
        page: where the metadata phase found that slot.
        state: its bytes.
        blocks, tokens: what of a prompt it is the state of; 0 tokens where nobody asks for that.
    """

    slot: int
    page: int
    state: bytes
    blocks: tuple[int, ...]
    tokens: int


class Left(NamedTuple):
    """What one body has left.

    Attributes:
        requests: its batch.
        rows: where the metadata phase found them.
        accepted: their states.
    """

    requests: tuple[str, ...]
    rows: tuple[int, ...]
    accepted: tuple[Accepted, ...]


class Relay:
    """What bodies have left to commits that are not enqueued, by their step, oldest first.

    Law: a step named here is not processed, no later step is launched for one of its requests, and
    each of those has its row and its slots.  Who is about to break that enqueues the commit first.
    """

    def __init__(self) -> None:
        self.left: dict[int, Left] = {}

    def leave(
        self, world: World, step: int, requests: Sequence[Request], accepted: Sequence[Accepted]
    ) -> None:
        """A body was enqueued, and what it leaves is on its way through the other stage."""
        ready = self.without_those_left([request.name for request in requests])
        if len(ready) < len(requests):
            text = f"step {step} runs over {len(requests)} requests, of which only {ready} have got"
            world.truth.note("content", "run ahead of a commit", f"{text} what was left to them")
        names, rows = zip(*((request.name, request.row) for request in requests), strict=True)
        self.left[step] = Left(names, rows, tuple(accepted))

    def before(self, world: World, requests: Sequence[Request]) -> None:
        """Requests lose rows or slots, hand a state on, or run again: their commits come first."""
        if self.left:
            names = {request.name for request in requests}
            due = [step for step, left in self.left.items() if not names.isdisjoint(left.requests)]
            self.through(world, max(due, default=0))

    def without_those_left(self, names: Sequence[str]) -> list[str]:
        """Those of the requests whose commits, if any, are enqueued."""
        waiting = {name for left in self.left.values() for name in left.requests}
        return [name for name in names if name not in waiting]

    def through(self, world: World, step: int) -> None:
        """Every commit of a step up to this one is enqueued now."""
        while self.left and next(iter(self.left)) <= step:
            if world.open_step is not None:
                world.record_open_step()
                world.probes["recorded_implicitly"] += 1
            self.commit(world)
            world.probes["relayed_commit_made_up"] += 1

    def commit(self, world: World) -> None:
        """Enqueue the commit of the oldest step, which has been recorded.

        Order: behind the schedule stream, on the forwards' stream, as a step of its own.
        """
        if world.setup.pipeline:
            world.order_tables()  # as before each launch
        left = self.left.pop(next(iter(self.left)))
        world.step_count += 1
        number = world.step_count
        self.order(world)
        requests = self.requests(world, left)
        slots, pages = [part.slot for part in left.accepted], self.look_up(world, left.accepted)
        tables = self._read_tables(world, number, requests, slots, pages)
        read_end = world.device.record_event(world.forward_stream)
        # A backend that declares no end of its table reads may look tables up until it ends.
        tables_in_commit = [] if world.setup.read_end else tables
        self._write(world, number, requests, left.accepted, pages, tables_in_commit)
        writes: list[list[int]] = [[] for _ in world.band_range]
        written: list[list[int]] = [[] for _ in world.band_range]
        if slots:
            writes[world.state_band], written[world.state_band] = slots, pages
        step = Step(number, left.requests, tuple(writes), tuple(written), NO_STAGING, read_end)
        step.declares_read_end = world.setup.read_end
        self.enter(world, step)
        self.bar(world, step)
        world.probes["relayed_commit"] += 1
        if any(part.page != page for part, page in zip(left.accepted, pages, strict=True)):
            world.probes["moved_before_its_relayed_commit"] += 1

    def order(self, world: World) -> None:
        """Moves and table writes come before the look-ups, as they do for a launch."""
        world.engine.order_launch()

    def requests(self, world: World, left: Left) -> list[Request]:
        """Whose rows the commit looks up."""
        return [world.requests[name] for name in left.requests]

    def look_up(self, world: World, accepted: Sequence[Accepted]) -> list[int]:
        """Where the slots of what was accepted are now."""
        if not accepted:
            return []
        band, slots = world.state_band, [part.slot for part in accepted]
        pages: list[int] = list(world.ask("translate", band, slots))
        translation.compare(world, band, slots, pages)
        return pages

    def targets(self, accepted: Sequence[Accepted], pages: Sequence[int]) -> Sequence[int]:
        """Pages that the commit writes: those that it has looked up."""
        return pages

    def enter(self, world: World, step: Step) -> None:
        """The allocator hears of the commit as of any other step."""
        world.ask("launch_step", step.number)
        world.open_step = step
        world.record_open_step()

    def bar(self, world: World, step: Step) -> None:
        """The next table write waits for the look-ups, as for those of a launch."""
        world.unordered_step = step

    def _read_tables(
        self,
        world: World,
        number: int,
        requests: Sequence[Request],
        slots: list[int],
        pages: list[int],
    ) -> list[Access]:
        """The commit looks up the rows of its batch, and the slots; the tables it touches."""
        device, band = world.device, world.state_band
        rows = [(request.row, list(request.pages)) for request in requests]
        tables = [Access(device.rows, [row for row, _ in rows], False)]
        if slots:
            tables.append(Access(device.maps[band], slots, False))
        look_up = ReadTables(rows, [(band, slots, pages)] if slots else [])
        device.submit(world.forward_stream, "metadata", number, look_up, tables)
        return tables

    def _write(
        self,
        world: World,
        number: int,
        requests: Sequence[Request],
        accepted: Sequence[Accepted],
        pages: list[int],
        tables: list[Access],
    ) -> None:
        """The commit writes; truth expects what it writes from here on, and not before."""
        device, truth, band = world.device, world.truth, world.state_band
        effects: list[Effect] = []
        touched = list(tables)
        if accepted:
            targets, size = self.targets(accepted, pages), world.setup.bands[band].page_bytes
            writes: list[PageBytes] = []
            for page, part in zip(targets, accepted, strict=True):
                writes.append((page * size, page * size + size, part.state))
                truth.content[band][part.slot] = bytearray(part.state)
                if part.tokens:
                    truth.state_tokens[part.slot] = (part.blocks, part.tokens)
            effects.append(RunBody((), (), writes, writes))
            touched.append(Access(device.arena, device.granules(band, list(targets)), True))
        if world.rows.is_kept:
            used, after = world.rows.use(world, requests, number), 2 * number + 1
            effects.append(UseRows(used, after))
            touched += device.row_memory.accesses([row for row, _ in used])
            for row, _ in used:
                world.rows.expected[row] = after
        device.submit(world.forward_stream, "commit", number, Together(effects), touched)
