"""KVStorage: everything an engine calls, behind one object.

It owns the chain allocator, the request table and the host tier of one arena on one device.
"""

from __future__ import annotations

from collections.abc import Mapping

from unikv.alloc.audit import NO_LENGTHS, Lengths, row_violations, violations
from unikv.alloc.chain import NO_TRANSFERS, ChainAllocator
from unikv.alloc.checked import CheckedChainAllocator, CheckedRequestTable
from unikv.alloc.clearance import CLEARANCE, ClearanceTable
from unikv.alloc.invariants import Finding, InvariantLevel, Invariants, level_from_environment
from unikv.alloc.signals import TransferWaiter
from unikv.alloc.statistics import Statistics
from unikv.cache.host_audit import CheckedHostTier, slot_unique
from unikv.cache.host_tier import HostTier
from unikv.device.port import CopyDevice, Device, StorageLayout
from unikv.errors import BuildError
from unikv.layout_rules import check_layout
from unikv.requests import RequestTable


class KVStorage:
    """One arena's allocator, its request table and its host memory.

    Attributes:
        layout: every memory space, in bytes and counts.
        chain: pages, ids, steps and layout.
        requests: rows of virtual page ids.
        ids: virtual to physical, for what a step reads and writes.
        host: copies of pages in host memory; None where the layout has none.
    """

    __slots__ = ("chain", "host", "ids", "layout", "requests")

    def __init__(
        self,
        layout: StorageLayout,
        device: Device,
        clearance: ClearanceTable = CLEARANCE,
        invariants: Invariants | None = None,
        waiter: TransferWaiter = NO_TRANSFERS,
    ) -> None:
        """Build an empty storage.

        Args:
            layout: every memory space; the device holds them.
            device: where kernels go.
            clearance: what must be true before bytes in use are touched.
            invariants: whether its rules are checked at every call; by default as the environment
                says.
            waiter: how the host waits for network transfers; by default there is no peer.

        Raises:
            BuildError: if the layout breaks a rule, the device has no streams, or it cannot copy
                to the host memory that the layout has.
            SettingError: if the environment asks for a level that there is not.
        """
        check_layout(layout)
        if not device.has_streams:
            raise BuildError(
                f"device {type(device).__name__}: has_streams is False; allowed: True, because the"
                " order of streams and events is all that keeps a page from its next writer"
            )
        copier = device if layout.host and isinstance(device, CopyDevice) else None
        if layout.host and copier is None:
            raise BuildError(
                f"device {type(device).__name__} has no copy_to_host and copy_from_host; allowed: a"
                f" CopyDevice, because the layout has {len(layout.host)} pieces of host memory"
            )
        if invariants is None:
            invariants = Invariants(level_from_environment())
        self.layout = layout
        self.chain: ChainAllocator
        self.requests: RequestTable
        if invariants.level is InvariantLevel.OFF:
            self.chain = ChainAllocator(layout, device, clearance, waiter)
            ids = layout.bands[-1].id_count
            self.requests = RequestTable(layout.row_count, layout.row_pages, ids, device)
        else:
            self.chain = CheckedChainAllocator(layout, device, invariants, clearance, waiter)
            self.requests = CheckedRequestTable(layout, device, invariants)
        self.ids = self.chain.ids
        self.host: HostTier | None = None
        if copier is not None:
            # The tier enqueues on the device itself: a witness only judges what the chain enqueues.
            if invariants.level is InvariantLevel.OFF:
                self.host = HostTier(layout, self.chain, copier, clearance)
            else:
                self.host = CheckedHostTier(layout, self.chain, copier, invariants, clearance)

    def audit(self, lengths: Mapping[int, Lengths] = NO_LENGTHS) -> list[Finding]:
        """Every broken rule of its state between two calls, at any level; none if all is well.

        Args:
            lengths: of the requests that the engine wants compared with their rows, by row.
        """
        slots_per_page = self.layout.slots_per_page
        rows = row_violations(self.requests, slots_per_page, lengths)
        slots = slot_unique(self.host) if self.host else []
        return [*violations(self.chain), *rows, *slots]

    def statistics(self) -> Statistics:
        """What the chain has done and what it holds, for people; no decision rests on it."""
        return self.chain.statistics()
