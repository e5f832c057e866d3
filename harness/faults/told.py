"""Faults of what transfer engines are told: pages, their order, parts, peers, and an end.

Nothing of ours reads what a peer gets, and a peer writes wherever it is told to.
"""

from __future__ import annotations

from typing import Any, cast

from harness.faults.fault import Fault, Plant
from harness.faults.network_parts import in_receives, rounds
from harness.peers import PEER_NAMES
from harness.world import World
from unikv.disagg.decode import Held, Receives
from unikv.disagg.engine import Pages, TransferEngine


class _TellsItInReverse(Receives):
    __slots__ = ()

    def _pages(self, held: Held) -> Pages:
        return tuple(pages[::-1] for pages in super()._pages(held))


class _LeavesOutRetiredRows(Receives):
    __slots__ = ()

    def _pages(self, held: Held) -> Pages:
        return tuple(tuple(filter(None, pages)) for pages in super()._pages(held))


class _Told:
    """An engine that is told something else, and answers for itself."""

    def __init__(self, engine: TransferEngine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class _CountsNoParts(_Told):
    def send(self, name: str, peer: str, run: int, pages: Pages) -> None:
        """Begin to send, always as the first part."""
        self._engine.send(name, peer, 0, pages)


class _AnotherPeer(_Told):
    def send(self, name: str, peer: str, run: int, pages: Pages) -> None:
        """Begin to send to the other peer."""
        self._engine.send(name, _other(peer), run, pages)

    def receive(self, name: str, peer: str, pages: Pages) -> None:
        """Tell the other peer where to write."""
        self._engine.receive(name, _other(peer), pages)


class _AnotherName(_Told):
    def send(self, name: str, peer: str, run: int, pages: Pages) -> None:
        """Begin to send under a name that nobody uses."""
        self._engine.send(f"{name} again", peer, run, pages)


class _HearsOfNoEnd(_Told):
    def forget(self, name: str) -> None:
        """Nothing is forgotten."""


def _other(peer: str) -> str:
    return PEER_NAMES[(PEER_NAMES.index(peer) + 1) % len(PEER_NAMES)]


def _tell(told: type[_Told]) -> Plant:
    def plant(world: World) -> None:
        for part in rounds(world):
            part.board.engine = cast(TransferEngine, told(part.board.engine))

    return plant


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="receive-pages-in-reverse",
        planted="a peer is told the pages of a receive in another order than their ids",
        plant=in_receives(_TellsItInReverse),
        checks=("content",),
        scenario="peers",
    ),
    Fault(
        id="receive-leaves-out-retired-rows",
        planted="rows that were retired under a receive are left out, so that what follows shifts",
        plant=in_receives(_LeavesOutRetiredRows),
        checks=("content",),
        scenario="peers",
    ),
    Fault(
        id="parts-not-counted",
        planted="every part of a send is handed over as its first one",
        plant=_tell(_CountsNoParts),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="handed-to-another-peer",
        planted="pages are handed to another peer than the transfer was begun with",
        plant=_tell(_AnotherPeer),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="handed-under-another-name",
        planted="parts of a send are handed over under a name that no transfer has",
        plant=_tell(_AnotherName),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="end-not-told-to-the-engine",
        planted="an engine never hears that a transfer is over on every rank",
        plant=_tell(_HearsOfNoEnd),
        checks=("idle",),
        scenario="peers",
    ),
)
