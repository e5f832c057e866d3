"""One broken promise, as data: what a check reports and what a signature is made of."""

from __future__ import annotations

from hashlib import blake2b

import msgspec


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
    """

    check: str
    what: str
    detail: str
    operation: int
    accesses: tuple[AccessNote, ...] = ()
    missing_edge: str = ""

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
