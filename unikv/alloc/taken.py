"""What takes hand out, as frozen data, and what a load may ask for; what fits is not known here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from unikv.alloc.band import Band
from unikv.arguments import check_counts
from unikv.errors import ArgumentError, listed


class Taken(NamedTuple):
    """What a take handed out.

    Attributes:
        ids: virtual pages, bound in the owner and in every window band.
        slots: state slot ids.
    """

    ids: list[int]
    slots: list[int]


class LoadTaken(NamedTuple):
    """What a take for a load handed out.

    Attributes:
        ids: virtual pages, bound in the owner.
        slots: state slot ids, bound.
        reserved: per window band, pages that are fixed until ids name them.
    """

    ids: list[int]
    slots: list[int]
    reserved: dict[int, list[int]]


def check_load(counts: Sequence[int], bands: Sequence[Band]) -> None:
    """Refuse a demand that no load can have.

    Args:
        counts: pages per band; the rows of a window band are for the last of the owner's pages.
        bands: of the chain; the last one is the owner.

    Raises:
        ArgumentError: if a count is no int or below 0, there is not one for each band, or a window
            band has more than the owner.
    """
    check_counts("demand of a load", counts)
    # Both views are as long as the shorter one, so a missing count is refused by the length.
    rows = [n for n, band in zip(counts, bands, strict=False) if not band.layout.mints]
    if len(counts) != len(bands) or max(rows, default=0) > counts[-1]:
        raise ArgumentError(
            f"load of {listed(counts)} pages; allowed: one count for each of the"
            f" {len(bands)} bands, in a window band at most the owner's"
        )
