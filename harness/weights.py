"""How often an engine does what: the one place where operations are weighed against each other.

Weights say how a workload is mixed, and nothing about what is possible: an operation that cannot be
applied now is not drawn, whatever it weighs.
"""

from __future__ import annotations

from collections.abc import Mapping

OPERATION_WEIGHTS: Mapping[str, int] = {
    "arrive": 8,
    "admit": 12,
    "chunk": 16,
    "decode": 34,
    "launch": 46,
    "process": 14,
    "finish": 10,
    "abort": 2,
    "retract": 1,
    "advance": 10,
    "checkpoint": 10,
    "cache_prefix": 5,
    "evict_prefix": 2,
    "flush": 12,
    "relieve": 2,
    "complete": 12,
    "host_sync": 1,
    "idle_check": 1,
    "begin_backup": 14,
    "begin_load": 14,
    "name_rows": 10,
    "submit_copy": 24,
    "acknowledge": 16,
    "cancel_copy": 3,
    "drop_saved": 4,
    "begin_save": 6,
    "begin_resume": 16,
    "begin_receive": 8,
    "begin_send": 12,
    "add_part": 20,
    "close_send": 14,
    "hand_over": 6,
    "abort_transfer": 2,
    "fail_transfer": 1,
    "begin_prefix_send": 2,
    "add_prefix": 8,
    "publish_receive": 24,
    "retire_received": 6,
    "peer_abort": 2,
    "forget_abort": 1,
    "stall_peer": 1,
    "round": 24,
    "pause": 8,
    "resume": 16,
    "restore_row": 20,
    "relay_commit": 14,
    "finish_cached": 6,
}
"""How often each operation is tried, relative to the others; a scenario overrides by name."""
