"""Static buffers of the engine: where a captured body, or a commit, finds what its step looked up.

Nothing that runs behind the metadata phase may look up the request table or the map of states, so
what that phase found lies in a buffer that is the step's until it is processed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.scenario import Setup
from unikv.static_buffer import StaticBuffer

VALUES_A_ROW = 3
"""A request reads one slot, writes another and leaves a checkpoint in a third."""


class Filled(NamedTuple):
    """A buffer that a step finds its values in.

    Attributes:
        buffer: which one.
        staging: its number among the device's staging buffers.
        values: what was written to it, padding included.
    """

    buffer: int
    staging: int
    values: list[int]


NOTHING = Filled(-1, -1, [])
"""For steps that use none."""


class StaticBuffers:
    """As many buffers as steps that may be unprocessed.

    Law: a buffer is free or belongs to one step that is launched and not processed.
    """

    def __init__(self, count: int, length: int, first: int) -> None:
        """`count` buffers of `length` values each, which are staging buffers from `first` on."""
        self.buffers = [StaticBuffer(f"slots{index}", length) for index in range(count)]
        self.free = list(range(count))
        self._first = first

    def take(self) -> int:
        """A buffer that no step in flight may still read, least recently used first."""
        return self.free.pop(0)

    def fill(self, index: int, step: int, values: Sequence[int]) -> Filled:
        """Give a buffer to a step, before its replay.

        Raises:
            StepOrderError: if an unprocessed step may still read it.
        """
        filled = self.buffers[index].fill(step, values)
        return Filled(index, self._first + index, list(filled))

    def read_by(self, index: int, step: int) -> list[int]:
        """What the kernels of a step find in its buffer.

        Raises:
            StepOrderError: if it was filled for another step.
        """
        return list(self.buffers[index].read_by(step))

    def give_back(self, index: int, step: int) -> None:
        """The step is processed: its buffer may be filled again."""
        self.buffers[index].processed(step)
        self.free.append(index)


def buffers_of(setup: Setup) -> StaticBuffers:
    """As many as an engine needs."""
    if not setup.backend.has_static_buffers:
        return StaticBuffers(0, 0, 0)
    count = setup.steps_in_flight
    return StaticBuffers(count, VALUES_A_ROW * setup.rows, count)
