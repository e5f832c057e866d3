"""The whole state of a storage against its own rules, one function per rule.

Every fact that is kept twice is compared, in both directions; the rules of a single band are in
`unikv.alloc.band_audit`.  An audit reads and never changes, so it may run after any call.  When it
runs, and what a finding does, is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from unikv.alloc.band import FIXED, LIVE
from unikv.alloc.band_audit import (
    about,
    count_conservation,
    free_of_bound_page,
    handout_of_used_page,
    map_bijective,
    pages_in,
)
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.invariants import (
    BANDS_DISJOINT,
    BYTE_CONSERVATION,
    CAPACITY_EPOCH,
    COUNT_CONSERVATION,
    IDLE_HAS_NO_PENDING_BATCH,
    LENGTH_BOUNDS,
    ROW_STATE,
    SLOT_UNIQUE,
    STEPS_ORDER,
    Finding,
)
from unikv.alloc.snapshot import BandView, ChainView
from unikv.alloc.use import Use
from unikv.errors import listed
from unikv.memory.arena import Arena
from unikv.requests import RequestTable

if TYPE_CHECKING:
    from unikv.storage import KVStorage


class Lengths(NamedTuple):
    """How far one request has come, in tokens.

    Attributes:
        committed: tokens whose KV is written, or will be by a launched step.
        allocated: tokens that have a slot.
    """

    committed: int
    allocated: int


NO_LENGTHS: Mapping[int, Lengths] = {}


@dataclass(frozen=True, slots=True)
class Held:
    """What the engine still holds of a storage at rest.

    Attributes:
        live: live pages per band, from the low end to the high end; empty for none in any band.
        rows: request rows.
    """

    live: tuple[int, ...] = ()
    rows: int = 0


NOTHING = Held()


def violations(chain: ChainAllocator) -> list[Finding]:
    """Every broken rule of a chain between two calls."""
    return [found for audit in CHAIN_AUDITS for found in audit(chain)]


def row_violations(
    requests: RequestTable, slots_per_page: int, lengths: Mapping[int, Lengths] = NO_LENGTHS
) -> list[Finding]:
    """Every broken rule of a request table.

    Args:
        requests: the table.
        slots_per_page: tokens that one entry of a row stands for.
        lengths: of the requests that the engine wants compared, by their row.
    """
    return [*row_state(requests), *length_bounds(requests, slots_per_page, lengths)]


def idle_violations(storage: KVStorage, held: Held = NOTHING) -> list[Finding]:
    """Every broken rule of a storage at rest: all steps processed, no copy or transfer running.

    Args:
        storage: the storage.
        held: what the engine and its caches hold; the rest must be free.
    """
    chain, requests = storage.chain, storage.requests
    found = storage.audit()
    for step in filter(None, [chain.steps.launched, *chain.steps.in_flight()]):
        found.append(Finding(STEPS_ORDER, "the steps", f"at rest, but step {step} is not over"))
    for hold in chain.ledger.held.holds():
        what = f"at rest, but {hold.use.value} {hold.name!r} still holds pages"
        pages = tuple(sorted(hold.pages))
        found.append(about(IDLE_HAS_NO_PENDING_BATCH, chain.bands[hold.band], what, pages))
    for copy in chain.ledger.fences.uses():
        what = f"at rest, but {copy.use.value} {copy.number} still fences {copy.ranges}"
        found.append(Finding(BYTE_CONSERVATION, "the arena", what))
    live = held.live or (0,) * len(chain.bands)
    for band, wanted in zip(chain.bands, live, strict=True):
        if band.live != wanted:
            what = f"{band.live} live pages at rest; the engine holds {wanted}"
            found.append(about(COUNT_CONSERVATION, band, what, pages_in(band, LIVE)))
        if band.fixed:
            what = "at rest, but pages are reserved for a load"
            found.append(about(COUNT_CONSERVATION, band, what, pages_in(band, FIXED)))
    if storage.host is not None and storage.host.copies:
        what = f"at rest, but copies {listed(list(storage.host.copies))} are not over"
        found.append(Finding(SLOT_UNIQUE, "the host tier", what))
    rows = requests.held_rows()
    if len(rows) != held.rows:
        what = f"{len(rows)} rows are held at rest; the engine holds {held.rows}"
        found.append(Finding(ROW_STATE, "the request table", what, ids=rows))
    return found


def bands_disjoint(chain: ChainAllocator) -> list[Finding]:
    """Spans are in chain order, inside their walls, and share no byte."""
    found = []
    layout = chain.layout
    boundary, below = layout.sink_bytes, "the sink"
    for band in chain.bands:
        low, high = band.span()
        if low == high:
            continue
        page_bytes = band.layout.page_bytes
        # An end keeps depth 0; only a float may leave its origin.
        if band in (chain.bands[0], chain.owner) and band.low:
            what = f"an end starts at depth {band.low}; allowed: 0, its wall"
            found.append(about(BANDS_DISJOINT, band, what))
        if low * page_bytes < boundary:
            what = f"starts at byte {low * page_bytes}, but {below} ends at {boundary}"
            found.append(about(BANDS_DISJOINT, band, what, [low]))
        boundary, below = high * page_bytes, f"band {band.layout.name!r}"
    if boundary > layout.total_bytes:
        what = f"{below} ends at byte {boundary}; the arena ends at {layout.total_bytes}"
        found.append(Finding(BANDS_DISJOINT, "the arena", what))
    return found


def byte_conservation(chain: ChainAllocator) -> list[Finding]:
    """Bytes by count and gaps by place add up to the arena; copies stay inside it."""
    found = []
    layout = chain.layout
    boundary, gaps, claimed = layout.sink_bytes, 0, 0
    for band in chain.bands:
        page_bytes = band.layout.page_bytes
        claimed += sum(band.counts) * page_bytes
        # Edges come from the states and sizes from the counts, so that neither hides the other.
        reach = len(band.states.rstrip(b"\0"))
        if reach:
            start = len(band.states) - len(band.states.lstrip(b"\0"))
            low, high = band.axis.pages_of_span(start, reach)
            gaps += low * page_bytes - boundary
            boundary = high * page_bytes
    gaps += layout.total_bytes - boundary
    total = layout.sink_bytes + claimed + gaps
    if total != layout.total_bytes:
        what = (
            f"sink {layout.sink_bytes} + pages {claimed} + gaps {gaps} bytes are {total}; the"
            f" arena has {layout.total_bytes}"
        )
        found.append(Finding(BYTE_CONSERVATION, "the arena", what))
    for copy in chain.ledger.fences.uses():
        outside = [
            (low, high)
            for low, high in copy.ranges
            if not layout.sink_bytes <= low < high <= layout.total_bytes
        ]
        if outside:
            what = (
                f"{copy.use.value} {copy.number} touches bytes {outside}; allowed:"
                f" [{layout.sink_bytes}, {layout.total_bytes})"
            )
            found.append(Finding(BYTE_CONSERVATION, "the arena", what))
    return found


def capacity_epoch(chain: ChainAllocator) -> list[Finding]:
    """The view that capacity questions are asked of is the one that the bands give now."""
    kept, fresh = chain.relief.snapshot(), _fresh_view(chain)
    found = []
    if kept[:2] != fresh[:2]:
        what = f"kept sink and total {kept[:2]}; they are {fresh[:2]}"
        found.append(Finding(CAPACITY_EPOCH, "the arena", what))
    for band, old, new in zip(chain.bands, kept.bands, fresh.bands, strict=True):
        if old != new:
            found.append(about(CAPACITY_EPOCH, band, f"kept {old}; it is {new}"))
    return found


def steps_order(chain: ChainAllocator) -> list[Finding]:
    """Numbers ascend, what is over is below what is not, and uses name steps that are not over."""
    steps, found = chain.steps, []
    in_flight, launched = steps.in_flight(), steps.launched
    ascending = [steps.processed_through, *in_flight, *([launched] if launched else [])]
    if any(earlier >= later for earlier, later in pairwise(ascending)):
        what = f"processed, recorded and launched are {ascending}; they must ascend"
        found.append(Finding(STEPS_ORDER, "the steps", what))
    newest = max(steps.newest, steps.processed_through)
    if steps.settled_through > newest:
        what = f"settled through {steps.settled_through}, but the newest recorded is {newest}"
        found.append(Finding(STEPS_ORDER, "the steps", what))
    for use in chain.ledger.uses():
        # A vacated page returns with the next settle, so its step may be settled and not processed.
        vacated = use.use is Use.VACATED
        over = steps.processed_through if vacated else steps.retired_through
        if in_flight and not over < use.step <= newest:
            what = f"{use.use.value} waits for step {use.step}; allowed: {over + 1}..{newest}"
            pages = tuple(sorted(use.pages))
            found.append(about(STEPS_ORDER, chain.bands[use.band], what, pages))
    for band in chain.bands:
        for step, pages in band.pending_pages.batches():
            if in_flight and step not in in_flight:
                what = f"a batch waits for step {step}; in flight are {in_flight}"
                found.append(about(STEPS_ORDER, band, what, pages))
    return found


def idle_has_no_pending_batch(chain: ChainAllocator) -> list[Finding]:
    """With no recorded step in flight, no batch and no forward's use is left."""
    if chain.steps.in_flight():
        return []
    found = [
        about(
            IDLE_HAS_NO_PENDING_BATCH,
            chain.bands[use.band],
            f"no step is in flight, but {use.use.value} waits for step {use.step}",
            tuple(sorted(use.pages)),
        )
        for use in chain.ledger.uses()
    ]
    for band in chain.bands:
        for step, pages in band.pending_pages.batches():
            what = f"no step is in flight, but a batch waits for step {step}"
            found.append(about(IDLE_HAS_NO_PENDING_BATCH, band, what, pages))
    return found


def row_state(requests: RequestTable) -> list[Finding]:
    """Each row is once in the free list or once held, and only held rows are marked."""
    found = []
    free, held = Counter(requests.free_rows()), requests.held_rows()
    stray = tuple(sorted(set(requests.resets.marked()) - set(held)))
    if stray:
        what = "rows are marked for a reset that nobody holds; give_back takes the mark off"
        found.append(Finding(ROW_STATE, "the request table", what, ids=stray))
    free.update(held)
    wrong = tuple(row for row in range(len(requests.rows)) if free[row] != 1)
    if not wrong and free.total() == len(requests.rows):
        return found
    unknown = sorted(set(free) - set(range(len(requests.rows))))
    what = (
        f"rows are free and held, neither, or free twice; held are {len(held)} and free are"
        f" {requests.free_count} of {len(requests.rows)}, unknown are {unknown}"
    )
    return [*found, Finding(ROW_STATE, "the request table", what, ids=wrong)]


def length_bounds(
    requests: RequestTable, slots_per_page: int, lengths: Mapping[int, Lengths] = NO_LENGTHS
) -> list[Finding]:
    """No row names more than it can, and no request is longer than its row."""
    found = []
    held = requests.held_rows()
    for row in held:
        named = len(requests.rows[row])
        if named > requests.row_pages:
            what = f"names {named} pages; a row names at most {requests.row_pages}"
            found.append(Finding(LENGTH_BOUNDS, f"request row {row}", what))
    for row, (committed, allocated) in lengths.items():
        room = len(requests.rows[row]) * slots_per_page if row in held else 0
        if not 0 <= committed <= allocated <= room:
            what = (
                f"{committed} tokens committed, {allocated} allocated, room for {room}; allowed:"
                " 0 <= committed <= allocated <= room"
            )
            found.append(Finding(LENGTH_BOUNDS, f"request row {row}", what))
    return found


CHAIN_AUDITS: tuple[Callable[[ChainAllocator], list[Finding]], ...] = (
    map_bijective,
    free_of_bound_page,
    handout_of_used_page,
    count_conservation,
    bands_disjoint,
    byte_conservation,
    capacity_epoch,
    steps_order,
    idle_has_no_pending_batch,
)


def _fresh_view(chain: ChainAllocator) -> ChainView:
    arena = Arena(chain.layout.sink_bytes, chain.layout.total_bytes)
    last = len(chain.bands) - 1
    views = []
    for index, band in enumerate(chain.bands):
        page_bytes = band.layout.page_bytes
        low, high = band.axis.pages_of_span(band.low, band.high)
        wall = 0
        if index == last:
            wall = arena.end_page(page_bytes)
        elif index == 0:
            wall = arena.first_page(page_bytes)
        held = chain.ledger.held
        isolated = {
            page
            for hold in held.holds()
            if hold.band == index and hold.name in held.isolated
            for page in hold.pages
        }
        used = band.live + band.fixed + len(isolated & held.stuck(index))
        still = sorted(isolated.union(band.fixed_pages()))
        pin = (still[0], still[-1] + 1) if still else (0, 0)
        views.append(BandView(page_bytes, wall, low, high, used, *pin))
    return ChainView(arena.sink_bytes, arena.total_bytes, tuple(views))
