"""Who may still touch what, as it changed: steps, uses in the ledger, host slots.

A page is safe or not for reasons that lie elsewhere: a step that was launched long before, a use
that its ledger has or lacks.  What the page itself went through is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.report.recording import Accounts, Recording, StepNote

STEPS_MAX = 20
"""Steps in a table: the last ones."""

_BECAME: Mapping[str, str] = {
    "launched": "is launched",
    "recorded": "is recorded",
    "retired": "is over for the schedule stream, which has waited for its end",
}


class StepRow(NamedTuple):
    """A step, and in which operation it became what; empty where it did not."""

    number: str
    requests: str
    launched: str
    recorded: str
    retired: str
    processed: str


def step_rows(recording: Recording) -> tuple[StepRow, ...]:
    """The last steps, the oldest first."""
    rows: dict[int, StepRow] = {}
    for at in range(len(recording.frames)):
        before, now = _steps(recording, at - 1), _steps(recording, at)
        for number, step in now.items():
            if number not in before:
                rows[number] = StepRow(str(number), ", ".join(step.requests), str(at), "", "", "")
            was = before[number].state if number in before else "launched"
            if step.state == "retired" and was != "retired":
                rows[number] = rows[number]._replace(retired=str(at))
            if step.state != "launched" and was == "launched":
                rows[number] = rows[number]._replace(recorded=str(at))
        for number in before.keys() - now.keys():
            rows[number] = rows[number]._replace(processed=str(at))
    return tuple(row for _, row in sorted(rows.items()))[-STEPS_MAX:]


def step_facts(recording: Recording, operation: int) -> Iterator[str]:
    """What became of steps in an operation."""
    before, now = _steps(recording, operation - 1), _steps(recording, operation)
    for number, step in now.items():
        was = before[number].state if number in before else ""
        if was != step.state:
            yield f"step {number} {_BECAME[step.state]}"
        if step.read_end and (number not in before or not before[number].read_end):
            yield f"the table reads of step {number} are declared to end behind {step.read_end}"
    for number in sorted(before.keys() - now.keys()):
        yield f"step {number} is processed"


def use_facts(recording: Recording, operation: int, band: int, page: int) -> Iterator[str]:
    """Uses of a page that the first rank's ledger has from an operation on, and no longer."""
    size = recording.setup.bands[band].page_bytes
    place = page * size, page * size + size
    before, now = (
        Counter(_uses(recording.accounts_at(at), band, page, place))
        for at in (operation - 1, operation)
    )
    for use in sorted((now - before).elements()):
        yield f"the allocator's ledger has a use of it: {use}"
    for use in sorted((before - now).elements()):
        yield f"the allocator's ledger has it no more: {use}"


def ledger_text(recording: Recording, operation: int, band: int, page: int) -> str:
    """What the first rank's ledger has on a page behind an operation, as a fact of its history."""
    size = recording.setup.bands[band].page_bytes
    place = page * size, page * size + size
    uses = sorted(_uses(recording.accounts_at(operation), band, page, place))
    rank = " of rank 0" if recording.setup.ranks > 1 else ""
    return f"in the end the ledger{rank} has {', '.join(uses) or 'no use of it'}"


def _uses(accounts: Accounts, band: int, page: int, place: tuple[int, int]) -> Iterator[str]:
    """What the ledger has on a page, whose bytes are `place`."""
    for use in accounts.uses:
        # Such a step decides on the device what it writes, which may be any page.
        if use.band == band and (use.kind == "unknown_write" or page in use.pages):
            yield f"{use.kind} of step {use.step}"
    for copy in accounts.copies:
        if any(low < place[1] and place[0] < high for low, high in copy.ranges):
            yield copy.kind
    for hold in accounts.holds:
        if hold.band == band and page in hold.pages:
            yield f"{hold.kind}{', given up' * hold.isolated}"


def touch_text(recording: Recording, operation: int, band: int, page: int) -> str:
    """Which step may still touch a freed page, as the end of a sentence; empty for none."""
    touchable = recording.accounts_at(operation).touchable
    step = touchable[band].get(page) if touchable else None
    return "" if step is None else f"; by truth step {step} may still touch it"


def slot_facts(recording: Recording, operation: int, band: int, slot: int) -> Iterator[str]:
    """Who got a host slot in an operation, and who gave it back."""
    before, now = (
        recording.accounts_at(at).host[band].get(slot, "") if at >= 0 else ""
        for at in (operation - 1, operation)
    )
    if before != now:
        if before:
            yield f"given back by {before}"
        if now:
            yield f"handed out to {now}"


def _steps(recording: Recording, operation: int) -> dict[int, StepNote]:
    return {step.number: step for step in recording.accounts_at(operation).steps}
