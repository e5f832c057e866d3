"""A failure as one file that any browser opens: pictures, operations, and stepping through them.

Everything is drawn here and escaped by the template, so the page is readable without its script,
which only moves a cursor.  It loads nothing: a report is opened years later, on another machine.
"""

from __future__ import annotations

from functools import cache

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.report.arena import arena_picture
from harness.report.columns import Columns, columns_of
from harness.report.history import deeds
from harness.report.lanes import lanes_picture
from harness.report.place import ARENA
from harness.report.setup_text import setup_text
from harness.report.story import Story
from harness.report.text import describe
from harness.report.touched import touched_text


def report_html(story: Story) -> str:
    """The whole page."""
    recording = story.recording
    columns = columns_of(recording)
    ranks = range(len(recording.runs))
    last = recording.frames[-1].ranks
    apart = [rank for rank in ranks if rank == 0 or last[rank] != last[0]]
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            story=story,
            case=story.case,
            violation=story.violation,
            ranks=ranks,
            columns=columns,
            heads=_heads(story, columns),
            framed=", ".join(place.title for place, _ in story.followed if place.space == ARENA),
            arenas=[arena_picture(story, rank, columns) for rank in apart],
            lanes=lanes_picture(story, columns),
            operations=_operations(story, columns),
            setup_text=setup_text,
            describe=describe,
            touched_text=touched_text,
            cursor=_cursor(story, columns),
        )
    )


def _heads(story: Story, columns: Columns) -> list[dict[str, object]]:
    """The line above the columns: numbers of operations, and marks."""
    return [
        {
            "x": columns.lefts[at] + columns.widths[at] // 2,
            "text": f"{story.marks.get(columns.first + at, '')}{columns.first + at}",
            "marked": columns.first + at in story.marks,
        }
        for at in range(len(columns.lefts))
    ]


def _operations(story: Story, columns: Columns) -> list[dict[str, object]]:
    frames = story.recording.frames
    done = deeds(story.recording, columns.first)
    return [
        {
            "index": at,
            "mark": story.marks.get(at, ""),
            "text": describe(frames[at].operation),
            "outcome": frames[at].outcome,
            "deeds": done[at - columns.first],
        }
        for at in range(columns.first, len(frames))
    ]


def _cursor(story: Story, columns: Columns) -> str:
    """Numbers for the script, which cannot end the element that they stand in."""
    seen = min(story.violation.operation, len(story.recording.frames) - 1)
    numbers = {
        "first": columns.first,
        "lefts": columns.lefts,
        "widths": columns.widths,
        "failure": seen,
    }
    return msgspec.json.encode(numbers).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("harness.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["typeset"] = typeset
    return environment


def typeset(text: str) -> str:
    """Text with real arrows, which no browser breaks in two."""
    return text.replace("->", "\N{RIGHTWARDS ARROW}").replace("<-", "\N{LEFTWARDS ARROW}")
