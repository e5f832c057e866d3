"""Rules of the trace event format, as a viewer reads it that turns events into tables.

The insight: such a reader drops what it cannot use without a word, so a file that opens says
nothing.  Each rule here is one reason for which an event is dropped or put in a wrong place.

Source: "Trace Event Format" of the Chromium project, and the reader of JSON in Perfetto's trace
processor.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

Event = dict[str, Any]
Track = tuple[int, int]

NUMBERS = {"X": ("ts", "dur"), "i": ("ts",), "s": ("ts", "id"), "f": ("ts", "id"), "M": ()}
"""What must be a number of each phase, beside process and thread."""

NAMED = ("process_name", "thread_name")


def broken_rules(events: Sequence[Event]) -> list[str]:
    """Every rule that some event breaks, in words; none for a sound trace."""
    found = [f"{text}: {event}" for event in events for text in _of_one(event)]
    return found or [*_nesting(events), *_arrows(events), *_names(events)]


def _of_one(event: Event) -> Iterator[str]:
    phase = event.get("ph")
    if phase not in NUMBERS:
        yield "phase that is not read"
        return
    for key in ("pid", "tid", *NUMBERS[phase]):
        if type(event.get(key)) is not int or event[key] < 0:
            yield f"{key} is no whole number"
        elif key in ("pid", "tid") and event[key] == 0:
            yield f"{key} 0 is kept for what idles"
    for key in ("name",) if phase == "M" else ("name", "cat"):
        if not isinstance(event.get(key), str) or not event[key]:
            yield f"{key} is no text"
    if phase == "i" and event.get("s") not in ("g", "p", "t"):
        yield "scope of an instant"
    if phase == "f" and event.get("bp") != "e":
        yield "an arrow ends at the next slice, not at this one"
    if phase == "M" and (event.get("name") not in NAMED or not event["args"].get("name")):
        yield "metadata without a name"


def _track(event: Event) -> Track:
    return event["pid"], event["tid"]


def _slices(events: Sequence[Event]) -> dict[Track, list[tuple[int, int]]]:
    """Begin and end of what lies on each track, instants of threads included."""
    tracks: dict[Track, list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X" or (event["ph"] == "i" and event["s"] == "t"):
            end = event["ts"] + event.get("dur", 0)
            tracks.setdefault(_track(event), []).append((event["ts"], end))
    # As they are read: by their begin, then by their place in the file.
    return {track: sorted(slices, key=lambda one: one[0]) for track, slices in tracks.items()}


def _nesting(events: Sequence[Event]) -> Iterator[str]:
    for track, slices in _slices(events).items():
        for (begin, end), (later, later_end) in pairwise(slices):
            if later < end < later_end or later == begin < end < later_end:
                yield f"slices cross on {track} at {later}"


def _arrows(events: Sequence[Event]) -> Iterator[str]:
    leaving = [event for event in events if event["ph"] == "s"]
    ends = [event for event in events if event["ph"] == "f"]
    ids = [event["id"] for event in leaving]
    if len(set(ids)) < len(ids) or sorted(ids) != sorted(event["id"] for event in ends):
        yield f"arrows that do not pair: {ids}"
        return
    arriving = {event["id"]: event for event in ends}
    for event in leaving:
        other = arriving[event["id"]]
        if (event["name"], event["cat"]) != (other["name"], other["cat"]):
            yield f"arrow {event['id']} has two names"
        if event["ts"] > other["ts"]:
            yield f"arrow {event['id']} arrives before it leaves"
    slices = _slices(events)
    for event in (*leaving, *ends):
        met = [one for one in slices.get(_track(event), []) if one[0] <= event["ts"]]
        # The slice that began last is the one that an arrow is tied to, whether it has ended or
        # not.
        if not met or met[-1][1] <= event["ts"]:
            yield f"arrow {event['id']} is tied to no slice on {_track(event)}"


def _names(events: Sequence[Event]) -> Iterator[str]:
    named = [(event["name"], *_track(event)) for event in events if event["ph"] == "M"]
    if len(set(named)) < len(named):
        yield f"named twice: {named}"
    processes = {pid for name, pid, _ in named if name == "process_name"}
    threads = {(pid, tid) for name, pid, tid in named if name == "thread_name"}
    for event in events:
        if event["ph"] != "M" and (event["pid"] not in processes or _track(event) not in threads):
            yield f"{_track(event)} has no name"
