"""Does any layout serve a demand?  Answered by trying every span of every band.

The independent judge of an allocator's yes and no.  It has no rule to be wrong
about: a band may take any run of pages that is long enough, holds the pages that
must stay and lies above what is taken below it, wherever that leaves the bands
above.  Which bytes may come next is all that a choice hands on, so layouts of the
lower bands that end at the same byte are followed up once.

It knows nothing of how an allocator decides, of holes or of pending pages, and it
shares no code with one.  It is meant for arenas of up to a few hundred pages:
the work grows with the square of the pages of each float.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class _Band(NamedTuple):
    page_bytes: int
    used: int
    pin_low: int
    pin_high: int


def layout_exists(
    total_bytes: int,
    sink_bytes: int,
    bands: Sequence[tuple[int, int, int, int]],
    demand: Sequence[int],
) -> bool:
    """Whether some layout gives every band its used pages and its demand.

    Page `p` of a band covers bytes `[p * page_bytes, (p + 1) * page_bytes)`.  The
    span of the first band starts at the first page that is wholly above the sink
    and the span of the last one ends with the last page that is wholly inside the
    arena, also while they are empty.  The others lie between in the order of the
    chain, and one that needs no page may have no span.  A single band is a last one.

    Args:
        total_bytes: the arena, sink included.
        sink_bytes: lowest bytes of the arena, which no span covers.
        bands: from low to high, `(page_bytes, used, pin_low, pin_high)`.  Pages
            `[pin_low, pin_high)` must stay inside the span; equal if none must.
        demand: pages wanted per band beyond those used.
    """
    chain = [_Band(*band) for band in bands]
    assert len(demand) == len(chain)
    last = len(chain) - 1
    # Every byte at which the layouts of the lower bands can end.
    boundaries = {sink_bytes}
    for index, (band, wanted) in enumerate(zip(chain, demand, strict=True)):
        need = band.used + wanted
        top = total_bytes // band.page_bytes
        if index == last:
            starts = _starts(boundaries, band, top)
            return any(top in _ends({start}, band, need, top) for start in starts)
        if index == 0:
            origin = _first_page(sink_bytes, band)
            boundaries = _bytes_of(_ends({origin}, band, need, top), band)
            continue
        placed = _bytes_of(_ends(_starts(boundaries, band, top), band, need, top), band)
        may_have_no_span = need == 0 and band.pin_low == band.pin_high
        boundaries = placed | boundaries if may_have_no_span else placed
    raise AssertionError("a chain has at least one band")


def _starts(boundaries: Iterable[int], band: _Band, top: int) -> set[int]:
    """Every page above any of `boundaries` at which a span can start."""
    starts: set[int] = set()
    for first in {_first_page(boundary, band) for boundary in boundaries}:
        starts.update(range(first, top + 1))
    return starts


def _ends(starts: Iterable[int], band: _Band, need: int, top: int) -> set[int]:
    """Every page at which a long enough span from any of `starts`, around the pin, can end."""
    is_pinned = band.pin_low < band.pin_high
    ends: set[int] = set()
    for start in starts:
        if not is_pinned:
            ends.update(range(start + need, top + 1))
        elif start <= band.pin_low:
            ends.update(range(max(start + need, band.pin_high), top + 1))
    return ends


def _first_page(boundary: int, band: _Band) -> int:
    """The first page of `band` that lies wholly at or above a byte."""
    return -(-boundary // band.page_bytes)


def _bytes_of(ends: Iterable[int], band: _Band) -> set[int]:
    return {end * band.page_bytes for end in ends}
