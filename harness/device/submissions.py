"""What a rank submitted, in words: entries of its port's log, with their numbers named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.device.clock import PEERS
from unikv.device.port import StorageLayout, Stream

LANE_NAMES = (
    *(stream.name.lower() for stream in Stream),
    "host",
    *(f"peer {index}" for index in range(PEERS)),
)
"""What every lane is called: streams, the host, peers."""

SUBMITTED: Mapping[str, tuple[str, ...]] = {
    "record": ("stream",),
    "wait": ("stream", "for", "behind item"),
    "host_wait": ("for", "behind item"),
    "zero": ("stream", "band", "pages"),
    "move": ("stream", "band", "from", "to"),
    "map": ("stream", "band", "ids", "pages"),
    "row": ("stream", "row", "first", "ids"),
    "reset": ("stream", "rows"),
    "save": ("stream", "row"),
    "restore": ("stream", "row", "content"),
    "backup": ("stream", "band", "pages", "slots"),
    "load": ("stream", "band", "layer group", "slots", "pages"),
    "send": ("name", "peer", "part", "pages"),
    "receive": ("name", "peer", "pages"),
}
"""What a rank's log holds of each submission, in its order."""


def submission_text(layout: StorageLayout, entry: Sequence[object]) -> str:
    """One entry of a log."""
    kind, *values = entry
    parts = []
    for name, value in zip(SUBMITTED.get(str(kind), ()), values, strict=False):
        if name in ("stream", "for") and isinstance(value, int):
            value = LANE_NAMES[value]
        elif name == "band" and isinstance(value, int):
            value = layout.bands[value].name
        elif isinstance(value, tuple):
            value = [*value]
        parts.append(f"{name} {value}")
    return f"{kind}: {', '.join(parts)}" if parts else " ".join(map(str, entry))


def first_apart(
    layout: StorageLayout, log: Sequence[Sequence[object]], other: Sequence[Sequence[object]]
) -> tuple[int, str, str]:
    """The first place where two logs differ, from 0, and what each has there."""
    both = zip(log, other, strict=False)
    at = next((at for at, (one, two) in enumerate(both) if one != two), min(len(log), len(other)))
    own, others = (
        submission_text(layout, entries[at]) if at < len(entries) else "nothing"
        for entries in (log, other)
    )
    return at, own, others
