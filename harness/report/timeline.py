"""A replay in Chrome's trace format, for ui.perfetto.dev: a process per rank, a thread per lane.

The model knows the order of things and no durations, so a tick is shown as a microsecond.  What is
a failure and what is not, is known here only from the story.

Source: "Trace Event Format" of the Chromium project.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from harness.report.recording import LaunchNote, Recording
from harness.report.story import Story

RANK_PROCESS = 1
"""Process of the first rank; viewers take 0 for a machine that idles."""

OPERATIONS_THREAD = 1
ACCESSES_THREAD = 2
"""Where the accesses of a failure were enqueued: on their lanes they may never have started."""

LANE_THREAD = 3
"""Thread of the first lane; the others follow."""

Event = dict[str, object]


def timeline(story: Story) -> bytes:
    """The whole file, as JSON."""
    recording = story.recording
    sides = {side.launch.number: side.when for side in story.sides}
    events: list[Event] = []
    for rank in range(len(recording.runs)):
        events += _names(recording, rank)
        events += _accesses(story, rank)
        events += _operations(story, rank)
        events += _slices(recording, rank, sides)
        # Arrows belong to slices that a reader has met: of events of one tick, the first in the
        # file comes first.
        events += _flows(recording, rank)
    text = msgspec.json.encode({"displayTimeUnit": "ms", "traceEvents": events})
    return msgspec.json.format(text, indent=1) + b"\n"


def _names(recording: Recording, rank: int) -> Iterator[Event]:
    used = {launch.lane for launch in recording.launches}
    yield _metadata("process_name", rank, OPERATIONS_THREAD, f"rank {rank}")
    yield _metadata("thread_name", rank, OPERATIONS_THREAD, "operations")
    for lane in sorted(used):
        yield _metadata("thread_name", rank, lane + LANE_THREAD, recording.lanes[lane])


def _metadata(what: str, rank: int, thread: int, name: str) -> Event:
    process = rank + RANK_PROCESS
    return {"ph": "M", "name": what, "pid": process, "tid": thread, "args": {"name": name}}


def _operations(story: Story, rank: int) -> Iterator[Event]:
    """One instant for each operation; what failed is said where it was seen."""
    for at, frame in enumerate(story.recording.frames):
        yield {
            "ph": "i",
            "s": "t",
            "name": f"{at} {frame.operation!r}",
            "cat": "operation",
            "pid": rank + RANK_PROCESS,
            "tid": OPERATIONS_THREAD,
            "ts": frame.ticks[0],
            "args": {
                "outcome": frame.outcome,
                "asked": [call.text for call in story.recording.calls_of(at)],
            },
        }
    yield {
        "ph": "i",
        "s": "p",
        "name": f"failure: {story.violation.what}",
        "cat": "failure",
        "pid": rank + RANK_PROCESS,
        "tid": OPERATIONS_THREAD,
        "ts": story.recording.end,
        "args": {"signature": story.violation.signature},
    }


def _accesses(story: Story, rank: int) -> Iterator[Event]:
    """The accesses where they were enqueued, and the edge between them that is missing."""
    if not story.sides:
        return
    yield _metadata("thread_name", rank, ACCESSES_THREAD, "accesses of the failure")
    shared: Event = {"pid": rank + RANK_PROCESS, "tid": ACCESSES_THREAD, "cat": "access"}
    for side in story.sides:
        name = f"{side.when}: {side.note.kind}, {side.lane}"
        args = {"operation": side.operation, "step": side.note.step, "ran": list(side.ran)}
        slice_ = {"ph": "X", "ts": side.launch.submitted, "dur": 1}
        yield shared | slice_ | {"name": name, "args": args}
    if story.recording.collision is not None:
        edge = shared | {
            "name": "missing edge",
            "cat": "missing edge",
            "id": _missing_edge(story, rank),
        }
        earlier, later = (side.launch.submitted for side in story.sides)
        yield edge | {"ph": "s", "ts": earlier}
        yield edge | {"ph": "f", "bp": "e", "ts": later}


def _missing_edge(story: Story, rank: int) -> int:
    """A number behind those of all waits."""
    recording = story.recording
    return 1 + len(recording.runs) * len(recording.arrows()) + rank


def _slices(recording: Recording, rank: int, sides: dict[int, str]) -> Iterator[Event]:
    """A slice for every launch that has started, an instant for one that never did."""
    runs = recording.runs[rank]
    for launch in recording.launches:
        run = runs.get(launch.number)
        event: Event = {
            "name": _title(launch, sides),
            "cat": "launch",
            "pid": rank + RANK_PROCESS,
            "tid": launch.lane + LANE_THREAD,
            "args": {
                "launch": launch.number,
                "place in its stream": launch.epoch,
                "operation": launch.operation,
                "step": launch.step,
                "clock": dict(zip(recording.lanes, launch.clock, strict=True)),
                "touches": [
                    f"{'writes' if wrote else 'reads'} {space} {list(units)}"
                    for space, units, wrote in launch.touched
                ],
            },
        }
        if run is None:
            # Beside the operations: on its lane it would lie in the slice before it, and take the
            # arrows that leave from there.
            event |= {"ph": "i", "s": "t", "ts": launch.submitted, "cat": "queued"}
            event["name"] = f"queued on {recording.lanes[launch.lane]}: {event['name']}"
            event["tid"] = OPERATIONS_THREAD
        else:
            end = recording.end if run.end is None else run.end
            event |= {"ph": "X", "ts": run.start, "dur": max(1, end - run.start)}
        yield event


def _title(launch: LaunchNote, sides: dict[int, str]) -> str:
    when = sides.get(launch.number)
    return f"{launch.name} [{when}]" if when else launch.name


def _flows(recording: Recording, rank: int) -> Iterator[Event]:
    """An arrow from the last launch that is waited for to the first one behind the wait."""
    runs, arrows = recording.runs[rank], recording.arrows()
    # A number: viewers read a text as one, in hexadecimal, and drop arrows whose text is none.
    for number, (awaited, waiting) in enumerate(arrows, 1 + rank * len(arrows)):
        if awaited.number not in runs or waiting.number not in runs:
            continue
        process = rank + RANK_PROCESS
        shared: Event = {"name": "wait", "cat": "wait", "pid": process, "id": number}
        before, after = runs[awaited.number], runs[waiting.number]
        # Within its slice: half-open, so the last tick of it is the one before its end.
        leaves = before.start if before.end is None else max(before.start, before.end - 1)
        yield shared | {"ph": "s", "tid": awaited.lane + LANE_THREAD, "ts": leaves}
        yield shared | {"ph": "f", "bp": "e", "tid": waiting.lane + LANE_THREAD, "ts": after.start}
