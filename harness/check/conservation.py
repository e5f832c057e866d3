"""Conservation: every page of every band and every byte of the arena is accounted for.

Per band `live + holes + pending + fixed` is the length of the span, truth's bound pages are exactly
the live ones, and no page outside the span is claimed.  Spans are disjoint and in chain order, and
where bytes are shared no free page lies at a moving edge, since nobody else could use it there.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.check import broken
from harness.violation import Violation, page_sites
from harness.words import apart, counts_text
from harness.world import World
from unikv.device.port import BandLayout

_LIVE, _HOLE = 1, 2
# Any claimed page that is not live counts as not live; truth knows nothing of holes.
_ONLY_LIVE = bytes([0, 1, 0, 0, 0]) + bytes(251)


def examine(world: World) -> list[Violation]:
    """Bands whose counts, states and span disagree, and spans that cross."""
    found: list[Violation] = []
    truth, parts = world.truth, world.layout.bands
    shares_bytes, last = world.subjects[0].shares_bytes, len(parts) - 1
    boundary, below = world.layout.sink_bytes, -1
    for band, part in enumerate(parts):
        states, (low, high), counts = world.books[band]
        count = states.count
        counted = (count(1), count(2), count(3), count(4))
        if counts != counted:
            text = (
                f"band {part.name!r} counts {counts_text(counts)}; its page states say"
                f" {counts_text(counted)}"
            )
            found.append(broken(world, "conservation", "counts", text))
        if sum(counted) != high - low or states.find(0, low, high) >= 0:
            text = f"band {part.name!r} claims {sum(counted)} pages in span {low}..{high}"
            found.append(broken(world, "conservation", "span", text))
        if states.translate(_ONLY_LIVE)[: len(truth.live[band])] != truth.live[band]:
            found.append(_live_apart(world, band))
        if low < high:
            if shares_bytes and _free_at_a_moving_edge(band, last, states, low, high):
                text = f"band {part.name!r} keeps a free page at the edge of span {low}..{high}"
                edges = page_sites(band, {p for p in (low, high - 1) if states[p] == _HOLE})
                found.append(broken(world, "conservation", "frontier", text, edges))
            if low * part.page_bytes < boundary:
                text = (
                    f"band {part.name!r} starts at byte {low * part.page_bytes}, but"
                    f" {_place(parts, below)} ends at {boundary}"
                )
                found.append(broken(world, "conservation", "spans cross", text))
            boundary, below = high * part.page_bytes, band
    if boundary > world.layout.total_bytes:
        text = f"{_place(parts, below)} ends at byte {boundary}"
        found.append(broken(world, "conservation", "spans cross", text))
    return found


def _live_apart(world: World, band: int) -> Violation:
    """Pages that one account calls live and the other does not."""
    pairs = enumerate(zip(world.books[band].states, world.truth.live[band], strict=False))
    wrong = [(page, live) for page, (state, live) in pairs if (state == _LIVE) != bool(live)]
    name = world.layout.bands[band].name
    said = apart(
        ("pages", [page for page, live in wrong if live], "have ids and are not counted as live"),
        ("pages", [page for page, live in wrong if not live], "have no id and are counted as live"),
    )
    sites = page_sites(band, [page for page, _ in wrong])
    return broken(world, "conservation", "live pages", f"band {name!r}: {said}", sites)


def _free_at_a_moving_edge(band: int, last: int, states: bytes, low: int, high: int) -> bool:
    """An end's edge at its wall stays; every other edge may move.  A single band is a high end."""
    at_low = (band > 0 or last == 0) and states[low] == _HOLE
    at_high = band < last and states[high - 1] == _HOLE
    return at_low or at_high


def _place(parts: Sequence[BandLayout], band: int) -> str:
    """What lies below a boundary: a band, or the sink below the first."""
    return f"band {parts[band].name!r}" if band >= 0 else "the sink"
