"""What one forward does with the state of one request, and what a state slot contains, as data.

Who holds which slot, and how these come about, is in `unikv.cache.state_slots`.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

SINK = 0
"""The slot that padding is written to.  Nobody holds it and nothing is resumed from it."""


class Checkpoint(NamedTuple):
    """A slot with the state after the first `length` tokens of some sequence."""

    slot: int
    length: int  # tokens


NO_CHECKPOINT = Checkpoint(SINK, 0)
"""Nothing to resume from, or nothing to take."""


class Opening(Enum):
    """Where a forward gets its first state from."""

    RESET = "reset"  # the slot is cleared first; the sequence starts here
    RESUME = "resume"  # the state is read from another slot, and the own one only written
    CONTINUE = "continue"  # the state is in the slot


class StateStep(NamedTuple):
    """What one forward does with the state of one request.

    Attributes:
        name: the request.
        first, tokens: it runs over tokens `[first, first + tokens)`.
        source: the slot it reads the state after `first` tokens from; the sink for a reset, which
            reads nothing.
        slot: where it writes the state after its last token.
        tracked: where it also writes the state after `tracked.length` tokens, which is the last
            grid boundary that it comes to; `NO_CHECKPOINT` if it comes to none or skips it.
    """

    name: str
    first: int
    tokens: int
    source: int
    slot: int
    tracked: Checkpoint

    @property
    def opening(self) -> Opening:
        """Where the first state comes from."""
        if self.source == SINK:
            return Opening.RESET
        return Opening.CONTINUE if self.source == self.slot else Opening.RESUME


class Content(Enum):
    """What is in a slot, for every kernel that is enqueued from here on."""

    STALE = "stale"  # an earlier holder's bytes: to be cleared, or written whole as a checkpoint
    RESUMING = "resuming"  # likewise, and whoever runs on it reads another slot first
    FILLING = "filling"  # likewise, and what brings a state there is not enqueued: nobody runs yet
    WRITTEN = "written"  # the state after some tokens


class SlotState(NamedTuple):
    """One slot that somebody holds.

    Attributes:
        content: what is in it.
        length: tokens whose state it has, gets, or starts from; 0 while it is stale.
        source: the slot that a resuming one starts from; the sink otherwise.
    """

    content: Content
    length: int
    source: int


STALE = SlotState(Content.STALE, 0, SINK)


class HeldSlots(NamedTuple):
    """The slots of one request: the one it runs on, and the one for checkpoints (0 for none)."""

    slot: int
    tracking: int


class Ending(NamedTuple):
    """What becomes of the slots of a request that ends: one for the tree, the rest to be freed."""

    checkpoint: Checkpoint
    slots: tuple[int, ...]
