"""A world that also lends its pages: to copies, receive holds and transfers no operation makes.

The allocator has calls for them long before an engine submits any, so their faults are hunted here,
with the clocks of the modeled device.  A copy or a transfer moves no byte: only its order counts.
What asks for a loan is in `harness.faults.loans`; which rule is broken is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.device.clock import Access
from harness.device.launches import ModeledEvent
from harness.device.memory import WritePages
from harness.device.modeled import ModeledDevice
from harness.device.rank_port import RankPort
from harness.engine import Engine, Step
from harness.requests import Phase, Request
from harness.scenario import Setup
from harness.unikv_subject import UnikvSubject
from harness.world import World
from unikv.device.port import Event, Stream
from unikv.ids.runner_ids import RunnerIds
from unikv.storage import KVStorage

PEER = Stream.READ_BACK
"""The clock of the transfer engine: nothing else runs there, and it waits for the host alone."""

Ids = tuple[list[int], ...]
"""Per band, the ids whose pages are lent."""


class LendingSubject(UnikvSubject):
    """The built-in subject with the calls around copies and transfers."""

    def lend_backup(self, ids: Ids, event: Event) -> int:
        """A copy to the host was submitted; its number."""
        return self.storage.chain.users.begin_backup(ids, event)

    def lend_load(self, ids: Ids, event: Event) -> int:
        """A copy from the host was submitted; its number."""
        return self.storage.chain.users.begin_load(ids, event)

    def lend_ended(self, number: int) -> None:
        """The copy is acknowledged."""
        self.storage.chain.users.end_copy(number)

    def lend_hold(self, name: str, ids: Ids) -> None:
        """Keep the pages for a receive."""
        self.storage.chain.users.hold_receive(name, ids)

    def lend_publish(self, name: str) -> dict[int, list[int]]:
        """Turn a hold into a receive of the same name; per band, the pages that may leave."""
        return self.storage.chain.users.publish(name, name)

    def lend_send(self, name: str, ids: Ids) -> None:
        """A transfer engine reads the pages."""
        self.storage.chain.users.begin_send(name, ids)

    def lend_release(self, name: str) -> None:
        """The transfer or hold is over."""
        self.storage.chain.users.release(name)


@dataclass(slots=True)
class Loan:
    """Pages in other hands.

    Attributes:
        ids: per band, whose pages they were when they were lent.
        event: after the last access; None for a hold, which touches nothing.
        number: the allocator's name of a copy; 0 for holds and transfers.
        owned: whether nobody but the loan holds the ids, as for rows taken for a receive.
    """

    ids: Ids
    event: ModeledEvent | None
    number: int = 0
    owned: bool = False


@dataclass(frozen=True, slots=True)
class Kept:
    """What an engine translated ahead of a launch.

    Attributes:
        rows: of every running request, the ids of its pages.
        ids: page tables of those rows, rank by rank.
        frees: how often anything had been freed until then.
    """

    rows: list[list[int]]
    ids: list[RunnerIds]
    frees: int


class Courier:
    """The order that an engine owes to copies and transfers before they start."""

    def __init__(self, device: ModeledDevice) -> None:
        self.device = device

    def before_backup(self) -> None:
        """The backup stream waits whatever may still write the pages."""
        for stream in (Stream.FORWARD, Stream.SCHEDULE):
            self.device.wait_event(Stream.BACKUP, self.device.record_event(stream))

    def before_load(self) -> None:
        """The load stream waits the schedule stream, which has waited the last readers."""
        self.device.wait_event(Stream.LOAD, self.device.record_event(Stream.SCHEDULE))

    def before_ids_leave(self) -> None:
        """The host waits for the take, and for every move of its pages since."""
        self.device.host_wait(self.device.record_event(Stream.SCHEDULE))

    def may_send(self, steps: Sequence[Step], ids: Ids) -> bool:
        """Whether every step that writes one of the pages is processed."""
        return all(
            set(named).isdisjoint(written)
            for step in steps
            for named, written in zip(ids, step.writes, strict=True)
        )

    def before_send(self) -> None:
        """The host waits for the last move of the pages."""
        self.device.host_wait(self.device.record_event(Stream.SCHEDULE))


class LendingEngine(Engine):
    """Lets forwards wait for the loads of their batch.

    Attributes:
        loads: those that are not over, by name.
        batch: per band, the ids that were looked up for the next launch.
    """

    loads: dict[str, Loan]
    batch: dict[int, set[int]]

    def order_launch(self) -> None:
        """The forward stream waits the schedule stream and the loads of what it reads."""
        super().order_launch()
        for event in self.due_loads():
            self.device.wait_event(Stream.FORWARD, event)
        self.batch.clear()

    def due_loads(self) -> list[ModeledEvent]:
        """The ends of the loads that fill pages of the batch."""
        return [
            loan.event
            for loan in self.loads.values()
            if loan.event is not None
            and any(
                not self.batch.get(band, set()).isdisjoint(i) for band, i in enumerate(loan.ids)
            )
        ]


class PeerWaiter:
    """How the allocator waits for transfers: every one of them ends."""

    def __init__(self, port: RankPort, loans: Mapping[str, Loan]) -> None:
        self._port, self._loans = port, loans

    def wait(self, names: Sequence[str]) -> None:
        """Block the host until the peers are done."""
        for name in names:
            event = self._loans[name].event
            assert event is not None
            self._port.host_wait(event)


class LendingWorld(World):
    """A world with loans.

    Attributes:
        courier: what orders copies and transfers.
        loans: by name, oldest first.
        kept: what was translated ahead of a launch; None where nothing was.
    """

    def __init__(self, setup: Setup) -> None:
        # Without overlap a forward runs on the schedule stream, where nothing can overtake it.
        # Every copy and transfer here is a loan, so there is no host tier and no peer.
        lends = msgspec.structs.replace(setup, overlap=True, host=(), network=None)
        super().__init__(lends, LendingSubject)
        self.courier = Courier(self.device)
        self.loans: dict[str, Loan] = {}
        self.engine.__class__ = LendingEngine
        assert isinstance(self.engine, LendingEngine)
        self.engine.loads, self.engine.batch = {}, {}
        self.lending_engine = self.engine
        for storage, port in zip(self.storages(), self.ports, strict=True):
            storage.chain.relief._waiter = PeerWaiter(port, self.loans)
        self.kept: Kept | None = None

    def storages(self) -> list[KVStorage]:
        """The storage of every rank."""
        found = []
        for subject in self.subjects:
            assert isinstance(subject, LendingSubject)
            found.append(subject.storage)
        return found

    def ask(self, name: str, *arguments: Any) -> Any:
        """As any world, but keep in mind what the next forward looks up."""
        if name == "translate":
            band, ids = arguments
            self.lending_engine.batch.setdefault(band, set()).update(ids)
        return super().ask(name, *arguments)

    def per_band(self, owner_ids: list[int], tails: Sequence[list[int]], slot: int) -> Ids:
        """Ids of every band: pages, window rows and a state slot."""
        rows = dict(zip(self.window_bands, tails, strict=True))
        return tuple(
            ([slot] if slot else []) if band == self.state_band else rows.get(band, owner_ids)
            for band in self.band_range
        )

    def whole_pages(self, request: Request) -> Ids:
        """Pages of a request that no later forward writes."""
        count = request.length // self.setup.page_slots
        tails = [request.pages[request.window_first[band] : count] for band in self.window_bands]
        return self.per_band(request.pages[:count], tails, 0)

    def lendable(self, name: str) -> Ids | None:
        """Whole pages of a running request or, without a name, all of the oldest cached prefix."""
        request = self.requests.get(name)
        if request is not None and request.phase is Phase.RUNNING:
            ids = self.whole_pages(request)
        elif self.prefixes and not name:
            prefix = next(iter(self.prefixes.values()))
            ids = self.per_band(prefix.pages, prefix.tails, prefix.slot)
        else:
            return None
        return ids if ids[self.owner_band] else None

    def access(self, stream: Stream, kind: str, ids: Ids, *, wrote: bool) -> ModeledEvent:
        """Enqueue a copy or a transfer of the pages of `ids`; the mark behind it.

        `wrote` says whether it writes the arena.
        """
        maps = self.device.program.maps
        pages = {band: [maps[band][unit] for unit in named] for band, named in enumerate(ids)}
        return self.touch(stream, kind, pages, wrote=wrote)

    def touch(
        self, stream: Stream, kind: str, pages: Mapping[int, list[int]], *, wrote: bool
    ) -> ModeledEvent:
        """As `access`, of physical pages by band; `wrote` likewise."""
        device = self.device
        units = [unit for band, named in pages.items() for unit in device.granules(band, named)]
        device.submit(stream, kind, 0, WritePages(()), (Access(device.arena, units, wrote),))
        return device.record_event(stream)
