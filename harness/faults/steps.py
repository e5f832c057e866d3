"""Faults of forward steps and the ledger: the wrong event, uses that end early or never."""

from __future__ import annotations

from collections.abc import Collection

from harness.faults.fault import Fault
from harness.faults.parts import in_ledger, in_steps
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.page_usage import PageLedger, Use
from unikv.device.port import Stream


class _WaitsOneStepOlder(ForwardSteps):
    __slots__ = ()

    def wait(self, number: int) -> bool:
        if number <= self.retired_through:
            return False
        older = [step for step in self._recorded if step.number < number]
        if older:
            self._device.wait_event(Stream.SCHEDULE, older[-1].event)
        self.settled_through = number
        return True


class _SettlesTooFar(ForwardSteps):
    __slots__ = ()

    def wait(self, number: int) -> bool:
        waited = super().wait(number)
        if waited:
            self.settled_through = self.newest
        return waited


class _WaitsForTheHost(ForwardSteps):
    __slots__ = ()

    def wait(self, number: int) -> bool:
        waited = super().wait(number)
        if waited:
            event = next(step.event for step in self._recorded if step.number >= number)
            self._device.host_wait(event)
        return waited


class _AsksBehindAWait(ForwardSteps):
    __slots__ = ()

    def wait(self, number: int) -> bool:
        waited = super().wait(number)
        # The answer is not used: already asking parks the host behind the stream.
        return waited and self._device.query(self._recorded[-1].event) in (True, False)


class _RecordsNewestFirst(ForwardSteps):
    __slots__ = ()

    def record(self, number: int, event: object) -> None:
        super().record(number, event)
        self._recorded.rotate(1)


class _ForgetsWrites(PageLedger):
    __slots__ = ()

    def add(self, use: Use, band: int, pages: Collection[int], step: int) -> None:
        if use is Use.VACATED or band == 0:
            super().add(use, band, pages, step)


class _ForgetsUnknownWrites(PageLedger):
    __slots__ = ()

    def add_unknown_write(self, band: int, step: int) -> None:
        if band == 0:
            super().add_unknown_write(band, step)


class _EndsWritesEarly(PageLedger):
    __slots__ = ()

    def end_writes(self, retired_through: int) -> None:
        super().end_writes(retired_through + 1)


class _EndsVacatedEarly(PageLedger):
    __slots__ = ()

    def take_ready_vacated(self, band: int, retired_through: int) -> list[int]:
        return super().take_ready_vacated(band, retired_through + 1)


class _KeepsARecord(PageLedger):
    __slots__ = ()

    def take_ready_vacated(self, band: int, retired_through: int) -> list[int]:
        pages = super().take_ready_vacated(band, retired_through)
        # Filed under a band that does not exist, where nobody looks for it again.
        self.add(Use.VACATED, -1, pages, retired_through)
        return pages


class _NeverEndsVacated(PageLedger):
    __slots__ = ()

    def take_ready_vacated(self, band: int, retired_through: int) -> list[int]:
        return []


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="wait-one-step-older",
        planted="a wait for a step is enqueued on the event of the step before it",
        plant=in_steps(_WaitsOneStepOlder),
        checks=("ordering", "ledger"),
        ablates="edge S <- step (settle)",
        edge="schedule <- forward",
        pair=("body", "zero write|move"),
    ),
    Fault(
        id="settled-too-far",
        planted="after a wait for one step every recorded step counts as settled, in the state and"
        " in the reported uses",
        plant=in_steps(_SettlesTooFar),
        checks=("ledger", "ordering"),
        scenario="full_only",
        edge="schedule <- forward",
        pair=("body", "zero write|move"),
        ahead=("ledger",),
        together="ledger",
    ),
    Fault(
        id="vacated-ends-early",
        planted="a vacated page returns one step before the last forward that reads it",
        plant=in_ledger(_EndsVacatedEarly),
        checks=("ledger",),
    ),
    Fault(
        id="vacated-never-ends",
        planted="a vacated page never returns",
        plant=in_ledger(_NeverEndsVacated),
        checks=("ledger", "idle", "assertion"),
        scenario="full_only",
        rows=("B75",),
    ),
    Fault(
        id="vacated-record-stays",
        planted="a vacated page returns and its use stays in the ledger, in the state and in the"
        " reported uses",
        plant=in_ledger(_KeepsARecord),
        checks=("idle",),
        scenario="full_only",
        together="idle",
    ),
    Fault(
        id="ledger-forgets-writes",
        planted="the ledger keeps the writes of the lowest band only",
        plant=in_ledger(_ForgetsWrites),
        checks=("ledger",),
        together="ledger",
    ),
    Fault(
        id="ledger-forgets-unknown-writes",
        planted="a step of unknown writes counts as writing the lowest band only",
        plant=in_ledger(_ForgetsUnknownWrites),
        checks=("ledger",),
        scenario="hybrid",
    ),
    Fault(
        id="writes-end-early",
        planted="a write is over one step before it is",
        plant=in_ledger(_EndsWritesEarly),
        checks=("ledger", "ordering"),
        edge="schedule <- forward",
        pair=("body write", "move read"),
        ahead=("ledger",),
    ),
    Fault(
        id="steps-recorded-newest-first",
        planted="recorded steps are kept newest first, so that processing meets the wrong one",
        plant=in_steps(_RecordsNewestFirst),
        checks=("ledger",),
    ),
    Fault(
        id="host-blocks-in-a-settle",
        planted="a settle lets the host wait behind the wait of the schedule stream",
        plant=in_steps(_WaitsForTheHost),
        checks=("host_reads",),
    ),
    Fault(
        id="event-asked-behind-a-wait",
        planted="an event is queried after a stream wait of the same operation; neither state nor"
        " report shows it",
        plant=in_steps(_AsksBehindAWait),
        checks=("host_reads",),
        together="host_reads",
    ),
)
