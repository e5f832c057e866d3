"""Conservation: every page of every band and every byte of the arena is accounted for.

Per band `live + holes + pending + fixed` is the length of the span, truth's bound pages are exactly
the live ones, and no page outside the span is claimed.  Spans are disjoint and in chain order, and
where bytes are shared no free page lies at a moving edge, since nobody else could use it there.
"""

from __future__ import annotations

from harness.violation import Violation
from harness.world import World

_HOLE = 2
# Any claimed page that is not live counts as not live; truth knows nothing of holes.
_ONLY_LIVE = bytes([0, 1, 0, 0, 0]) + bytes(251)


def examine(world: World) -> list[Violation]:
    """Bands whose counts, states and span disagree, and spans that cross."""
    found: list[Violation] = []
    subject, truth = world.subjects[0], world.truth
    boundary, below = world.layout.sink_bytes, "the sink"
    for band, part in enumerate(world.layout.bands):
        states, (low, high), counts = world.books[band]
        counted = (states.count(1), states.count(2), states.count(3), states.count(4))
        if counts != counted:
            text = f"{part.name!r} counts {_named(counts)}; its page states say {_named(counted)}"
            _report(world, found, "counts", text)
        if sum(counted) != high - low or states[low:high].count(0):
            text = f"{part.name!r} claims {sum(counted)} pages in span {low}..{high}"
            _report(world, found, "span", text)
        if states.translate(_ONLY_LIVE)[: len(truth.live[band])] != truth.live[band]:
            wrong = [
                page
                for page, (state, live) in enumerate(zip(states, truth.live[band], strict=False))
                if (state == 1) != bool(live)
            ]
            text = f"{part.name!r}: pages {wrong} are live in one account and not in the other"
            _report(world, found, "live pages", text)
        if low < high:
            if subject.shares_bytes and _free_at_a_moving_edge(world, band, states, low, high):
                text = f"{part.name!r} keeps a free page at the edge of span {low}..{high}"
                _report(world, found, "frontier", text)
            if low * part.page_bytes < boundary:
                text = (
                    f"{part.name!r} starts at byte {low * part.page_bytes}, {below} ends at"
                    f" {boundary}"
                )
                _report(world, found, "spans cross", text)
            boundary, below = high * part.page_bytes, repr(part.name)
    if boundary > world.layout.total_bytes:
        _report(world, found, "spans cross", f"{below} ends at byte {boundary}")
    return found


def _free_at_a_moving_edge(world: World, band: int, states: bytes, low: int, high: int) -> bool:
    """An end's edge at its wall stays; every other edge may move.  A single band is a high end."""
    last = len(world.layout.bands) - 1
    at_low = (band > 0 or last == 0) and states[low] == _HOLE
    at_high = band < last and states[high - 1] == _HOLE
    return at_low or at_high


def _named(counts: tuple[int, int, int, int]) -> str:
    return "live {}, holes {}, pending {}, fixed {}".format(*counts)


def _report(world: World, found: list[Violation], detail: str, text: str) -> None:
    found.append(
        Violation(
            check="conservation",
            what=f"band {text}",
            detail=detail,
            operation=world.device.operation,
        )
    )
