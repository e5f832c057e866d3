"""The engine's own account of network transfers, and what it hears of its transfer engines.

It names transfers and requests, never pages; which pages peers may touch is truth's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast
from weakref import proxy

from harness import transfer_room
from harness.parked import Contents, contents_of, go_on
from harness.peers import Network
from harness.requests import Phase, Prefix, Request
from harness.scenario import CELL_BYTES
from harness.violation import first_sites, page_sites
from unikv.errors import TransferError

if TYPE_CHECKING:
    from harness.subject import NetworkSubject
    from harness.world import World


@dataclass(slots=True)
class Send:
    """A send that is not over.

    Attributes:
        request: whose pages go.
        peer: where to.
        queued: how many of its pages were queued so far, in `parts` parts.
        started: parts that an engine was handed.
        is_closed: whether no part comes any more.
        under_load: its parts that were queued while a load filled them.
        contents: what the pages of each part held when it was queued, which nobody writes any more.
        takes_over: whether its request goes on at the peer, and waits here for its end.
        prefix: the cached prefix whose pages go instead, locked until they are with the engine.
    """

    request: str
    peer: str
    queued: int = 0
    parts: int = 0
    started: int = 0
    is_closed: bool = False
    under_load: set[int] = field(default_factory=set)
    contents: list[Contents] = field(default_factory=list)
    takes_over: bool = False
    prefix: Prefix | None = None

    def unlock(self) -> None:
        """Its pages are with the engine, or it is over: the cache may evict the prefix."""
        if self.prefix is not None:
            self.prefix.locks -= 1
            self.prefix = None


@dataclass(slots=True)
class Receive:
    """A receive that is not over.

    Attributes:
        request: who gets the rows, empty once it gave them up.
        peer: who writes them.
    """

    request: str
    peer: str


@dataclass(slots=True)
class NetworkState:
    """Everything that the engine knows of its transfers.

    Attributes:
        sends, receives: by name, oldest first.
        given_up: transfers that the engine has aborted.
        isolated: transfers that were given up and are not proved quiet.
        stopped: transfers whose engines were told to stop, whether a round has said so or not, each
            with the outcome that it gets once there is proof.
        vetoed: names that a peer gave up while no transfer had them: none of them may begin.
        forgotten: names whose abort is forgotten, so that none of them may begin.
        owed: how many answers each rank owes, by rank, transfer and peer.
        told: transfers of which one rank knows more than the others until the next round.
    """

    sends: dict[str, Send] = field(default_factory=dict)
    receives: dict[str, Receive] = field(default_factory=dict)
    given_up: set[str] = field(default_factory=set)
    isolated: set[str] = field(default_factory=set)
    stopped: dict[str, str] = field(default_factory=dict)
    vetoed: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)
    owed: Counter[tuple[int, str, str]] = field(default_factory=Counter)
    told: set[str] = field(default_factory=set)
    _evened_out: int = -1

    def even_out(self, operation: int) -> None:
        """A round: what one rank was told, all of them know."""
        if self.told:
            self._evened_out = operation
            self.told &= self.vetoed

    def is_uneven(self, operation: int) -> bool:
        """Whether in this operation one rank knew what the others had still to hear."""
        return bool(self.told) or self._evened_out == operation

    def ending(self) -> set[str]:
        """Transfers that wait for nothing more of the engine's."""
        opened = {name for name, send in self.sends.items() if not send.is_closed}
        return set(self.names()) - (opened - self.given_up - self.isolated)

    def is_unwanted(self, name: str) -> bool:
        """Whether the engine or a peer has asked to stop a transfer that is not over."""
        return name in self.given_up or name in self.told or name in self.vetoed

    def may_begin(self, name: str) -> bool:
        """Whether a transfer may get this name."""
        return name not in self.names() and name not in self.forgotten

    def names(self) -> list[str]:
        """Transfers that are not over, sends first."""
        return [*self.sends, *self.receives]

    def receive_of(self, request: str) -> tuple[str, Receive]:
        """The receive that a request waits for, with its name."""
        return next((n, part) for n, part in self.receives.items() if part.request == request)

    def sends_of(self, request: str) -> list[str]:
        """The sends of a request's pages that are not over, oldest first."""
        return [name for name, send in self.sends.items() if send.request == request]


class Ears:
    """What the world does when an engine is handed pages or says that it is quiet."""

    def __init__(self, world: World) -> None:
        self._world = world

    def addressed(self, name: str, peer: str, part: int) -> None:
        """An engine is to hand a part to a peer: both are as the world asked for."""
        world = self._world
        state, network = world.transfers, world.network
        transfer = state.sends.get(name) or state.receives.get(name)
        if transfer is None or network is None:
            text = f"{name} is handed to {peer}, but no transfer of that name has begun"
            world.truth.note("ledger", "handed over under an unknown name", text)
            return
        if peer != transfer.peer:
            text = f"{name} is handed to {peer}, and was begun with {transfer.peer}"
            world.truth.note("ledger", "handed to another peer", text)
        before = network.parts(name)
        if part != before:
            text = f"{name} is handed over as part {part} after {before} parts; expected {before}"
            world.truth.note("ledger", "part under another number", text)

    def handed(self, name: str, kind: str, pages: Sequence[Sequence[int]]) -> None:
        """An engine was handed pages: truth knows them from now on."""
        world = self._world
        held = world.truth.transfers.held.get(name)
        if held is not None:
            self._compare_with_held(name, held, pages)
        world.truth.handed(name, kind, pages)
        if name in world.transfers.vetoed:
            text = f"{name} is handed over, though a peer was told that it never begins"
            world.truth.note("ledger", "transfer begins after its abort was answered", text)
        send = world.transfers.sends.get(name)
        if send is not None and world.network is not None:
            number = world.network.parts(name)
            self._compare_with_queued(name, send.contents[number], pages)
            world.probes["sent_after_a_load"] += number in send.under_load
            world.probes["prefix_sent"] += send.prefix is not None
            send.unlock()
            send.started += 1

    def _compare_with_queued(
        self, name: str, queued: Contents, pages: Sequence[Sequence[int]]
    ) -> None:
        """Note a part whose ids have come to name other pages than those that were queued."""
        truth = self._world.truth
        owners = zip(truth.owner, pages, strict=True)
        ids = [[owner[page] for page in units] for owner, units in owners]
        if contents_of(self._world, ids) != queued:
            text = f"{name} sends other bytes than its pages held when they were queued"
            per_band = enumerate(pages)
            sites = (site for band, units in per_band for site in page_sites(band, units))
            detail = "send of other pages than were queued"
            truth.note("content", detail, text, first_sites(sites))

    def _compare_with_held(
        self, name: str, held: Sequence[Sequence[int]], pages: Sequence[Sequence[int]]
    ) -> None:
        """Note a receive whose peer is told other pages than its ids name, or in another order."""
        world = self._world
        named = zip(world.device.program.maps, held, pages, world.layout.bands, strict=True)
        for band, (entries, ids, told, layout) in enumerate(named):
            expected = [entries[unit] for unit in ids]
            if expected != list(told):
                text = (
                    f"band {layout.name!r}: the peer of {name} is told pages {list(told)} for ids"
                    f" {list(ids)}; expected {expected}, as the page map names them"
                )
                text += ", 0 where the row is retired" * (0 in expected)
                sites = page_sites(band, {*told, *expected} - {0})
                detail = "receive into other pages than its ids name"
                world.truth.note("content", detail, text, first_sites(sites))

    def received(self, band: int, page: int) -> bytes:
        """What a peer writes into a page, which its id holds from now on."""
        world = self._world
        data = world.stamps(world.layout.bands[band].page_bytes // CELL_BYTES)
        unit = world.truth.owner[band][page]
        world.truth.content[band][unit] = bytearray(data)
        return data

    def given_up(self, name: str) -> None:
        """An engine was told to stop a transfer, perhaps not for the first time."""
        state = self._world.transfers
        state.stopped.setdefault(name, "aborted" if state.is_unwanted(name) else "failed")
        self._world.truth.transfer_isolated(name)

    def moves(self, band: int, pages: Sequence[int]) -> None:
        """The allocator moves pages; none may wait for a peer while that can be avoided."""
        if self._world.truth.transfers.held:
            transfer_room.before_moves(self._world, band, pages)

    def waits_for(self, parts: Sequence[tuple[str, int]]) -> None:
        """The allocator lets the host wait for transfers, which must be able to end themselves."""
        truth, network = self._world.truth, self._world.network
        for name in dict.fromkeys(name for name, _ in parts):
            if network is not None and network.handed[name].peer in network.stalled:
                self._world.probes["waited_for_a_stalled_peer"] += 1
            if name in truth.transfers.isolated:
                text = f"the host waits for {name}, which was given up: only a proof in a round"
                truth.note("capacity", "wait for an isolated transfer", f"{text} ends it")
        transfer_room.before_a_wait(self._world, parts)

    def waits_apart(self, rank: int, parts: Sequence[tuple[str, int]]) -> None:
        """A rank waits for something else than the first one."""
        transfer_room.waits_apart(self._world, rank, parts)

    def waited_in_vain(self, names: Sequence[str], asked: int) -> None:
        """A wait is given up."""
        transfer_room.while_waiting(self._world, names)
        transfer_room.after_a_wait_in_vain(self._world, names, asked)

    def waits_on(self, names: Sequence[str]) -> None:
        """Every rank has spoken, and the wait is not over."""
        transfer_room.while_waiting(self._world, names)

    def waited_out(self, name: str, parts: Sequence[int]) -> None:
        """The allocator has waited for parts of a transfer: the pages are free before its round."""
        self._world.probes["transfer_waited_out"] += 1
        self._world.truth.transfer_over(name, parts)
        self._world.probes["waited_out_in_part"] += name in self._world.truth.transfers.uses


def connect(world: World) -> Network | None:
    """The peers of a world, and an engine for each of its ranks; None where it has no peers."""
    setup = world.setup.network
    if setup is None:
        return None
    # They hear the world, which has them: a plain reference would keep all of it.
    network = Network(world.device, Ears(proxy(world)), world.lockstep, setup)
    for rank, port in enumerate(world.ports):
        port.network = network.rank(rank, port)
    return network


def tell_rank(world: World, rank: int, name: str, peer: str) -> None:
    """A peer tells one rank that it gives a transfer up."""
    world.asked = True
    world.transfers.owed[rank, name, peer] += 1
    world.transfers.told.add(name)
    world.ports[rank].begin_call("abort_for")
    cast("NetworkSubject", world.subjects[rank]).abort_for(name, peer)


def hear_answers(world: World) -> int:
    """Every rank answers the peers that gave transfers up; how many answers there were."""
    state, uses = world.transfers, world.truth.transfers
    count = 0
    if world.network_subject is None:
        return count
    for rank, subject in enumerate(world.subjects):
        for name, peer in cast("NetworkSubject", subject).acknowledgements():
            count += 1
            state.owed[rank, name, peer] -= 1
            if state.owed[rank, name, peer] < 0:
                text = f"rank {rank} answers {peer} about {name}, which it has answered before"
                world.truth.note("ledger", "answer that nobody waits for", text)
            if name in uses.uses:
                text = f"rank {rank} answers {peer} that {name} is quiet, but its pages are in use"
                world.truth.note("ledger", "answer before the end", text)
    world.probes["peer_answered"] += count
    return count


def has_queued_parts(world: World, request: str) -> bool:
    """Whether a send of the request's pages has parts that no engine knows."""
    return any(_has_queued_parts(world, name) for name in world.transfers.sends_of(request))


def _has_queued_parts(world: World, name: str) -> bool:
    if world.network is None or name in world.transfers.isolated:
        return False
    return world.network.parts(name) < world.transfers.sends[name].parts


def abort(world: World, name: str) -> None:
    """Give a transfer up on every rank."""
    world.transfers.given_up.add(name)
    world.ask("abort_transfer", name)


def give_up_receive(world: World, request: Request) -> None:
    """Abort the receive of a request on every rank, then free its rows."""
    name, receive = world.transfers.receive_of(request.name)
    abort(world, name)
    world.probes["transfer_given_up"] += 1
    free_rows(world, name, receive)


def free_rows(world: World, name: str, receive: Receive) -> None:
    """A receive's request loses its rows, maybe under the peer's hands, and waits again."""
    world.truth.transfers.held.pop(name, None)
    request = world.requests[receive.request]
    receive.request = ""
    world.release(request)


def queue_part(
    world: World,
    name: str,
    ids: Sequence[Sequence[int]],
    through: int,
    pages: Sequence[int],
    slot: int,
) -> bool:
    """Queue a part of a send on every rank; whether it was not refused.

    Args:
        name: an open send.
        ids: per band, the ids of the part.
        through: the newest step that may write them.
        pages, slot: what a load may still fill, in the part or beside it; 0 for no slot.
    """
    if world.unsynced_step is not None:
        world.synchronize_step()
    answer = world.ask("add_part", name, ids, through if world.setup.overlap else 0)
    if isinstance(answer, TransferError):
        return False
    send = world.transfers.sends[name]
    if world.host.loads_of(pages, slot):
        send.under_load.add(send.parts)
    send.parts += 1
    send.contents.append(contents_of(world, ids))
    return True


def leave(world: World, request: Request) -> None:
    """A running request is scheduled no more; it keeps what it holds until a peer has that."""
    world.waiting[request.name] = world.running.pop(request.name)
    request.phase = Phase.LEAVING


def left(world: World, send: Send, outcome: str) -> None:
    """The send that a request has waited for is over, or given up and not proved quiet."""
    request = world.requests[send.request]
    send.request = ""
    if outcome == "sent":
        world.release(request)
        world.forget(request)
        world.probes["handed_over"] += 1
    elif outcome == "isolated":
        # The peer may still read the state, so nothing writes it: the prompt is run once more.
        world.release(request)
        world.probes["handed_over_in_vain"] += 1
    else:
        go_on(world, request)
        world.probes["went_on_here"] += 1


def detach_sends(world: World, request: str) -> None:
    """Sends of pages that no engine knows yet are given up before the pages are freed."""
    for name in world.transfers.sends_of(request):
        send = world.transfers.sends[name]
        send.request = ""
        if name in world.transfers.isolated:
            continue
        if not send.is_closed or _has_queued_parts(world, name):
            world.probes["send_given_up"] += 1
            abort(world, name)
        else:
            world.probes["freed_under_a_send"] += 1
