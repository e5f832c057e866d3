"""What one forward step touches, gathered before anything of it is submitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.device.memory import PageBytes
from harness.relay import Accepted


@dataclass(slots=True)
class Batch:
    """What the kernels of one step read and write, and what the allocator is told of it.

    Attributes:
        kept: pages that the body only reads.
        before, after: pages that it writes, before and after it did.
        writes: what it writes, per layer group.
        reads: pages that it reads, with their band.
        maps: entries that the metadata phase looks up: band, ids and pages.
        written_ids, written_pages: per band, what the step writes in all.
        committed: what is written after the body, when that is left to a commit.
        accepted: what another stage will relay, when it is left to that.
        slot_pages: pages of the state slots that the step reads and writes, as looked up.
    """

    kept: list[PageBytes] = field(default_factory=list)
    before: list[PageBytes] = field(default_factory=list)
    writes: list[list[PageBytes]] = field(default_factory=list)
    after: list[PageBytes] = field(default_factory=list)
    reads: list[tuple[int, list[int]]] = field(default_factory=list)
    maps: list[tuple[int, list[int], list[int]]] = field(default_factory=list)
    written_ids: list[list[int]] = field(default_factory=list)
    written_pages: list[list[int]] = field(default_factory=list)
    committed: list[PageBytes] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    slot_pages: list[int] = field(default_factory=list)


def new_batch(bands: int, layer_groups: int) -> Batch:
    """A batch that touches nothing yet."""
    return Batch(
        writes=[[] for _ in range(layer_groups)],
        written_ids=[[] for _ in range(bands)],
        written_pages=[[] for _ in range(bands)],
    )


def piece_of(pages: Sequence[PageBytes], group: int, groups: int) -> list[PageBytes]:
    """One layer group of whole pages."""
    pieces: list[PageBytes] = []
    for low, high, data in pages:
        piece = (high - low) // groups
        start = group * piece
        pieces.append((low + start, low + start + piece, data[start : start + piece]))
    return pieces
