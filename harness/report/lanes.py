"""The streams of every rank as lanes: what was enqueued, what ran when, and who waits for whom.

A launch stands where it was enqueued, since that alone decides what is ordered; the strip below it
says when it ran on this rank, which differs.  Colours and markup are not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.report.columns import Columns, places_of
from harness.report.recording import LaunchNote, Recording
from harness.report.story import Story

LANE_HEIGHT, BOX_HEIGHT, STRIP_HEIGHT = 40, 20, 5
BOX_TOP, STRIP_TOP = 6, 29
RANK_GAP = 22
NAME_WIDTH_MIN = 40

SHORT = {"metadata": "meta", "receive": "recv", "backup": "save"}
"""Kinds whose names do not fit into a box."""


class Box(NamedTuple):
    """One launch.

    Attributes:
        x, y, width: in pixels; the height is the same for all.
        kind: what became of it by the end, and whether it is one of the two accesses.
        title: everything about it.
        label: its kind and step, where there is room.
    """

    x: int
    y: int
    width: int
    kind: str
    title: str
    label: str


class Strip(NamedTuple):
    """When a launch ran; `is_open` says whether it still runs."""

    x: int
    y: int
    width: int
    is_open: bool


class Arrow(NamedTuple):
    """From the end of a launch to the beginning of another."""

    x1: int
    y1: int
    x2: int
    y2: int
    title: str

    @property
    def path(self) -> str:
        """A curve that leaves and arrives level."""
        bend = max(14, abs(self.x2 - self.x1) // 3)
        return (
            f"M{self.x1} {self.y1} C{self.x1 + bend} {self.y1} {self.x2 - bend} {self.y2}"
            f" {self.x2} {self.y2}"
        )


class Name(NamedTuple):
    """A line beside the picture."""

    y: int
    text: str
    kind: str


class LanesPicture(NamedTuple):
    """All lanes of all ranks."""

    height: int
    names: tuple[Name, ...]
    lines: tuple[int, ...]
    boxes: tuple[Box, ...]
    strips: tuple[Strip, ...]
    waits: tuple[Arrow, ...]
    missing: tuple[Arrow, ...]


def lanes_picture(story: Story, columns: Columns) -> LanesPicture:
    """The lanes that anything was enqueued on, rank by rank."""
    recording = story.recording
    used = sorted({launch.lane for launch in recording.launches})
    names, lines, boxes, strips, waits, missing = [], [], [], [], [], []
    lefts = places_of(recording, columns)
    top = 0
    for rank in range(len(recording.runs)):
        if len(recording.runs) > 1:
            names.append(Name(top + 14, f"rank {rank}", "rank"))
            top += RANK_GAP
        tops = {lane: top + at * LANE_HEIGHT for at, lane in enumerate(used)}
        for lane, y in tops.items():
            names.append(Name(y + BOX_TOP + 14, recording.lanes[lane], "lane"))
            lines.append(y + LANE_HEIGHT)
        boxes += list(_boxes(story, rank, columns, lefts, tops))
        strips += list(_strips(recording, rank, columns, tops))
        waits += list(_waits(recording, columns, lefts, tops))
        missing += list(_missing(story, columns, lefts, tops))
        top += len(used) * LANE_HEIGHT
    return LanesPicture(
        top, tuple(names), tuple(lines), tuple(boxes), tuple(strips), tuple(waits), tuple(missing)
    )


def _boxes(
    story: Story, rank: int, columns: Columns, lefts: dict[int, int], tops: dict[int, int]
) -> Iterator[Box]:
    recording = story.recording
    sides = {side.launch.number: side.when for side in story.sides}
    for number, x in lefts.items():
        launch = recording.launches[number]
        run = recording.runs[rank].get(number)
        state = "queued" if run is None else "running" if run.end is None else "ended"
        kind = f"{state} {sides.get(number, '').replace(' ', '-')}".rstrip()
        label = ""
        if columns.box >= NAME_WIDTH_MIN:
            label = SHORT.get(launch.kind, launch.kind)
            label += f" {launch.step}" if launch.step else ""
        what = sides.get(number)
        title = f"{launch.role} #{launch.epoch}: {launch.name}, op {launch.operation}, {state}"
        title += f" - the {what} access" if what else ""
        yield Box(x, tops[launch.lane] + BOX_TOP, columns.box - 4, kind, title, label)


def _strips(
    recording: Recording, rank: int, columns: Columns, tops: dict[int, int]
) -> Iterator[Strip]:
    for number, run in recording.runs[rank].items():
        end = recording.end if run.end is None else run.end
        if recording.operation_at(end - 1) < columns.first:
            continue
        x = columns.at_tick(recording, run.start)
        right = columns.total if run.end is None else columns.at_tick(recording, run.end)
        y = tops[recording.launches[number].lane] + STRIP_TOP
        yield Strip(x, y, max(3, right - x - 1), run.end is None)


def _waits(
    recording: Recording, columns: Columns, lefts: dict[int, int], tops: dict[int, int]
) -> Iterator[Arrow]:
    for awaited, waiting in recording.arrows():
        if awaited.number in lefts and waiting.number in lefts:
            yield _arrow(columns, lefts, tops, awaited, waiting)


def _missing(
    story: Story, columns: Columns, lefts: dict[int, int], tops: dict[int, int]
) -> Iterator[Arrow]:
    if story.recording.collision is None:
        return
    earlier, later = (side.launch for side in story.sides)
    if earlier.number in lefts and later.number in lefts:
        yield _arrow(columns, lefts, tops, earlier, later)


def _arrow(
    columns: Columns,
    lefts: dict[int, int],
    tops: dict[int, int],
    source: LaunchNote,
    target: LaunchNote,
) -> Arrow:
    middle = BOX_TOP + BOX_HEIGHT // 2
    title = f"{target.role} waits for {source.role} #{source.epoch}"
    return Arrow(
        lefts[source.number] + columns.box - 4,
        tops[source.lane] + middle,
        lefts[target.number],
        tops[target.lane] + middle,
        title,
    )
