"""From a sized plan to a storage on a device.

Sizing settles how many bytes there are; what is left is how many ids may name them.
Bands have no caps, so each may come to hold the whole arena, and the ids of a band
that mints them are as many as its pages from one wall to the other.

Nothing here decides a size, and nothing is allocated before every refusal is past.
"""

from itertools import accumulate, pairwise
from typing import assert_never

from unikv.alloc.chain import NO_TRANSFERS
from unikv.alloc.signals import TransferWaiter
from unikv.arguments import check_figure
from unikv.device.port import BandLayout, Device, HostLayout, StorageLayout
from unikv.errors import BuildError
from unikv.geometry import MHA
from unikv.layout_rules import least_pair_bytes
from unikv.memory.arena import Arena
from unikv.plan import KVStoragePlan, SubPool, SubPoolKind
from unikv.sizing import KVStorageSize, sink_bytes, token_pages
from unikv.storage import KVStorage

__all__ = ["build_kv_storage", "storage_layout"]


def build_kv_storage(
    plan: KVStoragePlan,
    size: KVStorageSize,
    device: Device,
    waiter: TransferWaiter = NO_TRANSFERS,
    host_bytes: int = 0,
) -> KVStorage:
    """An empty storage for `plan`, with the bytes of `size`, on `device`.

    The device must hold the memory spaces of `storage_layout(plan, size, host_bytes)`.

    Args:
        plan, size: what to build; `size` is of `plan`.
        device: where kernels go.
        waiter: how the host waits for network transfers; by default there is no peer.
        host_bytes: host memory for copies of pages; 0 for no host tier.

    Order: enqueues nothing.

    Raises:
        BuildError: if the device has no streams, or cannot copy where there is host memory; if
            the arena holds no page of some band, as a budget at its floor may leave it; as
            `storage_layout`.
    """
    return KVStorage(storage_layout(plan, size, host_bytes), device, waiter=waiter)


def storage_layout(plan: KVStoragePlan, size: KVStorageSize, host_bytes: int = 0) -> StorageLayout:
    """Every memory space of a storage, for the device to make before the storage is built.

    A window band names its pages by the owner's ids, so it has as many ids as the owner,
    however many pages of its own fit the arena.  State has ids of its own.

    Host memory is divided as the arena is: by the bytes that each band is sized for.  The two ends
    share their part if both hold keys and values of heads; every other band has a part of its own.

    Raises:
        BuildError: if `size` is not of `plan`; if `host_bytes` is no int of 0 or more, or some band
            would not find room for one page.
    """
    _refuse_foreign_size(plan, size)
    check_figure(BuildError, "host_bytes", host_bytes, 0)
    arena = Arena(size.sink_bytes, size.arena_bytes)
    return StorageLayout(
        sink_bytes=size.sink_bytes,
        total_bytes=size.arena_bytes,
        bands=tuple(_band_layout(plan, sub_pool, arena) for sub_pool in plan.sub_pools),
        row_count=size.row_count,
        row_pages=token_pages(size.row_tokens, plan.page_size),
        slots_per_page=plan.page_size,
        host=_host_layout(plan, size, host_bytes) if host_bytes else (),
    )


def _host_layout(
    plan: KVStoragePlan, size: KVStorageSize, host_bytes: int
) -> tuple[HostLayout, ...]:
    members = _host_members(plan)
    weights = [sum(size.bands[index].bytes for index in bands) for bands in members]
    # Cut at running totals, so that no byte is lost to rounding.
    ends = [host_bytes * weight // max(1, sum(weights)) for weight in accumulate(weights)]
    parts = [high - low for low, high in pairwise([0, *ends])]
    for bands, part in zip(members, parts, strict=True):
        page_bytes = [plan.sub_pools[index].page_bytes for index in bands]
        least = least_pair_bytes(*page_bytes) if len(bands) == 2 else page_bytes[0]
        if part < least:
            names = " and ".join(repr(plan.sub_pools[index].name) for index in bands)
            raise BuildError(
                f"host_bytes is {host_bytes}, of which {names} would get {part}; allowed: 0 for no"
                f" host tier, or enough that every band finds room for one page, here {least} bytes"
            )
    return tuple(HostLayout(part, bands) for part, bands in zip(parts, members, strict=True))


def _host_members(plan: KVStoragePlan) -> list[tuple[int, ...]]:
    """Bands by the host memory that they share: the ends if they can, all others alone."""
    last = len(plan.sub_pools) - 1
    ends = [plan.sub_pools[0], plan.owner]
    if last and all(isinstance(sub_pool.geometry, MHA) for sub_pool in ends):
        return [(0, last), *((index,) for index in range(1, last))]
    return [(index,) for index in range(last + 1)]


def _band_layout(plan: KVStoragePlan, sub_pool: SubPool, arena: Arena) -> BandLayout:
    match sub_pool.kind:
        case SubPoolKind.FULL:
            slots_per_page, minting, mints, zeroed = plan.page_size, sub_pool, True, True
        case SubPoolKind.WINDOW:
            slots_per_page, minting, mints, zeroed = plan.page_size, plan.owner, False, True
        case SubPoolKind.STATE:
            # A slot is written whole before it is read, so nothing shows through unzeroed.
            slots_per_page, minting, mints, zeroed = 1, sub_pool, True, False
        case _:
            assert_never(sub_pool.kind)
    pages = arena.end_page(minting.page_bytes) - arena.first_page(minting.page_bytes)
    return BandLayout(
        name=sub_pool.name,
        page_bytes=sub_pool.page_bytes,
        slots_per_page=slots_per_page,
        id_count=max(0, pages),
        mints=mints,
        zeroed=zeroed,
    )


def _refuse_foreign_size(plan: KVStoragePlan, size: KVStorageSize) -> None:
    held = [band.name for band in size.bands]
    wanted = [sub_pool.name for sub_pool in plan.sub_pools]
    if held != wanted:
        raise BuildError(
            f"the size has bands {', '.join(held)}; allowed: {', '.join(wanted)}, as in the plan; "
            "size this plan"
        )
    # Page 0 of every band has to lie in the sink, or it would be handed out.
    if size.sink_bytes != sink_bytes(plan):
        raise BuildError(
            f"the size has a sink of {size.sink_bytes} bytes; allowed: {sink_bytes(plan)}, one "
            "page of the plan's largest band; size this plan"
        )
    for band, sub_pool in zip(size.bands, plan.sub_pools, strict=True):
        page_bytes, slots = sub_pool.page_bytes, sub_pool.page_bytes // sub_pool.entry_bytes
        if (band.bytes, band.slots) != (band.pages * page_bytes, band.pages * slots):
            raise BuildError(
                f"band {band.name!r} of the size has {band.slots} slots and {band.bytes} bytes in "
                f"{band.pages} pages; allowed: {slots} slots and {page_bytes} bytes a page, as in "
                "the plan; size this plan"
            )
