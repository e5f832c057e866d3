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
    "backup_submitted": "a cached prefix was copied to host memory",
    "backup_acknowledged": "a backup had ended on every rank, and its slots hold a copy",
    "backup_cancelled": "a backup was given up between taking its slots and its submission",
    "host_slots_refused": "a backup was refused for want of host slots",
    "host_evicted": "a copy left host memory",
    "load_submitted": "a saved prefix was copied back",
    "load_named_first": "a load's reserved rows got their ids before it was submitted",
    "load_named_by_its_submission": "a load's reserved rows got their ids when it was submitted",
    "load_acknowledged": "a load had ended on every rank",
    "load_cancelled_reserved": "a load was given up while its rows had no ids",
    "load_cancelled_named": "a load was given up after its rows had ids",
    "launched_over_a_load": "a step was launched that reads pages of a load in flight",
    "launched_layer_by_layer": "such a step waited for its load layer group by layer group",
    "evicted_under_a_copy": "a prefix was evicted while a copy read or filled its pages",
    "fence_waited": "the schedule stream waited a copy for the next use of its bytes",
    "send_part_queued": "pages of a request were queued for a peer",
    "send_given_up": "a send was given up because its pages were freed before it started",
    "send_refused": "a send was refused, its peer having too much in quarantine",
    "freed_under_a_send": "a request was freed while a peer reads its pages",
    "transfer_sent": "a send ended on every rank",
    "transfer_received": "a receive ended on every rank, and its request ran",
    "transfer_given_up": "a receive was given up",
    "transfer_aborted": "a transfer that was given up is over",
    "transfer_failed": "a transfer that failed is over",
    "transfer_failed_on_one_rank": "one rank's engine gave a transfer up, the others did not",
    "transfer_quarantined": "pages of a transfer were kept until its engine was quiet",
    "transfer_waited_out": "a relief waited for a transfer on the host",
    "transfer_not_waited_out": "a relief waited for a transfer in vain",
    "rested": "everything in flight was processed and drained, and the idle check ran",
}
"""Probes that operations can reach, with what each one means."""

NOT_YET: Mapping[str, str] = {
    "float_relocated_across_another": "two floats changed places of free bytes: several floats",
}
"""Probes that wait for a part of the library, and which."""
