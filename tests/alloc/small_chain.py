"""Chain allocators small enough to write out page by page, and steps that run on them.

What they work on is a device that keeps a diary; the capacity search works on it too, so it lives
there and is only named here.
"""

from collections.abc import Sequence

from benchmarks.search.diary_device import (
    DiaryDevice,
    Mark,
    layout_of,
    picture,
    states,
    tokens,
    window,
)
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, ClearanceTable
from unikv.device.port import Event, StorageLayout, Stream

__all__ = [
    "LETTERS",
    "DiaryDevice",
    "Mark",
    "chain_of",
    "drawn",
    "layout_of",
    "picture",
    "run_step",
    "states",
    "tokens",
    "window",
]

LETTERS = ".Lhpf"
"""One letter per page state: unclaimed, live, hole, pending, fixed."""


def chain_of(
    layout: StorageLayout, clearance: ClearanceTable = CLEARANCE
) -> tuple[ChainAllocator, DiaryDevice]:
    """An empty allocator and the device it works on."""
    device = DiaryDevice(layout)
    return ChainAllocator(layout, device, clearance), device


def run_step(
    chain: ChainAllocator, device: DiaryDevice, number: int, *writes: Sequence[int]
) -> Event:
    """Launch and record one step that writes the pages of these ids, band by band; its event."""
    chain.launch_step(number)
    event = device.record_event(Stream.FORWARD)
    chain.record_step(number, event, writes or [()] * len(chain.bands))
    return event


def drawn(band: Band) -> str:
    """A letter per page, in page order; `_` for the pages below the band's first one."""
    low, _ = band.axis.pages_of_span(0, len(band.states))
    letters = "".join(LETTERS[state] for state in band.states)
    return "_" * low + letters[:: band.axis.step]
