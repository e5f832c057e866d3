"""One copy per band before anything lives in the arena, so that no later copy is the first.

A device may compile kernels and take memory when a kernel is first used, and a first copy otherwise
comes when the arena is full and a relief needs it at once.  This one changes nothing that anybody
reads: its source is a page that nobody has taken, its target is the sink.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.alloc.band import Band
from unikv.device.port import Device, Stream
from unikv.errors import CallOrderError

SINK = 0
"""The sink's id and its page, in every band."""


def check_first(taken_pages: int, step: int) -> None:
    """Refuse a copy that would not be the first.

    Args:
        taken_pages: pages that were ever handed out.
        step: the newest step in flight; 0 if there is none.

    Raises:
        CallOrderError: if anything was handed out, or a step is in flight.
    """
    if taken_pages or step:
        raise CallOrderError(
            f"prewarm after {taken_pages} pages were handed out, with step {step} in flight;"
            " allowed: 0 pages and step 0, so call it as soon as the storage is built"
        )


def prewarm_copies(device: Device, bands: Sequence[Band]) -> None:
    """Run the kernels of a move once for every band that can ever have a page.

    Order: enqueues a copy and a map write for each on the schedule stream.  The entry that is
    written is the sink's, with what it holds already.
    """
    for band in bands:
        first, end = band.axis.pages_of_span(0, len(band.states))
        if first < end:
            device.move_pages(Stream.SCHEDULE, band.index, (first,), (SINK,))
            device.write_map(Stream.SCHEDULE, band.index, (SINK,), (SINK,))
