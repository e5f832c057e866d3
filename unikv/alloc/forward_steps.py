"""The forwards in flight: launched, recorded, processed, and how far the schedule stream is.

A step is *retired* when it and all earlier ones are processed, or when the schedule stream waited
past its event (*settled*).  Both are logical: neither asks whether an event has fired.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from unikv.arguments import check_number
from unikv.device.port import Device, Event, Stream
from unikv.errors import StepOrderError


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """A step whose end has an event.

    Attributes:
        number: position in launch order, from 1.
        event: recorded after the step's last kernel.
    """

    number: int
    event: Event


class ForwardSteps:
    """Steps in launch order.

    Attributes:
        launched: number of the step that is launched and not recorded; 0 when there is none.
        processed_through, settled_through: every step up to this number is processed, or waited
            for by the schedule stream.

    Law: `processed_through` is below every recorded number, numbers ascend from 1, at most one step
    is launched and not recorded, and no two recorded steps share an event.
    """

    __slots__ = ("_device", "_recorded", "launched", "processed_through", "settled_through")

    def __init__(self, device: Device) -> None:
        self._device = device
        self.launched = 0
        self._recorded: deque[RecordedStep] = deque()
        self.processed_through = 0
        self.settled_through = 0

    @property
    def newest(self) -> int:
        """Number of the newest recorded, unprocessed step; 0 when there is none."""
        return self._recorded[-1].number if self._recorded else 0

    @property
    def retired_through(self) -> int:
        """Every step up to this number is retired."""
        processed, settled = self.processed_through, self.settled_through
        return processed if processed > settled else settled

    @property
    def newest_unretired(self) -> int:
        """Number of the newest recorded step that is not retired; 0 when there is none."""
        newest = self.newest
        return newest if newest > self.retired_through else 0

    def in_flight(self) -> tuple[int, ...]:
        """Numbers of the recorded, unprocessed steps, oldest first."""
        return tuple(step.number for step in self._recorded)

    def check_between_steps(self, action: str) -> None:
        """Refuse `action` while a step is launched and not recorded: its event has no name yet."""
        if self.launched:
            raise StepOrderError(
                f"{action} between launch and record of step {self.launched}: record it first"
            )

    def launch(self, number: int) -> None:
        """Open step `number`.

        Raises:
            StepOrderError: if another step is open, or numbers do not ascend.
            ArgumentError: if the number is no int.
        """
        check_number("launch_step", "the step", number)
        self.check_between_steps(f"launch of step {number}")
        if number <= max(self.newest, self.processed_through):
            raise StepOrderError(
                f"launch of step {number} after step {max(self.newest, self.processed_through)};"
                " numbers ascend from 1"
            )
        self.launched = number

    def record(self, number: int, event: Event) -> None:
        """Name the end of the open step.

        Raises:
            StepOrderError: if `number` is not the open step, or its event is already in use.
            ArgumentError: if the number is no int.
        """
        check_number("record_step", "the step", number)
        if not self.launched:
            raise StepOrderError(f"record of step {number}, but no step is open: launch it first")
        if number != self.launched:
            raise StepOrderError(f"record of step {number}, but step {self.launched} is open")
        if any(step.event is event for step in self._recorded):
            raise StepOrderError(f"record of step {number} with the event of an earlier step")
        self.launched = 0
        self._recorded.append(RecordedStep(number, event))

    def process(self, number: int) -> None:
        """The host has synchronized a completion that covers step `number`.

        Raises:
            StepOrderError: if it is not the oldest recorded step.
            ArgumentError: if the number is no int.
        """
        check_number("process_step", "the step", number)
        if not self._recorded or self._recorded[0].number != number:
            oldest = self._recorded[0].number if self._recorded else 0
            raise StepOrderError(f"process of step {number}, but the oldest recorded is {oldest}")
        self._recorded.popleft()
        self.processed_through = number

    def wait(self, number: int) -> bool:
        """Let the schedule stream wait past step `number`; returns whether a wait was enqueued.

        Order: enqueues on the schedule stream.  Does not block the host.
        """
        if number <= self.retired_through:
            return False
        step = next(step for step in self._recorded if step.number >= number)
        self._device.wait_event(Stream.SCHEDULE, step.event)
        self.settled_through = step.number
        return True
