"""What every storage layout has to satisfy, whoever wrote it down.

Layouts that `unikv.build` makes keep these rules by construction; one written by hand is refused
here, before anything is built on it.
"""

from __future__ import annotations

from unikv.device.port import StorageLayout
from unikv.errors import BuildError


def check_layout(layout: StorageLayout) -> None:
    """Refuse a layout on which the allocator's laws cannot hold.

    Raises:
        BuildError: with the field, its value and what is allowed.
    """
    if not layout.bands:
        raise BuildError("layout.bands is empty; allowed: one band or more, the owner last")
    for name in ("sink_bytes", "row_count", "row_pages", "slots_per_page"):
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


def _at_least_one(field: str, value: int) -> None:
    if value < 1:
        raise BuildError(f"{field} is {value}; allowed: 1 or more")
