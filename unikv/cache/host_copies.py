"""What a host tier remembers of a copy from its first call to its acknowledgement.

A copy that is submitted has a number in the chain's ledger, and nothing else says so.  Only the
tier changes these; what a call may do in which state is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass

from unikv.cache.claims import Claim
from unikv.device.port import Event
from unikv.memory.host import Slots


@dataclass(slots=True)
class Backup:
    """A backup between its first call and its acknowledgement.

    Attributes:
        claim: what it copies.
        target: host slots that it fills.
        number: of its use in the ledger, from 1; 0 until it is submitted.
    """

    claim: Claim
    target: Slots
    number: int = 0


@dataclass(slots=True)
class Load:
    """A load between its first call and its acknowledgement.

    Attributes:
        claim: what it fills; the ids of reserved pages name them once they are named.
        source: the host slots that it reads.
        reserved: per window band, pages that no id names yet.
        events: after each layer group, once it is submitted; none if the device failed in that.
        number: of its use in the ledger, from 1; 0 until it is submitted.
    """

    claim: Claim
    source: Slots
    reserved: dict[int, list[int]]
    events: tuple[Event, ...] = ()
    number: int = 0
