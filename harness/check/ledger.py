"""Ledger: the allocator's uses equal truth's, and what is in use is pending.

Both directions: a page that a running forward may touch is not free, and a page that is called
pending is one that some unprocessed forward may touch.
"""

from __future__ import annotations

from harness.violation import Violation
from harness.world import World

_PENDING = 3
_UNKNOWN: frozenset[int] = frozenset()


def examine(world: World) -> list[Violation]:
    """Pages free too early or kept too long, and writes that one account lacks."""
    found: list[Violation] = []
    truth = world.truth
    retired = truth.retired_through
    for band, pending in enumerate(truth.pending):
        states = world.books[band].states
        claimed = states.count(_PENDING)
        if not pending and not claimed:
            continue
        name = world.layout.bands[band].name
        for page, step in pending.items():
            if states[page] == _PENDING:
                claimed -= 1
            elif step > retired:
                text = f"band {name!r} page {page} is not pending, but step {step} may touch it"
                _report(world, found, "free too early", text)
        if claimed:
            pages = [
                page
                for page, state in enumerate(states)
                if state == _PENDING and page not in pending
            ]
            text = f"band {name!r} pages {pages} are pending, but no step in flight can touch them"
            _report(world, found, "kept too long", text)
    _compare_writes(world, found, retired)
    return found


def _compare_writes(world: World, found: list[Violation], retired: int) -> None:
    ours = {
        (step.number, band, pages if step.known else _UNKNOWN)
        for step in world.truth.steps.values()
        if step.number > retired
        for band, pages in enumerate(step.writes)
        if pages or not step.known
    }
    theirs = {
        (use.step, use.band, use.pages) for use in world.subjects[0].uses() if use.kind != "vacated"
    }
    if ours != theirs:
        lacking = sorted((step, band, sorted(pages)) for step, band, pages in ours - theirs)
        extra = sorted((step, band, sorted(pages)) for step, band, pages in theirs - ours)
        names = [band.name for band in world.layout.bands]
        parts = [
            f"{word} the write of step {step} to pages {pages or 'unknown'} of band {names[band]!r}"
            for word, entries in (("lacks", lacking), ("still has", extra))
            for step, band, pages in entries
        ]
        _report(world, found, "writes differ", "the allocator's ledger " + ", ".join(parts))


def _report(world: World, found: list[Violation], detail: str, text: str) -> None:
    found.append(
        Violation(check="ledger", what=text, detail=detail, operation=world.device.operation)
    )
