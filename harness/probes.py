"""Sometimes properties: what a healthy run must have reached, by name.

A check that never met the hazard it guards proves nothing.  A scenario lists the probes that its
runs must reach; `NOT_YET` names those that wait for a part of the library.
"""

from __future__ import annotations

from collections.abc import Mapping

PROBES: Mapping[str, str] = {
    "launched_over_a_running_step": "a step was launched while an earlier one was unprocessed",
    "barrier_on_a_declared_read_end": "the schedule stream waited a declared end of shared reads",
    "barrier_on_the_whole_forward": "the schedule stream waited a whole forward",
    "recorded_implicitly": "a step was recorded by the operation after it",
    "freed_under_a_running_step": "a request was freed while a step in flight reads it",
    "pending_settled": "a take settled pages that a running step kept pending",
    "moved_under_a_running_step": "compaction moved pages while a step was in flight",
    "relieved": "a take was served only after a relief",
    "float_relocated": "a relief moved a float",
    "take_refused": "a take was refused and the refusal confirmed",
    "ids_refused": "a take was refused for want of ids",
    "unknown_writes_kept_pages_still": "a flush moved nothing because a step may write any page",
    "ran_without_overlap": "a step ran on the schedule stream and was waited for at once",
    "window_retired": "rows that fell out of a window were freed",
    "prefix_cached": "a prefix joined the cache",
    "prefix_shared": "a request was admitted on pages of a cached prefix",
    "checkpoint_taken": "a request got a slot for a state checkpoint",
    "retracted": "a running request lost everything and was queued again",
    "rested": "everything in flight was processed and drained, and the idle check ran",
}
"""Probes that operations can reach, with what each one means."""

NOT_YET: Mapping[str, str] = {
    "fence_waited": "a fence was waited by the next writer of bytes that left a band: host tier",
    "load_cancelled_after_reserve": "a load was cancelled between reserve and submit: host tier",
    "transfer_moved_under_host_wait": "a relief moved pages of a transfer: network transfers",
    "float_relocated_across_another": "two floats changed places of free bytes: several floats",
}
"""Probes that wait for a part of the library, and which."""
