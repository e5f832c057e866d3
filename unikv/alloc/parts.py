"""What every part of one chain works on, given to each once when the chain is built."""

from __future__ import annotations

from dataclasses import dataclass

from unikv.alloc.band import Band
from unikv.alloc.clearance import ClearanceTable
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.page_usage import PageLedger
from unikv.alloc.statistics import Counters
from unikv.device.port import Device
from unikv.memory.arena import Arena


@dataclass(frozen=True, slots=True)
class ChainParts:
    """The shared state of one chain; each part says in its own docstring what it may change.

    Attributes:
        device: where work is enqueued.
        arena: the bytes that the bands share.
        bands: from the low end to the high end.
        steps: forwards in flight.
        ledger: every use that is not over.
        clearance: the table that says what a use means for the next toucher.
        counters: running totals.
    """

    device: Device
    arena: Arena
    bands: tuple[Band, ...]
    steps: ForwardSteps
    ledger: PageLedger
    clearance: ClearanceTable
    counters: Counters
