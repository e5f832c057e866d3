"""The streams of every rank as lanes: what was enqueued, what ran when, and who waits for whom.

A launch and a wait stand where they were enqueued, since that alone decides what is ordered: what
is right of a wait on its lane comes behind it.  The strip below a launch says when it ran on this
rank, which differs.  Colours and markup are not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.report.columns import Columns, Places, places_of
from harness.report.history import waited
from harness.report.recording import LaunchNote, Recording
from harness.report.story import Story

LANE_HEIGHT, BOX_HEIGHT, STRIP_HEIGHT = 40, 20, 5
BOX_TOP, STRIP_TOP = 6, 29
BOX_MARGIN = 4
RANK_GAP = 22
NAME_WIDTH_MIN = 40

MIDDLE = BOX_TOP + BOX_HEIGHT // 2
GAP_ABOVE, GAP_BELOW = 1, 35
TRACKS, TRACK_HEIGHT = 3, 2
"""Between two lanes there is room for arrows, side by side."""

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
    """From the end of a launch to a wait, or to the launch that should have waited.

    It leaves its lane at once, runs between the lanes, and comes down on its end, where no other
    lane has anything: so it crosses no launch.
    """

    x1: int
    y1: int
    between: int
    x2: int
    y2: int
    title: str

    @property
    def path(self) -> str:
        """Straight lines."""
        return f"M{self.x1} {self.y1} V{self.between} H{self.x2} V{self.y2}"


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
    waiting = {wait.lane for wait, _ in recording.awaited()}
    used = sorted({launch.lane for launch in recording.launches} | waiting)
    names, lines, boxes, strips, waits, missing = [], [], [], [], [], []
    places = places_of(recording, columns)
    top = 0
    for rank in range(len(recording.runs)):
        if len(recording.runs) > 1:
            names.append(Name(top + 14, f"rank {rank}", "rank"))
            top += RANK_GAP
        tops = {lane: top + at * LANE_HEIGHT for at, lane in enumerate(used)}
        for lane, y in tops.items():
            names.append(Name(y + BOX_TOP + 14, recording.lanes[lane], "lane"))
            lines.append(y + LANE_HEIGHT)
        boxes += list(_boxes(story, rank, columns, places, tops))
        strips += list(_strips(recording, rank, columns, tops))
        waits += list(_waits(recording, columns, places, tops))
        missing += list(_missing(story, columns, places, tops))
        top += len(used) * LANE_HEIGHT
    return LanesPicture(
        top, tuple(names), tuple(lines), tuple(boxes), tuple(strips), tuple(waits), tuple(missing)
    )


def _boxes(
    story: Story, rank: int, columns: Columns, places: Places, tops: dict[int, int]
) -> Iterator[Box]:
    recording = story.recording
    sides = {side.launch.number: side.when for side in story.sides}
    for number, x in places.launches.items():
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
        yield Box(x, tops[launch.lane] + BOX_TOP, columns.box - BOX_MARGIN, kind, title, label)


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
    recording: Recording, columns: Columns, places: Places, tops: dict[int, int]
) -> Iterator[Arrow]:
    for wait, awaited in recording.awaited():
        if wait.tick in places.waits and awaited.number in places.launches:
            (title,) = waited(recording, wait)
            end = (places.waits[wait.tick] + columns.wait // 2, tops[wait.lane] + MIDDLE)
            yield _arrow(columns, places, tops, awaited, end, f"op {wait.operation}: {title}")


def _missing(
    story: Story, columns: Columns, places: Places, tops: dict[int, int]
) -> Iterator[Arrow]:
    if story.recording.collision is None:
        return
    earlier, later = (side.launch for side in story.sides)
    if earlier.number in places.launches and later.number in places.launches:
        edge = BOX_TOP if tops[earlier.lane] < tops[later.lane] else BOX_TOP + BOX_HEIGHT
        end = (places.launches[later.number] + BOX_MARGIN, tops[later.lane] + edge)
        title = f"{later.role} waits for {earlier.role} #{earlier.epoch}"
        yield _arrow(columns, places, tops, earlier, end, title)


def _arrow(
    columns: Columns,
    places: Places,
    tops: dict[int, int],
    source: LaunchNote,
    end: tuple[int, int],
    title: str,
) -> Arrow:
    x = places.launches[source.number] + columns.box - 2 * BOX_MARGIN
    top, track = tops[source.lane], source.number % TRACKS * TRACK_HEIGHT
    if end[1] > top + MIDDLE:
        return Arrow(x, top + BOX_TOP + BOX_HEIGHT, top + GAP_BELOW + track, *end, title)
    return Arrow(x, top + BOX_TOP, top + GAP_ABOVE + track, *end, title)
