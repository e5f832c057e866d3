"""Faults of what a call does beside its answer, and of what an engine keeps or mixes up."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault
from harness.faults.parts import become, in_chain, in_reclaim, in_relief, in_world
from harness.requests import Holds
from harness.world import World
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator, Taken
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.relief import Relief
from unikv.device.port import Stream
from unikv.errors import TransferError
from unikv.ids.unit_ids import Operation


class _RefusalSettles(ChainAllocator):
    def take(self, pages: int, slots: int) -> Taken:
        if not self.fits(pages, slots):
            self.reclaim.settle_all()
        return super().take(pages, slots)


class _RefusalCompacts(ChainAllocator):
    def take(self, pages: int, slots: int) -> Taken:
        if not self.fits(pages, slots):
            self.flush(3)
        return super().take(pages, slots)


class _RefusedReliefSettles(ChainAllocator):
    def relieve(self, pages: int, slots: int) -> bool:
        is_made = super().relieve(pages, slots)
        if not is_made:
            self.reclaim.settle_all()
        return is_made


class _WaitInVainSettles(Relief):
    __slots__ = ()

    def _end_transfers(self, demand: Sequence[int]) -> None:
        try:
            super()._end_transfers(demand)
        except TransferError:
            self._reclaim.settle_all()
            raise


class _FreeWaits(Reclaim):
    __slots__ = ()

    def free(self, band: Band, pages: Sequence[int]) -> None:
        if self._steps.newest and self._steps.wait(self._steps.newest):
            self.writes_retired()
        super().free(band, pages)


class _FreeBlocksTheHost(ChainAllocator):
    def _give_up(self, band: Band, ids: Sequence[int], operation: Operation) -> None:
        self.device.host_wait(self.device.record_event(Stream.FORWARD))
        super()._give_up(band, ids, operation)


class _SettleBlocksTheHost(Reclaim):
    __slots__ = ()

    def settle_all(self) -> None:
        device = self._steps._device
        device.host_wait(device.record_event(Stream.SCHEDULE))
        super().settle_all()


class _FlushSettles(ChainAllocator):
    def flush(self, limit: int) -> int:
        self.reclaim.settle_all()
        return super().flush(limit)


class _FlushesBeyondItsLimit(ChainAllocator):
    def flush(self, limit: int) -> int:
        return super().flush(limit + 5)


class _RelievesAnything(ChainAllocator):
    def relieve(self, pages: int, slots: int) -> bool:
        super().relieve(pages, slots)
        return True


class _RelievesNothing(ChainAllocator):
    def relieve(self, pages: int, slots: int) -> bool:
        return False


class _RelievesInWords(ChainAllocator):
    def relieve(self, pages: int, slots: int) -> bool:
        return self.relief.fits(self._demand(pages, slots))


class _KeepsAPage(Holds):
    __slots__ = ()

    def drop(self, ids: Sequence[int]) -> list[int]:
        return super().drop(ids[:-1])


class _KeepsASlot(World):
    def free_slots(self, slots: list[int]) -> None:
        super().free_slots(slots[:-1])


class _CachesPagesInReverse(World):
    def hold(self, pages: Sequence[int], tails: Sequence[Sequence[int]]) -> None:
        super().hold(pages, tails)
        taken = any(pages is request.pages for request in self.requests.values())
        if isinstance(pages, list) and not taken and pages not in tails:
            pages.reverse()


def _keep_a_page(world: World) -> None:
    become(world.page_holds, _KeepsAPage)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="refusal-settles",
        planted="a refused take has settled pages before it said no",
        plant=in_chain(_RefusalSettles),
        checks=("effects",),
    ),
    Fault(
        id="refusal-compacts",
        planted="a refused take has moved pages before it said no",
        plant=in_chain(_RefusalCompacts),
        checks=("effects",),
    ),
    Fault(
        id="refused-relief-settles",
        planted="a relief that says no has settled every pending page",
        plant=in_chain(_RefusedReliefSettles),
        checks=("effects",),
    ),
    Fault(
        id="wait-in-vain-settles",
        planted="a take or relief that has waited for a transfer in vain settles every pending page"
        " before it raises",
        plant=in_relief(_WaitInVainSettles),
        checks=("effects",),
        scenario="peers",
    ),
    Fault(
        id="free-waits",
        planted="a free lets the schedule stream wait for the newest step",
        plant=in_reclaim(_FreeWaits),
        checks=("effects",),
    ),
    Fault(
        id="free-blocks-the-host",
        planted="a free lets the host wait until the forward stream has run",
        plant=in_chain(_FreeBlocksTheHost),
        checks=("host_reads",),
    ),
    Fault(
        id="settle-blocks-the-host",
        planted="a relief lets the host wait for the schedule stream before it settles, which"
        " orders all that comes after",
        plant=in_reclaim(_SettleBlocksTheHost),
        checks=("host_reads",),
        scenario="hybrid",
    ),
    Fault(
        id="flush-settles",
        planted="an opportunistic flush settles, and states, counts and report agree that pages"
        " came back",
        plant=in_chain(_FlushSettles),
        checks=("effects",),
        together="effects",
    ),
    Fault(
        id="flush-over-its-limit",
        planted="an opportunistic flush moves more pages than it may",
        plant=in_chain(_FlushesBeyondItsLimit),
        checks=("effects",),
    ),
    Fault(
        id="relief-promises-anything",
        planted="a relief says yes where no layout holds the demand",
        plant=in_chain(_RelievesAnything),
        checks=("capacity",),
    ),
    Fault(
        id="relief-refuses-everything",
        planted="a relief says no and rearranges nothing",
        plant=in_chain(_RelievesNothing),
        checks=("capacity",),
        rows=("B97",),
    ),
    Fault(
        id="relief-rearranges-nothing",
        planted="a relief says truly whether a layout holds the demand, and lays out none",
        plant=in_chain(_RelievesInWords),
        checks=("capacity",),
        scenario="hybrid",
    ),
    Fault(
        id="page-kept-by-nobody",
        planted="the engine forgets the last page of what a request gives back",
        plant=_keep_a_page,
        checks=("idle",),
        rows=("B49", "B75"),
    ),
    Fault(
        id="slot-kept-by-nobody",
        planted="the engine forgets the last state slot of what a request gives back",
        plant=in_world(_KeepsASlot),
        checks=("idle",),
        scenario="hybrid",
        rows=("B79",),
    ),
    Fault(
        id="prefix-pages-out-of-order",
        planted="the pages of a prefix are cached in reverse, so that blocks name other tokens",
        plant=in_world(_CachesPagesInReverse),
        checks=("content",),
    ),
)
