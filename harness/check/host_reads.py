"""Host reads: the host waits for an event only where ids leave for a peer, and reads none behind
a stream wait of the same allocator operation.

Either parks the scheduler until a running forward ends.  A host wait too many also orders whatever
comes after it, so that no race is seen behind it.
"""

from __future__ import annotations

from harness.check import broken
from harness.device.rank_port import MAY_BLOCK
from harness.violation import Violation
from harness.world import World


def examine(world: World) -> list[Violation]:
    """Reads of device state that came after a wait in the same operation, and waits of calls that
    let the host wait for nothing.
    """
    found: list[Violation] = []
    for rank, port in enumerate(world.ports):
        for name in port.host_reads:
            text = f"rank {rank}: {name} behind a stream wait of the same call; allowed before it"
            found.append(broken(world, "host_reads", f"{name} behind a wait", text))
        for call in port.blocked:
            allowed = " and ".join(sorted(MAY_BLOCK))
            text = f"rank {rank}: {call} lets the host wait for the device; allowed in {allowed}"
            found.append(broken(world, "host_reads", f"host waits in {call}", text))
    return found
