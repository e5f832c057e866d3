"""Frozen inputs of every capacity question.

Whether a demand fits depends on a handful of integers per band, so a question
never needs the allocator itself: it is asked of a `ChainView`, which cannot
change between the answer and the take.  Two views of one moment are usual.

- *careful*: pages under a transfer or a receive hold may not move, and those of
  them that are already free or vacated (stuck) count as used.
- *full*: only fixed pages may not move, and stuck pages count as free.

This module does not know how a view is read from a live allocator, which pages
are holes, or what is pending: no rule in `pricing` may depend on those.
"""

from typing import NamedTuple


class BandView(NamedTuple):
    """What one band contributes to a capacity question.

    Page numbers are the band's own: page `p` covers the arena's bytes
    `[p * page_bytes, (p + 1) * page_bytes)`.  The laws, checked by
    `pricing.assert_plan`:

        low <= pin_low <= pin_high <= high      where the band has a pin
        0 <= used <= high - low
        low end:   low == wall == ceil(sink_bytes / page_bytes)
        high end:  high == wall == total_bytes // page_bytes

    The claimed span and the pin are neighbouring columns of the same shape,
    which lets a rearrangement step be a choice of column.
    """

    page_bytes: int
    wall: int
    """Low end: its first usable page. High end: one past its last. Float: 0, unused."""
    low: int
    high: int
    """The claimed span is `[low, high)`; `low == high` when the band is empty."""
    used: int
    """Pages that stay used: live and fixed, and in the careful view also stuck."""
    pin_low: int
    pin_high: int
    """Every page that must stay lies in `[pin_low, pin_high)`; equal when none must."""


class ChainView(NamedTuple):
    """One arena and its bands at one moment.

    `bands` run from low to high: the first is the low end, the last the high
    end, and any number of floats lie between.  A chain of one band is a high end.
    """

    sink_bytes: int
    total_bytes: int
    bands: tuple[BandView, ...]
