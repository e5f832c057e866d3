"""Operations: what a scheduler does, as frozen data that any subset of a trace can apply."""

from __future__ import annotations

from harness.ops.base import Op, Outcome
from harness.ops.host_tier import (
    Acknowledge,
    BeginBackup,
    BeginLoad,
    CancelCopy,
    DropSaved,
    NameRows,
    SubmitCopy,
)
from harness.ops.layout import Flush, Prewarm, Relieve
from harness.ops.network import (
    AbortTransfer,
    AddPart,
    BeginReceive,
    BeginSend,
    CloseSend,
    FailTransfer,
    Round,
)
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
    | Prewarm
    | Flush
    | Relieve
    | BeginBackup
    | BeginLoad
    | NameRows
    | SubmitCopy
    | Acknowledge
    | CancelCopy
    | DropSaved
    | BeginReceive
    | BeginSend
    | AddPart
    | CloseSend
    | AbortTransfer
    | FailTransfer
    | Round
    | Complete
    | HostSync
    | IdleCheck
)
"""Every operation; a trace is a sequence of these and a case file decodes to them."""

__all__ = [
    "Abort",
    "AbortTransfer",
    "Acknowledge",
    "AddPart",
    "Admit",
    "Advance",
    "Arrive",
    "Barrier",
    "BeginBackup",
    "BeginLoad",
    "BeginReceive",
    "BeginSend",
    "CachePrefix",
    "CancelCopy",
    "Checkpoint",
    "Chunk",
    "CloseSend",
    "Complete",
    "Decode",
    "DropSaved",
    "EvictPrefix",
    "FailTransfer",
    "Finish",
    "Flush",
    "HostSync",
    "IdleCheck",
    "Launch",
    "NameRows",
    "Op",
    "Operation",
    "Outcome",
    "Prewarm",
    "Process",
    "Record",
    "RecordUnknown",
    "Relieve",
    "Retract",
    "Round",
    "SharedReadEnd",
    "SubmitCopy",
]
