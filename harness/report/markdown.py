"""The report that a person opens first: a failure as Markdown.

A reader may stop after any section: the cause, then the proof, then everything around it.  Names
come from cases of strangers, so whatever could be markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harness.report.calls import ASKED
from harness.report.history import deeds, enqueued
from harness.report.recording import Recording
from harness.report.setup_text import setup_text
from harness.report.story import Story
from harness.report.text import describe
from harness.report.touched import touched_text
from harness.words import counted

OPERATIONS_MAX = 200
"""Longest list of operations; of a longer trace, the end and the marked ones are shown."""

DIFFERENCES_MAX = 20
DEEDS_MAX, LEAD_DEEDS_MAX = 100, 30
"""What is told of the last operation, and of each one before it."""

LINE_END = "\n"

_MARKUP = re.compile(r"([\\`*|~]|\[(?=[^\]]*\][(\[:])|(?<![^\W_])_|_(?![^\W_]))")
"""What begins or ends something: an underscore inside a word does not, nor a bracket of a list."""

_ENTITY, _TAG = re.compile(r"&(?=#?\w+;)"), re.compile(r"<(?=[A-Za-z/!?])")


def report_markdown(story: Story) -> str:
    """The whole report."""
    violation, case = story.violation, story.case
    lines = [
        f"# {escaped(story.headline)}",
        "",
        f"**Cause.** {escaped(violation.what)}.",
        "",
        f"Promise that was broken: {escaped(story.promise)}.",
    ]
    if story.rule:
        lines += ["", f"What that means here: {escaped(story.rule)}."]
    if violation.missing_edge:
        lines += ["", f"**Missing edge.** {escaped(violation.missing_edge)}."]
        lines += ["", f"Why nothing orders them: {escaped(story.order)}."]
    # Its path is as short as the folder of artifacts was given.
    lines += ["", "**See it again**, from the folder in which the program was started:"]
    lines += ["", *_fenced([story.replay])]
    lines += _sides(story)
    lines += ["", f"## {_title(len(case.operations))}", ""]
    lines += [_found_in(story), "", *_fenced(operation_lines(story))]
    remarks = [story.length.value] if story.length else []
    lines += ["", " ".join(f"{escaped(remark)}." for remark in (*remarks, story.timing))]
    lines += _deeds(story)
    lines += _histories(story)
    lines += _steps(story)
    lines += _actors(story)
    lines += _arena(story)
    lines += _differences(story)
    lines += ["", "## Beside this file", "", *_files(has_edge=bool(violation.missing_edge))]
    return "\n".join(lines) + "\n"


def operation_lines(story: Story) -> list[str]:
    """Operations, one a line, marked, with their outcome where it is not what was asked for."""
    frames, marks = story.recording.frames, story.marks
    start = max(0, len(frames) - OPERATIONS_MAX)
    shown = sorted({at for at in marks if 0 <= at < start} | set(range(start, len(frames))))
    lines, expected = [], 0
    for at in shown:
        if at > expected:
            lines.append(f"      ... {counted(at - expected, 'operation')} left out ...")
        text = describe(frames[at].operation)
        lines.append(f"{marks.get(at, ' ')} {at:5}  {text}{_outcome(story.recording, at)}")
        expected = at + 1
    return lines


def _outcome(recording: Recording, at: int) -> str:
    """What came of an operation, where that is not what was asked for, and the refusal's words."""
    outcome, calls = recording.frames[at].outcome, recording.calls_of(at)
    if outcome == "done":
        return ""
    if outcome == "skipped" and calls:
        return "   (changed nothing)"
    why = f": {calls[-1].text.removeprefix(ASKED)}" if outcome == "refused" and calls else ""
    return f"   ({outcome}{why})"


def escaped(text: str) -> str:
    """Text in which nothing is markup, on one line."""
    plain = " ".join(text.split())
    plain = _TAG.sub("&lt;", _ENTITY.sub("&amp;", plain))
    return _MARKUP.sub(r"\\\1", plain)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table; every cell is escaped, and may have several lines."""
    lines = [_row(head), "|" + "---|" * len(head)]
    return lines + [_row(row) for row in rows]


def _row(cells: Sequence[str]) -> str:
    """Cells side by side; a line end in one begins a new line of it."""
    return f"| {' | '.join('<br>'.join(map(escaped, cell.split(LINE_END))) for cell in cells)} |"


def _fenced(lines: Sequence[str]) -> list[str]:
    # No line of a trace begins with a fence, but a name may hold a line end.
    return ["```text", *(" ".join(line.splitlines()) for line in lines), "```"]


def _title(operations: int) -> str:
    return "The operation" if operations == 1 else f"The {operations} operations"


def _found_in(story: Story) -> str:
    case, shown, seen = story.case, story.marks.values(), []
    if ">" in shown:
        whose = "operations of the accesses" if len(story.sides) > 1 else "operation of the access"
        seen.append(f"`>` marks the {whose}")
    if "!" in shown:
        seen.append("`!` marks the one after which it was seen")
    return (
        f"Scenario {escaped(case.scenario)}, seed {case.seed}, {counted(case.setup.ranks, 'rank')},"
        f" planted fault {escaped(case.plant or 'none')}, unikv {escaped(case.unikv)}."
        f" {', '.join(seen)}.\n\nThe engine: {escaped(setup_text(case.setup))}."
    )


def _sides(story: Story) -> list[str]:
    if not story.sides:
        return []
    title = "The two accesses" if len(story.sides) == 2 else "The read that went wrong"
    rows = [
        ("what", *(side.note.kind for side in story.sides)),
        ("stream", *(side.note.stream for side in story.sides)),
        ("step", *(str(side.note.step or "none") for side in story.sides)),
        ("where", *(touched_text(story, side) for side in story.sides)),
        ("in its stream", *(side.lane for side in story.sides)),
        ("operation", *(f"{side.launch.operation}: {side.operation}" for side in story.sides)),
    ]
    if story.are_bytes_held:
        rows.append(("the bytes were", *(side.note.holder for side in story.sides)))
    ranks = len(story.recording.runs)
    for rank in range(ranks):
        name = f"by then, on rank {rank}" if ranks > 1 else "by then"
        rows.append((name, *(side.ran[rank] for side in story.sides)))
    return ["", f"## {title}", "", *table(("", *(side.when for side in story.sides)), rows)]


def _deeds(story: Story) -> list[str]:
    """What was asked and done in the operations that led to the failure, and in the last one."""
    lines = []
    for at in story.leads:
        # What only lets time pass has nothing to show but what ran meanwhile.
        done = enqueued(story.recording, at) or deeds(story.recording, at)[0]
        lines += _done(at, done, LEAD_DEEDS_MAX)
    return lines + _done(len(story.recording.frames) - 1, story.deeds, DEEDS_MAX)


def _done(operation: int, deeds: Sequence[str], most: int) -> list[str]:
    lines = [f"- {escaped(deed)}" for deed in deeds[:most]]
    left = len(deeds) - len(lines)
    if left > 0:
        lines.append(f"- ... and {left} more")
    return ["", f"## What operation {operation} did", "", *(lines or ["Nothing."])]


def _histories(story: Story) -> list[str]:
    lines = []
    operations = story.recording.frames
    for place, entries in story.followed:
        lines += ["", f"## History of {escaped(place.title)}", ""]
        if not entries:
            lines.append("No operation touched it.")
            continue
        lines += table(
            ("", "op", "operation", "what happened to it"),
            (
                (
                    story.marks.get(entry.operation, ""),
                    str(entry.operation),
                    describe(operations[entry.operation].operation),
                    LINE_END.join(entry.facts),
                )
                for entry in entries
            ),
        )
    return lines


def _steps(story: Story) -> list[str]:
    if not story.steps:
        return []
    head = ("step", "batch", "launched in op", "recorded", "waited for by schedule", "processed")
    return ["", "## The steps", "", *table(head, story.steps)]


def _actors(story: Story) -> list[str]:
    """Requests and transfers before the last operation."""
    before = f"before operation {len(story.recording.frames) - 1}"
    lines = []
    for title, head, rows in story.actors:
        lines += ["", f"## {title} {before}", "", "By the scheduler's account.", ""]
        lines += table(head, rows)
    return lines


def _arena(story: Story) -> list[str]:
    setup = story.recording.setup
    rows = [
        (
            row.name,
            str(row.page_bytes),
            f"{row.span[0]}..{row.span[1]}" if row.span[0] < row.span[1] else "none",
            *map(str, (row.live, row.holes, row.pending, row.fixed, row.gap_bytes)),
        )
        for row in story.bands
    ]
    head = (
        "band",
        "page bytes",
        "span",
        "live",
        "holes",
        "pending",
        "fixed",
        "free bytes above it",
    )
    names = ", ".join(row.name for row in story.bands)
    order = f" A list of counts means {escaped(names)}, in this order." if len(rows) > 1 else ""
    return [
        "",
        "## The arena when it was seen",
        "",
        f"{setup.total_bytes} bytes, of which the first {setup.sink_bytes} are the sink and"
        f" {story.unclaimed_bytes} are claimed by no band. Bands from"
        f" the low end to the high end, by the states that rank 0 gives its pages.{order}",
        "",
        *table(head, rows),
    ]


def _differences(story: Story) -> list[str]:
    if not story.differences:
        return []
    head = ("", *(f"rank {rank}" for rank in range(len(story.recording.runs))))
    shown = story.differences[:DIFFERENCES_MAX]
    lines = ["", "## Where the ranks differ", ""]
    lines += table(head, ((name, *ranks) for name, ranks in shown))
    left = len(story.differences) - len(shown)
    return lines + (["", f"... and {left} more."] if left else [])


def _files(*, has_edge: bool) -> list[str]:
    explain = (
        "puts the missing edge in and says what still fails"
        if has_edge
        else "says the same as text"
    )
    return [
        "- `report.html`: the same as a picture to step through, with all that was done; opens in"
        " any browser.",
        "- `timeline.json`: every stream of every rank, for ui.perfetto.dev.",
        "- `repro.py`: a test that passes while this failure is there; needs the installed library"
        " alone, and is there if that can import the allocator.",
        "- `case.json`: the trace as it was found; `min.json`: as it was made small, where it was."
        " `shrink` makes either smaller where that is possible,"
        f" `explain` {explain}; `replay --step` walks through it.",
        "- `env.json`: versions of everything that ran.",
    ]
