"""KVStorage: everything an engine calls, behind one object.

It owns the chain allocator and the request table of one arena on one device.
"""

from __future__ import annotations

from collections.abc import Mapping

from unikv.alloc.audit import NO_LENGTHS, Lengths, row_violations, violations
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.checked import CheckedChainAllocator, CheckedRequestTable
from unikv.alloc.clearance import CLEARANCE, ClearanceTable
from unikv.alloc.invariants import Finding, InvariantLevel, Invariants, level_from_environment
from unikv.alloc.statistics import Statistics
from unikv.device.port import Device, StorageLayout
from unikv.errors import BuildError
from unikv.layout_rules import check_layout
from unikv.requests import RequestTable


class KVStorage:
    """One arena's allocator and its request table.

    Attributes:
        layout: every memory space, in bytes and counts.
        chain: pages, ids, steps and layout.
        requests: rows of virtual page ids.
    """

    __slots__ = ("chain", "layout", "requests")

    def __init__(
        self,
        layout: StorageLayout,
        device: Device,
        clearance: ClearanceTable = CLEARANCE,
        invariants: Invariants | None = None,
    ) -> None:
        """Build an empty storage.

        Args:
            layout: every memory space; the device holds them.
            device: where kernels go.
            clearance: what must be true before bytes in use are touched.
            invariants: whether its rules are checked at every call; by default as the environment
                says.

        Raises:
            BuildError: if the layout breaks a rule, or the device has no streams.
            SettingError: if the environment asks for a level that there is not.
        """
        check_layout(layout)
        if not device.has_streams:
            raise BuildError(
                f"device {type(device).__name__}: has_streams is False; allowed: True, because the"
                " order of streams and events is all that keeps a page from its next writer"
            )
        if invariants is None:
            invariants = Invariants(level_from_environment())
        self.layout = layout
        self.chain: ChainAllocator
        self.requests: RequestTable
        if invariants.level is InvariantLevel.OFF:
            self.chain = ChainAllocator(layout, device, clearance)
            self.requests = RequestTable(layout.row_count, layout.row_pages, device)
        else:
            self.chain = CheckedChainAllocator(layout, device, invariants, clearance)
            self.requests = CheckedRequestTable(layout, device, invariants)

    def audit(self, lengths: Mapping[int, Lengths] = NO_LENGTHS) -> list[Finding]:
        """Every broken rule of its state between two calls, at any level; none if all is well.

        Args:
            lengths: of the requests that the engine wants compared with their rows, by row.
        """
        slots_per_page = self.layout.slots_per_page
        rows = row_violations(self.requests, slots_per_page, lengths)
        return [*violations(self.chain), *rows]

    def statistics(self) -> Statistics:
        """What the chain has done and what it holds, for people; no decision rests on it."""
        return self.chain.statistics()
