"""What the allocator has done so far, as counts for people, tests and the harness's floors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Running totals since the storage was built; only the allocator's own parts add to them.

    Attributes:
        taken_pages: pages handed out, all bands.
        freed_pages: pages freed, all bands.
        moved_pages: pages copied by compaction and relief.
        settles: times pending pages returned behind a wait of the schedule stream, new or old.
        reliefs: takes that settled, moved or relocated before they were served.
        relocations: floats whose span a relief moved.
        retreats: pages that left a span because holes reached its frontier.
        shortages: takes refused.
        host_waits: reliefs that had to wait on the host for transfers.
    """

    taken_pages: int = 0
    freed_pages: int = 0
    moved_pages: int = 0
    settles: int = 0
    reliefs: int = 0
    relocations: int = 0
    retreats: int = 0
    shortages: int = 0
    host_waits: int = 0
