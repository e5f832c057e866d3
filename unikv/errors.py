"""Everything the library raises on purpose, with the ids, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

LISTED = 12
"""Values that a text lists before it only counts them."""


def listed(values: Collection[object]) -> str:
    """The first few values and how many more there are, so that no text grows with its input."""
    text = repr(list(islice(values, LISTED)))
    more = len(values) - LISTED
    return f"{text} and {more} more" if more > 0 else text


class UnikvError(Exception):
    """Base of all errors that this library raises on purpose."""


class Shortage(UnikvError):
    """A take that does not fit: a legal answer, given before anything changed.

    Attributes:
        kind: `"ids"` when virtual ids are short, `"bytes"` when no layout holds the demand,
            `"rows"` when every request row is taken, `"host slots"` when host memory is full.
        band: name of the band (or table) whose share is short; empty where no single one is.
        asked: units asked for: pages where bytes are short.
        free: units that were free; of pages, those inside the spans.
    """

    def __init__(self, kind: str, band: str, asked: int, free: int) -> None:
        unit = "pages" if kind == "bytes" else kind
        place = " in place" if kind == "bytes" else ""
        super().__init__(
            f"short of {kind}: {asked} {unit} asked of {band or 'the chain'}, {free} free{place}"
        )
        self.kind = kind
        self.band = band
        self.asked = asked
        self.free = free


class ArgumentError(UnikvError, ValueError):
    """A call was given what it can make nothing of: a count below 0, an id that is no int.

    It is raised where the call enters, and nothing has changed.
    """


class OwnershipError(UnikvError):
    """An id or page was freed, bound or used by somebody who does not own it."""


class StaleIdsError(UnikvError):
    """Physical ids were used after pages of their band had moved: a kernel would touch others'."""


class CallOrderError(UnikvError):
    """A call that a storage answers only in another part of its life."""


class StepOrderError(UnikvError):
    """A forward step was launched, recorded or processed out of turn."""


class TransferError(UnikvError):
    """A network transfer or a receive hold is unknown, or a transfer did not end in time."""


class HostTierError(UnikvError):
    """A copy between arena and host memory is unknown, or was called out of turn."""


class DeclarationError(UnikvError):
    """A model was described with a layer or a figure that no model can have."""


class PlanError(UnikvError):
    """A possible model whose parts the sub-pools of one arena cannot hold."""


class SizingError(UnikvError):
    """A budget with an impossible figure, or one that cannot serve a single request."""


class BuildError(UnikvError):
    """A plan, a size and a device that do not make one storage."""


class SettingError(UnikvError):
    """A setting from the environment has a value that is not allowed."""


class InvariantError(UnikvError):
    """A rule of the allocator's own state is broken: a bug in it, not in its caller.

    Attributes:
        name: the broken rule, as `unikv.alloc.invariants` registers it.
        others: what else was found at the same moment.
    """

    def __init__(self, name: str, what: str, others: Sequence[str] = ()) -> None:
        also = "".join(f"\n  also {other}" for other in others)
        super().__init__(
            f"{what}; the storage can no longer be trusted: record the calls with"
            f" unikv.trace.record and replay them{also}"
        )
        self.name = name
        self.others = tuple(others)


class TraceError(UnikvError):
    """A trace that cannot be written or read: the place, the value and what is allowed."""
