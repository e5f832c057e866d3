"""Where faults of network transfers are planted: rounds, board, waiter, peers and their engines.

A world without peers has none of these parts, and nothing in it breaks.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.faults.fault import Plant
from harness.faults.parts import become, chains, subjects
from harness.peers import Network, RankNetwork
from harness.unikv_subject import NotedWaiter
from harness.world import World
from unikv.disagg.board import Board
from unikv.disagg.decode import Receives
from unikv.disagg.prefill import Sends
from unikv.disagg.quarantine import Quarantine
from unikv.disagg.rounds import TransferRounds


def rounds(world: World) -> Iterator[TransferRounds]:
    """The transfers of every rank, where the world has peers."""
    return (part._transfers for part in subjects(world) if part._transfers is not None)


def in_rounds(broken: type[TransferRounds]) -> Plant:
    """Plant rounds that carry out something else than what was agreed."""

    def plant(world: World) -> None:
        for part in rounds(world):
            become(part, broken)

    return plant


def in_board(broken: type[Board]) -> Plant:
    """Plant a board whose transfers change for the wrong reason."""

    def plant(world: World) -> None:
        for part in rounds(world):
            become(part.board, broken)

    return plant


def in_quarantine(broken: type[Quarantine]) -> Plant:
    """Plant a quarantine that is left too early, or never."""

    def plant(world: World) -> None:
        for part in rounds(world):
            become(part.board.quarantine, broken)

    return plant


def in_sends(broken: type[Sends]) -> Plant:
    """Plant sends that start too early, or with the wrong pages."""

    def plant(world: World) -> None:
        for part in rounds(world):
            become(part.sends, broken)

    return plant


def in_receives(broken: type[Receives]) -> Plant:
    """Plant receives that are held or published wrongly."""

    def plant(world: World) -> None:
        for part in rounds(world):
            become(part.receives, broken)

    return plant


def in_waiter(broken: type[NotedWaiter]) -> Plant:
    """Plant host waits for transfers that end too early."""

    def plant(world: World) -> None:
        for chain in chains(world):
            if isinstance(chain.relief._waiter, NotedWaiter):
                become(chain.relief._waiter, broken)

    return plant


def in_network(broken: type[Network]) -> Plant:
    """Plant peers that write something else, or somewhere else."""

    def plant(world: World) -> None:
        if world.network is not None:
            become(world.network, broken)

    return plant


def in_transfer_engines(broken: type[RankNetwork]) -> Plant:
    """Plant transfer engines that say what is not so."""

    def plant(world: World) -> None:
        for port in world.ports:
            if isinstance(port.network, RankNetwork):
                become(port.network, broken)

    return plant
