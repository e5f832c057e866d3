"""Whose mistake an exception is: what an allocator may raise, and where it was raised.

Every mistake of an allocator is a violation, and one of the harness must never look like one.
Nothing here knows what was asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

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


def are_equally_short(answer: object, other: object) -> bool:
    """Whether two ranks refused alike: with the same figures, or both after a wait in vain.

    Of a failed wait each rank names what its own engine owes, so the words differ.
    """
    if isinstance(answer, TransferError) and isinstance(other, TransferError):
        return True
    return (
        isinstance(answer, Shortage) and isinstance(other, Shortage) and answer.args == other.args
    )


def is_of_the_harness(error: BaseException) -> bool:
    """Whether our own device or books failed under the allocator's call: then it is our bug."""
    if isinstance(error, UnikvError):
        return False
    module: str = _innermost(error).tb_frame.f_globals["__name__"]
    return module.startswith(("harness.device.", "harness.truth", "harness.world"))


def _innermost(error: BaseException) -> TracebackType:
    frame = error.__traceback__
    assert frame is not None
    while frame.tb_next is not None:
        frame = frame.tb_next
    return frame


def broken_promise(
    call: str, arguments: Sequence[object], error: BaseException
) -> tuple[str, str, str]:
    """The promise that a call breaks by raising, how, and a sentence about it."""
    kind = type(error).__name__
    if isinstance(error, OwnershipError):
        return "ownership", "allocator refused a legal call", f"{call}: {error}"
    if isinstance(error, StepOrderError):
        return "ledger", "allocator refused a legal step", f"{call}: {error}"
    if isinstance(error, UnikvError):
        return "assertion", f"{kind} in {call}", f"{call}{arguments}: {error}"
    frame = _innermost(error)
    place = f"{frame.tb_frame.f_globals['__name__']}:{frame.tb_lineno}"
    return "assertion", f"{kind} in {call}", f"{call}{arguments}: {kind} at {place}: {error}"
