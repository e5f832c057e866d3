"""Checks: one file per promise, run after every operation; `harness.runner` says which when.

What has to be seen while an operation runs is noted by truth or by the step builder under the name
of its promise, and `noted` reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from harness.violation import Site, Violation

if TYPE_CHECKING:
    from harness.world import World

Examiner = Callable[["World"], list[Violation]]

PROMISES: Mapping[str, str] = {
    "ordering": "no access overtakes its clearance, in every memory space",
    "content": "every slot read holds what was last written to it; images agree at rest",
    "ownership": "no page has two owners; no double free, no lost page",
    "mapping": "ids and pages are one-to-one; device tables equal the host's",
    "translation": "a step finds each id on the page that the map names when it is launched",
    "conservation": "every page and byte is accounted for; bands are disjoint",
    "ledger": "the allocator knows who may still touch what, exactly as it is",
    "capacity": "a yes is a successful take; a no, with its figures, is what a full search finds",
    "divergence": "ranks give equal answers and keep equal books",
    "host_reads": "the host waits only where ids leave, and reads nothing behind a wait",
    "initialised": "no read of bytes never written where the layout promises zeros",
    "idle": "nothing pending, leaked or in use at rest",
    "effects": "a refusal changes nothing, a free waits for nothing, a flush settles nothing",
    "assertion": "no legal call makes the allocator raise",
}
"""Every promise, by the name that reports use."""


def broken(
    world: World, check: str, detail: str, what: str, sites: tuple[Site, ...] = ()
) -> Violation:
    """A promise that is broken behind the operation just applied, by no race; see `Violation`."""
    operation = world.device.operation
    return Violation(check=check, what=what, detail=detail, operation=operation, sites=sites)
