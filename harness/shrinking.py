"""Smaller cases: `shrink` applied to traces, with "the same signature" as the predicate.

The order is: fewer operations, then smaller numbers in them, then the earlier text.  A candidate
that breaks another promise is another finding and does not count as failing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import msgspec

from harness.case import Case
from harness.ops import Operation
from harness.ops.base import Op
from harness.runner import run_trace
from shrink import Budget, delete_pairs, delete_runs, reduce, replace_items, truncate

AnyOp = TypeVar("AnyOp", bound=Op)


def shrink_case(case: Case, budget: Budget) -> Case:
    """The smallest case found that fails with the same signature.

    Args:
        case: a case that fails when it is replayed.
        budget: when to stop with the best so far.

    Returns:
        A case whose last operation breaks the promise; `case` itself if nothing smaller fails.
    """
    signature = case.violation.signature

    def fails(trace: Sequence[Operation]) -> bool:
        result = run_trace(case.setup, trace, plant=case.plant)
        return any(found.signature == signature for found in result.violations)

    operations = shrink_trace(case.operations, fails, budget)
    result = run_trace(case.setup, operations, plant=case.plant)
    violation = next(found for found in result.violations if found.signature == signature)
    return msgspec.structs.replace(case, operations=operations, violation=violation)


def shrink_trace(
    trace: Sequence[AnyOp], fails: Callable[[Sequence[AnyOp]], bool], budget: Budget
) -> tuple[AnyOp, ...]:
    """The smallest trace found that still fails.

    Args:
        trace: operations that fail.
        fails: whether a trace does.
        budget: when to stop with the best so far.
    """
    return reduce(
        trace,
        fails,
        order=_size,
        key=msgspec.json.encode,
        passes=(truncate, delete_runs, delete_pairs, replace_items(_simpler)),
        budget=budget,
    ).result


def _size(trace: Sequence[Op]) -> tuple[int, int, bytes]:
    """Smaller is better: operations, then the sum of their numbers, then their text."""
    numbers = sum(_weight(getattr(op, name)) for op in trace for name in op.__struct_fields__)
    return len(trace), numbers, msgspec.json.encode(trace)


def _weight(value: object) -> int:
    if isinstance(value, int):
        return value
    return len(value) if isinstance(value, tuple) else 0


def _simpler(operation: AnyOp) -> Iterator[AnyOp]:
    """The same operation with one smaller number or one shorter list, the smallest first."""
    for name in operation.__struct_fields__:
        value = getattr(operation, name)
        smaller: Sequence[object] = ()
        if isinstance(value, int):
            smaller = sorted({n for n in (0, 1, value // 2, value - 1) if 0 <= n < value})
        elif isinstance(value, tuple) and value:
            shorter = [value[:at] + value[at + 1 :] for at in range(len(value))]
            smaller = shorter if len(value) == 1 else [(), *shorter]
        for candidate in smaller:
            yield msgspec.structs.replace(operation, **{name: candidate})
