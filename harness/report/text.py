"""A finding as plain text: the cause, the two accesses, the operations, the command.

A reader starts at the top and may stop at any line.  So the first line says what broke, and what
follows proves it with ever more detail.  Whether there is a terminal is not known here.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from harness.case import Case
from harness.ops import Operation
from harness.report.length import Length
from harness.violation import AccessNote, Violation
from harness.words import counted

WIDTH = 98
OPERATIONS_MAX = 120
"""Longest list of operations; of a longer trace, the end and the marked ones are shown."""


def render(case: Case, violation: Violation, replay: str, length: Length | None = None) -> str:
    """The report of one violation, `replay` being the command that shows it again.

    Args:
        case: the trace.
        violation: what the report is of.
        replay: the command that shows it.
        length: how far the trace has been made small; None where that is not known.

    Returns:
        Lines of at most `WIDTH` columns, with a line end behind the last one.
    """
    lines = wrapped(f"{violation.check}: ", violation.what)
    lines += _accesses(case.operations, violation)
    if violation.missing_edge:
        lines += wrapped("  missing edge   ", violation.missing_edge)
    lines += wrapped("  kind           ", violation.detail)
    lines += [
        "",
        f"{counted(len(case.operations), 'operation')}, scenario {case.scenario}, seed {case.seed},"
        f" {counted(case.setup.ranks, 'rank')}, planted fault {case.plant or 'none'},"
        f" unikv {case.unikv}",
        *(wrapped("", f"{length.value}.") if length else ()),
        *_trace(case.operations, violation),
        "",
        "replay",
        # Never wrapped: it is there to be copied.
        f"  {replay}",
    ]
    return "\n".join(lines) + "\n"


def render_crash(what: str, log: str, replay: str) -> str:
    """The report of a seed that ended its process; `log` is what it said last."""
    lines = [*wrapped("crash: ", what), "", "last words"]
    lines += [f"  {line}" for line in log.splitlines()] or ["  none"]
    return "\n".join([*lines, "", "replay", f"  {replay}"]) + "\n"


def describe(operation: Operation) -> str:
    """An operation as it would be written in Python."""
    return repr(operation)


def _accesses(operations: Sequence[Operation], violation: Violation) -> list[str]:
    """The earlier and the later access: what and where on one line, the operation below it."""
    if not violation.accesses:
        return []
    pairs = list(zip(("earlier", "later"), violation.accesses, strict=False))
    kind = max(len(access.kind) for _, access in pairs)
    stream = max(len(access.stream) for _, access in pairs)
    lines = []
    for when, access in pairs:
        where = f"{access.kind:{kind}}  {access.stream:{stream}} stream  {step_text(access):8}"
        lines += wrapped(f"  {when:13}  ", f"{where}  {access.holder}".rstrip())
        if 0 <= access.operation < len(operations):
            text = f"op {access.operation}  {describe(operations[access.operation])}"
            lines += wrapped(" " * 17, text)
    return lines


def step_text(access: AccessNote) -> str:
    """The forward step that an access belongs to."""
    return f"step {access.step}" if access.step else "no step"


def _trace(operations: Sequence[Operation], violation: Violation) -> list[str]:
    """Operations, one a line; `>` marks the colliding ones and `!` where it was seen."""
    marks = {violation.operation: "!"} | {access.operation: ">" for access in violation.accesses}
    start = max(0, len(operations) - OPERATIONS_MAX)
    shown = sorted({at for at in marks if 0 <= at < start} | set(range(start, len(operations))))
    lines, expected = [], 0
    for at in shown:
        if at > expected:
            lines.append(f"        ... {counted(at - expected, 'operation')} left out ...")
        lines += wrapped(f"{marks.get(at, ' '):>3} {at:5}  ", describe(operations[at]))
        expected = at + 1
    return lines


def wrapped(label: str, text: str) -> list[str]:
    """`text` behind `label` in lines of `WIDTH`, under itself; spaces that align are kept."""
    room = WIDTH - len(label)
    pieces = [text] if len(text) <= room else textwrap.wrap(text, room, break_on_hyphens=False)
    indent = " " * len(label)
    return [f"{indent if at else label}{piece}" for at, piece in enumerate(pieces or [""])]
