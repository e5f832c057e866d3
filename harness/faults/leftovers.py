"""Faults of what is remembered of copies and transfers once they are over, which grows for ever."""

from __future__ import annotations

from harness.faults.fault import Fault
from harness.faults.network_parts import in_receives, in_sends, rounds
from harness.faults.parts import become, in_host
from harness.world import World
from unikv.cache.host_tier import HostTier
from unikv.disagg.aborts import Aborts
from unikv.disagg.board import Transfer
from unikv.disagg.decode import Receives
from unikv.disagg.prefill import Sends


class _RemembersCopies(HostTier):
    def acknowledge(self, name: str) -> None:
        copy = self.copies[name]
        super().acknowledge(name)
        self.copies[name] = copy


class _RemembersCancelledCopies(HostTier):
    def cancel(self, name: str) -> None:
        copy = self.copies[name]
        super().cancel(name)
        self.copies[name] = copy


class _RemembersRows(Receives):
    __slots__ = ()

    def forget(self, transfer: Transfer) -> None:
        pass


class _RemembersParts(Sends):
    __slots__ = ()

    def forget(self, transfer: Transfer) -> None:
        pass


class _RemembersVetoes(Aborts):
    __slots__ = ()

    def over(self, name: str) -> None:
        is_stopped = name in self._stopped
        super().over(name)
        if is_stopped:
            self.stop(name)


def _remember_vetoes(world: World) -> None:
    for part in rounds(world):
        become(part.board.aborts, _RemembersVetoes)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="copy-remembered-after-its-end",
        planted="the host tier keeps what it knew of a copy that was acknowledged",
        plant=in_host(_RemembersCopies),
        checks=("idle",),
        scenario="host_tier",
    ),
    Fault(
        id="cancelled-copy-remembered",
        planted="the host tier keeps what it knew of a copy that was cancelled",
        plant=in_host(_RemembersCancelledCopies),
        checks=("idle",),
        scenario="host_tier",
    ),
    Fault(
        id="rows-of-a-receive-remembered",
        planted="the rows of a receive are remembered after its end",
        plant=in_receives(_RemembersRows),
        checks=("idle",),
        scenario="peers",
    ),
    Fault(
        id="parts-of-a-send-remembered",
        planted="the parts of a send are remembered after its end",
        plant=in_sends(_RemembersParts),
        checks=("idle",),
        scenario="peers",
    ),
    Fault(
        id="veto-remembered-after-its-end",
        planted="an abort is remembered after the transfer that it stopped is over",
        plant=_remember_vetoes,
        checks=("idle",),
        scenario="peers",
    ),
)
