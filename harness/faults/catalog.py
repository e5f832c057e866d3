"""Every planted fault by its id: what shows that a check can fail.

At least half break the code of the allocator rather than a cell of its table.  A fault that nothing
catches is a hole in a check.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.faults import (
    answers,
    calls,
    copied,
    copies,
    effects,
    engine,
    gates,
    host_tier,
    late_work,
    leftovers,
    maps,
    moves,
    network,
    outcomes,
    pages,
    quarantine,
    ranks,
    reclaim,
    relayed,
    row_memory,
    rows,
    scheduler,
    several_bands,
    state_slots,
    steps,
    streams,
    told,
    transfers,
    waits,
    windows,
    zeroing,
)
from harness.faults.fault import Fault

_ALL: tuple[Fault, ...] = tuple(
    fault
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
        row_memory,
        late_work,
        relayed,
        state_slots,
        answers,
        ranks,
        effects,
        copies,
        copied,
        host_tier,
        transfers,
        gates,
        network,
        quarantine,
        several_bands,
        waits,
        outcomes,
        told,
        leftovers,
        windows,
        calls,
    )
    for fault in part.FAULTS
)

FAULTS: Mapping[str, Fault] = {fault.id: fault for fault in _ALL}
"""Every fault by its id, which no other one has."""

assert len(FAULTS) == len(_ALL), "two faults of one id: one of them would be hunted by nobody"

__all__ = ["FAULTS", "Fault"]
