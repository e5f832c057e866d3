"""Faults of ids and translation: lost map writes, ids bound or minted wrongly, stale pages."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault, Plant
from harness.faults.parts import become, both, chains, in_chain, in_maps, in_minted, in_world
from harness.faults.scheduler import FreesAPageTwice
from harness.unikv_subject import UnikvSubject
from harness.world import World
from unikv.alloc.band import Band
from unikv.alloc.chain import ChainAllocator, Taken
from unikv.device.port import Stream
from unikv.ids.unit_ids import MintedIds, Operation, UnitIds


class _BindsWithoutMap(ChainAllocator):
    def _hand_out(self, band: Band, ids: Sequence[int], pages: Sequence[int]) -> None:
        if pages:
            band.ids.bind(ids, pages)
            if band.layout.zeroed:
                self.device.zero_pages(Stream.SCHEDULE, band.index, pages)


class _UnbindsWithoutMap(ChainAllocator):
    def _give_up(self, band: Band, ids: Sequence[int], operation: Operation) -> None:
        if ids:
            self.reclaim.free(band, band.ids.unbind(ids, operation))


class _ShortWindowMap(ChainAllocator):
    def _hand_out(self, band: Band, ids: Sequence[int], pages: Sequence[int]) -> None:
        if band.layout.mints or not pages:
            super()._hand_out(band, ids, pages)
            return
        length = band.layout.id_count // 2
        short = [(unit, page) for unit, page in zip(ids, pages, strict=True) if unit <= length]
        band.ids.bind(ids, pages)
        self.device.zero_pages(Stream.SCHEDULE, band.index, pages)
        if short:
            kept, pages = zip(*short, strict=True)
            self.device.write_map(Stream.SCHEDULE, band.index, kept, pages)


class _MintsOldestFirst(MintedIds):
    """A fair order of its own, under which ids wander through their whole range."""

    __slots__ = ()

    def mint(self, count: int) -> list[int]:
        minted = self._free[:count]
        del self._free[:count]
        return minted


class _ReportsAWholeMap(UnikvSubject):
    def page_map(self, band: int) -> list[int]:
        pages = super().page_map(band)
        return pages + [0] * (self.storage.layout.bands[band].id_count + 1 - len(pages))


class _TranslatesOnce(ChainAllocator):
    known: dict[tuple[int, int], int]

    def free(self, ids: Sequence[int]) -> None:
        super().free(ids)
        self.known.clear()

    def retire(self, band: int, ids: Sequence[int]) -> None:
        super().retire(band, ids)
        self.known.clear()

    def free_slots(self, slots: Sequence[int]) -> None:
        super().free_slots(slots)
        self.known.clear()

    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        pages = super().translate(band, ids)
        return [
            self.known.setdefault((band, unit), page) for unit, page in zip(ids, pages, strict=True)
        ]


class _WritesTheOldPageBack(_TranslatesOnce):
    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        pages = super().translate(band, ids)
        part = self.bands[band].ids
        for unit, page in zip(ids, pages, strict=True):
            part.inverse[part.forward[unit]] = 0
            part.forward[unit] = page
            part.inverse[page] = unit
        return pages


class _TakesIdsForPages(ChainAllocator):
    def translate(self, band: int, ids: Sequence[int]) -> list[int]:
        if self.bands[band].layout.mints:
            return super().translate(band, ids)
        return list(ids)


class _RefusedTakeKeepsAnId(ChainAllocator):
    def take(self, pages: int, slots: int) -> Taken:
        if not self.fits(pages, slots):
            for minted in self.minted.values():
                minted.mint(min(1, minted.free_count))
        return super().take(pages, slots)


class _HostForgetsTheMove(UnitIds):
    __slots__ = ()

    def rebind(self, sources: Sequence[int], targets: Sequence[int]) -> list[int]:
        return [self.inverse[page] for page in sources]


class _CrossesTwoIds(UnitIds):
    __slots__ = ()

    def rebind(self, sources: Sequence[int], targets: Sequence[int]) -> list[int]:
        turned = [*sources[1:], *sources[:1]]
        return super().rebind(turned, targets)


class _InverseStays(UnitIds):
    __slots__ = ()

    def unbind(self, ids: Sequence[int], operation: Operation) -> list[int]:
        pages = super().unbind(ids, operation)
        for unit, page in zip(ids[:1], pages[:1], strict=True):
            self.inverse[page] = unit
        return pages


class _MintsTwice(MintedIds):
    __slots__ = ()

    def mint(self, count: int) -> list[int]:
        minted = super().mint(count)
        self._free.extend(minted[-1:])
        return minted


class BindsUnchecked(UnitIds):
    """Lets the last bind of an id or a page win, whoever had it."""

    __slots__ = ()

    def bind(self, ids: Sequence[int], pages: Sequence[int]) -> None:
        """Let each id name the page at the same place."""
        for unit, page in zip(ids, pages, strict=True):
            self.forward[unit] = page
            self.inverse[page] = unit


class _ToleratesADoubleFree(UnitIds):
    __slots__ = ()

    def unbind(self, ids: Sequence[int], operation: Operation) -> list[int]:
        return super().unbind(
            [unit for unit in dict.fromkeys(ids) if self.forward[unit]], operation
        )


class _LosesAFreedId(MintedIds):
    __slots__ = ()

    def give_back(self, ids: Sequence[int]) -> None:
        super().give_back(ids[:-1])


def _size_maps_by_pages(world: World) -> None:
    for chain in chains(world):
        for band in chain.bands:
            if not band.layout.mints:
                # As many entries as the band has pages, though the owner's ids index them.
                del band.ids.forward[len(band.states) + 1 :]
    for subject in world.subjects:
        assert isinstance(subject, UnikvSubject)
        become(subject, _ReportsAWholeMap)


def _remembering(broken: type[_TranslatesOnce]) -> Plant:
    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain, broken)
            assert isinstance(chain, _TranslatesOnce)
            chain.known = {}

    return plant


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="map-write-lost-at-hand-out",
        planted="a page is bound on the host and never written to the device's page map",
        plant=in_chain(_BindsWithoutMap),
        checks=("mapping", "ownership"),
    ),
    Fault(
        id="map-write-lost-at-free",
        planted="a freed id keeps its entry in the device's page map",
        plant=in_chain(_UnbindsWithoutMap),
        checks=("mapping", "ownership"),
    ),
    Fault(
        id="window-map-too-short",
        planted="the window band's map is shorter than the ids that index it; entries beyond its"
        " end are lost",
        plant=in_chain(_ShortWindowMap),
        checks=("mapping", "ownership", "translation"),
        rows=("B11",),
    ),
    Fault(
        id="window-map-sized-by-its-pages",
        planted="the window band's map has one entry for each of its pages, though ids of the"
        " owner, which are more, index it",
        plant=both(in_minted(_MintsOldestFirst), _size_maps_by_pages),
        checks=("ownership", "assertion"),
        rows=("B01", "B11"),
    ),
    Fault(
        id="stale-translation",
        planted="a translation is kept across moves",
        plant=_remembering(_TranslatesOnce),
        checks=("translation",),
        scenario="hybrid",
        rows=("B03",),
    ),
    Fault(
        id="stale-page-written-back",
        planted="a kept translation is also written back to the host's maps, so that the state and"
        " its report agree on the old page",
        plant=_remembering(_WritesTheOldPageBack),
        checks=("translation",),
        scenario="hybrid",
        together="translation",
    ),
    Fault(
        id="ids-given-to-the-kernels",
        planted="kernels of the window band get virtual ids instead of pages",
        plant=in_chain(_TakesIdsForPages),
        checks=("translation",),
        rows=("B03",),
    ),
    Fault(
        id="host-forgets-the-move",
        planted="a move tells the device's page map and not the host's",
        plant=in_maps(_HostForgetsTheMove),
        checks=("mapping",),
    ),
    Fault(
        id="move-crosses-two-ids",
        planted="two moved pages swap their ids, alike on the host, on the device and in what the"
        " allocator reports",
        plant=in_maps(_CrossesTwoIds),
        checks=("content", "initialised"),
        together="content",
    ),
    Fault(
        id="inverse-entry-stays",
        planted="a freed page still names its id in the inverse map",
        plant=in_maps(_InverseStays),
        checks=("mapping", "ownership"),
    ),
    Fault(
        id="id-minted-twice",
        planted="the last id of a take stays in the free list",
        plant=in_minted(_MintsTwice),
        checks=("ownership",),
        rows=("B73",),
    ),
    Fault(
        id="id-handed-out-twice",
        planted="an id is minted twice and a bind asks nobody, so that states, maps and their"
        " report all follow the second owner",
        plant=both(in_minted(_MintsTwice), in_maps(BindsUnchecked)),
        checks=("ownership",),
        rows=("B73",),
        together="ownership",
    ),
    Fault(
        id="double-free-tolerated",
        planted="a page is listed twice when a request is freed, and the allocator lets it pass",
        plant=both(in_maps(_ToleratesADoubleFree), in_world(FreesAPageTwice)),
        checks=("ownership",),
        rows=("B71", "B77", "B83"),
    ),
    Fault(
        id="freed-id-lost",
        planted="the last id of every free is never minted again",
        plant=in_minted(_LosesAFreedId),
        checks=("capacity",),
        rows=("B75",),
    ),
    Fault(
        id="refused-take-keeps-an-id",
        planted="a take that is refused for want of bytes has used up an id",
        plant=in_chain(_RefusedTakeKeepsAnId),
        checks=("capacity",),
        rows=("B79",),
    ),
)
