"""Whether ids that a copy, or a send, was asked for are still in the same hands when it starts.

An id that was freed may be minted again at once, and then it names a page as before: somebody
else's.  So a claim remembers what had freed each id last, and it holds as long as that is the
answer.  Nothing here knows what starts, or changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unikv.alloc.band import Band
from unikv.errors import OwnershipError, listed
from unikv.ids.unit_ids import Operation


class Claim(NamedTuple):
    """Ids as they were held at one moment.

    Attributes:
        ids: per band.
        freed_by: per band and id, what had freed the id last.
    """

    ids: tuple[tuple[int, ...], ...]
    freed_by: tuple[tuple[Operation, ...], ...]


def claim(bands: Sequence[Band], ids: Sequence[Sequence[int]]) -> Claim:
    """The ids as they are held now."""
    freed_by = [band.ids.freed_by(units) for band, units in zip(bands, ids, strict=True)]
    return Claim(tuple(map(tuple, ids)), tuple(freed_by))


def still_held(band: Band, claimed: Claim) -> list[int]:
    """The ids of one band that nothing has freed since."""
    ids, freed_by = claimed.ids[band.index], claimed.freed_by[band.index]
    now = band.ids.freed_by(ids)
    return [unit for unit, was, last in zip(ids, freed_by, now, strict=True) if was == last]


def check_held(bands: Sequence[Band], claimed: Claim, what: str, way_out: str) -> None:
    """Refuse what is about to start, if some of its ids are not its own any more.

    Args:
        bands: all of them, in order.
        claimed: its ids, as they were when it was asked for.
        what: its kind and name.
        way_out: what the caller can still do with it.

    Raises:
        OwnershipError: naming the first band and ids that were freed since.
    """
    for band in bands:
        freed = sorted(set(claimed.ids[band.index]).difference(still_held(band, claimed)))
        if freed:
            raise OwnershipError(
                f"{what}: ids {listed(freed)} of band {band.layout.name!r} were freed since it"
                f" began, and may be somebody else's; {way_out}"
            )


def pages_of(bands: Sequence[Band], claimed: Claim) -> list[list[int]]:
    """Per band, the pages that the ids name now.

    Raises:
        OwnershipError: if an id names no page.
    """
    return [band.ids.pages_of(units) for band, units in zip(bands, claimed.ids, strict=True)]
