"""What another allocator needed for the same workload, as figures that were published.

SGLang 0.5.23, its unified allocator on the CPU with lazy compaction, on one noisy machine.  They
were not measured here, so a ratio to them is one between two machines.  Its first two rows run
naive CPU stand-ins for two GPU kernels: about 140 us of a prefill of 512 tokens and 35 us of a
decode step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SOURCE = "SGLang 0.5.23 unified allocator, published figures, one noisy machine"
SLOTS = 64
"""Tokens a page in all of these runs."""


class PeerRow(NamedTuple):
    """One row of the other allocator.

    Attributes:
        figures: by nominal pages per side, in the unit of our row.
        aim: how many times faster ours means to be.
    """

    figures: Mapping[int, float]
    aim: int


def _by_pages(small: float, middle: float, large: float) -> Mapping[int, float]:
    return {4096: small, 32768: middle, 262144: large}


PEER: Mapping[str, PeerRow] = {
    "W1 prefill, 512 tokens": PeerRow(_by_pages(418, 436, 561), 20),
    "W1 prefill, 4096 tokens": PeerRow(_by_pages(790, 795, 869), 20),
    "W2 decode step": PeerRow(_by_pages(217, 231, 224), 10),
    "W3 free, 512 tokens": PeerRow(_by_pages(157, 178, 426), 20),
    "W4 churn, iterations": PeerRow(_by_pages(691, 638, 585), 20),
    "W5b capacity question": PeerRow(_by_pages(7.5, 8.1, 8.2), 4),
    "W5d joint, a quarter evictable": PeerRow(_by_pages(54, 71, 85), 20),
    "W6 worst compaction": PeerRow(_by_pages(8600, 65000, 539000), 50),
    "W7 worst float": PeerRow(_by_pages(78000, 895000, 6099000), 200),
}
