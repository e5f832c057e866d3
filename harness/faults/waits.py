"""Faults of what transfers cost: waits that nothing needs or that end wrongly, holds that move.

None of them gives a page to two owners: the bytes come out right, and the host waits, copies or
refuses where it need not.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from zlib import crc32

from harness.faults.fault import Fault
from harness.faults.network_parts import in_quarantine, in_waiter
from harness.faults.parts import become, chains, in_mover, in_relief
from harness.unikv_subject import NotedWaiter
from harness.world import World
from unikv.alloc.band import Band
from unikv.alloc.compaction import PageMover, plan_compaction
from unikv.alloc.pricing import Spans, Step, feasible, first_plan, plan
from unikv.alloc.relief import Relief
from unikv.alloc.signals import TRANSFERS, HeldPages
from unikv.alloc.snapshot import ChainView
from unikv.disagg.agreement import Agreed
from unikv.disagg.board import Transfer
from unikv.disagg.engine import Judgement
from unikv.disagg.life import Phase
from unikv.disagg.quarantine import Quarantine
from unikv.errors import TransferError


class _WaitsForEveryBand(Relief):
    __slots__ = ()

    def _end_transfers(self, demand: Sequence[int]) -> None:
        names = self._ledger.held.transfers(range(len(self._bands)))
        if not names:
            return
        self._waiter.wait(names)
        for name in names:
            self._reclaim.release_early(name)


class _WaitsWithoutAsking(_WaitsForEveryBand):
    __slots__ = ()

    def lay_out(self, demand: Sequence[int]) -> Spans | None:
        is_relief = not self._holes_cover(demand) and feasible(self.snapshot(), demand)
        fits_in_place = plan(self.snapshot(self._careful), demand, Step.NO_MOVE) is not None
        if is_relief and not fits_in_place:
            self._end_transfers(demand)
        return super().lay_out(demand)


class _MovesHoldsFirst(Relief):
    __slots__ = ()

    def _least_plan(self, demand: Sequence[int]) -> tuple[ChainView, Step, Spans] | None:
        view = self.snapshot([TRANSFERS] * len(self._bands))
        first = first_plan(view, demand)
        return None if first is None else (view, *first)


class _FlushesReceiveHolds(PageMover):
    __slots__ = ()

    def compact(self, band: Band, limit: int) -> int:
        if self._ledger.has_unknown_write(band.index):
            return 0
        moves = plan_compaction(band, limit, self._ledger.held.pages(band.index, TRANSFERS))
        if moves.sources:
            self.copy(band, moves)
            band.occupy_holes(moves.targets)
            self._reclaim.vacate(band, moves.sources)
        return len(moves.sources)


class _NamesInHashOrder(HeldPages):
    """As a set of names would be gone through in a process with hashes of its own."""

    __slots__ = ()
    salt = ""

    def transfers(self, bands: Collection[int]) -> list[str]:
        names = super().transfers(bands)
        return sorted(names, key=lambda name: crc32(f"{self.salt}{name}".encode()))


class _NamesInAnotherHashOrder(_NamesInHashOrder):
    __slots__ = ()
    salt = "another process: "


def _name_in_hash_order(world: World) -> None:
    for rank, chain in enumerate(chains(world)):
        become(chain.ledger.held, (_NamesInHashOrder, _NamesInAnotherHashOrder)[rank % 2])


class _NamesYoungestFirst(HeldPages):
    __slots__ = ()

    def transfers(self, bands: Collection[int]) -> list[str]:
        return super().transfers(bands)[::-1]


def _name_youngest_first_on_the_last_rank(world: World) -> None:
    for chain in list(chains(world))[-1:]:
        become(chain.ledger.held, _NamesYoungestFirst)


class _NeverTakesAProof(NotedWaiter):
    __slots__ = ()

    def _running(self, names: Sequence[str], agreed: Agreed) -> list[Transfer]:
        running = super()._running(names, agreed)
        holders = {holder.name: holder for holder in map(self._board_of.holder, names)}
        kept = [t for t in holders.values() if t.phase is Phase.QUARANTINED and t not in running]
        return running + kept


class _GivesNothingUp(NotedWaiter):
    __slots__ = ()

    def _running(self, names: Sequence[str], agreed: Agreed) -> list[Transfer]:
        holders = {holder.name: holder for holder in map(self._board_of.holder, names)}
        opinions = agreed.opinions
        return [
            transfer
            for transfer in holders.values()
            if opinions[transfer.place].judgement is not Judgement.DONE
        ]


class _GivesUpAtOnce(NotedWaiter):
    __slots__ = ()

    def _running(self, names: Sequence[str], agreed: Agreed) -> list[Transfer]:
        running = super()._running(names, agreed)
        if running:
            raise TransferError(f"wait for transfers {list(names)}: not over after one round")
        return running


class _WaitsForNobody(NotedWaiter):
    __slots__ = ()

    def wait(self, names: Sequence[str]) -> None:
        super().wait([*names, "a transfer that is over"])


class _IsFullOneEarly(Quarantine):
    __slots__ = ()

    def check_open(self, peer: str) -> None:
        super().check_open(peer)
        kept = sum(entry.peer == peer for entry in self._kept.values())
        if kept and kept + 1 >= self.limits.transfers:
            raise TransferError(f"new transfer to peer {peer!r}, of which {kept} are kept here")


class _IsFullForEveryPeer(Quarantine):
    __slots__ = ()

    def check_open(self, peer: str) -> None:
        for entry in [*self._kept.values()]:
            super().check_open(entry.peer)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="relief-waits-for-every-band",
        planted="a relief that has to wait for transfers waits for those of every band",
        plant=in_relief(_WaitsForEveryBand),
        checks=("capacity",),
        scenario="everything",
    ),
    Fault(
        id="relief-waits-without-asking",
        planted="a relief waits for every transfer, though a layout leaves all of them alone",
        plant=in_relief(_WaitsWithoutAsking),
        checks=("capacity",),
        scenario="peers",
    ),
    Fault(
        id="relief-moves-holds-first",
        planted="a relief moves what is held for a peer as if it were held for nobody",
        plant=in_relief(_MovesHoldsFirst),
        checks=("capacity",),
        scenario="everything",
    ),
    Fault(
        id="flush-moves-receive-holds",
        planted="an opportunistic flush leaves transfers alone and moves rows held for a peer",
        plant=in_mover(_FlushesReceiveHolds),
        checks=("ownership",),
        scenario="peers",
    ),
    Fault(
        id="wait-named-in-hash-order",
        planted="ranks go through a set of the transfers that they wait for, each in the order of"
        " its own hashes",
        plant=_name_in_hash_order,
        checks=("divergence",),
        scenario="peers",
    ),
    Fault(
        id="wait-named-in-another-order",
        planted="the last rank names the transfers that it waits for the other way round",
        plant=_name_youngest_first_on_the_last_rank,
        checks=("divergence",),
        scenario="peers",
    ),
    Fault(
        id="wait-takes-no-proof",
        planted="a wait goes on although a transfer that was given up under it is proved quiet",
        plant=in_waiter(_NeverTakesAProof),
        checks=("capacity",),
        scenario="peers",
    ),
    Fault(
        id="wait-gives-nothing-up",
        planted="a wait leaves a transfer that failed as it is, so that its proof never comes",
        plant=in_waiter(_GivesNothingUp),
        checks=("capacity",),
        scenario="peers",
    ),
    Fault(
        id="wait-without-patience",
        planted="a wait is given up after the first round",
        plant=in_waiter(_GivesUpAtOnce),
        checks=("capacity",),
        scenario="peers",
    ),
    Fault(
        id="wait-names-what-is-over",
        planted="a wait also names a transfer that no rank has any more",
        plant=in_waiter(_WaitsForNobody),
        checks=("capacity",),
        scenario="peers",
    ),
    Fault(
        id="quarantine-full-one-early",
        planted="a peer gets no new transfer with one less in quarantine than the limit says",
        plant=in_quarantine(_IsFullOneEarly),
        checks=("capacity",),
        scenario="peers",
    ),
    Fault(
        id="quarantine-full-for-every-peer",
        planted="no peer gets a new transfer while the quarantine of one is full",
        plant=in_quarantine(_IsFullForEveryPeer),
        checks=("capacity",),
        scenario="peers",
    ),
)
