"""The replay that writes everything down.

The insight: a planted fault makes the device a subclass of itself, so whoever wants to see what
really reaches the device has to stand below that subclass and above the device, whatever the fault
is.  Python's method order puts it there; a normal run never meets it.

What is done with the notes is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from harness.case import Case
from harness.check import content, ordering
from harness.device.clock import HOST, LANES, Access
from harness.device.launches import ModeledEvent
from harness.device.memory import Effect, Image, Mismatch
from harness.device.modeled import ModeledDevice
from harness.device.submissions import LANE_NAMES, submission_text
from harness.engine import Step
from harness.ops import Operation, Outcome
from harness.report.actors import note_requests, note_transfers
from harness.report.calls import AskedWorld
from harness.report.recording import (
    FENCED,
    HELD,
    Accounts,
    BandFrame,
    BindNote,
    CallNote,
    Collision,
    Frame,
    LaunchNote,
    MoveNote,
    PrefixNote,
    Recording,
    RunTime,
    StepNote,
    Touch,
    WaitNote,
    WrongRead,
)
from harness.runner import Run, run_trace
from harness.scenario import Setup
from harness.subject import Subject
from harness.unikv_subject import UnikvSubject
from harness.violation import Violation, seen
from harness.world import SubjectFactory, World

Part = TypeVar("Part")


class Notebook:
    """What was written down so far.

    Invariant: ticks grow, and a launch's number is its place in `launches`.  Changed by the device
    below, the effects and the run that write into it.
    """

    def __init__(self) -> None:
        self.tick = 0
        self.launches: list[LaunchNote] = []
        self.waits: list[WaitNote] = []
        self.binds: list[BindNote] = []
        self.moves: list[MoveNote] = []
        self.calls: list[CallNote] = []
        self.runs: list[dict[int, RunTime]] = []
        self.frames: list[Frame] = []
        self.number_of: dict[int, int] = {}
        self._images: list[Image] = []

    def begin(self, images: Sequence[Image]) -> None:
        """The memory of every rank, first rank first."""
        self._images = list(images)
        self.runs = [{} for _ in images]

    def next_tick(self) -> int:
        """One more tick has begun; its number."""
        self.tick += 1
        return self.tick - 1

    def started(self, number: int, image: Image) -> None:
        """A launch starts on the rank that has this memory."""
        self._of(image)[number] = RunTime(self.next_tick(), None)

    def ended(self, number: int, image: Image) -> None:
        """A launch ends there."""
        runs = self._of(image)
        runs[number] = RunTime(runs[number].start, self.next_tick())

    def _of(self, image: Image) -> dict[int, RunTime]:
        rank = next(at for at, own in enumerate(self._images) if own is image)
        return self.runs[rank]


class NotedEffect:
    """What a launch does, with its start and its end written down."""

    __slots__ = ("_effect", "_notes", "_number")

    def __init__(self, effect: Effect, number: int, notes: Notebook) -> None:
        self._effect = effect
        self._number = number
        self._notes = notes

    def apply(self, image: Image) -> None:
        """The launch in program order, which is no running."""
        self._effect.apply(image)

    def start(self, image: Image) -> Mismatch | None:
        """The launch starts on a rank."""
        self._notes.started(self._number, image)
        return self._effect.start(image)

    def end(self, image: Image) -> Mismatch | None:
        """The launch ends on a rank."""
        self._notes.ended(self._number, image)
        return self._effect.end(image)

    def run(self, image: Image) -> Mismatch | None:
        """The launch starts and ends on a rank with nothing in between."""
        self._notes.started(self._number, image)
        self._notes.ended(self._number, image)
        return self._effect.run(image)


class RecordingDevice(ModeledDevice):
    """Writes down every launch, wait, move and map write that reaches the device."""

    notes: Notebook

    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        """Enqueue a launch."""
        number = self._note(stream, kind, step, touched)
        super().submit(stream, kind, step, NotedEffect(effect, number, self.notes), touched)
        self._numbered(stream, number)

    def stage(self, buffer: int, tables: list[int], step: int) -> None:
        """The host fills a staging buffer, at once and on every rank."""
        number = self._note(HOST, "fill", step, (Access(self.staging, (buffer,), True),))
        super().stage(buffer, tables, step)
        self._numbered(HOST, number)
        for rank in self.ranks:
            self.notes.started(number, rank.image)
            self.notes.ended(number, rank.image)

    def wait_event(self, stream: int, event: ModeledEvent) -> None:
        """Put later work of `stream` behind `event`."""
        self._note_wait(stream, event)
        super().wait_event(stream, event)

    def host_wait(self, event: ModeledEvent) -> None:
        """Block the host until `event` has passed."""
        self._note_wait(HOST, event)
        super().host_wait(event)

    def host_saw(self, event: ModeledEvent) -> None:
        """The host has found that `event` has passed."""
        self._note_wait(HOST, event, is_found=True)
        super().host_saw(event)

    def move_pages(
        self, stream: int, band: int, sources: Sequence[int], targets: Sequence[int]
    ) -> None:
        """Copy whole pages."""
        self.notes.moves.append(MoveNote(self.operation, band, tuple(sources), tuple(targets)))
        super().move_pages(stream, band, sources, targets)

    def write_map(self, stream: int, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
        """Write page map entries."""
        entries = self.program.maps[band]
        self.notes.binds += [
            BindNote(self.operation, band, unit, entries[unit], page)
            for unit, page in zip(ids, pages, strict=True)
            if 0 <= unit < len(entries)
        ]
        super().write_map(stream, band, ids, pages)

    def _note(self, lane: int, kind: str, step: int, touched: Sequence[Access]) -> int:
        """Write a launch down before it is enqueued; the clock follows."""
        notes = self.notes
        number = len(notes.launches)
        touches = tuple(
            Touch(access.space.name, tuple(access.units), access.wrote) for access in touched
        )
        role = LANE_NAMES[lane]
        tick = notes.next_tick()
        notes.launches.append(
            LaunchNote(number, self.operation, int(lane), role, kind, step, touches, (), tick)
        )
        return number

    def _numbered(self, lane: int, number: int) -> None:
        notes = self.notes
        notes.number_of[id(self._launches[lane][-1])] = number
        clock = tuple(self.clocks.clocks[lane])
        notes.launches[number] = notes.launches[number]._replace(clock=clock)

    def _note_wait(self, lane: int, event: ModeledEvent, *, is_found: bool = False) -> None:
        is_new = event.stream != lane and not self.clocks.covers(lane, event.clock)
        tick = self.notes.next_tick()
        self.notes.waits.append(
            WaitNote(
                self.operation, tick, int(lane), int(event.stream), event.epoch, is_new, is_found
            )
        )


def stand_below(part: object, kind: type[Part]) -> Part:
    """Let a device or a world behave like `kind` as well, below whatever a fault has made of it.

    What a fault changes on its way to the device is then seen as the device sees it.
    """
    own = type(part)
    bases = (kind,) if own in kind.__bases__ else (own, kind)
    part.__class__ = type(kind.__name__, bases, {})
    assert isinstance(part, kind)
    return part


class RecordingRun(Run):
    """A run that takes a frame after every operation."""

    def __init__(
        self,
        setup: Setup,
        plant: str | None,
        subject: SubjectFactory = UnikvSubject,
    ) -> None:
        super().__init__(setup, plant, subject)
        self.notes = Notebook()
        device = stand_below(self.world.device, RecordingDevice)
        device.notes = self.notes
        self.notes.begin([rank.image for rank in device.ranks])
        world = stand_below(self.world, AskedWorld)
        world.calls, world.tick_now = self.notes.calls, lambda: self.notes.tick

    def execute(self, operation: Operation) -> Outcome:
        """Apply one operation and write down what the world is like afterwards."""
        notes = self.notes
        first = notes.next_tick()
        outcome = super().execute(operation)
        before = notes.frames[-1].ranks if notes.frames else ()
        ranks = tuple(
            _bands(self.world, subject, before[rank] if before else ())
            for rank, subject in enumerate(self.world.subjects)
        )
        if before == ranks:
            ranks = before
        ticks, accounts = (first, notes.tick), _accounts(self.world)
        notes.frames.append(Frame(operation, outcome.value, ticks, ranks, accounts))
        return outcome

    def recording(self, signature: str = "") -> Recording:
        """Everything that was written down, about the first violation of a signature or of all."""
        notes, device = self.notes, self.world.device
        violation = seen(self.violations, signature)
        collisions, wrong_read = _places(self.world, violation, notes)
        return Recording(
            setup=self.world.setup,
            granule=device.granule,
            host_granules=tuple(device.host.granules),
            lanes=LANE_NAMES[:LANES],
            frames=tuple(notes.frames),
            launches=tuple(notes.launches),
            waits=tuple(notes.waits),
            binds=tuple(notes.binds),
            moves=tuple(notes.moves),
            calls=tuple(notes.calls),
            runs=tuple(notes.runs),
            violation=violation,
            collisions=collisions,
            wrong_read=wrong_read,
            submissions=tuple(
                tuple(submission_text(self.world.layout, entry) for entry in port.log)
                for port in self.world.ports
            ),
        )


def record(case: Case, subject: SubjectFactory = UnikvSubject) -> Recording:
    """Run a case once more and write everything down, up to where a promise is broken.

    Several may be broken there; the recording is about the one that the case was stored for.
    """
    runs: list[RecordingRun] = []

    def build(setup: Setup, plant: str | None, subject: SubjectFactory) -> RecordingRun:
        runs.append(RecordingRun(setup, plant, subject))
        return runs[-1]

    run_trace(case.setup, case.operations, plant=case.plant, subject=subject, build=build)
    return runs[0].recording(case.violation.signature)


def _bands(world: World, subject: Subject, before: Sequence[BandFrame]) -> tuple[BandFrame, ...]:
    """Every band by one allocator's account, with what copies and peers may touch marked.

    A page that its band gave up while somebody may touch it keeps the mark: that is the news.
    """
    frames = []
    for band, book in enumerate(subject.books()):
        states = bytearray(book.states)
        marked = before[band].states if before else bytes(len(states))
        size = world.layout.bands[band].page_bytes
        for use in world.truth.copies.uses.values():
            for low, high in use.ranges:
                for page in range(low // size, min(-(-high // size), len(states))):
                    # Elsewhere the same bytes are no page of this band.
                    if states[page] or marked[page]:
                        states[page] |= FENCED
        for transfer in world.truth.transfers.uses.values():
            for page in transfer.pages[band]:
                states[page] |= HELD
        owners = tuple(subject.inverse_map(band)[: len(states)])
        frames.append(BandFrame(bytes(states), book.span, owners))
    return tuple(frames)


def _accounts(world: World) -> Accounts:
    """Who may still touch what."""
    truth = world.truth
    retired = truth.retired_through
    touchable = [
        {page: step for page, step in pending.items() if step > retired}
        for pending in truth.pending
    ]
    return Accounts(
        steps=tuple(_steps(world)),
        uses=tuple(world.subjects[0].uses()),
        copies=tuple(world.host_subject.copies()) if world.host_subject else (),
        holds=tuple(world.network_subject.holds()) if world.network_subject else (),
        touchable=tuple(touchable),
        host=tuple(map(dict, truth.copies.holders)),
        requests=note_requests(world),
        transfers=note_transfers(world),
        prefixes=tuple(
            PrefixNote(prefix.blocks, tuple(prefix.pages), prefix.slot)
            for prefix in world.prefixes.values()
        ),
    )


def _steps(world: World) -> Iterator[StepNote]:
    for step in world.steps:
        state = "retired" if step.number <= world.truth.retired_through else "recorded"
        yield StepNote(step.number, step.requests, state, _read_end(step))
    for launched in (world.open_step, world.unsynced_step):
        if launched is not None:
            yield StepNote(launched.number, launched.requests, "launched", _read_end(launched))


def _read_end(step: Step) -> str:
    """What a step's table reads are declared to end behind; empty where nobody has said so."""
    end = step.read_end
    return f"{LANE_NAMES[end.stream]} #{end.epoch}" if step.declares_read_end else ""


def _places(
    world: World, violation: Violation | None, notes: Notebook
) -> tuple[tuple[Collision, ...], WrongRead | None]:
    """Where a violation happened, and where others like it, as far as the device knows."""
    if violation is None:
        return (), None
    device = world.device
    number_of = notes.number_of
    collisions = tuple(
        Collision(number_of[id(race.earlier)], number_of[id(race.later)], race.space, race.unit)
        for race, noted in zip(device.races, ordering.examine(world), strict=True)
        if noted.signature == violation.signature
    )
    for read, noted in zip(device.bad_reads, content.examine(world), strict=False):
        if noted == violation:
            number = number_of[id(read.launch)]
            return collisions, WrongRead(read.rank, number, read.space, read.unit)
    return collisions, None
