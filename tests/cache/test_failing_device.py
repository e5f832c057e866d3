"""Devices that fail half-way through a call: nothing changes hands under what they took before.

Pages have four bytes and page 0 is the sink; copies run late, so an edge that is missing is a race.
"""

from collections.abc import Sequence

import pytest

from tests.alloc.small_chain import layout_of, tokens, window
from tests.cache.late_device import LateDevice
from unikv.alloc.invariants import InvariantLevel, Invariants
from unikv.alloc.use import Use
from unikv.cache.host_tier import HostCopy, HostTier
from unikv.device.port import HostLayout, Stream
from unikv.errors import HostTierError
from unikv.memory.host import SlotState
from unikv.storage import KVStorage

WINDOW, FULL = range(2)
LAYOUT = layout_of(36, 4, window("window"), tokens("full"))._replace(
    layer_groups=2, host=(HostLayout(32, (WINDOW, FULL)),)
)


class DriverError(Exception):
    """What a device raises that has failed."""


class FailingDevice(LateDevice):
    """A device that refuses one kernel, as often as it is asked.

    Attributes:
        failing: name, band and, of a copy from the host, layer group of that kernel.
    """

    failing: tuple[object, ...] = ()

    def _try(self, *kernel: object) -> None:
        if kernel == self.failing:
            raise DriverError(str(kernel))

    def zero_pages(self, stream: Stream, band: int, pages: Sequence[int]) -> None:
        """Write zeros."""
        self._try("zero", band)
        super().zero_pages(stream, band, pages)

    def copy_to_host(
        self, stream: Stream, band: int, pages: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Copy pages to host slots."""
        self._try("to host", band)
        super().copy_to_host(stream, band, pages, slots)

    def copy_from_host(
        self,
        stream: Stream,
        band: int,
        layer_group: int,
        slots: Sequence[int],
        pages: Sequence[int],
    ) -> None:
        """Copy a layer group of host slots to pages."""
        self._try("from host", band, layer_group)
        super().copy_from_host(stream, band, layer_group, slots, pages)


def built(
    level: InvariantLevel = InvariantLevel.STRICT,
) -> tuple[KVStorage, HostTier, FailingDevice]:
    """A storage of which nothing is taken."""
    device = FailingDevice(LAYOUT)
    storage = KVStorage(LAYOUT, device, invariants=Invariants(level))
    assert storage.host is not None
    return storage, storage.host, device


def kept(storage: KVStorage, tier: HostTier) -> HostCopy:
    """A copy of two pages of each band, whose ids are free again."""
    ids = storage.chain.take(2, 0).ids
    copy = tier.begin_backup("kept", [ids, ids])
    storage.chain.device.host_wait(tier.submit_backup("kept"))
    tier.acknowledge("kept")
    storage.chain.free(ids)
    return copy


def uses(storage: KVStorage) -> list[Use]:
    """What copies in flight do to the arena."""
    return [use.use for use in storage.chain.ledger.fences.uses()]


@pytest.mark.parametrize("failing", [(WINDOW, 0), (FULL, 0), (WINDOW, 1), (FULL, 1)])
def test_pages_under_half_a_load_are_handed_out_behind_it(failing: tuple[int, int]) -> None:
    storage, tier, device = built()
    copy = kept(storage, tier)
    taken = tier.begin_load("load", copy)
    device.failing = ("from host", *failing)
    with pytest.raises(DriverError):
        tier.submit_load("load")
    assert uses(storage) == [Use.COPY_WRITE]
    assert tier.in_flight() == ["load"]
    storage.chain.free(taken.ids)
    storage.chain.take(4, 0)  # the whole arena, zeroed behind the copy, or it were a race
    assert uses(storage) == []
    tier.acknowledge("load")
    tier.drop(copy)
    assert storage.audit() == []


def test_half_a_load_is_not_cancelled() -> None:
    storage, tier, device = built()
    tier.begin_load("load", kept(storage, tier))
    device.failing = ("from host", FULL, 0)
    with pytest.raises(DriverError):
        tier.submit_load("load")
    with pytest.raises(HostTierError, match="cancel of 'load', which is submitted"):
        tier.cancel("load")


def test_no_forward_runs_over_half_a_load() -> None:
    storage, tier, device = built()
    tier.begin_load("load", kept(storage, tier))
    device.failing = ("from host", FULL, 1)
    with pytest.raises(DriverError):
        tier.submit_load("load")
    with pytest.raises(HostTierError, match=r"'load' is no load in flight; those are \[\]"):
        tier.order_forward(Stream.FORWARD, ["load"], 0)


def test_pages_and_slots_under_half_a_backup_stay_its_own() -> None:
    storage, tier, device = built()
    ids = storage.chain.take(2, 0).ids
    copy = tier.begin_backup("backup", [ids, ids])
    device.failing = ("to host", FULL)
    with pytest.raises(DriverError):
        tier.submit_backup("backup")
    assert uses(storage) == [Use.COPY_READ]
    with pytest.raises(HostTierError, match="cancel of 'backup', which is submitted"):
        tier.cancel("backup")
    filling = [tuple(pool.slots_in(SlotState.FILLING)) for pool in tier.memory.pools]
    assert filling == [tuple(sorted(slots)) for slots in copy.slots]
    storage.chain.free(ids)
    storage.chain.take(4, 0)
    assert uses(storage) == []
    tier.acknowledge("backup")
    tier.drop(copy)
    assert storage.audit() == []


@pytest.mark.parametrize("band", [WINDOW, FULL])
def test_pages_of_a_take_that_failed_stay_out_of_use(band: int) -> None:
    storage, _, device = built(InvariantLevel.OFF)  # any other reports what was lost
    device.failing = ("zero", band)
    with pytest.raises(DriverError):
        storage.chain.take(2, 0)
    device.failing = ()
    lost = {page for part in storage.chain.bands for page in range(*part.span())}
    assert [part.live for part in storage.chain.bands] == [2, 2]
    ids = storage.chain.take(2, 0).ids
    got = {page for part in (WINDOW, FULL) for page in storage.chain.translate(part, ids)}
    assert got.isdisjoint(lost)
