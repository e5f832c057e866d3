"""Buffers that a captured step reads its slot ids and write locations from.

A captured graph has the address of the buffer baked in and none of its values, so the values are
put there before each replay.  That is safe only if no earlier step still reads the old ones, and
useful only if the replay is not run on what another step left.  Both are questions of epochs: for
which step the buffer is filled, and whether that step is processed.

What the values mean, and how they get to the device, is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.arguments import check_ids, check_number
from unikv.errors import ArgumentError, StepOrderError

SINK = 0
"""What padded rows name: they write and read the sink, whatever was there before."""

NO_STEP = 0


class StaticBuffer:
    """One buffer of a captured step.

    Law: between a fill and the processing of its step the values stay as they are.

    An engine with `n` steps in flight keeps `n + 1` of them for each captured graph.  Or it has one
    and writes it on the forward's stream from `n + 1` staging buffers, and those are of this class.

    Attributes:
        name: for error texts.
        length: values that it holds.
    """

    __slots__ = ("_reader", "_values", "length", "name")

    def __init__(self, name: str, length: int) -> None:
        """A buffer full of the sink, which is what a capture has to run on."""
        self.name = name
        self.length = length
        self._reader = NO_STEP
        self._values = (SINK,) * length

    def fill(self, step: int, values: Sequence[int]) -> tuple[int, ...]:
        """Give the buffer to `step`; what has to be written to it.

        Args:
            step: number of the step that reads it next, 1 or more.
            values: one per row of its batch.

        Returns:
            `length` values: those given, then the sink for every padded row.

        Raises:
            StepOrderError: if a step that is not processed still reads it; nothing has changed.
            ArgumentError: if there are more values than rows in the buffer, a value is below 0 or
                no int, or the step has no number that a step can have.
        """
        check_number("fill", "step", step)
        check_ids("fill", values)
        if step <= NO_STEP:
            raise ArgumentError(f"fill of buffer {self.name!r} for step {step}; allowed: from 1 on")
        if self._reader != NO_STEP:
            raise StepOrderError(
                f"fill of buffer {self.name!r} for step {step}, but step {self._reader} may still"
                " read it; process that step first, or fill another buffer"
            )
        if len(values) > self.length or min(values, default=SINK) < SINK:
            raise ArgumentError(
                f"fill of buffer {self.name!r} with {len(values)} values, the least"
                f" {min(values, default=SINK)}; allowed: up to {self.length}, from {SINK} on;"
                " capture a larger batch, or run this one without a graph"
            )
        self._reader = step
        self._values = (*values, *(SINK,) * (self.length - len(values)))
        return self._values

    def read_by(self, step: int) -> tuple[int, ...]:
        """What the replay of `step` finds in the buffer.

        Raises:
            StepOrderError: if it is not filled for that step: a replay would use what is left of
                the capture or of another step.
        """
        if step != self._reader or step == NO_STEP:
            filled = f"step {self._reader}" if self._reader else "no step"
            raise StepOrderError(
                f"replay of step {step} from buffer {self.name!r}, which is filled for {filled};"
                " fill it before each replay"
            )
        return self._values

    def processed(self, step: int) -> None:
        """Every step up to `step` is processed, so none of them reads the buffer any more."""
        if self._reader <= step:
            self._reader = NO_STEP
