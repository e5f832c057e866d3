"""Work of the modeled device as data: launches, marks between them, and what was found."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec

from harness.device.clock import HOST
from harness.device.memory import Effect
from unikv.device.port import Stream


def role_of(lane: int) -> str:
    """What a stream is for, or `host`, or `peer`: every peer has a lane, and all have one role."""
    if lane > HOST:
        return "peer"
    return "host" if lane == HOST else Stream(lane).name.lower()


class Launch(msgspec.Struct, frozen=True):
    """One piece of device work, for as long as the run lasts.

    Attributes:
        stream: the stream it was enqueued on.
        kind: `zero`, `move`, `map`, `row`, `metadata`, `body` or, by the host itself, `fill`.
        operation: index of the operation that enqueued it.
        step: the forward step it belongs to; 0 for none.
        effect: what it reads and writes.
    """

    stream: int
    kind: str
    operation: int
    step: int
    effect: Effect

    @property
    def role(self) -> str:
        """What its stream is for."""
        return role_of(self.stream)

    @property
    def who(self) -> str:
        """What to call it in a sentence."""
        of = f"step {self.step}" if self.step else f"operation {self.operation}"
        return f"the {self.kind} of {of} on the {self.role} stream"


class ModeledEvent:
    """Mark in a stream.

    Attributes:
        stream: the stream it marks.
        index: how many program items of that stream come before it.
        epoch: how many launches of that stream come before it.
        clock: everything the mark is behind.
    """

    __slots__ = ("clock", "epoch", "index", "stream")

    def __init__(self, stream: int, index: int, epoch: int, clock: tuple[int, ...]) -> None:
        self.stream = stream
        self.index = index
        self.epoch = epoch
        self.clock = clock


class Race(NamedTuple):
    """Two conflicting accesses with nothing that orders them.

    Attributes:
        space: memory space of both.
        unit: first unit that both touch.
        earlier, later: the two launches, in program order.
        earlier_wrote, later_wrote: what each does to the unit.
        holder, place: how the unit was held when the later one was submitted, and its name.
    """

    space: str
    unit: int
    earlier: Launch
    later: Launch
    earlier_wrote: bool
    later_wrote: bool
    holder: str
    place: str


class Witness(Protocol):
    """Somebody who knows what memory is used for."""

    def describe(self, space: str, unit: int) -> tuple[str, str]:
        """How a unit of a space is held now, in one word, and what to call it."""
        ...


class NoWitness:
    """Knows memory by its numbers only."""

    def describe(self, space: str, unit: int) -> tuple[str, str]:
        """The unit's own name."""
        return "unknown", f"{space} {unit}"


class BadRead(NamedTuple):
    """A launch that read something else on a rank than program order puts there.

    Attributes:
        rank: which one.
        launch: what read.
        space, unit: where, as accesses name it.
        place: what to call that.
    """

    rank: int
    launch: Launch
    space: str
    unit: int
    place: str
