"""The rules that an engine's overlap loop must keep around an allocator.

They are part of the world, so that leaving one out is a bug the checks must find.  Each rule asks
the clearance table of the library what it has to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.device.launches import ModeledEvent
from harness.device.modeled import ModeledDevice
from harness.static_buffers import StaticBuffers
from unikv.alloc.clearance import CLEARANCE, Clearance, ClearanceTable, InFlight, Toucher
from unikv.device.port import Stream


@dataclass(slots=True)
class Step:
    """One forward step.

    Attributes:
        number: position in launch order.
        requests: names of its batch.
        writes: per band, the ids whose pages it writes.
        written_pages: per band, those pages.
        staging: the staging buffer that holds its block tables until it is processed; -1 for a
            commit of its own, which has none.
        read_end: after its metadata phase.
        declares_read_end: whether the backend said so yet.
        event: after its last kernel; None until recorded.
        static: the static buffer that its late kernels read, -1 for none.
        uses_side: whether some kernel of it runs on the side stream.
    """

    number: int
    requests: tuple[str, ...]
    writes: tuple[list[int], ...]
    written_pages: tuple[list[int], ...]
    staging: int
    read_end: ModeledEvent
    declares_read_end: bool = False
    event: ModeledEvent | None = None
    static: int = -1
    uses_side: bool = False


class Engine:
    """Orders the three parties: schedule stream, forward stream, host.

    Law: a staging buffer is free or belongs to one step that is launched and not processed.

    Attributes:
        statics: the buffers that kernels behind the metadata phase find their slots in.
    """

    def __init__(
        self,
        device: ModeledDevice,
        staging_count: int,
        statics: StaticBuffers,
        clearance: ClearanceTable = CLEARANCE,
    ) -> None:
        self.device = device
        self.clearance = clearance
        self.free_staging = list(range(staging_count))
        self.statics = statics

    def take_staging(self) -> int:
        """A staging buffer that no step in flight may still read, least recently used first."""
        return self.free_staging.pop(0)

    def order_launch(self) -> None:
        """The forward stream waits the schedule stream before a step's metadata phase."""
        rule = self.clearance[Toucher.FORWARD, InFlight.SCHEDULE]
        if rule is Clearance.WAIT_SCHEDULE:
            event = self.device.record_event(Stream.SCHEDULE)
            self.device.wait_event(Stream.FORWARD, event)

    def order_tables(self, step: Step) -> None:
        """The write-after-read barrier: the schedule stream waits for the step's table reads.

        Where the backend declared no end of shared reads, it waits the whole forward stream.
        """
        rule = self.clearance[Toucher.TABLE_WRITE, InFlight.FORWARD]
        if rule is Clearance.WAIT_READ_END:
            event = step.read_end
            if not step.declares_read_end:
                event = self.device.record_event(Stream.FORWARD)
            self.device.wait_event(Stream.SCHEDULE, event)

    def fork_side(self, stream: Stream) -> None:
        """The side stream waits what a forward has enqueued on its own stream so far."""
        self.device.wait_event(Stream.SIDE, self.device.record_event(stream))

    def join_side(self, stream: int) -> None:
        """The stream of a forward waits what that has enqueued on the side stream."""
        self.device.wait_event(stream, self.device.record_event(Stream.SIDE))

    def end_of(self, step: Step) -> ModeledEvent:
        """The event after the last kernel of `step`, on whichever stream."""
        if step.uses_side:
            self.join_side(step.read_end.stream)
        return self.device.record_event(step.read_end.stream)

    def synchronize(self, step: Step) -> None:
        """The host waits until `step` has ended on every rank."""
        assert step.event is not None
        self.device.host_wait(step.event)

    def has_ended(self, event: ModeledEvent) -> bool:
        """Whether every rank has passed `event`; what the host does next comes after it.

        Each rank looks at its own event and the answers are reduced, so all see the same.
        """
        if not self.device.has_ended(event):
            return False
        self.device.host_saw(event)
        return True

    def give_back_staging(self, step: Step) -> None:
        """The step is processed: its staging buffers may be filled again."""
        if step.staging >= 0:
            self.free_staging.append(step.staging)
        if step.static >= 0:
            self.statics.give_back(step.static, step.number)
