"""Whose mistake an exception is: what an allocator may raise, and where it was raised.

Every mistake of an allocator is a violation, and one of the harness must never look like one.
What it is about is looked for in the allocator's own words, which nobody here has written.
Nothing here knows what was asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import TracebackType

from harness.problem import Problem
from harness.values import call_text, value_text
from harness.violation import Site, id_sites, page_sites
from harness.words import joined
from unikv.device.port import StorageLayout
from unikv.errors import (
    OwnershipError,
    Shortage,
    StepOrderError,
    TransferError,
    UnikvError,
)

NO_ANSWERS = (
    UnikvError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)
"""What a call of an allocator raises that is no answer: its own errors, and what a mistake raises.

`Shortage` is an answer, though it is one of its own errors.
"""

REFUSED_BY_TRANSFERS = frozenset(
    {"take", "relieve", "begin_load", "begin_receive", "begin_send", "add_part", "close_send"}
)
"""Calls to which `TransferError` is an answer: they begin something, or wait for transfers."""


OURS = ("harness.device.", "harness.truth", "harness.memory_names", "harness.world")
"""Modules that an allocator's call leads back to, whose mistakes are not its own."""


def are_equally_short(answer: object, other: object) -> bool:
    """Whether two ranks refused alike: with the same figures, or both after a wait in vain.

    Of a failed wait each rank names what its own engine owes, so the words differ.
    """
    if isinstance(answer, TransferError) and isinstance(other, TransferError):
        return True
    return (
        isinstance(answer, Shortage) and isinstance(other, Shortage) and answer.args == other.args
    )


def answers_apart(
    call: str, arguments: Sequence[object], first: object, rank: int, other: object
) -> str:
    """What the first rank and another one answered, in words: of a record, what differs in it."""
    asked = call_text(call, arguments)
    names = getattr(first, "_fields", ())
    if not isinstance(first, tuple) or not isinstance(other, type(first)) or not names:
        return f"{asked}: rank 0 says {_value_text(first)}, rank {rank} says {_value_text(other)}"
    fields = zip(names, first, other, strict=True)
    parts = [
        f"{name} is {_value_text(one)} on rank 0 and {_value_text(two)} on rank {rank}"
        for name, one, two in fields
        if one != two
    ]
    return f"{asked}: {', '.join(parts)}"


def _value_text(value: object) -> str:
    """An answer or a field of one; a tuple as a list in a sentence."""
    return joined(map(_part_text, value)) if isinstance(value, tuple) else value_text(value)


def _part_text(part: object) -> str:
    """What is in such a list; names stand side by side, as a transfer and what became of it."""
    if isinstance(part, tuple) and part and all(isinstance(own, str) for own in part):
        return " ".join(part)
    return value_text(part)


def is_of_the_harness(error: BaseException) -> bool:
    """Whether our own device or books failed under the allocator's call: then it is our bug."""
    if isinstance(error, UnikvError):
        return False
    module: str = _innermost(error).tb_frame.f_globals["__name__"]
    return module.startswith(OURS)


def _innermost(error: BaseException) -> TracebackType:
    frame = error.__traceback__
    assert frame is not None
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame


def broken_promise(
    call: str, arguments: Sequence[object], error: BaseException, layout: StorageLayout
) -> Problem:
    """The promise that a call breaks by raising, how, a sentence about it and what it names.

    Args:
        call: what was asked.
        arguments: what it was asked with.
        error: what it raised.
        layout: of the storage, for the names of its bands.
    """
    kind = type(error).__name__
    sites = named_sites(str(error), [band.name for band in layout.bands])
    if isinstance(error, OwnershipError):
        return Problem("ownership", "allocator refused a legal call", f"{call}: {error}", sites)
    if isinstance(error, StepOrderError):
        return Problem("ledger", "allocator refused a legal step", f"{call}: {error}", sites)
    asked = call_text(call, arguments)
    if isinstance(error, UnikvError):
        return Problem("assertion", f"{kind} in {call}", f"{asked}: {error}", sites)
    frame = _innermost(error)
    place = f"{frame.tb_frame.f_globals['__name__']}:{frame.tb_lineno}"
    # Behind the first line of a failed assertion pytest prints its objects, with addresses.
    words = next(iter(str(error).splitlines()), "")
    text = f"{asked}: {kind} at {place}: {words}"
    return Problem("assertion", f"{kind} in {call}", text, sites)


def named_sites(words: str, bands: Sequence[str]) -> tuple[Site, ...]:
    """Request rows, and pages or ids of one band, that an allocator's sentence names.

    Ids of no band are the owner's, which is the last one; a page says more than an id, which may
    have lost its page.
    """
    rows = tuple(Site("row", -1, row) for row in _numbers(_ROW, words))
    mentioned = _BAND.findall(words)
    known = {bands.index(name) for name in mentioned if name in bands}
    if len(known) > 1 or (mentioned and not known):
        return rows
    pages = _numbers(_PAGES, words)
    if known and pages:
        return page_sites(known.pop(), pages) + rows
    return id_sites(known.pop() if known else len(bands) - 1, _numbers(_IDS, words)) + rows


_COUNTED = r"(\d{1,9}\b|\[[\d, ]+\])"
_BAND = re.compile(r"\bband '([^']*)'")
_PAGES = re.compile(rf"\bpages? {_COUNTED}")
_IDS = re.compile(rf"\bids? {_COUNTED}")
_ROW = re.compile(r"\brequest row (\d{1,9}\b)")
_NUMBER = re.compile(r"\b\d{1,9}\b")  # What is longer is no page, and int() refuses thousands.


def _numbers(pattern: re.Pattern[str], words: str) -> list[int]:
    return [int(n) for counted in pattern.findall(words) for n in _NUMBER.findall(counted)]
