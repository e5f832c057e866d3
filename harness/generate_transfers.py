"""Which part of which transfer comes next: the generator's choices about the network."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.choices import Choices, one_of
from harness.device.clock import PEERS
from harness.ops import (
    AbortTransfer,
    AddPart,
    BeginReceive,
    BeginSend,
    CloseSend,
    FailTransfer,
    Operation,
    Round,
)
from harness.world import World

TRANSFER_NAMES = frozenset(
    {
        "begin_receive",
        "begin_send",
        "add_part",
        "close_send",
        "abort_transfer",
        "fail_transfer",
        "round",
    }
)


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
        return {
            "begin_receive": self._begin_receive,
            "begin_send": self._begin_send,
            "add_part": self._add_part,
            "close_send": self._close_send,
            "abort_transfer": self._abort_transfer,
            "fail_transfer": self._fail_transfer,
            "round": lambda world: Round() if world.transfers.names() else None,
        }

    def _name(self) -> str:
        self._names += 1
        return f"transfer{self._names}"

    def _begin_receive(self, world: World) -> Operation | None:
        request = one_of(self._choices, list(world.queued))
        if request is None or self._waits(world):
            return None
        return BeginReceive(self._name(), self._choices.below(PEERS), request)

    def _begin_send(self, world: World) -> Operation | None:
        sending = {send.request for send in world.transfers.sends.values()}
        request = one_of(self._choices, [name for name in world.running if name not in sending])
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
        name = one_of(self._choices, ready)
        return AddPart(name) if name else None

    def _close_send(self, world: World) -> Operation | None:
        sends = world.transfers.sends.items()
        ready = [name for name, send in sends if send.queued and not send.is_closed]
        name = one_of(self._choices, ready)
        return CloseSend(name) if name else None

    def _abort_transfer(self, world: World) -> Operation | None:
        name = one_of(self._choices, world.transfers.names())
        return AbortTransfer(name) if name else None

    def _fail_transfer(self, world: World) -> Operation | None:
        name = one_of(self._choices, list(world.network.handed) if world.network else [])
        return FailTransfer(name, self._choices.below(world.setup.ranks)) if name else None
