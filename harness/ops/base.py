"""What every operation is: frozen data with one total method.

An operation whose subject vanished is skipped, so any subset of a trace is a trace.  Operations
name what they refer to (`r7`, step 12), never by position.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec
from msgspec import Meta

if TYPE_CHECKING:
    from harness.world import World

Tokens = Annotated[int, Meta(ge=0, le=1_000_000)]
Name = Annotated[str, Meta(max_length=24)]


class Outcome(Enum):
    """How an operation ended."""

    DONE = "done"
    REFUSED = "refused"  # the allocator was short: a legal answer
    SKIPPED = "skipped"  # what it names is gone, or may not be touched now
    BROKEN = "broken off"  # the allocator gave no legal answer, and the run cannot go on


class Op(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="op"):
    """Base of all operations.

    Attributes:
        counted: whether it counts as an operation in figures; the passing of time does not.
        between_steps: whether it is skipped while a step is launched and not recorded.
    """

    counted: ClassVar[bool] = True
    between_steps: ClassVar[bool] = True

    def apply(self, world: World) -> Outcome:
        """Act on the world."""
        raise NotImplementedError
