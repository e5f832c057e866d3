"""When physical ids may leave the host: after the schedule stream's work on their pages has run.

The host knows ids at once and never reads them back; a gate only says when they may be told.  Its
event covers what was enqueued when the gate was set.  A page that moved since has later work, so
then the gate is the schedule stream as it is now.
"""

from __future__ import annotations

from dataclasses import dataclass

from unikv.alloc.chain import ChainAllocator
from unikv.device.port import Event, Stream


@dataclass(frozen=True, slots=True)
class Gate:
    """A place in the schedule stream.

    Attributes:
        epochs: how often pages of each band had moved when it was set.
        event: recorded on the schedule stream then.
    """

    epochs: tuple[int, ...]
    event: Event


def set_gate(chain: ChainAllocator) -> Gate:
    """A gate behind everything that is on the schedule stream now; enqueues one event."""
    return Gate(_move_epochs(chain), chain.device.record_event(Stream.SCHEDULE))


def wait_gate(chain: ChainAllocator, gate: Gate) -> None:
    """Let the host see that the work on the gate's pages, their last move included, has run.

    Order: blocks the host until the gate's event has passed; if a page has moved since it was set,
    until all that is on the schedule stream now has run.
    """
    # Comparing pages would not do: a page that moved away and back has the same number.
    if _move_epochs(chain) != gate.epochs:
        gate = set_gate(chain)
    chain.device.host_wait(gate.event)


def _move_epochs(chain: ChainAllocator) -> tuple[int, ...]:
    return tuple(band.ids.moves for band in chain.bands)
