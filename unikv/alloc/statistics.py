"""What the allocator has done so far and what it holds, for people, tests and the harness's floors.

Figures are for reading: a free count does not say whether a demand fits, so no decision rests on
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType

from unikv.alloc.band import Band
from unikv.ids.unit_ids import MintedIds
from unikv.memory.arena import Arena


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


@dataclass(frozen=True, slots=True)
class BandStatistics:
    """One band at one moment.

    Law: `live + holes + pending + fixed == high - low` of its span.

    Attributes:
        name: the band's name.
        page_bytes: bytes of one page.
        live, holes, pending, fixed: claimed pages by state.
        span: claimed pages `[low, high)`; `(0, 0)` when there are none.
        gap_bytes: unclaimed bytes right below the span, down to the next claimed byte or the sink;
            0 when there is no span, since its neighbours see through it.
        ids_free: ids that can be minted now; for a window band, those of the band that owns them.
    """

    name: str
    page_bytes: int
    live: int
    holes: int
    pending: int
    fixed: int
    span: tuple[int, int]
    gap_bytes: int
    ids_free: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """A chain at one moment; nothing in it changes when the chain does.

    Law: the sink, every band's pages and gap, and `top_gap_bytes` add up to the arena.

    Attributes:
        totals: the counters since the storage was built, by name.
        bands: from the low end to the high end.
        top_gap_bytes: unclaimed bytes above the highest span.
        steps_in_flight: recorded, unprocessed steps.
    """

    totals: Mapping[str, int]
    bands: tuple[BandStatistics, ...]
    top_gap_bytes: int
    steps_in_flight: int

    @property
    def gap_bytes(self) -> int:
        """Unclaimed bytes of the arena, the remainders between page sizes included."""
        return self.top_gap_bytes + sum(band.gap_bytes for band in self.bands)


def gather_statistics(
    counters: Counters,
    arena: Arena,
    bands: Sequence[Band],
    minted: Mapping[int, MintedIds],
    steps_in_flight: int,
) -> Statistics:
    """Freeze the figures of one chain.

    Args:
        counters: its running totals.
        arena: its bytes.
        bands: from the low end to the high end; the last one owns the token ids.
        minted: the ids left of each minting band, by its index.
        steps_in_flight: recorded, unprocessed steps.
    """
    owner = minted[len(bands) - 1]
    boundary = arena.sink_bytes
    frozen = []
    for band in bands:
        page_bytes = band.layout.page_bytes
        low, high = band.span()
        gap_bytes = low * page_bytes - boundary if low < high else 0
        if low < high:
            boundary = high * page_bytes
        ids_free = minted.get(band.index, owner).free_count
        frozen.append(
            BandStatistics(
                band.layout.name, page_bytes, *band.counts, (low, high), gap_bytes, ids_free
            )
        )
    totals = MappingProxyType(asdict(counters))
    return Statistics(totals, tuple(frozen), arena.total_bytes - boundary, steps_in_flight)
