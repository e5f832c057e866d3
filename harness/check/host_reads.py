"""Host reads: within one allocator operation no host read follows a stream wait.

A host read behind a wait on a running forward parks the scheduler until that forward ends.
"""

from __future__ import annotations

from harness.check import broken
from harness.violation import Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Reads of device state that came after a wait in the same operation."""
    found: list[Violation] = []
    for rank, port in enumerate(world.ports):
        for name in port.host_reads:
            text = f"rank {rank}: {name} after a stream wait within one allocator operation"
            found.append(broken(world, "host_reads", f"{name} behind a wait", text))
    return found
