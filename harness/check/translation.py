"""Translation: a step finds each id on the page that the map names when it is launched.

The pages that the allocator gives for a step are compared with the device map in program order, at
the launch that uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.violation import id_sites, page_sites

if TYPE_CHECKING:
    from harness.world import World


def compare(world: World, band: int, ids: Sequence[int], pages: Sequence[int]) -> None:
    """Note every id that the step would look for in the wrong page."""
    world.check_runs["translation"] += 1
    entries = world.device.program.maps[band]
    if list(map(entries.__getitem__, ids)) == pages and 0 not in pages:
        return
    for unit, page in zip(ids, pages, strict=True):
        if entries[unit] == page and page:
            continue
        name = world.setup.bands[band].name
        if entries[unit] != page:
            detail, what = "stale translation", f"the device map says {entries[unit]}"
        else:
            detail, what = "read of an unbound page", "the sink, since it names none"
        text = f"band {name!r}: id {unit} is used on page {page}, {what}"
        # Of a page that nothing is bound to, the id is what can be followed.
        sites = page_sites(band, [page]) if page else id_sites(band, [unit])
        world.truth.note("translation", detail, text, sites)
