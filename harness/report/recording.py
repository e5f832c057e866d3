"""Everything that happened in one replay, as data: what pictures, histories and explanations read.

A run keeps only what its checks need.  A failing one is run once more with somebody who writes
down, and from there on a question about the failure is a question about these facts.

Time is counted in ticks: one for every launch, start, end, wait and operation, in the order in
which the model did them.  How anything is shown is not known here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from harness.ops import Operation
from harness.scenario import Setup
from harness.subject import CopyRecord, HoldRecord, Use
from harness.violation import Violation

UNCLAIMED, LIVE, HOLE, PENDING, FIXED = range(5)
FENCED, HELD = 8, 16
"""What a page is by an allocator's account, and the marks beside it: a submitted copy may touch it,
a peer may."""

STATE_MASK = 7
STATE_NAMES: Mapping[int, str] = {
    UNCLAIMED: "unclaimed",
    LIVE: "live",
    HOLE: "hole",
    PENDING: "pending",
    FIXED: "fixed",
}


class Touch(NamedTuple):
    """What a launch reads or writes: units of one memory space."""

    space: str
    units: tuple[int, ...]
    wrote: bool


class LaunchNote(NamedTuple):
    """One launch.

    Attributes:
        number: its place among all launches, from 0.
        operation: index of the operation that submitted it.
        lane: number of its stream, of the host, or of a peer.
        role: what that lane is called.
        kind: `zero`, `move`, `map`, `body`, ...
        step: the forward step it belongs to; 0 for none.
        touched: every access.
        clock: per lane, how many launches come before it; of its own, including itself.
        submitted: the tick.
    """

    number: int
    operation: int
    lane: int
    role: str
    kind: str
    step: int
    touched: tuple[Touch, ...]
    clock: tuple[int, ...]
    submitted: int

    @property
    def epoch(self) -> int:
        """Its place in its own lane, from 1."""
        return self.clock[self.lane]

    @property
    def name(self) -> str:
        """`body of step 3`, or `zero`."""
        return f"{self.kind} of step {self.step}" if self.step else self.kind


class RunTime(NamedTuple):
    """When a launch ran on one rank, in ticks; `end` is None while it runs."""

    start: int
    end: int | None


class WaitNote(NamedTuple):
    """A stream, or the host, was put behind the first `epoch` launches of another lane.

    Attributes:
        operation: index of the operation that asked for it.
        tick: when.
        lane, awaited: who waits, for whom.
        epoch: how many launches of the awaited lane come first.
        is_new: whether the waiting lane was not behind them before.
        is_found: whether the host did not wait, but learned that they have ended.
    """

    operation: int
    tick: int
    lane: int
    awaited: int
    epoch: int
    is_new: bool
    is_found: bool = False


class BindNote(NamedTuple):
    """A page map entry was written: id `unit` of a band, from one page to another; 0 is none."""

    operation: int
    band: int
    unit: int
    before: int
    after: int


class MoveNote(NamedTuple):
    """Pages of a band were copied to other pages of it."""

    operation: int
    band: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]


class CallNote(NamedTuple):
    """What the allocator was asked and answered, in words; `tick` is of what came of it."""

    operation: int
    tick: int
    text: str


class BandFrame(NamedTuple):
    """One band after one operation.

    Attributes:
        states: per page, its state with the marks FENCED and HELD.
        span: claimed pages `[low, high)`.
        owners: per page, the id bound to it by the same account; 0 for none.
    """

    states: bytes
    span: tuple[int, int]
    owners: tuple[int, ...]


class StepNote(NamedTuple):
    """A step that is not processed: its number, its batch, and how far it is.

    `state` is `launched`, `recorded` or `retired`; `read_end` says what its table reads are
    declared to end behind, and is empty before that.
    """

    number: int
    requests: tuple[str, ...]
    state: str
    read_end: str


class RequestNote(NamedTuple):
    """A request that is not over.

    Attributes:
        name: in the trace.
        phase: what it waits for, or that it runs.
        row: its row of the request table; -1 for none.
        length, prepared, total: tokens launched, with slots for the next launch, and wanted.
        ids: of its pages, in order of position.
        window_first: per band, index in `ids` of the first page whose window row it keeps.
    """

    name: str
    phase: str
    row: int
    length: int
    prepared: int
    total: int
    ids: tuple[int, ...]
    window_first: tuple[int, ...]


class TransferNote(NamedTuple):
    """A transfer that is not over.

    Attributes:
        name: in the trace.
        is_send: whether a peer reads; it writes otherwise.
        request: whose pages; empty for a cached prefix, or once the request gave them up.
        is_prefix: whether they are a cached prefix's, as long as the engine knows.
        peer: the other side.
        queued, handed: parts that were asked for, and that engines have.
        is_open: whether more parts may be queued.
        is_unwanted: whether somebody has asked to stop it.
        is_isolated: whether it was given up and waits for proof.
        ended: per rank, parts whose work has ended.
        failed, told, proved: ranks whose engine gave up; could be told to stop; has proved that it
            is quiet.
        pages: per band, what the peer may touch; empty before an engine has any.
    """

    name: str
    is_send: bool
    request: str
    is_prefix: bool
    peer: str
    queued: int
    handed: int
    is_open: bool
    is_unwanted: bool
    is_isolated: bool
    ended: tuple[int, ...]
    failed: frozenset[int]
    told: frozenset[int]
    proved: frozenset[int]
    pages: tuple[tuple[int, ...], ...]


class PrefixNote(NamedTuple):
    """A cached beginning of prompts; `slot` is 0 where it keeps no state."""

    blocks: tuple[int, ...]
    ids: tuple[int, ...]
    slot: int


class Accounts(NamedTuple):
    """Who may still touch what, after one operation, and what requests and transfers are at.

    Attributes:
        steps: steps that are not processed, the oldest first.
        uses: the first rank's ledger of unfinished uses of steps.
        copies, holds: the same of copies, and of pages that peers may touch or that wait for one.
        touchable: per band, by the harness's own account, freed pages that a step may still touch,
            each with the newest such step.
        host: per band, by the same account, whose each host slot is.
        requests, transfers: those that are not over, by the engine's account.
        prefixes: what its cache keeps, as the blocks of a prompt, the ids and the state's slot.
    """

    steps: tuple[StepNote, ...]
    uses: tuple[Use, ...]
    copies: tuple[CopyRecord, ...]
    holds: tuple[HoldRecord, ...]
    touchable: tuple[Mapping[int, int], ...]
    host: tuple[Mapping[int, str], ...]
    requests: tuple[RequestNote, ...]
    transfers: tuple[TransferNote, ...]
    prefixes: tuple[PrefixNote, ...]


NOTHING = Accounts((), (), (), (), (), (), (), (), ())
"""Before the first operation."""


class Frame(NamedTuple):
    """The world after one operation.

    Attributes:
        operation: what was applied.
        outcome: `done`, `refused` or `skipped`.
        ticks: of this operation, `[first, end)`.
        ranks: per rank, every band.
        accounts: who may still touch what.
    """

    operation: Operation
    outcome: str
    ticks: tuple[int, int]
    ranks: tuple[tuple[BandFrame, ...], ...]
    accounts: Accounts


Note = TypeVar("Note", LaunchNote, WaitNote, BindNote, MoveNote, CallNote)


class Collision(NamedTuple):
    """Two accesses that nothing orders: numbers of the launches, and what both touch."""

    earlier: int
    later: int
    space: str
    unit: int


class WrongRead(NamedTuple):
    """A launch that read something else on a rank than program order puts there.

    `unit` is the first byte of the arena or of host memory, the row, the entry or the buffer.
    """

    rank: int
    launch: int
    space: str
    unit: int


@dataclass(frozen=True, slots=True)
class Recording:
    """One replay, up to the operation that failed.

    Attributes:
        setup: the storage and engine.
        granule: bytes of one unit of the arena.
        host_granules: bytes of one unit of each piece of host memory.
        lanes: what every lane is called.
        frames: one per operation.
        launches, waits, binds, moves, calls: in their order.
        runs: per rank, when each launch ran, by its number.
        violation: the one of them that it is about; None if nothing was found.
        collisions: of that violation, where it is a race, and of those like it.
        wrong_read: of that violation, where a rank read wrong bytes.
        submissions: per rank, what its allocator submitted in the last operation, in words.
    """

    setup: Setup
    granule: int
    host_granules: tuple[int, ...]
    lanes: tuple[str, ...]
    frames: tuple[Frame, ...]
    launches: tuple[LaunchNote, ...]
    waits: tuple[WaitNote, ...]
    binds: tuple[BindNote, ...]
    moves: tuple[MoveNote, ...]
    calls: tuple[CallNote, ...]
    runs: tuple[Mapping[int, RunTime], ...]
    violation: Violation | None
    collisions: tuple[Collision, ...]
    wrong_read: WrongRead | None
    submissions: tuple[tuple[str, ...], ...]

    @property
    def collision(self) -> Collision | None:
        """Of the violation that it is about, where that is a race."""
        return self.collisions[0] if self.collisions else None

    @property
    def end(self) -> int:
        """The tick after the last one."""
        return self.frames[-1].ticks[1] if self.frames else 0

    def launches_of(self, operation: int) -> Sequence[LaunchNote]:
        """What an operation submitted."""
        return _of(self.launches, operation)

    def waits_of(self, operation: int) -> Sequence[WaitNote]:
        """Waits that an operation asked for."""
        return _of(self.waits, operation)

    def binds_of(self, operation: int) -> Sequence[BindNote]:
        """Page map entries that an operation wrote."""
        return _of(self.binds, operation)

    def moves_of(self, operation: int) -> Sequence[MoveNote]:
        """Copies that an operation submitted."""
        return _of(self.moves, operation)

    def calls_of(self, operation: int) -> Sequence[CallNote]:
        """What the allocator was asked in an operation."""
        return _of(self.calls, operation)

    def accounts_at(self, operation: int) -> Accounts:
        """The accounts after an operation; before the first one, of nothing."""
        return self.frames[operation].accounts if operation >= 0 else NOTHING

    def operation_at(self, tick: int) -> int:
        """The operation in which a tick lies."""
        return bisect_right(self.frames, tick, key=lambda frame: frame.ticks[0]) - 1

    def awaited(self) -> list[tuple[WaitNote, LaunchNote]]:
        """Every wait that added something, and the last launch that it waits for."""
        by_place = {(launch.lane, launch.epoch): launch for launch in self.launches}
        return [
            (wait, by_place[wait.awaited, wait.epoch])
            for wait in self.waits
            if wait.is_new and (wait.awaited, wait.epoch) in by_place
        ]

    def arrows(self) -> list[tuple[LaunchNote, LaunchNote]]:
        """For every wait that added something: the launch waited for, the first one behind it."""
        by_lane: dict[int, list[LaunchNote]] = {}
        for launch in self.launches:
            by_lane.setdefault(launch.lane, []).append(launch)
        found = []
        for wait, awaited in self.awaited():
            later = by_lane.get(wait.lane, [])
            at = bisect_right(later, wait.tick, key=lambda launch: launch.submitted)
            if at < len(later):
                found.append((awaited, later[at]))
        return found


def _of(notes: Sequence[Note], operation: int) -> Sequence[Note]:
    """Those of one operation; notes are in the order of operations."""
    low = bisect_left(notes, operation, key=lambda note: note.operation)
    high = bisect_right(notes, operation, key=lambda note: note.operation)
    return notes[low:high]
