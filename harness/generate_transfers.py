"""Which part of which transfer comes next: the generator's choices about the network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from harness.choices import Choices, one_of
from harness.device.clock import PEERS
from harness.ops import (
    AbortTransfer,
    AddPart,
    AddPrefix,
    BeginPrefixSend,
    BeginReceive,
    BeginSend,
    CloseSend,
    FailTransfer,
    ForgetAbort,
    HandOver,
    Operation,
    PeerAbort,
    PublishReceive,
    RetireReceived,
    Round,
    StallPeer,
)
from harness.ops.hand_over import may_be_handed_over
from harness.world import World

TRANSFER_NAMES = frozenset(
    {
        "begin_receive",
        "begin_send",
        "add_part",
        "close_send",
        "hand_over",
        "abort_transfer",
        "fail_transfer",
        "round",
        "begin_prefix_send",
        "add_prefix",
        "publish_receive",
        "retire_received",
        "peer_abort",
        "forget_abort",
        "stall_peer",
    }
)

TRANSFER_CORE = frozenset({"begin_send", "add_part", "round"})
"""Without one of them no page of ours is ever in a peer's hands."""


class TransferMakers:
    """Draws the parts of sends and receives.

    Args:
        choices: the only source of chance.
        waits: whether the scheduler, short of memory, asks for none now.
    """

    def __init__(self, choices: Choices, waits: Callable[[World], bool]) -> None:
        self._choices = choices
        self._waits = waits
        self._names = 0

    def by_name(self) -> Mapping[str, Callable[[World], Operation | None]]:
        """A maker for each name; it gives None where its operation makes no sense now."""
        makers: dict[str, Callable[[World], Operation | None]] = {
            "begin_receive": self._begin_receive,
            "begin_send": self._begin_send,
            "add_part": self._add_part,
            "close_send": self._close_send,
            "hand_over": self._hand_over,
            "abort_transfer": self._abort_transfer,
            "fail_transfer": self._fail_transfer,
            "begin_prefix_send": self._begin_prefix_send,
            "add_prefix": self._add_prefix,
            "publish_receive": self._publish_receive,
            "retire_received": self._retire_received,
            "peer_abort": self._peer_abort,
            "forget_abort": self._forget_abort,
            "stall_peer": lambda world: StallPeer(self._choices.below(PEERS)),
            "round": lambda world: Round() if world.transfers.names() else None,
        }
        return {name: partial(_round_first, make) for name, make in makers.items()}

    def _name(self) -> str:
        self._names += 1
        return f"transfer{self._names}"

    def _begin_receive(self, world: World) -> Operation | None:
        request = one_of(self._choices, list(world.queued))
        if request is None or self._waits(world):
            return None
        return BeginReceive(self._name(), self._choices.below(PEERS), request)

    def _begin_send(self, world: World) -> Operation | None:
        sending = Counter(send.request for send in world.transfers.sends.values())
        ready = [name for name in world.running if sending[name] < PEERS]
        request = one_of(self._choices, _under_a_load(world, ready) or ready)
        if request is None:
            return None
        return BeginSend(self._name(), self._choices.below(PEERS), request)

    def _add_part(self, world: World) -> Operation | None:
        slots = world.setup.page_slots
        ready = [
            name
            for name, send in world.transfers.sends.items()
            if send.request
            and not send.is_closed
            and world.requests[send.request].length // slots > send.queued
        ]
        names = {world.transfers.sends[name].request: name for name in ready}
        loaded = [names[request] for request in _under_a_load(world, list(names))]
        name = one_of(self._choices, loaded or ready)
        return AddPart(name) if name else None

    def _close_send(self, world: World) -> Operation | None:
        sends = world.transfers.sends.items()
        ready = [name for name, send in sends if send.queued and not send.is_closed]
        name = one_of(self._choices, ready)
        return CloseSend(name) if name else None

    def _hand_over(self, world: World) -> Operation | None:
        sends, running = world.transfers.sends.items(), world.running
        ready = [
            name
            for name, send in sends
            if send.request in running and may_be_handed_over(send, running[send.request])
        ]
        name = one_of(self._choices, ready)
        return HandOver(name) if name else None

    def _abort_transfer(self, world: World) -> Operation | None:
        name = one_of(self._choices, world.transfers.names())
        return AbortTransfer(name) if name else None

    def _fail_transfer(self, world: World) -> Operation | None:
        name = one_of(self._choices, list(world.network.handed) if world.network else [])
        return FailTransfer(name, self._choices.below(world.setup.ranks)) if name else None

    def _publish_receive(self, world: World) -> Operation | None:
        if world.network is None or not world.network.publishes_at_once:
            return None
        held = world.truth.transfers.held
        name = one_of(self._choices, [name for name in world.transfers.receives if name in held])
        return PublishReceive(name) if name else None

    def _retire_received(self, world: World) -> Operation | None:
        receives = world.transfers.receives.items()
        name = one_of(self._choices, [name for name, part in receives if part.request])
        return RetireReceived(name) if name else None

    def _peer_abort(self, world: World) -> Operation | None:
        """Of a transfer, of the one before, or of the next one, which is unknown still."""
        names = [*world.transfers.names(), f"transfer{self._names + 1}"]
        names += [f"transfer{self._names}"] if self._names else []
        name = names[self._choices.below(len(names))]
        rank = self._choices.below(world.setup.ranks)
        return PeerAbort(name, self._choices.below(PEERS), rank)

    def _forget_abort(self, world: World) -> Operation | None:
        known = world.transfers.names()
        name = one_of(self._choices, sorted(world.transfers.vetoed.difference(known)))
        return ForgetAbort(name) if name else None

    def _begin_prefix_send(self, world: World) -> Operation | None:
        blocks = one_of(self._choices, list(world.prefixes))
        if blocks is None:
            return None
        return BeginPrefixSend(self._name(), self._choices.below(PEERS), blocks)

    def _add_prefix(self, world: World) -> Operation | None:
        sends = world.transfers.sends.items()
        ready = [name for name, send in sends if send.prefix is not None and not send.queued]
        name = one_of(self._choices, ready)
        return AddPrefix(name) if name else None


def _under_a_load(world: World, requests: Sequence[str]) -> list[str]:
    """Those of the requests some of whose pages a load in flight fills, which is soon over."""
    if not world.host.loads:
        return []
    loads_of, known = world.host.loads_of, world.requests
    return [name for name in requests if loads_of(known[name].pages, 0)]


def _round_first(make: Callable[[World], Operation | None], world: World) -> Operation | None:
    """A round if it starts a part whose load the schedule stream has waited and the host has not.

    That is so without overlap, behind a step that read the loaded pages, and until anything else
    waits for the step: a moment that chance alone would seldom meet.
    """
    if world.unsynced_step is not None:
        for send in world.transfers.sends.values():
            if max(send.under_load, default=-1) >= send.started:
                return Round()
    return make(world)
