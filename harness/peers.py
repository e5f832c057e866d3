"""Peers, and the transfer engines of every rank that talk to them.

A part of a transfer is device work on its peer's own lane: nothing but the host orders it behind
ours, and nothing orders ours behind it until every rank's engine has said that it is quiet.  An
engine answers for its own rank.  It may fail while its work goes on: then a peer writes late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.device.clock import HOST, LANES, PEERS, Access
from harness.device.launches import ModeledEvent
from harness.device.memory import PageBytes, RunBody, WritePages
from harness.device.modeled import ModeledDevice
from harness.device.rank_port import RankPort
from harness.lockstep import Lockstep
from harness.scenario import NetworkSetup
from unikv.disagg.agreement import Patience
from unikv.disagg.engine import EpochProof, FenceProof, Judgement, NoProof, Pages, Proof

FIRST_LANE = HOST + 1
PEER_NAMES = tuple(f"peer{index}" for index in range(PEERS))


@dataclass(slots=True)
class Handed:
    """What engines were handed under one name.

    Attributes:
        peer: the other side.
        events: after each part, on the peer's lane.
        failed: ranks whose engine has given up.
        quiet: ranks whose engine has said, since the last part, that it is quiet.
        pages: how many ids named what was handed over, over all parts.
        is_stopped: whether the first rank's engine was told to stop.
        told: ranks whose engine could be told to stop.
        proved: ranks whose engine has given its proof of an abandoned transfer.
        fence: number of the fence, or of the epoch, that proves an abandoned transfer quiet.
        refusals: how often each rank's engine cannot be told to stop before it can.
    """

    peer: str
    events: list[ModeledEvent] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    quiet: set[int] = field(default_factory=set)
    pages: int = 0
    is_stopped: bool = False
    told: set[int] = field(default_factory=set)
    proved: set[int] = field(default_factory=set)
    fence: int = 0
    refusals: list[int] = field(default_factory=list)


class Listener(Protocol):
    """Who hears what engines are handed and when they are quiet."""

    def addressed(self, name: str, peer: str, part: int) -> None:
        """The first rank's engine is to hand a part of a transfer to a peer; called before that."""
        ...

    def handed(self, name: str, kind: str, pages: Sequence[Sequence[int]]) -> None:
        """The first rank's engine was handed pages; called before anything touches them."""
        ...

    def received(self, band: int, page: int) -> bytes:
        """What a peer writes into a page."""
        ...

    def given_up(self, name: str) -> None:
        """The first rank's engine was told to stop a transfer."""
        ...

    def moves(self, band: int, pages: Sequence[int]) -> None:
        """The allocator moves pages; called before it does."""
        ...

    def waits_for(self, parts: Sequence[tuple[str, int]]) -> None:
        """The allocator lets the host wait until no engine touches these parts of transfers."""
        ...

    def waits_apart(self, rank: int, parts: Sequence[tuple[str, int]]) -> None:
        """A rank waits for other parts than the first one, or names them in another order."""
        ...

    def waits_on(self, names: Sequence[str]) -> None:
        """Every rank has spoken of the transfers that are waited for, and the wait is not over."""
        ...

    def waited_in_vain(self, names: Sequence[str], asked: int) -> None:
        """The wait for these transfers is given up, after so many rounds."""
        ...

    def waited_out(self, name: str, parts: Sequence[int]) -> None:
        """The allocator let the host wait for parts until every rank's engine was quiet."""
        ...


class Network:
    """Every rank's engine and the link between the ranks.

    Attributes:
        handed: transfers that engines know of, by name.
        patience: rounds that a host wait lasts.
        publishes_at_once: whether receives need no later round to be published.
        stalled: peers that do not get on.
        waited: parts of transfers that the first rank has waited for last, or waits for.
        was_in_vain: whether a wait was, and nobody has asked since.
    """

    def __init__(
        self, device: ModeledDevice, listener: Listener, lockstep: Lockstep, setup: NetworkSetup
    ) -> None:
        self.device = device
        self.listener = listener
        self.lockstep = lockstep
        self.patience = setup.patience
        self.publishes_at_once = setup.publishes_at_once
        self.stalled: set[str] = set()
        self.waited: list[tuple[str, int]] = []
        self.was_in_vain = False
        self._refusals = setup.refusals
        self.handed: dict[str, Handed] = {}
        self._fences = 0

    def rank(self, rank: int, port: RankPort) -> RankNetwork:
        """One rank's end of it."""
        return RankNetwork(self, rank, port)

    def parts(self, name: str) -> int:
        """How many parts of a transfer engines were handed."""
        return len(self.handed[name].events) if name in self.handed else 0

    def begin(self, name: str, peer: str, kind: str, pages: Pages) -> None:
        """Start a part of a transfer on its peer's lane, on every rank."""
        device = self.device
        entry = self.handed.setdefault(
            name, Handed(peer, refusals=[self._refusals] * len(device.ranks))
        )
        entry.quiet.clear()
        lane = FIRST_LANE + PEER_NAMES.index(peer)
        self.listener.handed(name, kind, pages)
        arena, is_send = device.program.arena, kind == "network_send"
        granules: list[int] = []
        touched: list[PageBytes] = []
        for band, units in enumerate(pages):
            size = device.page_bytes[band]
            real = [page for page in units if page]
            granules += device.granules(band, real)
            for page in real:
                low, high = page * size, page * size + size
                data = arena[low:high] if is_send else self.listener.received(band, page)
                touched.append((low, high, data))
        effect = RunBody([], touched, [], []) if is_send else WritePages(touched)
        access = Access(device.arena, granules, not is_send)
        device.submit(lane, "send" if is_send else "receive", 0, effect, (access,))
        entry.pages += len(touched)
        entry.events.append(device.record_event(lane))

    def fail(self, name: str, rank: int) -> None:
        """One rank's engine gives a transfer up; its work goes on."""
        self.handed[name].failed.add(rank)

    def has_ended(self, name: str, rank: int) -> bool:
        """Whether the work of a transfer has ended on a rank."""
        return all(self.device.passed(rank, event) for event in self.handed[name].events)

    def says_quiet(self, name: str, rank: int) -> None:
        """A rank's engine says that it is quiet; once all have, the host is behind its work."""
        entry = self.handed[name]
        entry.quiet.add(rank)
        if len(entry.quiet) == len(self.device.ranks):
            for event in entry.events:
                self.device.host_saw(event)

    def fence(self) -> int:
        """The number of a new fence."""
        self._fences += 1
        return self._fences

    def is_stalled(self, lane: int) -> bool:
        """Whether the work of a lane is that of a peer that stands still."""
        return lane >= FIRST_LANE and PEER_NAMES[lane - FIRST_LANE] in self.stalled

    def get_on(self, rank: int) -> None:
        """Let a rank's engine end one piece of work."""
        for lane in range(FIRST_LANE, LANES):
            if not self.is_stalled(lane) and self.device.complete(rank, lane, 1):
                return


class RankNetwork:
    """One rank's transfer engine, its link to the others, and its pace in a wait."""

    def __init__(self, network: Network, rank: int, port: RankPort) -> None:
        self._network = network
        self._rank = rank
        self._port = port
        self._quiet_epoch = 0
        self._asked = 0

    def send(self, name: str, peer: str, run: int, pages: Pages) -> None:
        """Begin to read pages for a peer."""
        self._port.log.append(("send", name, peer, run, pages))
        if self._rank == 0:
            self._network.listener.addressed(name, peer, run)
            self._network.begin(name, peer, "network_send", pages)

    def receive(self, name: str, peer: str, pages: Pages) -> None:
        """Tell a peer where to write."""
        self._port.log.append(("receive", name, peer, pages))
        if self._rank == 0:
            self._network.listener.addressed(name, peer, 0)
            self._network.begin(name, peer, "network_receive", pages)

    def judge(self, name: str) -> Judgement:
        """How a transfer stands on this rank."""
        entry = self._network.handed[name]
        if self._rank in entry.failed:
            return Judgement.FAILED
        if not self._network.has_ended(name, self._rank):
            return Judgement.IN_PROGRESS
        self._network.says_quiet(name, self._rank)
        return Judgement.DONE

    def abort(self, name: str) -> Proof:
        """Stop a transfer; what will prove that nothing touches its pages."""
        entry = self._network.handed[name]
        if self._rank == 0:
            entry.is_stopped = True
            self._network.listener.given_up(name)
        if entry.refusals[self._rank]:
            entry.refusals[self._rank] -= 1
            return NoProof("the engine does not answer")
        entry.told.add(self._rank)
        if not entry.fence:
            entry.fence = self._network.fence()
        return FenceProof(entry.fence) if entry.fence % 2 else EpochProof(entry.fence)

    def fence_passed(self, fence: int) -> bool:
        """Whether everything before a fence has ended on this rank."""
        (name,) = [name for name, entry in self._network.handed.items() if entry.fence == fence]
        if not self._proved(name):
            return False
        self._network.handed[name].proved.add(self._rank)
        return True

    def quiet_epoch(self) -> int:
        """Newest epoch with everything that began up to it over."""
        epochs = [
            (entry.fence, name) for name, entry in self._network.handed.items() if entry.fence
        ]
        for epoch, name in sorted(epochs):
            if not self._proved(name):
                break
            self._quiet_epoch = max(self._quiet_epoch, epoch)
        for entry in self._network.handed.values():
            is_covered = entry.fence % 2 == 0 and 0 < entry.fence <= self._quiet_epoch
            if is_covered and self._rank in entry.told:
                entry.proved.add(self._rank)
        return self._quiet_epoch

    def forget(self, name: str) -> None:
        """The transfer is over on every rank."""
        if self._rank == 0:
            del self._network.handed[name]

    def min_reduce(self, values: list[int]) -> list[int]:
        """The least of every rank's value."""
        return self._network.lockstep.min_reduce(self._rank, values)

    def next_round(self, asked: int) -> Patience:
        """Let the engine get on; whether the host waits on."""
        self._asked = asked
        if asked > 1 and self._rank == 0:
            self._network.listener.waits_on(self._waited_names())
        self._port.note_host_read("transfer wait")
        self._network.get_on(self._rank)
        return Patience.LEFT if asked < self._network.patience else Patience.OUT

    def moves(self, band: int, pages: Sequence[int]) -> None:
        """Pages of a band are about to move."""
        self._network.listener.moves(band, pages)

    def waits_for(self, parts: Sequence[tuple[str, int]]) -> None:
        """A wait for these parts of transfers begins."""
        if self._rank == 0:
            self._asked = 0
            self._network.waited = list(parts)
            self._network.listener.waits_for(parts)
        elif list(parts) != self._network.waited:
            self._network.listener.waits_apart(self._rank, parts)

    def waited_in_vain(self) -> None:
        """The wait that began last has ended without what it was for."""
        if self._rank == 0:
            self._network.was_in_vain = True
            self._network.listener.waited_in_vain(self._waited_names(), self._asked)

    def waited_out(self) -> None:
        """The wait that began last has ended well on every rank."""
        for name in self._waited_names() if self._rank == 0 else ():
            numbers = [number for waited, number in self._network.waited if waited == name]
            self._network.listener.waited_out(name, numbers)

    def _waited_names(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self._network.waited))

    def _proved(self, name: str) -> bool:
        if not self._network.has_ended(name, self._rank):
            return False
        self._network.says_quiet(name, self._rank)
        return True
