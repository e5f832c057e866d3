"""Every planted fault by its id: what shows that a check can fail.

At least half break the code of the allocator rather than a cell of its table.  A fault that nothing
catches is a hole in a check.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.faults import (
    answers,
    calls,
    copies,
    effects,
    engine,
    maps,
    moves,
    pages,
    ranks,
    reclaim,
    rows,
    scheduler,
    steps,
    streams,
    transfers,
    zeroing,
)
from harness.faults.fault import Fault

FAULTS: Mapping[str, Fault] = {
    fault.id: fault
    for part in (
        engine,
        scheduler,
        streams,
        reclaim,
        steps,
        moves,
        maps,
        pages,
        zeroing,
        rows,
        answers,
        ranks,
        effects,
        copies,
        transfers,
        calls,
    )
    for fault in part.FAULTS
}

__all__ = ["FAULTS", "Fault"]
