"""KVStorage: everything an engine calls, behind one object.

It owns the chain allocator and the request table of one arena on one device.
"""

from __future__ import annotations

from unikv.alloc.chain import ChainAllocator
from unikv.alloc.clearance import CLEARANCE, ClearanceTable
from unikv.device.port import Device, StorageLayout
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
        self, layout: StorageLayout, device: Device, clearance: ClearanceTable = CLEARANCE
    ) -> None:
        self.layout = layout
        self.chain = ChainAllocator(layout, device, clearance)
        self.requests = RequestTable(layout.row_count, layout.row_pages, device)
