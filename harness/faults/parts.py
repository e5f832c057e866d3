"""Where faults are planted: the parts of every rank's allocator, and the engine around them.

Each function turns a broken class into something that breaks a world.  The broken class must add
no slots, so that a part that exists can become one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from harness.engine import Engine
from harness.errors import InputError
from harness.faults.fault import Plant
from harness.unikv_subject import UnikvSubject
from harness.world import World
from unikv.alloc.async_users import AsyncUsers
from unikv.alloc.band import Band, EndBand
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.compaction import PageMover
from unikv.alloc.fences import Fences
from unikv.alloc.float_band import FloatBand
from unikv.alloc.forward_steps import ForwardSteps
from unikv.alloc.page_usage import PageLedger
from unikv.alloc.reclaim import Reclaim
from unikv.alloc.relief import Relief
from unikv.alloc.signals import HeldPages
from unikv.cache.host_tier import HostTier
from unikv.ids.unit_ids import MintedIds, UnitIds
from unikv.memory.host import HostPool
from unikv.requests import RequestTable
from unikv.storage import KVStorage

Part = TypeVar("Part")


def become(part: Part, broken: type[Part]) -> None:
    """Let a part that exists behave like `broken` from now on."""
    part.__class__ = broken


def subjects(world: World) -> Iterator[UnikvSubject]:
    """The allocator of every rank.

    Raises:
        InputError: if the world tests another allocator, in which none of these bugs can be.
    """
    for subject in world.subjects:
        if not isinstance(subject, UnikvSubject):
            raise InputError(
                f"--plant: faults are planted in unikv, but the subject is"
                f" {type(subject).__name__}; run the unikv subject"
            )
        yield subject


def storages(world: World) -> Iterator[KVStorage]:
    """The storage of every rank.  Raises: as `subjects`."""
    return (subject.storage for subject in subjects(world))


def chains(world: World) -> Iterator[ChainAllocator]:
    """The chain allocator of every rank.  Raises: as `storages`."""
    return (storage.chain for storage in storages(world))


def in_chain(broken: type[ChainAllocator]) -> Plant:
    """Plant a chain allocator that sequences its parts wrongly."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain, broken)

    return plant


def in_bands(end: type[EndBand], floating: type[FloatBand]) -> Plant:
    """Plant bands that keep their pages wrongly: the ends, and the floats between them."""

    def plant(world: World) -> None:
        for chain in chains(world):
            for band in chain.bands:
                become_band(band, end, floating)

    return plant


def become_band(band: Band, end: type[EndBand], floating: type[FloatBand]) -> None:
    """Let a band become the broken class of its own kind."""
    if isinstance(band, EndBand):
        become(band, end)
    elif isinstance(band, FloatBand):
        become(band, floating)


def in_reclaim(broken: type[Reclaim]) -> Plant:
    """Plant a way back from freed to free that is wrong."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.reclaim, broken)

    return plant


def in_steps(broken: type[ForwardSteps]) -> Plant:
    """Plant forward steps that are counted or waited for wrongly."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.steps, broken)

    return plant


def in_ledger(broken: type[PageLedger]) -> Plant:
    """Plant a ledger that keeps uses wrongly."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.ledger, broken)

    return plant


def in_mover(broken: type[PageMover]) -> Plant:
    """Plant copies of live pages that go wrong."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.mover, broken)

    return plant


def in_relief(broken: type[Relief]) -> Plant:
    """Plant wrong answers about capacity, or wrong layouts."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.relief, broken)

    return plant


def in_maps(broken: type[UnitIds]) -> Plant:
    """Plant page maps that are kept wrongly, in every band."""

    def plant(world: World) -> None:
        for chain in chains(world):
            for band in chain.bands:
                become(band.ids, broken)

    return plant


def in_minted(broken: type[MintedIds]) -> Plant:
    """Plant id spaces that lose or double an id."""

    def plant(world: World) -> None:
        for chain in chains(world):
            for minted in chain.minted.values():
                become(minted, broken)

    return plant


def in_rows(broken: type[RequestTable]) -> Plant:
    """Plant a request table that keeps rows wrongly."""

    def plant(world: World) -> None:
        for storage in storages(world):
            become(storage.requests, broken)

    return plant


def in_engine(broken: type[Engine]) -> Plant:
    """Plant an engine loop that leaves one of its rules out."""

    def plant(world: World) -> None:
        become(world.engine, broken)

    return plant


def in_world(broken: type[World]) -> Plant:
    """Plant an engine whose own account of requests and pages is wrong."""

    def plant(world: World) -> None:
        become(world, broken)

    return plant


def in_clearance(toucher: Toucher, in_flight: InFlight) -> Plant:
    """Plant a clearance table in which one cell asks for nothing."""

    def plant(world: World) -> None:
        table = {**CLEARANCE, (toucher, in_flight): Clearance.SAME_STREAM}
        world.engine.clearance = table
        for chain in chains(world):
            chain._clearance = table
            chain.reclaim._clearance = table
            chain.mover._clearance = table
            chain.relief._clearance = table
        for tier in tiers(world):
            tier._clearance = table

    return plant


def in_fences(broken: type[Fences]) -> Plant:
    """Plant fences that forget copies, or find the wrong ones."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.ledger.fences, broken)

    return plant


def in_held(broken: type[HeldPages]) -> Plant:
    """Plant holds and transfers that are kept wrongly."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.ledger.held, broken)

    return plant


def in_users(broken: type[AsyncUsers]) -> Plant:
    """Plant calls of copies and transfers that record their uses wrongly."""

    def plant(world: World) -> None:
        for chain in chains(world):
            become(chain.users, broken)

    return plant


def tiers(world: World) -> Iterator[HostTier]:
    """The host tier of every rank, where the world has host memory."""
    return (storage.host for storage in storages(world) if storage.host is not None)


def in_host(broken: type[HostTier]) -> Plant:
    """Plant a host tier that copies the wrong things, or at the wrong time."""

    def plant(world: World) -> None:
        for tier in tiers(world):
            become(tier, broken)

    return plant


def in_host_pools(broken: type[HostPool]) -> Plant:
    """Plant pools of host slots that are kept wrongly, in every band."""

    def plant(world: World) -> None:
        for tier in tiers(world):
            for pool in tier.memory.pools:
                become(pool, broken)

    return plant


def both(first: Plant, second: Plant) -> Plant:
    """Plant two halves of one bug."""

    def plant(world: World) -> None:
        first(world)
        second(world)

    return plant
