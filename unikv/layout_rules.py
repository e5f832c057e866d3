"""What every storage layout has to satisfy, whoever wrote it down.

Layouts that `unikv.build` makes keep these rules by construction; one written by hand is refused
here, before anything is built on it.
"""

from __future__ import annotations

from unikv.arguments import check_figure
from unikv.device.port import StorageLayout
from unikv.errors import BuildError


def check_layout(layout: StorageLayout) -> None:
    """Refuse a layout on which the allocator's laws cannot hold.

    Raises:
        BuildError: with the field, its value and what is allowed.
    """
    if not layout.bands:
        raise BuildError("layout.bands is empty; allowed: one band or more, the owner last")
    for name in ("sink_bytes", "total_bytes", "row_count", "row_pages", "slots_per_page"):
        _at_least_one(f"layout.{name}", getattr(layout, name))
    if layout.total_bytes <= layout.sink_bytes:
        raise BuildError(
            f"layout.total_bytes is {layout.total_bytes}; allowed: more than sink_bytes, which is"
            f" {layout.sink_bytes}"
        )
    owner, others = layout.bands[-1], layout.bands[:-1]
    for index, band in enumerate(layout.bands):
        for name in ("page_bytes", "slots_per_page", "id_count"):
            _at_least_one(f"layout.bands[{index}].{name}", getattr(band, name))
        if not band.mints and band.id_count != owner.id_count:
            raise BuildError(
                f"layout.bands[{index}].id_count is {band.id_count}; allowed: {owner.id_count}, as"
                " it binds pages to the ids of the last band"
            )
    names = [band.name for band in layout.bands]
    if len(set(names)) < len(names):
        raise BuildError(f"layout.bands are named {names}; allowed: each name once")
    if not owner.mints:
        raise BuildError(
            f"layout.bands[-1], {owner.name!r}, mints no ids; allowed: the last band owns the token"
            " ids"
        )
    minting = [band.name for band in others if band.mints]
    if minting and minting != [layout.bands[0].name]:
        raise BuildError(
            f"bands {minting} mint ids beside the owner; allowed: one band of state, the first"
        )
    _check_pages(layout)
    _check_layer_groups(layout)
    _check_host(layout)


def least_pair_bytes(low_page_bytes: int, high_page_bytes: int) -> int:
    """Bytes of the smallest host memory in which two bands find one slot each, at its two ends."""
    return (-(-low_page_bytes // high_page_bytes) + 1) * high_page_bytes


def _check_pages(layout: StorageLayout) -> None:
    """One page size in tokens, which ids stand for in every band; and a sink for every page 0."""
    for index, band in enumerate(layout.bands):
        is_state = band.mints and index < len(layout.bands) - 1
        slots = 1 if is_state else layout.slots_per_page
        if band.slots_per_page != slots:
            why = "a page of state is one slot" if is_state else "the page size of every token band"
            raise BuildError(
                f"layout.bands[{index}].slots_per_page is {band.slots_per_page}; allowed: {slots},"
                f" {why}"
            )
    largest = max(band.page_bytes for band in layout.bands)
    if layout.sink_bytes < largest:
        raise BuildError(
            f"layout.sink_bytes is {layout.sink_bytes}; allowed: {largest} or more, one page of"
            " the largest band, as page 0 of every band is for padding"
        )


def _check_layer_groups(layout: StorageLayout) -> None:
    _at_least_one("layout.layer_groups", layout.layer_groups)
    for index, band in enumerate(layout.bands):
        if band.page_bytes % layout.layer_groups:
            raise BuildError(
                f"layout.bands[{index}].page_bytes is {band.page_bytes}; allowed: a multiple of the"
                f" {layout.layer_groups} layer_groups, which are equal pieces of every page"
            )


def _check_host(layout: StorageLayout) -> None:
    last = len(layout.bands) - 1
    placed: list[int] = []
    for index, backing in enumerate(layout.host):
        bands = backing.bands
        ints = all(type(band) is int for band in bands)
        pair = last > 0 and bands == (0, last)
        if not ints or (not pair and not (len(bands) == 1 and 0 <= bands[0] <= last)):
            raise BuildError(
                f"layout.host[{index}].bands is {bands}; allowed: one band of 0..{last}, or both"
                f" ends of the chain, {(0, last)}"
            )
        _at_least_one(f"layout.host[{index}].total_bytes", backing.total_bytes)
        sizes = [layout.bands[band].page_bytes for band in bands]
        least = least_pair_bytes(*sizes) if pair else sizes[0]
        if backing.total_bytes < least:
            raise BuildError(
                f"layout.host[{index}].total_bytes is {backing.total_bytes}; allowed: {least} or"
                f" more, one page of each of its bands"
            )
        placed += bands
    if len(set(placed)) < len(placed):
        raise BuildError(
            f"layout.host names bands {sorted(placed)}; allowed: each band once at most"
        )


def _at_least_one(field: str, value: int) -> None:
    check_figure(BuildError, field, value, 1)
