"""The engine's own account of network transfers, and what it hears of its transfer engines.

It names transfers and requests, never pages; which pages peers may touch is truth's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.requests import Request
from harness.scenario import CELL_BYTES

if TYPE_CHECKING:
    from harness.world import World


@dataclass(slots=True)
class Send:
    """A send that is not over.

    Attributes:
        request: whose pages go.
        queued: how many of its pages were queued so far, in `parts` parts.
        is_closed: whether no part comes any more.
    """

    request: str
    queued: int = 0
    parts: int = 0
    is_closed: bool = False


@dataclass(slots=True)
class Receive:
    """A receive that is not over.

    Attributes:
        request: who gets the rows, empty once it gave them up.
    """

    request: str


@dataclass(slots=True)
class NetworkState:
    """Everything that the engine knows of its transfers.

    Attributes:
        sends, receives: by name, oldest first.
        isolated: transfers that were given up and are not proved quiet.
    """

    sends: dict[str, Send] = field(default_factory=dict)
    receives: dict[str, Receive] = field(default_factory=dict)
    isolated: set[str] = field(default_factory=set)

    def names(self) -> list[str]:
        """Transfers that are not over, sends first."""
        return [*self.sends, *self.receives]

    def receive_of(self, request: str) -> tuple[str, Receive]:
        """The receive that a request waits for, with its name."""
        return next((n, part) for n, part in self.receives.items() if part.request == request)

    def send_of(self, request: str) -> str:
        """The send of a request's pages that is not over; empty when there is none."""
        return next((name for name, send in self.sends.items() if send.request == request), "")


class Ears:
    """What the world does when an engine is handed pages or says that it is quiet."""

    def __init__(self, world: World) -> None:
        self._world = world

    def handed(self, name: str, kind: str, pages: Sequence[Sequence[int]]) -> None:
        """An engine was handed pages: truth knows them from now on."""
        self._world.truth.handed(name, kind, pages)

    def received(self, band: int, page: int) -> bytes:
        """What a peer writes into a page, which its id holds from now on."""
        world = self._world
        data = world.stamps(world.layout.bands[band].page_bytes // CELL_BYTES)
        unit = world.truth.owner[band][page]
        world.truth.content[band][unit] = bytearray(data)
        return data

    def waited_out(self, name: str) -> None:
        """The allocator has waited for a transfer: its pages are free, its round still comes."""
        self._world.probes["transfer_waited_out"] += 1
        self._world.truth.transfer_over(name)


def has_queued_parts(world: World, request: str) -> bool:
    """Whether a send of the request's pages has parts that no engine knows."""
    name = world.transfers.send_of(request)
    if not name or world.network is None or name in world.transfers.isolated:
        return False
    return world.network.parts(name) < world.transfers.sends[name].parts


def give_up_receive(world: World, request: Request) -> None:
    """Abort the receive of a request on every rank, then free its rows."""
    name, receive = world.transfers.receive_of(request.name)
    world.ask("abort_transfer", name)
    world.probes["transfer_given_up"] += 1
    free_rows(world, name, receive)


def free_rows(world: World, name: str, receive: Receive) -> None:
    """A receive's request loses its rows, maybe under the peer's hands, and waits again."""
    world.truth.transfers.held.pop(name, None)
    request = world.requests[receive.request]
    receive.request = ""
    world.release(request)


def detach_send(world: World, request: str) -> None:
    """A send of pages that no engine knows yet is given up before they are freed."""
    name = world.transfers.send_of(request)
    if not name:
        return
    send = world.transfers.sends[name]
    queued = has_queued_parts(world, request)
    send.request = ""
    if name in world.transfers.isolated:
        return
    if not send.is_closed or queued:
        world.probes["send_given_up"] += 1
        world.ask("abort_transfer", name)
    else:
        world.probes["freed_under_a_send"] += 1
