"""Operations: what a scheduler does, as frozen data that any subset of a trace can apply."""

from __future__ import annotations

from harness.ops.base import Op, Outcome
from harness.ops.layout import Flush, Relieve
from harness.ops.prefix import CachePrefix, EvictPrefix
from harness.ops.requests import Abort, Admit, Arrive, Chunk, Decode, Finish, Retract
from harness.ops.steps import Barrier, Launch, Process, Record, RecordUnknown, SharedReadEnd
from harness.ops.time import Complete, HostSync, IdleCheck
from harness.ops.windows import Advance, Checkpoint

Operation = (
    Arrive
    | Admit
    | Chunk
    | Decode
    | Finish
    | Abort
    | Retract
    | Launch
    | SharedReadEnd
    | Record
    | RecordUnknown
    | Barrier
    | Process
    | Advance
    | Checkpoint
    | CachePrefix
    | EvictPrefix
    | Flush
    | Relieve
    | Complete
    | HostSync
    | IdleCheck
)
"""Every operation; a trace is a sequence of these and a case file decodes to them."""

__all__ = [
    "Abort",
    "Admit",
    "Advance",
    "Arrive",
    "Barrier",
    "CachePrefix",
    "Checkpoint",
    "Chunk",
    "Complete",
    "Decode",
    "EvictPrefix",
    "Finish",
    "Flush",
    "HostSync",
    "IdleCheck",
    "Launch",
    "Op",
    "Operation",
    "Outcome",
    "Process",
    "Record",
    "RecordUnknown",
    "Relieve",
    "Retract",
    "SharedReadEnd",
]
