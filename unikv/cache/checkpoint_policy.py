"""Where the state of a sequence is kept for others to resume, and what that costs a request.

Recurrent state exists at one position only, the one its slot has come to.  A prefix can be resumed
where a copy was made, so a policy says at which positions copies are made and into which slot.  All
of it is arithmetic over positions; no slot is named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from unikv.arguments import check_int
from unikv.errors import ArgumentError


class CheckpointStrategy(Enum):
    """Who holds the slot that a checkpoint is written to.

    NO_BUFFER: nobody; the tree takes the slot that the request itself runs on, at the sequence end.
    EXTRA_BUFFER: the request, from its admission on; forwards write their last grid boundary there.
    EXTRA_BUFFER_LAZY: the request, from a boundary on; where no slot is free this one is skipped.
    """

    NO_BUFFER = "no_buffer"
    EXTRA_BUFFER = "extra_buffer"
    EXTRA_BUFFER_LAZY = "extra_buffer_lazy"


ADMISSION_SLOTS: Mapping[CheckpointStrategy, int] = {
    CheckpointStrategy.NO_BUFFER: 1,
    CheckpointStrategy.EXTRA_BUFFER: 2,
    CheckpointStrategy.EXTRA_BUFFER_LAZY: 1,
}
"""Slots that a request is admitted with.  With them it finishes, whatever else is short."""

REPLACEMENT_SLOTS: Mapping[CheckpointStrategy, int] = {
    CheckpointStrategy.NO_BUFFER: 1,
    CheckpointStrategy.EXTRA_BUFFER: 1,
    # The next boundary asks for a slot of its own.
    CheckpointStrategy.EXTRA_BUFFER_LAZY: 0,
}
"""Slots that a running request is given when the tree takes one of its own."""


@dataclass(frozen=True, slots=True)
class CheckpointPolicy:
    """A strategy and its grid.

    Law: a request that never finds a free slot again still finishes, and of its windows it never
    holds more than `retained_tokens_max` tokens beyond those that its next token attends.  That is
    what admission prices, so no shortage of slots can make a request hold more than it was priced
    for.  It follows from two rules: a checkpoint that the tree did not take is overwritten at the
    next boundary, and one that was skipped holds nothing back.

    Attributes:
        strategy: who holds the slot.
        interval: tokens between two grid positions; 0 for `NO_BUFFER`, which has no grid.

    Raises:
        ArgumentError: if the interval is no int, or does not go with the strategy.
    """

    strategy: CheckpointStrategy
    interval: int

    def __post_init__(self) -> None:
        what = f"checkpoint interval of strategy {self.strategy.value}"
        check_int(ArgumentError, what, self.interval)
        gridless = self.strategy is CheckpointStrategy.NO_BUFFER
        if self.interval < 0 or gridless is not (self.interval == 0):
            allowed = "0, it has no grid" if gridless else "1 or more"
            raise ArgumentError(
                f"checkpoint interval {self.interval} of strategy {self.strategy.value}; allowed:"
                f" {allowed}"
            )

    @property
    def admission_slots(self) -> int:
        """Slots that a request is admitted with."""
        return ADMISSION_SLOTS[self.strategy]

    @property
    def replacement_slots(self) -> int:
        """Slots that a request is given when the tree takes one."""
        return REPLACEMENT_SLOTS[self.strategy]

    @property
    def retained_tokens_max(self) -> int:
        """Most tokens that lie between a request's retention floor and its next position."""
        return max(0, self.interval - 1)

    def last_boundary(self, first: int, tokens: int) -> int:
        """The last grid position that a forward over `[first, first + tokens)` comes to.

        Returns:
            Tokens before it, in `(first, first + tokens]`; 0 if there is no such position.
        """
        if not self.interval:
            return 0
        boundary = (first + tokens) // self.interval * self.interval
        return boundary if boundary > first else 0

    def chunk_tokens(self, first: int, limit: int, prompt: int) -> int:
        """Tokens of a prompt's next chunk: all that is left, or as many as end on the grid.

        Args:
            first: tokens before the chunk.
            limit: most tokens of the chunk; from `interval` on there is always a chunk.
            prompt: tokens of the prompt.

        Returns:
            The largest chunk within the limit; 0 if the grid leaves none this time.
        """
        end = min(first + limit, prompt)
        if end == prompt or not self.interval:
            return end - first
        return max(0, end // self.interval * self.interval - first)
