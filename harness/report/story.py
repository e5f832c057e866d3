"""One failure as a reader needs it: the cause, its place, both accesses, what every format shows.

A replay gives facts and a case gives the trace; here they are put together once, so that the page,
the text, the timeline and the explanation cannot disagree.  How they look is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from harness.case import Case
from harness.check import PROMISES
from harness.ops import Complete, HostSync, IdleCheck
from harness.report.accounts import StepRow, ledger_text, step_rows
from harness.report.actors import ActorTable, actor_tables
from harness.report.history import Entry, deeds, enqueued, history, state_text
from harness.report.length import Length
from harness.report.place import Place, page_place, places
from harness.report.recorder import record
from harness.report.recording import STATE_MASK, LaunchNote, Recording
from harness.report.text import describe
from harness.rules import rule_of
from harness.unikv_subject import UnikvSubject
from harness.violation import AccessNote, Violation
from harness.world import SubjectFactory

TIMING = (Complete, HostSync, IdleCheck)
"""Operations that let device work end before something has to wait for it."""


LEADS_MIN, LEADS_MAX = 2, 3
"""Operations before the last one whose doings are told with its own."""


class Side(NamedTuple):
    """One of the two accesses that collide, or the read that went wrong.

    Attributes:
        when: `earlier`, `later` or `wrong read`.
        note: as the check reported it.
        operation: what submitted it, in words.
        launch: the same as the device saw it.
        lane: its place in its stream, in words.
        ran: per rank, what became of it by the end, in words.
    """

    when: str
    note: AccessNote
    operation: str
    launch: LaunchNote
    lane: str
    ran: tuple[str, ...]


class BandRow(NamedTuple):
    """One band when the failure was seen: its span, its pages by state, and bytes per page."""

    name: str
    page_bytes: int
    span: tuple[int, int]
    live: int
    holes: int
    pending: int
    fixed: int
    gap_bytes: int


class Difference(NamedTuple):
    """Something that ranks do not have in common: its name, and per rank what it is."""

    name: str
    ranks: tuple[str, ...]


class Follow(NamedTuple):
    """A place and everything that happened to it."""

    place: Place
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """A failure.

    Attributes:
        case: the trace.
        recording: its replay.
        violation: what the replay found, which the case was stored for.
        replay: the command that shows it again.
        length: how far the trace has been made small; None where that is not known.
        followed: the places of the failure with their histories.
        sides: both accesses; one that went wrong; none.
        order: why nothing orders the two accesses, in a sentence; empty where it is no race.
        bands: the arena when the failure was seen, by the states that the first rank gives pages.
        steps: the last forward steps, and in which operation each became what.
        actors: requests and transfers that were not over before the last operation.
        differences: where ranks do not agree.
    """

    case: Case
    recording: Recording
    violation: Violation
    replay: str
    length: Length | None
    followed: tuple[Follow, ...]
    sides: tuple[Side, ...]
    order: str
    bands: tuple[BandRow, ...]
    steps: tuple[StepRow, ...]
    actors: tuple[ActorTable, ...]
    differences: tuple[Difference, ...]

    @property
    def unclaimed_bytes(self) -> int:
        """Bytes behind the sink that no band claimed when the failure was seen."""
        setup = self.case.setup
        claimed = sorted(
            (row.span[0] * row.page_bytes, row.span[1] * row.page_bytes)
            for row in self.bands
            if row.span[0] < row.span[1]
        )
        free, below = 0, setup.sink_bytes
        for low, high in (*claimed, (setup.total_bytes, setup.total_bytes)):
            # Where spans cross, their common bytes are claimed once.
            free += max(0, low - below)
            below = max(below, high)
        return free

    @property
    def are_bytes_held(self) -> bool:
        """Whether the accesses are to bytes of the arena, which are live, pending or free."""
        return all(side.note.holder in ("live", "pending", "free") for side in self.sides)

    @property
    def headline(self) -> str:
        """The promise that was broken, in a few words."""
        return f"{self.violation.check}: {self.violation.detail}"

    @property
    def promise(self) -> str:
        """What should have held."""
        return PROMISES.get(self.violation.check, "")

    @property
    def rule(self) -> str:
        """What that means for this failure; empty for a race, whose missing edge says it."""
        return rule_of(self.violation.detail)

    @property
    def deeds(self) -> tuple[str, ...]:
        """What the operation asked and did after which the failure was seen, in order.

        What ran meanwhile is among it where a read went wrong as it ran.
        """
        at = len(self.recording.frames) - 1
        if self.recording.wrong_read is not None:
            return deeds(self.recording, at)[0]
        return enqueued(self.recording, at)

    @property
    def leads(self) -> tuple[int, ...]:
        """Operations before the last one that a reader looks at first.

        Those of the accesses; where there are none, the last ones that touched each place; and the
        ones right before the failure that were not skipped, until there are two.
        """
        last = len(self.recording.frames) - 1
        found = {side.launch.operation for side in self.sides} or {
            max(earlier)
            for _, entries in self.followed
            if (earlier := [entry.operation for entry in entries if entry.operation < last])
        }
        found.discard(last)
        frames = self.recording.frames
        nearest = (
            at
            for at in range(last - 1, -1, -1)
            if at not in found and frames[at].outcome != "skipped"
        )
        while len(found) < LEADS_MIN and (at := next(nearest, -1)) >= 0:
            found.add(at)
        return tuple(sorted(found)[-LEADS_MAX:])

    @property
    def timing(self) -> str:
        """Where the schedule departs from the default one, in a sentence."""
        frames = enumerate(self.recording.frames)
        early = [f"{at}" for at, frame in frames if isinstance(frame.operation, TIMING)]
        begin = "Device work starts as early and ends as late as ordering allows"
        if not early:
            return f"{begin}; no operation here lets any end sooner"
        if len(early) == 1:
            return f"{begin}; only operation {early[0]} lets some end sooner"
        return f"{begin}; only operations {', '.join(early)} let some end sooner"

    @property
    def marks(self) -> dict[int, str]:
        """Operations to look at: `!` where it was seen, `>` where an access was submitted."""
        accesses = {side.launch.operation: ">" for side in self.sides}
        return {self.violation.operation: "!"} | accesses


def tell(
    case: Case,
    replay: str,
    subject: SubjectFactory = UnikvSubject,
    length: Length | None = None,
) -> Story | None:
    """The story of a case, from one more run of it; None if it does not fail as it was stored."""
    recording = record(case, subject)
    violation = recording.violation
    if violation is None or violation.signature != case.violation.signature:
        return None
    sides = _sides(recording, violation)
    found = tuple(
        Follow(place, _entries(recording, place, has_accesses=bool(sides)))
        for place in places(recording)
    )
    return Story(
        case=case,
        recording=recording,
        violation=violation,
        replay=replay,
        length=length,
        followed=found,
        sides=sides,
        order=_order(recording, sides) if recording.collision else "",
        bands=_band_rows(recording),
        steps=step_rows(recording),
        actors=actor_tables(recording),
        differences=_differences(recording),
    )


def _entries(recording: Recording, place: Place, *, has_accesses: bool) -> tuple[Entry, ...]:
    """The history of a place; where no accesses tell more, up to what the ledger has at the end."""
    entries = history(recording, place)
    last = len(recording.frames) - 1
    if has_accesses or not entries:
        return entries
    if entries[-1].operation < last:
        entries = (*entries, Entry(last, ("nothing",)))
    if place.page < 0:
        return entries
    *earlier, end = entries
    fact = ledger_text(recording, last, place.band, place.page)
    return (*earlier, end._replace(facts=(*end.facts, fact)))


def _sides(recording: Recording, violation: Violation) -> tuple[Side, ...]:
    if recording.collision is not None:
        numbers = [recording.collision.earlier, recording.collision.later]
        names = ["earlier", "later"]
    elif recording.wrong_read is not None:
        numbers, names = [recording.wrong_read.launch], ["wrong read"]
    else:
        return ()
    return tuple(
        _side(recording, name, recording.launches[number], note)
        for name, number, note in zip(names, numbers, violation.accesses, strict=True)
    )


def _side(recording: Recording, when: str, launch: LaunchNote, note: AccessNote) -> Side:
    operation = describe(recording.frames[launch.operation].operation)
    lane = f"launch #{launch.epoch} of the {launch.role} stream"
    ran = []
    for runs in recording.runs:
        run = runs.get(launch.number)
        if run is None:
            ran.append("not started")
        elif run.end is None:
            ran.append(f"running since op {recording.operation_at(run.start)}")
        else:
            ran.append(f"ended in op {recording.operation_at(run.end)}")
    return Side(when, note, operation, launch, lane, tuple(ran))


def _order(recording: Recording, sides: tuple[Side, ...]) -> str:
    earlier, later = (side.launch for side in sides)
    known = later.clock[earlier.lane]
    behind = f"launch #{known} and whatever came before it" if known else "no launch"
    return (
        f"of the {earlier.role} stream the {later.name} is ordered behind {behind}, and the"
        f" {earlier.name} is launch #{earlier.epoch}{_late_wait(recording, earlier, later)}"
    )


def _late_wait(recording: Recording, earlier: LaunchNote, later: LaunchNote) -> str:
    """That the wait is there and comes too late, as the end of a sentence; empty if it is not."""
    for wait in recording.waits_of(later.operation):
        covers = wait.awaited == earlier.lane and wait.epoch >= earlier.epoch
        if wait.lane == later.lane and wait.tick > later.submitted and covers:
            return (
                f"; the {later.role} stream waits for it in operation {later.operation}, but only"
                f" after the {later.name}"
            )
    return ""


def _band_rows(recording: Recording) -> tuple[BandRow, ...]:
    """Bands of the first rank, and behind each the unclaimed bytes up to the next one."""
    setup, bands = recording.setup, recording.frames[-1].ranks[0]
    claimed = [
        (low * part.page_bytes, high * part.page_bytes)
        for part, (_, (low, high), _) in zip(setup.bands, bands, strict=True)
    ]
    rows = []
    for at, (part, frame) in enumerate(zip(setup.bands, bands, strict=True)):
        count = [0] * (STATE_MASK + 1)
        for state in frame.states:
            count[state & STATE_MASK] += 1
        low, end = claimed[at]
        # Where spans cross, another one goes on at the end of this one, and nothing is free.
        above = [max(start, end) for start, stop in claimed if start < stop and stop > end]
        gap = min(above, default=setup.total_bytes) - end if low < end else 0
        live, holes, pending, fixed = count[1:5]
        size = part.page_bytes
        rows.append(BandRow(part.name, size, frame.span, live, holes, pending, fixed, max(0, gap)))
    return tuple(rows)


def _differences(recording: Recording) -> tuple[Difference, ...]:
    """Pages whose state, spans, and submissions of the last operation that ranks have apart."""
    ranks = recording.frames[-1].ranks
    found = []
    for band, part in enumerate(recording.setup.bands):
        frames = [rank[band] for rank in ranks]
        spans = tuple(f"{low}..{high}" for low, high in (frame.span for frame in frames))
        if len(set(spans)) > 1:
            found.append(Difference(f"span of {part.name}", spans))
        for page, states in enumerate(zip(*(frame.states for frame in frames), strict=False)):
            if len(set(states)) > 1:
                title = page_place(recording, band, page).title
                found.append(Difference(title, tuple(map(state_text, states))))
    logs = recording.submissions
    if len(set(logs)) > 1:
        for at in range(max(map(len, logs))):
            entries = tuple(log[at] if at < len(log) else "nothing" for log in logs)
            if len(set(entries)) > 1:
                found.append(Difference(f"submission {at} of the last operation", entries))
    return tuple(found)
