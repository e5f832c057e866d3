"""Operations: what a scheduler does, as frozen data that any subset of a trace can apply."""

from __future__ import annotations

from harness.ops.base import Op, Outcome
from harness.ops.hand_over import HandOver
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
from harness.ops.peers import ForgetAbort, PeerAbort, StallPeer
from harness.ops.prefix import CachePrefix, EvictPrefix, FinishCached
from harness.ops.prefix_sends import AddPrefix, BeginPrefixSend
from harness.ops.receives import PublishReceive, RetireReceived
from harness.ops.requests import Abort, Admit, Arrive, Chunk, Decode, Finish, Retract
from harness.ops.retraction import BeginResume, BeginSave
from harness.ops.rows import Pause, RestoreRow, Resume
from harness.ops.steps import (
    Barrier,
    Launch,
    Process,
    Record,
    RecordUnknown,
    RelayCommit,
    SharedReadEnd,
)
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
    | BeginSave
    | BeginResume
    | BeginReceive
    | BeginSend
    | AddPart
    | CloseSend
    | HandOver
    | AbortTransfer
    | FailTransfer
    | Round
    | BeginPrefixSend
    | AddPrefix
    | PublishReceive
    | RetireReceived
    | PeerAbort
    | ForgetAbort
    | StallPeer
    | Pause
    | Resume
    | RestoreRow
    | FinishCached
    | RelayCommit
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
    "AddPrefix",
    "Admit",
    "Advance",
    "Arrive",
    "Barrier",
    "BeginBackup",
    "BeginLoad",
    "BeginPrefixSend",
    "BeginReceive",
    "BeginResume",
    "BeginSave",
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
    "FinishCached",
    "Flush",
    "ForgetAbort",
    "HandOver",
    "HostSync",
    "IdleCheck",
    "Launch",
    "NameRows",
    "Op",
    "Operation",
    "Outcome",
    "Pause",
    "PeerAbort",
    "Prewarm",
    "Process",
    "PublishReceive",
    "Record",
    "RecordUnknown",
    "RelayCommit",
    "Relieve",
    "RestoreRow",
    "Resume",
    "RetireReceived",
    "Retract",
    "Round",
    "SharedReadEnd",
    "StallPeer",
    "SubmitCopy",
]
