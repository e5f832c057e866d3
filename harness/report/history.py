"""What each operation did, in words, and the history of one place: what touched it, and when.

A fact is one line.  Lines name pages by the band that claims the bytes at that moment, since the
same bytes are another band's page a moment later.  Which place matters is not known here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.device.clock import HOST
from harness.report.accounts import slot_facts, step_facts, touch_text, use_facts
from harness.report.actors import actor_facts
from harness.report.place import ARENA, Place, claimed_around
from harness.report.recording import (
    FENCED,
    HELD,
    STATE_MASK,
    STATE_NAMES,
    BindNote,
    LaunchNote,
    Recording,
    Touch,
    WaitNote,
)

BLOCK_MAX = 12
"""Longest run of lines that is looked for once more behind itself."""


class Entry(NamedTuple):
    """What one operation did to a place: its index, and one line for each fact."""

    operation: int
    facts: tuple[str, ...]


def history(recording: Recording, place: Place) -> tuple[Entry, ...]:
    """Every operation that touched a place, with what it did there."""
    entries = []
    for operation in range(len(recording.frames)):
        facts = list(_facts(recording, operation, place))
        if facts:
            entries.append(Entry(operation, tuple(facts)))
    return tuple(entries)


def deeds(recording: Recording, first: int) -> list[tuple[str, ...]]:
    """For each operation from `first` on: what the allocator and the device did, in order."""
    running = sorted(_running(recording))
    return [_deeds(recording, at, running) for at in range(first, len(recording.frames))]


def enqueued(recording: Recording, operation: int) -> tuple[str, ...]:
    """What one operation did, without what ran meanwhile."""
    return _deeds(recording, operation, ())


def _deeds(
    recording: Recording, operation: int, running: Sequence[tuple[int, str]]
) -> tuple[str, ...]:
    low, high = recording.frames[operation].ticks
    # What was asked comes before what it has led to, in the order in which it was asked.
    timed = [(call.tick, 0, call.text) for call in recording.calls_of(operation)]
    for launch in recording.launches_of(operation):
        touched = "; ".join(_touches(recording, launch)) or "touches nothing"
        text = f"{launch.role}: {launch.name} is enqueued, {touched}"
        timed.append((launch.submitted, 1, text))
    for wait in recording.waits_of(operation):
        timed += [(wait.tick, 1, text) for text in waited(recording, wait)]
    ran = running[bisect_left(running, (low, "")) : bisect_left(running, (high, ""))]
    timed += [(tick, 1, text) for tick, text in ran]
    lines = [text for _, _, text in sorted(timed, key=lambda entry: entry[:2])]
    lines += [_bound(recording, bind) for bind in recording.binds_of(operation)]
    lines += [*_changes(recording, operation), *step_facts(recording, operation)]
    return tuple(folded([*lines, *actor_facts(recording, operation)]))


def folded(lines: Sequence[str]) -> Iterator[str]:
    """Lines in which what comes several times in a row stands once, with how often it did."""
    at = 0
    while at < len(lines):
        size, times = _repeated(lines, at)
        yield from lines[at : at + size]
        if times > 1:
            whole = "the last line" if size == 1 else f"the last {size} lines"
            yield f"... {whole} {times - 1} more time{'s' if times > 2 else ''}"
        at += size * times


def _repeated(lines: Sequence[str], at: int) -> tuple[int, int]:
    """The block from a line on that saves most where it stands once: its length, and how often."""
    best = 1, 1
    for size in range(1, min(BLOCK_MAX, (len(lines) - at) // 2) + 1):
        block, times = lines[at : at + size], 1
        while lines[at + size * times : at + size * (times + 1)] == block:
            times += 1
        if size * (times - 1) > max(1, best[0] * (best[1] - 1)):
            best = size, times
    return best


def waited(recording: Recording, wait: WaitNote) -> Iterator[str]:
    """A wait in words; none where there is nothing to wait for, or the host knew of its end."""
    if not wait.epoch or (wait.lane == HOST and not wait.is_new):
        return
    awaited = f"{recording.lanes[wait.awaited]} #{wait.epoch}"
    if wait.is_found:
        yield f"host learns that {awaited} has ended"
        return
    already = "" if wait.is_new else ", as it did before"
    yield f"{recording.lanes[wait.lane]} waits for {awaited}{already}"


def state_text(state: int) -> str:
    """A page's state and its marks."""
    words = [STATE_NAMES.get(state & STATE_MASK, f"state {state & STATE_MASK}")]
    if state & FENCED:
        words.append("under a copy")
    if state & HELD:
        words.append("held by a transfer")
    return ", ".join(words)


def _facts(recording: Recording, operation: int, place: Place) -> Iterator[str]:
    for launch in recording.launches_of(operation):
        verbs = _verbs(launch, place)
        if verbs:
            where = f"{launch.role} #{launch.epoch}"
            yield f"{verbs} by {launch.name} ({where}){_ran(recording, launch)}"
    for move in recording.moves_of(operation):
        if move.band == place.band:
            for source, target in zip(move.sources, move.targets, strict=True):
                if place.page in (source, target):
                    yield f"moved: page {source} is copied to page {target}"
    for bind in recording.binds_of(operation):
        if bind.band == place.band and place.page in (bind.before, bind.after):
            yield _bound(recording, bind)
    if place.page >= 0:
        yield from _page_changes(recording, operation, place.band, place.page)
        yield from use_facts(recording, operation, place.band, place.page)
    if place.slot >= 0:
        yield from slot_facts(recording, operation, place.band, place.slot)


def _verbs(launch: LaunchNote, place: Place) -> str:
    reads = writes = False
    for space, units, wrote in launch.touched:
        if space == place.space and not place.units.isdisjoint(units):
            reads, writes = reads or not wrote, writes or wrote
    return {(True, True): "read and written", (True, False): "read", (False, True): "written"}.get(
        (reads, writes), ""
    )


def _ran(recording: Recording, launch: LaunchNote) -> str:
    """When it ran on each rank, by operations."""
    parts = []
    for runs in recording.runs:
        run = runs.get(launch.number)
        if run is None:
            parts.append("has not started")
        elif run.end is None:
            parts.append(f"running since op {recording.operation_at(run.start)}")
        else:
            begin, end = recording.operation_at(run.start), recording.operation_at(run.end)
            parts.append(f"ran in op {begin}" if begin == end else f"ran from op {begin} to {end}")
    if len(set(parts)) == 1:
        return f": {parts[0]}"
    return ": " + ", ".join(f"rank {rank} {part}" for rank, part in enumerate(parts))


def _touches(recording: Recording, launch: LaunchNote) -> Iterator[str]:
    """What a launch reads and writes, as pages where it can."""
    merged: dict[tuple[str, bool], list[int]] = {}
    for space, units, wrote in launch.touched:
        if units:
            merged.setdefault((space, wrote), []).extend(units)
    for (space, wrote), all_units in merged.items():
        what = _units_text(recording, launch.operation, Touch(space, tuple(all_units), wrote))
        yield f"{'writes' if wrote else 'reads'} {what}"


def _units_text(recording: Recording, operation: int, touch: Touch) -> str:
    kind, _, name = touch.space.partition(":")
    numbers = ", ".join(map(str, dict.fromkeys(touch.units)))
    if kind != ARENA:
        names = {"map": f"map of {name!r}", "rows": "row", "host": f"host memory {name} at"}
        return f"{names.get(kind, kind)} {numbers}"
    left = frozenset(touch.units)
    by_band: dict[str, list[int]] = {}
    for _, place in claimed_around(recording, operation, left, wrote=touch.wrote):
        by_band.setdefault(recording.setup.bands[place.band].name, []).append(place.page)
        left -= place.units
    texts = [f"{band} {_listed(pages)}" for band, pages in by_band.items()]
    if left:
        low, high = min(left) * recording.granule, (max(left) + 1) * recording.granule
        whose = "the sink's bytes" if high <= recording.setup.sink_bytes else "bytes"
        free = "" if high <= recording.setup.sink_bytes else " that no band claims"
        texts.append(f"{whose} {low}..{high}{free}")
    return " and ".join(texts)


def _listed(pages: Sequence[int]) -> str:
    return f"page{'s' if len(pages) > 1 else ''} {', '.join(map(str, pages))}"


def _running(recording: Recording) -> Iterator[tuple[int, str]]:
    """Starts and ends on every rank, but for what the host does itself, at one stroke."""
    for rank, runs in enumerate(recording.runs):
        who = f"rank {rank}: " if len(recording.runs) > 1 else ""
        for number, run in runs.items():
            launch = recording.launches[number]
            if launch.role == "host":
                continue
            yield run.start, f"{who}{launch.role}: {launch.name} starts"
            if run.end is not None:
                yield run.end, f"{who}{launch.role}: {launch.name} ends"


def _bound(recording: Recording, bind: BindNote) -> str:
    _, band, unit, before, after = bind
    name = recording.setup.bands[band].name
    if before == after:
        return f"id {unit} of {name} is named once more, as before: page {after}"
    if not after:
        return f"id {unit} of {name} no longer names page {before}"
    if before:
        return f"id {unit} of {name} names page {after} instead of page {before}"
    return f"id {unit} of {name} names page {after}"


def _changes(recording: Recording, operation: int) -> Iterator[str]:
    """Pages whose state on the first rank is another one than before."""
    for band in range(len(recording.setup.bands)):
        now = recording.frames[operation].ranks[0][band].states
        before = recording.frames[operation - 1].ranks[0][band].states if operation else b""
        if now == before:
            continue
        for page in range(len(now)):
            yield from _page_changes(recording, operation, band, page)


def _page_changes(recording: Recording, operation: int, band: int, page: int) -> Iterator[str]:
    """How a page's state changed, on each rank where the ranks do not agree."""
    texts = []
    for rank, bands in enumerate(recording.frames[operation].ranks):
        before = 0
        if operation:
            states = recording.frames[operation - 1].ranks[rank][band].states
            before = states[page] if page < len(states) else 0
        states = bands[band].states
        now = states[page] if page < len(states) else 0
        change = "" if now == before else f"{state_text(before)} -> {state_text(now)}"
        texts.append(change and change + touch_text(recording, operation, band, page))
    name = recording.setup.bands[band].name
    if len(set(texts)) == 1:
        if texts[0]:
            yield f"{name} page {page}: {texts[0]}"
        return
    for rank, text in enumerate(texts):
        yield f"{name} page {page} on rank {rank}: {text or 'as before'}"
