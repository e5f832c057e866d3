"""Effects: what a call must not do beside its answer.

A refused take or relief submits nothing and changes no book, whether it is short or has waited for
a transfer in vain.  A free is logical and waits for nothing.  An opportunistic flush keeps to its
limit, settles nothing, and waits only where it moves.  A prewarm copies in every band, so that no
later move is a first use, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.device.submissions import LANE_NAMES, submission_text
from harness.subject import Book
from harness.words import book_text, counted

if TYPE_CHECKING:
    from harness.world import World


def after_refusal(world: World, call: str, submitted: int, before: Sequence[Book]) -> None:
    """Note what a refused `call` has submitted or changed.

    A wait for transfers may isolate one that does not end, which no book shows: its pages stay what
    they are.
    """
    world.check_runs["effects"] += 1
    log = world.ports[0].log[submitted:]
    if log:
        text = "; ".join(submission_text(world.layout, entry) for entry in log)
        world.truth.note("effects", "refusal submitted work", f"a refused {call} submitted {text}")
    elif world.subjects[0].books() != before:
        text = f"a refused {call} changed {_books_text(world, before)}"
        world.truth.note("effects", "refusal changed books", text)


def after_prewarm(world: World, submitted: int, before: Sequence[Book]) -> None:
    """Note a band whose first move is still to come, a copy that is no scratch, changed books."""
    world.check_runs["effects"] += 1
    copies = [entry for entry in world.ports[0].log[submitted:] if entry[0] == "move"]
    warm = {entry[2] for entry in copies}
    for band, part in enumerate(world.layout.bands):
        first, end = -(-world.layout.sink_bytes // part.page_bytes), world.layout.total_bytes
        if band not in warm and first < end // part.page_bytes:
            text = f"band {part.name!r}: nothing was copied, so its first move is a first use"
            world.truth.note("effects", "prewarm left a first use", text)
    if any(entry[4] not in ((0,), [0]) for entry in copies):
        copied = "; ".join(submission_text(world.layout, entry) for entry in copies)
        text = f"a prewarm copies to other pages than the sink, which is page 0: {copied}"
        world.truth.note("effects", "prewarm wrote outside the sink", text)
    if world.subjects[0].books() != before:
        text = f"a prewarm changed {_books_text(world, before)}"
        world.truth.note("effects", "prewarm changed books", text)


def after_free(world: World, name: str, submitted: int) -> None:
    """Note a wait that a free has enqueued."""
    world.check_runs["effects"] += 1
    log = world.ports[0].log
    for entry in log[submitted:]:
        if entry[0] == "wait":
            stream, awaited = (LANE_NAMES[lane] for lane in entry[1:3] if isinstance(lane, int))
            text = f"{name} makes the {stream} stream wait for the {awaited} stream"
            world.truth.note("effects", "free waited", text)
            break


def after_flush(world: World, limit: int, moved: int, before: Sequence[Book]) -> None:
    """Note moves over the limit, waits for nothing, and pages that came back."""
    world.check_runs["effects"] += 1
    if moved > limit:
        text = f"a flush of at most {limit} moves says that it moved {moved}"
        world.truth.note("effects", "flush over its limit", text)
    if not moved and any(entry[0] == "wait" for entry in world.ports[0].log):
        world.truth.note("effects", "flush waited for nothing", "a flush that moved nothing waited")
    for band, (old, new) in enumerate(zip(before, world.subjects[0].books(), strict=True)):
        if new.counts[2] < old.counts[2]:
            name = world.layout.bands[band].name
            back = counted(old.counts[2] - new.counts[2], "pending page")
            text = f"band {name!r}: {back} came back in a flush"
            world.truth.note("effects", "flush settled", text)


def _books_text(world: World, before: Sequence[Book]) -> str:
    """Bands whose books are others than before, with their counts then and now."""
    pairs = zip(world.layout.bands, before, world.subjects[0].books(), strict=True)
    return "; ".join(
        f"band {part.name!r} from {book_text(old.counts, old.span)} to"
        f" {book_text(new.counts, new.span)}"
        for part, old, new in pairs
        if old != new
    )
