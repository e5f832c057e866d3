"""From plan and size to a storage: its layout by literal figures, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.alloc.small_chain import DiaryDevice
from unikv.alloc.pricing import Step, assert_plan, feasible, plan
from unikv.build import build_kv_storage, storage_layout
from unikv.declare import (
    MHA,
    MLA,
    DType,
    FullLifetime,
    Geometry,
    Layer,
    ModelDeclaration,
    Part,
    StateGeometry,
    StateLifetime,
    StateTensor,
    WindowLifetime,
)
from unikv.device.port import BandLayout, StorageLayout
from unikv.errors import BuildError, Shortage, TransferError
from unikv.plan import KVStoragePlan, plan_kv_storage
from unikv.sizing import KVStorageSize, StateSlots, StorageBudget, request_pages, size_plan
from unikv.storage import KVStorage

HEADS = MHA(kv_heads=8, head_size=64, dtype=DType.BFLOAT16)  # 2048 bytes a token


def full(geometry: Geometry = HEADS) -> Layer:
    return Layer(attention=Part(geometry, FullLifetime()))


def local(window: int, geometry: Geometry = HEADS) -> Layer:
    return Layer(attention=Part(geometry, WindowLifetime(window)))


def recurrent(bytes_each: int) -> Layer:
    tensor = StateTensor("s", (bytes_each,), DType.INT8)
    return Layer(state=Part(StateGeometry((tensor,)), StateLifetime(None)))


def wide(bytes_each: int) -> MLA:
    """A geometry of so many bytes a token."""
    return MLA(latent=bytes_each, rope=0, dtype=DType.INT8)


def planned(*layers: Layer, page_size: int = 2) -> KVStoragePlan:
    declaration = ModelDeclaration(name="m", source="by hand", layers=layers)
    return plan_kv_storage(declaration, page_size)


# Pages of 20 bytes of state, 6 and 10 of windows and 8 of full attention above a sink of 20.
SMALL = planned(recurrent(20), local(4, wide(3)), local(1, wide(5)), full(wide(4)))


def sized(made: KVStoragePlan = SMALL, total_bytes: int = 500) -> KVStorageSize:
    state = StateSlots(3) if made.sub_pools[0].name == "state" else None
    return size_plan(
        made, StorageBudget(total_bytes=total_bytes, row_count=3, row_tokens=9, state=state)
    )


class StreamsDevice(DiaryDevice):
    """The diary, with the attribute that a storage asks for."""

    has_streams = True


class NoStreamsDevice(DiaryDevice):
    """One queue, whatever it is asked."""

    has_streams = False


def built(made: KVStoragePlan = SMALL, total_bytes: int = 500) -> tuple[KVStorage, StreamsDevice]:
    size = sized(made, total_bytes)
    device = StreamsDevice(storage_layout(made, size))
    return build_kv_storage(made, size, device), device


# Layouts, by hand.


def test_gpt_oss_20b_in_4_gib() -> None:
    made = planned(*(local(128), full()) * 12, page_size=64)
    size = size_plan(made, StorageBudget(total_bytes=4 << 30, row_count=256, row_tokens=131072))
    assert storage_layout(made, size) == StorageLayout(
        sink_bytes=1572864,
        total_bytes=4292870144,  # less 256 rows x 2048 entries x 4
        bands=(
            # 2729.3 pages, of which page 0 is the sink.
            BandLayout("window128", 1572864, 64, id_count=2728, mints=False, zeroed=True),
            BandLayout("full", 1572864, 64, id_count=2728, mints=True, zeroed=True),
        ),
        row_count=256,
        row_pages=2048,
        slots_per_page=64,
    )


def test_ids_are_as_many_as_the_pages_of_whoever_mints_them() -> None:
    assert storage_layout(SMALL, sized()) == StorageLayout(
        sink_bytes=20,
        total_bytes=440,  # 500 less 3 rows x 5 entries x 4
        bands=(
            BandLayout("state", 20, 1, id_count=21, mints=True, zeroed=False),  # pages 1..21
            BandLayout("window4", 6, 2, id_count=52, mints=False, zeroed=True),
            BandLayout("window1", 10, 2, id_count=52, mints=False, zeroed=True),
            BandLayout("full", 8, 2, id_count=52, mints=True, zeroed=True),  # pages 3..54
        ),
        row_count=3,
        row_pages=5,
        slots_per_page=2,
    )


def test_a_row_whose_last_page_is_not_full_has_an_entry_for_it() -> None:
    whole = replace(sized(), row_tokens=8)
    assert storage_layout(SMALL, whole).row_pages == 4
    assert storage_layout(SMALL, replace(whole, row_tokens=9)).row_pages == 5


# Storages.


def test_building_asks_nothing_of_the_device() -> None:
    _, device = built()
    assert device.calls == []


def test_a_built_chain_has_room_for_every_target() -> None:
    storage, _ = built()
    view = storage.chain.relief.snapshot()
    targets = [band.pages for band in sized().bands]
    spans = plan(view, targets, Step.NO_MOVE)
    assert spans is not None
    assert_plan(view, targets, Step.NO_MOVE, spans)
    assert not feasible(view, [*targets[:-1], targets[-1] + 1])


def test_no_band_can_claim_a_page_of_the_sink() -> None:
    storage, _ = built()
    lowest = [band.axis.pages_of_span(0, len(band.states))[0] for band in storage.chain.bands]
    assert lowest == [1, 4, 2, 3]  # 20 bytes of sink in pages of 20, 6, 10 and 8


def test_tokens_may_fill_the_whole_arena() -> None:
    storage, _ = built(planned(full(wide(4))), 200)
    pages = storage.layout.bands[0].id_count
    assert pages == 16  # (200 - 60) // 8, less the sink
    assert len(storage.chain.take(pages, 0).ids) == pages
    with pytest.raises(Shortage):
        storage.chain.take(1, 0)


def test_state_may_fill_the_whole_arena() -> None:
    storage, _ = built()
    assert len(storage.chain.take(0, 21).slots) == 21
    with pytest.raises(Shortage):
        storage.chain.take(0, 1)


def test_the_sized_concurrency_runs() -> None:
    storage, _ = built()
    size = sized()
    assert size.max_concurrency == 3
    for _ in range(size.max_concurrency):
        taken = storage.chain.take(1, request_pages(SMALL, SMALL.sub_pools[0], size.row_tokens))
        storage.requests.append(storage.requests.take(), taken.ids)
    assert storage.requests.free_count == 0


# Devices.


def test_a_device_without_streams_is_refused() -> None:
    device = NoStreamsDevice(storage_layout(SMALL, sized()))
    with pytest.raises(BuildError) as refusal:
        build_kv_storage(SMALL, sized(), device)
    assert str(refusal.value) == (
        "device NoStreamsDevice: has_streams is False; allowed: True, because the order of "
        "streams and events is all that keeps a page from its next writer"
    )


# Transfers.


class Peers:
    """Transfers that end as soon as somebody waits for them.

    Attributes:
        waited: their names, in order.
    """

    def __init__(self) -> None:
        self.waited: list[str] = []

    def wait(self, names: Sequence[str]) -> None:
        """They are over."""
        self.waited += names


def fill_up(storage: KVStorage) -> None:
    """Send a window page, then take states until the window has to move."""
    chain = storage.chain
    chain.users.begin_send("transfer", [[], chain.take(1, 0).ids, [], []])
    while chain.fits(0, 1):
        chain.take(0, 1)


@pytest.mark.parametrize("level", ["0", "2"])
def test_a_built_storage_waits_for_transfers_as_it_is_told(
    level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNIKV_INVARIANT_CHECK", level)
    peers = Peers()
    device = StreamsDevice(storage_layout(SMALL, sized()))
    fill_up(build_kv_storage(SMALL, sized(), device, peers))
    assert peers.waited == ["transfer"]


def test_a_storage_without_peers_can_wait_for_no_transfer() -> None:
    storage, _ = built()
    with pytest.raises(TransferError, match="no waiter is installed"):
        fill_up(storage)


# Sizes of another plan.


def assert_foreign(message: str, size: KVStorageSize) -> None:
    with pytest.raises(BuildError) as refusal:
        storage_layout(SMALL, size)
    assert str(refusal.value) == message


def test_a_size_of_other_bands_is_refused() -> None:
    assert_foreign(
        "the size has bands full; allowed: state, window4, window1, full, as in the plan; "
        "size this plan",
        sized(planned(full(wide(4)))),
    )


def test_a_size_of_a_smaller_sink_is_refused() -> None:
    other = planned(recurrent(19), local(4, wide(3)), local(1, wide(5)), full(wide(4)))
    assert_foreign(
        "the size has a sink of 19 bytes; allowed: 20, one page of the plan's largest band; "
        "size this plan",
        sized(other),
    )


def test_a_size_of_other_page_bytes_is_refused() -> None:
    other = planned(recurrent(20), local(4, wide(2)), local(1, wide(5)), full(wide(4)))
    assert_foreign(
        "band 'window4' of the size has 18 slots and 36 bytes in 9 pages; allowed: 2 slots and "
        "6 bytes a page, as in the plan; size this plan",
        sized(other),
    )


def test_a_size_of_another_page_size_is_refused() -> None:
    other = planned(
        recurrent(20), local(4, wide(6)), local(1, wide(10)), full(wide(8)), page_size=1
    )
    assert_foreign(
        "band 'window4' of the size has 15 slots and 90 bytes in 15 pages; allowed: 2 slots and "
        "6 bytes a page, as in the plan; size this plan",
        sized(other),
    )
