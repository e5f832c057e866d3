"""The arena over the operations, as rectangles: bytes from top to bottom, operations to the right.

Bands lie in one run of bytes, so one picture shows what each claims, what is free between them, and
which page is whose.  Colours and markup are not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.report.columns import Columns
from harness.report.place import ARENA
from harness.report.recording import FENCED, HELD, STATE_MASK, STATE_NAMES, Recording
from harness.report.story import Story

HEIGHT = 300
PAGE_HEIGHT_MIN, PAGE_HEIGHT_MAX = 2, 30
LABEL_HEIGHT_MIN, LETTER_WIDTH = 13, 6


class Cell(NamedTuple):
    """One page for as long as nothing about it changes.

    Attributes:
        x, y, width, height: in pixels.
        kind: its state and marks, as words for a style sheet.
        title: everything about it.
        label: the id that names it, where there is room.
    """

    x: int
    y: int
    width: int
    height: int
    kind: str
    title: str
    label: str


class Span(NamedTuple):
    """What a band claims, for as long as that stays the same."""

    x: int
    y: int
    width: int
    height: int
    label: str


class Row(NamedTuple):
    """Bytes that the failure is about."""

    y: int
    height: int
    label: str


class Label(NamedTuple):
    """A line beside the picture."""

    y: int
    text: str


class ArenaPicture(NamedTuple):
    """The arena by one rank's account.

    Attributes:
        rank: whose.
        height: in pixels; the width is that of the columns.
        sink_height: bytes that no band may claim.
        cells, spans, rows, labels: what is in it.
    """

    rank: int
    height: int
    sink_height: int
    cells: tuple[Cell, ...]
    spans: tuple[Span, ...]
    rows: tuple[Row, ...]
    labels: tuple[Label, ...]


def arena_picture(story: Story, rank: int, columns: Columns) -> ArenaPicture:
    """The arena as one rank keeps it."""
    recording = story.recording
    setup = recording.setup
    smallest = min(band.page_bytes for band in setup.bands)
    pages = setup.total_bytes / smallest
    page_height = min(PAGE_HEIGHT_MAX, max(PAGE_HEIGHT_MIN, HEIGHT / pages))
    scale = page_height / smallest
    height = round(setup.total_bytes * scale)
    return ArenaPicture(
        rank=rank,
        height=height,
        sink_height=round(setup.sink_bytes * scale),
        cells=tuple(_cells(recording, rank, columns, scale)),
        spans=tuple(_spans(recording, rank, columns, scale)),
        rows=tuple(_rows(story, scale)),
        labels=_labels(setup.sink_bytes, setup.total_bytes, scale),
    )


def _labels(sink_bytes: int, total_bytes: int, scale: float) -> tuple[Label, ...]:
    bottom = round(total_bytes * scale)
    return (
        Label(10, "byte 0"),
        Label(min(bottom - 14, max(24, round(sink_bytes * scale))), f"sink {sink_bytes}"),
        Label(bottom - 2, f"end {total_bytes}"),
    )


def _cells(recording: Recording, rank: int, columns: Columns, scale: float) -> Iterator[Cell]:
    count = len(recording.frames)
    for band, part in enumerate(recording.setup.bands):
        size = part.page_bytes
        pages = len(recording.frames[-1].ranks[rank][band].states)
        for page in range(pages):
            y, bottom = round(page * size * scale), round((page + 1) * size * scale)
            begin = columns.first
            while begin < count:
                look = _look(recording, rank, band, page, begin)
                end = begin + 1
                while end < count and _look(recording, rank, band, page, end) == look:
                    end += 1
                state, owner = look
                if state:
                    x, right = columns.left_of(begin), columns.right_of(end - 1)
                    title = f"{part.name} page {page}{f', id {owner}' if owner else ''}:"
                    title += f" {_words(state)}, after op {begin}"
                    title += f" to {end - 1}" if end - 1 > begin else ""
                    label = ""
                    if bottom - y >= LABEL_HEIGHT_MIN:
                        label = _label(part.name, page, owner, right - x)
                    yield Cell(x, y, right - x, bottom - y, _kind(state), title, label)
                begin = end


def _label(band: str, page: int, owner: int, width: int) -> str:
    """The longest name of a page for which there is room."""
    short = f"p{page} id {owner}" if owner else f"p{page}"
    fits = [text for text in (f"{band} {short}", short) if len(text) * LETTER_WIDTH <= width - 8]
    return next(iter(fits), "")


def _look(recording: Recording, rank: int, band: int, page: int, operation: int) -> tuple[int, int]:
    """A page's state with its marks, and its id."""
    frame = recording.frames[operation].ranks[rank][band]
    owner = frame.owners[page] if page < len(frame.owners) else 0
    return frame.states[page], owner if frame.states[page] else 0


def _kind(state: int) -> str:
    marks = f"{' fenced' if state & FENCED else ''}{' held' if state & HELD else ''}"
    return STATE_NAMES.get(state & STATE_MASK, "unknown") + marks


def _words(state: int) -> str:
    marks = f"{', under a copy' if state & FENCED else ''}{', held' if state & HELD else ''}"
    return STATE_NAMES.get(state & STATE_MASK, "unknown") + marks


def _spans(recording: Recording, rank: int, columns: Columns, scale: float) -> Iterator[Span]:
    count = len(recording.frames)
    for band, part in enumerate(recording.setup.bands):
        begin = columns.first
        while begin < count:
            low, high = span = recording.frames[begin].ranks[rank][band].span
            end = begin + 1
            while end < count and recording.frames[end].ranks[rank][band].span == span:
                end += 1
            if low < high:
                x, right = columns.left_of(begin), columns.right_of(end - 1)
                y, bottom = (round(edge * part.page_bytes * scale) for edge in span)
                yield Span(x, y, right - x, bottom - y, part.name)
            begin = end


def _rows(story: Story, scale: float) -> Iterator[Row]:
    granule = story.recording.granule
    for place, _ in story.followed:
        if place.space == ARENA:
            low, high = min(place.units) * granule, (max(place.units) + 1) * granule
            y = round(low * scale)
            yield Row(y, round(high * scale) - y, place.title)
