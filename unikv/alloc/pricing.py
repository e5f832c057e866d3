"""Does a demand fit, and where would every band lie then?

Pages of one band are interchangeable, so an outcome is no more than a span per
band: long enough, around the pages that must stay, disjoint from its neighbours.
Packing from one side, each band as close to that side as it can be, then decides
exactly whether such spans exist, because a boundary that is pushed less far
never pushes the next one further.

    bytes   0    sink                                              total
            |////|low end ->|   gap   |float|  gap  |float| gap |<- high end|

How much may be moved is only a matter of which pages count as pinned: the same
pass answers for every `Step`.

A pass downward leaves each float an interval of starts, any of which leaves the
bands above it room.  Which one a plan takes is therefore policy and cannot break it:

- a float without a pin shares the free bytes out evenly with the unpinned floats
  above it, up to the next pinned band.  Packing to one side instead would leave
  some neighbour without a gap and bring the next relief sooner;
- a float with a pin grows into the larger of its two gaps, into the lower one if
  they are equal, and into the other only as far as the first does not suffice.
  The gap above ends where the next band would start if everything were pushed up.

This module reads nothing but a `ChainView`.  It does not know holes, pending
batches, streams or ids, and it changes nothing.
"""

from collections.abc import Sequence
from enum import IntEnum

from unikv.alloc.snapshot import BandView, ChainView

Spans = tuple[tuple[int, int], ...]
"""Planned `[low, high)` per band, from low to high; an empty float has an empty pair."""


class Step(IntEnum):
    """How much a plan may rearrange, from nothing to everything that is not pinned."""

    NO_MOVE = 0  # Every band keeps the whole of its span.
    FLUSH_ENDS = 1  # The ends keep only their pins; the floats keep their spans.
    RELAYOUT = 2  # Every band keeps only its pin.


# Column of `BandView` where the pinned interval starts; it ends in the next one.
_SPAN = 2
_PIN = 5

# Pinned column of the ends, then of the floats. A tuple in the order of `Step`:
# the hash that a dict would need of an enum member costs more than a pass over two bands.
_PINNED = ((_SPAN, _SPAN), (_PIN, _SPAN), (_PIN, _PIN))


def feasible(view: ChainView, demand: Sequence[int]) -> bool:
    """Whether some rearrangement serves `demand`; asked of the full view.

    The same answer as whether `plan` finds a `RELAYOUT`, and since the other
    steps only pin more, as whether any step does.  It depends on page bytes,
    used counts and pins alone: settling, processing or moving never changes it,
    and a smaller demand or a free never turns a yes into a no.

    Args:
        view: the chain, usually its full view.
        demand: pages wanted per band beyond those used, from low to high, each >= 0.
    """
    bands = view[2]
    assert len(demand) == len(bands)
    last = len(bands) - 1
    page_bytes, wall, _, _, used, pin_low, pin_high = bands[last]
    start = wall - used - demand[last]
    if pin_low < start and pin_low < pin_high:
        start = pin_low
    return start * page_bytes >= _lowest_boundary(view, demand, last)


def plan(view: ChainView, demand: Sequence[int], step: Step) -> Spans | None:
    """Spans in which every band holds its used pages and its demand, if `step` allows any.

    Each span is exactly as long as `used + demand` or as its pins require, and
    the taker claims all of it.

    Args:
        view: the chain; the careful view unless nothing is under a transfer.
        demand: pages wanted per band beyond those used, from low to high, each >= 0.
        step: how much may be rearranged.

    Returns:
        Spans that pass `assert_plan`, or None exactly if there are none.
    """
    sink_bytes, _, bands = view
    assert len(demand) == len(bands)
    ends, floats = _PINNED[step]
    last = len(bands) - 1
    ceilings = _highest_boundaries(bands, demand, step, 0)
    ceiling = ceilings.pop()
    high_end = bands[last]
    if last == 0:
        if ceiling < sink_bytes:
            return None
        return ((ceiling // high_end[0], high_end[1]),)

    low_end = bands[0]
    end = low_end[1] + low_end[4] + demand[0]
    pin_high = low_end[ends + 1]
    if pin_high > end and low_end[ends] < pin_high:
        end = pin_high
    boundary = end * low_end[0]
    if boundary > ceiling:
        return None

    spans = [(low_end[1], end)]
    sharing = 0
    for index in range(1, last):
        band = bands[index]
        ceiling = ceilings.pop()
        page_bytes = band[0]
        pages = band[4] + demand[index]
        pin_low = band[floats]
        pin_high = band[floats + 1]
        start = -(-boundary // page_bytes)
        if pin_low < pin_high:
            if pages < pin_high - pin_low:
                pages = pin_high - pin_low
            if ceiling - pin_high * page_bytes > pin_low * page_bytes - boundary:
                start = ceiling // page_bytes - pages
                if start > pin_low:
                    start = pin_low
            elif start < pin_high - pages:
                start = pin_high - pages
        elif pages:
            if sharing == 0:
                sharing = _unpinned_run(bands, demand, floats, index)
            start += (ceiling // page_bytes - pages - start) // (sharing + 1)
            sharing -= 1
        else:
            spans.append((0, 0))
            continue
        end = start + pages
        boundary = end * page_bytes
        spans.append((start, end))
    spans.append((ceiling // high_end[0], high_end[1]))
    return tuple(spans)


def first_plan(view: ChainView, demand: Sequence[int]) -> tuple[Step, Spans] | None:
    """The least step that serves `demand` with its spans, or None if no step does.

    Unlike `feasible`, the step depends on what is settled: pending pages belong
    to a span, and a span is a wall as long as its band is left in place.
    """
    spans = plan(view, demand, Step.NO_MOVE)
    if spans is not None:
        return Step.NO_MOVE, spans
    # A refusal is the common end here, and this pass is the cheapest way to one.
    if not feasible(view, demand):
        return None
    spans = plan(view, demand, Step.FLUSH_ENDS)
    if spans is not None:
        return Step.FLUSH_ENDS, spans
    spans = plan(view, demand, Step.RELAYOUT)
    assert spans is not None
    return Step.RELAYOUT, spans


def most_pages(view: ChainView, demand: Sequence[int], band: int) -> int:
    """The most pages that `band` can get while the other bands get their demand.

    Rearranging is allowed (`RELAYOUT`), and `demand[band]` is not read.

    Returns:
        The largest demand of this band that is feasible with the others'; 0 also
        if the others' demand does not fit with nothing for this band.
    """
    bands = view[2]
    page_bytes, wall, _, _, used, pin_low, pin_high = bands[band]
    last = len(bands) - 1
    if band == last:
        end = wall
    else:
        end = _highest_boundaries(bands, demand, Step.RELAYOUT, band)[-1] // page_bytes
    if band == 0 and last > 0:
        start = wall
    else:
        start = -(-_lowest_boundary(view, demand, band) // page_bytes)
    if pin_low < pin_high and (pin_low < start or end < pin_high):
        return 0
    return max(0, end - start - used)


def move_order(view: ChainView, spans: Spans) -> tuple[int, ...]:
    """Bands whose planned span differs from the claimed one, in the order to realize them.

    To realize a band is to copy its pages that lie outside the planned span into
    free slots inside it; its claimed span then becomes the planned one.  An end
    only copies within what it has claimed, so it waits for nobody and comes
    first; what it gains is claimed by the takes that follow the last copy.

    A float waits for each neighbour whose claimed span its planned one reaches
    *or passes*.  Waiting for overlap alone would let a float jump over one that
    has yet to leave: no byte would be lost, but the chain would be out of order
    between two copies.

            now       A  B  .  .  .
            planned   .  .  .  A  B      A would pass B, so B goes first.

    Whom a float waits for above waits for nobody below, and the reverse, so
    nothing waits in a circle: first the floats that wait for none above, upward,
    then the others, downward.
    """
    bands = view[2]
    last = len(bands) - 1
    ends: list[int] = []
    for index in (0, last) if last else (0,):
        band = bands[index]
        if (band.low, band.high) != spans[index]:
            ends.append(index)

    upward: list[int] = []
    downward: list[int] = []
    # Lowest byte that a float above has claimed now.
    claimed_above = view[1]
    for index in range(last - 1, 0, -1):
        band = bands[index]
        low, high = spans[index]
        is_parked = band.low == band.high
        if low < high:
            if high * band.page_bytes > claimed_above:
                downward.append(index)
            elif is_parked or (low, high) != (band.low, band.high):
                upward.append(index)
        elif not is_parked:
            upward.append(index)
        if not is_parked:
            claimed_above = band.low * band.page_bytes
    upward.reverse()
    return (*ends, *upward, *downward)


def assert_plan(view: ChainView, demand: Sequence[int], step: Step, spans: Spans) -> None:
    """Assert what makes `spans` safe to commit, and that the view is sound.

    Raises:
        AssertionError: naming the band, if a span is too short or too long, leaves
            its wall, leaves out a page that must stay, or crosses its neighbour.
    """
    _assert_view(view)
    assert len(demand) == len(view.bands)
    assert len(spans) == len(view.bands)
    last = len(view.bands) - 1
    boundary = view.sink_bytes
    for index, (band, wanted, (low, high)) in enumerate(
        zip(view.bands, demand, spans, strict=True)
    ):
        place = f"band {index}: span [{low}, {high})"
        is_end = index in (0, last)
        column = _PINNED[step][0 if is_end else 1]
        pin_low, pin_high = band[column], band[column + 1]
        pages = band.used + wanted
        if pin_low < pin_high:
            assert low <= pin_low, f"{place} leaves out pinned page {pin_low}"
            assert pin_high <= high, f"{place} leaves out pinned page {pin_high - 1}"
            kept_low = band.wall if index == 0 and last > 0 else pin_low
            kept_high = band.wall if index == last else pin_high
            pages = max(pages, kept_high - kept_low)
        assert wanted >= 0, f"band {index}: demand {wanted} must not be negative"
        assert high - low == pages, f"{place} must have exactly {pages} pages"
        if index == last:
            assert high == band.wall, f"{place} must end at its wall, page {band.wall}"
        elif index == 0:
            assert low == band.wall, f"{place} must start at its wall, page {band.wall}"
        elif low == high:
            continue
        assert low * band.page_bytes >= boundary, f"{place} starts below byte {boundary}"
        boundary = high * band.page_bytes
    assert boundary <= view.total_bytes


def _assert_view(view: ChainView) -> None:
    """Assert the laws of `BandView` and that claimed spans are disjoint and in order."""
    last = len(view.bands) - 1
    boundary = view.sink_bytes
    for index, band in enumerate(view.bands):
        place = f"band {index}: {band}"
        assert 0 <= band.used <= band.high - band.low, place
        if band.pin_low < band.pin_high:
            assert band.low <= band.pin_low, place
            assert band.pin_high <= band.high, place
        if index == last:
            assert band.high == band.wall == view.total_bytes // band.page_bytes, place
        elif index == 0:
            assert band.low == band.wall == -(-view.sink_bytes // band.page_bytes), place
        elif band.low == band.high:
            continue
        assert band.low * band.page_bytes >= boundary, f"{place} starts below byte {boundary}"
        boundary = band.high * band.page_bytes


def _lowest_boundary(view: ChainView, demand: Sequence[int], count: int) -> int:
    """Lowest byte at which the `count` lowest bands can end, each around its pin only.

    A byte past the arena if they cannot be laid out at all.
    """
    sink_bytes, total_bytes, bands = view
    if count == 0:
        return sink_bytes
    page_bytes, wall, _, _, used, pin_low, pin_high = bands[0]
    end = wall + used + demand[0]
    if pin_high > end and pin_low < pin_high:
        end = pin_high
    boundary = end * page_bytes
    for index in range(1, count):
        page_bytes, _, _, _, used, pin_low, pin_high = bands[index]
        pages = used + demand[index]
        if pin_low < pin_high:
            start = -(-boundary // page_bytes)
            if start > pin_low:
                return total_bytes + 1
            end = start + pages
            boundary = (end if end > pin_high else pin_high) * page_bytes
        elif pages:
            boundary = (-(-boundary // page_bytes) + pages) * page_bytes
    return boundary


def _highest_boundaries(
    bands: tuple[BandView, ...], demand: Sequence[int], step: Step, band: int
) -> list[int]:
    """Highest byte at which the bands above `band` can start, for the last of them, then lower.

    The last entry is the lowest of these boundaries: all bands above `band` together. It is
    negative if they cannot be laid out at all.
    """
    ends, floats = _PINNED[step]
    last = len(bands) - 1
    high_end = bands[last]
    start = high_end[1] - high_end[4] - demand[last]
    pin_low = high_end[ends]
    if pin_low < start and pin_low < high_end[ends + 1]:
        start = pin_low
    boundary = start * high_end[0]
    boundaries = [boundary]
    for index in range(last - 1, band, -1):
        above = bands[index]
        page_bytes = above[0]
        pages = above[4] + demand[index]
        pin_low = above[floats]
        pin_high = above[floats + 1]
        if pin_low < pin_high:
            end = boundary // page_bytes
            if end < pin_high:
                boundaries.append(-1)
                break
            start = end - pages
            boundary = (start if start < pin_low else pin_low) * page_bytes
        elif pages:
            boundary = (boundary // page_bytes - pages) * page_bytes
        boundaries.append(boundary)
    return boundaries


def _unpinned_run(
    bands: tuple[BandView, ...], demand: Sequence[int], floats: int, index: int
) -> int:
    """Unpinned floats with a span from `index` up to the next pinned band."""
    count = 0
    for above in range(index, len(bands) - 1):
        band = bands[above]
        if band[floats] < band[floats + 1]:
            break
        if band[4] + demand[above]:
            count += 1
    return count
