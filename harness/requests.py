"""The engine's requests and who holds which page.

This is the scheduler's own bookkeeping: names, lengths and references.  It knows no physical page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from unikv.device.port import RowContent


class Phase(Enum):
    """Where a request is in its life."""

    QUEUED = "queued"
    RUNNING = "running"
    RECEIVING = "receiving"  # a peer writes its prompt's pages
    PAUSED = "paused"  # it holds its pages, and its row is somebody else's
    SAVING = "saving"  # its backup has host slots and is not submitted
    PARKED = "parked"  # its pages are in host memory, or on the way there
    LEAVING = "leaving"  # a peer reads all that it holds; it runs here no more
    LOADING = "loading"  # it has pages again, and their load is not submitted


@dataclass(slots=True)
class Request:
    """One sequence being served.

    Law: while running, `pages` covers positions `[0, length + prepared)`, and every window row from
    `window_first` on is bound.

    Attributes:
        name: stable name in the trace.
        prompt, output: tokens to prefill and to decode.
        blocks: names of the prompt's shareable blocks, outermost first.
        row: its row of the request table, -1 while queued or paused.
        pages: virtual pages, in order of position.
        length: tokens whose forward was launched.
        prepared: tokens with slots that the next launch will write.
        window_first: per band, index of the first page whose window row it still holds.
        last_step: the newest step that may write its pages, 0 for none.
        source: slot of a cached prefix that its first launch resumes from, 0 for a fresh state.
        source_key: the cached prefix that `source` belongs to, locked until that launch.
        saved: the memory of the row that it gave up, until that is restored; None for none.
        came_from: who wrote its first pages: `peer`, `host`, or empty for its own prefill.
        resumed: how often it came back from host memory.
    """

    name: str
    prompt: int
    output: int
    blocks: tuple[int, ...] = ()
    phase: Phase = Phase.QUEUED
    row: int = -1
    pages: list[int] = field(default_factory=list)
    length: int = 0
    prepared: int = 0
    window_first: list[int] = field(default_factory=list)
    last_step: int = 0
    source: int = 0
    source_key: tuple[int, ...] = ()
    saved: RowContent | None = None
    came_from: str = ""
    resumed: int = 0

    @property
    def total(self) -> int:
        """Tokens at which it is done."""
        return self.prompt + self.output

    @property
    def prefilled(self) -> bool:
        """Whether every prompt token is launched or prepared."""
        return self.length + self.prepared >= self.prompt

    def reset(self) -> None:
        """Forget everything but what was asked for: back to the queue."""
        self.phase = Phase.QUEUED
        self.row = -1
        self.pages = []
        self.length = self.prepared = self.last_step = 0
        self.source, self.source_key = 0, ()
        self.saved = None
        self.came_from = ""


class Holds:
    """References to ids of one band: requests and cached prefixes that still want them.

    Law: an id is allocated exactly while its count is above 0, and then `held[id]` is 1.
    """

    __slots__ = ("counts", "held")

    def __init__(self, id_count: int) -> None:
        self.counts = [0] * (id_count + 1)
        self.held = bytearray(id_count + 1)

    def add(self, ids: Sequence[int]) -> None:
        """One more reference to each."""
        counts, held = self.counts, self.held
        for unit in ids:
            counts[unit] += 1
            held[unit] = 1

    def drop(self, ids: Sequence[int]) -> list[int]:
        """One reference less to each; those that nobody holds any more, in order."""
        counts, held = self.counts, self.held
        released = []
        for unit in ids:
            counts[unit] -= 1
            if not counts[unit]:
                held[unit] = 0
                released.append(unit)
        return released


@dataclass(slots=True)
class Prefix:
    """A cached beginning of prompts: a plain stand-in for a node of a prefix tree.

    Attributes:
        blocks: the blocks it holds, outermost first.
        pages: their virtual pages.
        tails: per band, the pages whose window rows it holds.
        slot: state after its last token, 0 in models without state.
        locks: admitted requests that have not yet read its state.
    """

    blocks: tuple[int, ...]
    pages: list[int]
    tails: list[list[int]]
    slot: int
    locks: int = 0
