"""What takes hand out, as frozen data; whether anything fits is not known here."""

from __future__ import annotations

from typing import NamedTuple


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
