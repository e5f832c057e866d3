"""What an access touched: a page, and the id that named it when the access was submitted.

The same bytes may be pages of two bands, or of two ids, in the same failure: each access has an
answer of its own.  Why it matters is not known here.
"""

from __future__ import annotations

from harness.report.place import ARENA, claimed_around
from harness.report.recording import Recording
from harness.report.story import Side, Story


def touched_text(story: Story, side: Side) -> str:
    """`page 4 (id 3) of band 'full'`, or the place of the story where it is no page."""
    recording, at = story.recording, side.launch.operation
    unit = _arena_unit(recording)
    if unit is None:
        return story.followed[0].place.title
    wrote = side.note.kind.endswith(" write")
    for frame, place in claimed_around(recording, at, frozenset((unit,)), wrote=wrote):
        owner = frame.ranks[0][place.band].owners[place.page]
        name = recording.setup.bands[place.band].name
        return f"page {place.page} ({f'id {owner}' if owner else 'no id'}) of band {name!r}"
    return f"arena byte {unit * recording.granule}, which no band claims"


def _arena_unit(recording: Recording) -> int | None:
    """The granule of the arena where the failure is; None where it is elsewhere."""
    collision, read = recording.collision, recording.wrong_read
    if collision is not None and collision.space == ARENA:
        return collision.unit
    if collision is None and read is not None and read.space == ARENA:
        return read.unit
    return None
