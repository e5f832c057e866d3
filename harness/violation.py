"""One broken promise, as data: what a check reports and what a signature is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Literal

import msgspec

SITES_MAX = 16
"""Sites that are told of one violation; its sentence names all that there are."""


class Site(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that a broken promise is about.

    Attributes:
        kind: what `first` numbers: a page or an id of a band, an entry of its page map, a request
            row, the memory that belongs to one, or a byte of the arena.
        band: index of the band; -1 where it is of none.
        first: the first one.
        count: how many, one behind the other.
    """

    kind: Literal["page", "id", "entry", "row", "row memory", "byte"]
    band: int
    first: int
    count: int = 1


def first_sites(sites: Iterable[Site]) -> tuple[Site, ...]:
    """As many as are told."""
    return tuple(islice(sites, SITES_MAX))


def page_sites(band: int, pages: Iterable[int]) -> tuple[Site, ...]:
    """Pages of a band, the lowest first."""
    return first_sites(Site("page", band, page) for page in sorted(pages))


def id_sites(band: int, ids: Iterable[int]) -> tuple[Site, ...]:
    """Ids of a band, the lowest first."""
    return first_sites(Site("id", band, unit) for unit in sorted(ids))


def byte_sites(ranges: Iterable[tuple[int, int]]) -> tuple[Site, ...]:
    """Ranges of bytes of the arena, each with its end behind it."""
    return first_sites(Site("byte", -1, low, high - low) for low, high in sorted(set(ranges)))


class AccessNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One of two accesses that collide.

    Attributes:
        kind: `zero write`, `move read`, `body write`, `metadata read`, ...
        stream: role of its stream.
        operation: index of the operation that submitted it.
        step: the forward step it belongs to; 0 for none.
        holder: how the bytes were held when it was submitted, in words.
    """

    kind: str
    stream: str
    operation: int
    step: int
    holder: str


class Violation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One broken instance of a check's promise.

    Attributes:
        check: the promise, by its name.
        what: one sentence with ids and values.
        detail: what kind of break it is, without ids: part of the signature.
        operation: index of the operation after which it was seen.
        accesses: the earlier and the later access, for a race; else empty.
        missing_edge: the edge that would have ordered them; empty if not a race.
        sites: what it is about, where the device does not know it: a race has its own place.
    """

    check: str
    what: str
    detail: str
    operation: int
    accesses: tuple[AccessNote, ...] = ()
    missing_edge: str = ""
    sites: tuple[Site, ...] = ()

    @property
    def signature(self) -> str:
        """Check, access kinds, stream roles and holder kinds; never page numbers or seeds."""
        parts = [self.check, self.detail]
        for access in self.accesses:
            parts += [access.kind, access.stream, access.holder]
        return " | ".join(parts)

    @property
    def short_signature(self) -> str:
        """The signature as eight hexadecimal digits, for folder names."""
        digest = blake2b(self.signature.encode(), digest_size=4).hexdigest()
        return f"{self.check}-{digest}"


def seen(found: Sequence[Violation], signature: str | None) -> Violation | None:
    """What a run is about: the first violation of a signature if one is there, else the first."""
    alike = [violation for violation in found if violation.signature == signature]
    return next(iter(alike or found), None)
