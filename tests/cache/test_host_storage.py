"""Host memory of a storage: how it is divided, who has it, what audits and traces say of it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.alloc.small_chain import DiaryDevice, layout_of, states, tokens, window
from unikv.alloc.audit import Held, idle_violations
from unikv.alloc.invariants import SLOT_UNIQUE, InvariantLevel, Invariants
from unikv.build import build_kv_storage, storage_layout
from unikv.cache.host_audit import CheckedHostTier
from unikv.cache.host_tier import HostTier
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
from unikv.device.port import HostLayout, StorageLayout, Stream
from unikv.errors import BuildError, InvariantError, OwnershipError, Shortage, TraceError
from unikv.memory.host import SlotState
from unikv.plan import KVStoragePlan, plan_kv_storage
from unikv.sizing import KVStorageSize, StateSlots, StorageBudget, size_plan
from unikv.storage import KVStorage
from unikv.trace.calls import Part as TracePart
from unikv.trace.calls import part_of
from unikv.trace.compare import compare
from unikv.trace.lines import Trace
from unikv.trace.record import record
from unikv.trace.replay import replay
from unikv.trace.still_device import StillDevice, build_still

STATE, WINDOW, FULL = range(3)
PLAIN = layout_of(84, 4, states("state"), window("window"), tokens("full"))
HOST = (HostLayout(40, (STATE, FULL)), HostLayout(16, (WINDOW,)))
LAYOUT = PLAIN._replace(layer_groups=2, host=HOST)


def tiered(level: InvariantLevel, layout: StorageLayout = LAYOUT) -> tuple[KVStorage, HostTier]:
    """A storage in which three pages and a slot are taken, and its tier."""
    storage = KVStorage(layout, StillDevice(), invariants=Invariants(level))
    storage.chain.take(3, 1)
    assert storage.host is not None
    return storage, storage.host


# Who has a tier -----------------------------------------------------------------------------


def test_a_layout_without_host_memory_makes_no_tier() -> None:
    assert KVStorage(PLAIN, DiaryDevice(PLAIN)).host is None


def test_a_device_that_cannot_copy_is_refused_where_there_is_host_memory() -> None:
    with pytest.raises(BuildError, match="device DiaryDevice has no copy_to_host"):
        KVStorage(LAYOUT, DiaryDevice(LAYOUT))


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        (InvariantLevel.OFF, HostTier),
        (InvariantLevel.WARN, CheckedHostTier),
        (InvariantLevel.STRICT, CheckedHostTier),
    ],
)
def test_a_tier_is_checked_where_the_storage_is(
    level: InvariantLevel, kind: type[HostTier]
) -> None:
    assert type(tiered(level)[1]) is kind


def test_every_call_of_the_tier_is_checked() -> None:
    calls = {name for name in vars(HostTier) if not name.startswith("_")} - {"in_flight"}
    assert calls <= set(vars(CheckedHostTier))


# Layouts by hand ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (PLAIN._replace(layer_groups=0), "layer_groups is 0; allowed: 1 or more"),
        (PLAIN._replace(layer_groups=3), r"bands\[0\].page_bytes is 4; allowed: a multiple of"),
        (PLAIN._replace(host=(HostLayout(40, ()),)), r"host\[0\].bands is \(\)"),
        (PLAIN._replace(host=(HostLayout(40, (3,)),)), r"one band of 0..2, or both ends"),
        (PLAIN._replace(host=(HostLayout(40, (-1,)),)), r"host\[0\].bands is \(-1,\)"),
        (PLAIN._replace(host=(HostLayout(40, (2, 0)),)), r"host\[0\].bands is \(2, 0\)"),
        (PLAIN._replace(host=(HostLayout(40, (1, 2)),)), r"both ends of the chain, \(0, 2\)"),
        (PLAIN._replace(host=(HostLayout(3, (1,)),)), "total_bytes is 3; allowed: 4 or more"),
        (PLAIN._replace(host=(HostLayout(7, (0, 2)),)), "total_bytes is 7; allowed: 8 or more"),
        (PLAIN._replace(host=(*HOST, HostLayout(8, (0,)))), r"names bands \[0, 0, 1, 2\]"),
    ],
)
def test_host_memory_that_breaks_a_rule_is_refused(layout: StorageLayout, text: str) -> None:
    with pytest.raises(BuildError, match=text):
        KVStorage(layout, StillDevice())


@pytest.mark.parametrize(("low", "high"), [(4, 4), (5, 3), (3, 5), (1, 7), (7, 1), (6, 4)])
def test_the_least_shared_host_memory_holds_one_page_of_each(low: int, high: int) -> None:
    layout = layout_of(100, 10, window("window", low), tokens("full", high))
    least = next(
        total
        for total in range(1, 30)
        if total // high and (total // high - 1) * high >= low and total >= low
    )
    with pytest.raises(BuildError, match=f"allowed: {least} or more"):
        KVStorage(layout._replace(host=(HostLayout(least - 1, (0, 1)),)), StillDevice())
    storage = KVStorage(layout._replace(host=(HostLayout(least, (0, 1)),)), StillDevice())
    assert storage.host is not None
    storage.host.memory.take([1, 1])


# Layouts from a plan ------------------------------------------------------------------------


def attention(bytes_each: int, lifetime: FullLifetime | WindowLifetime, *, heads: bool) -> Layer:
    """A layer of so many bytes a token."""
    geometry: Geometry = MLA(latent=bytes_each, rope=0, dtype=DType.INT8)
    if heads:
        geometry = MHA(kv_heads=1, head_size=bytes_each // 2, dtype=DType.INT8)
    return Layer(attention=Part(geometry, lifetime))


def planned(*layers: Layer, total: int = 900) -> tuple[KVStoragePlan, KVStorageSize]:
    declaration = ModelDeclaration(name="m", source="by hand", layers=layers)
    made = plan_kv_storage(declaration, 2)
    state = StateSlots(3) if made.sub_pools[0].name == "state" else None
    budget = StorageBudget(total_bytes=total, row_count=3, row_tokens=9, state=state)
    return made, size_plan(made, budget)


RECURRENT = Layer(
    state=Part(StateGeometry((StateTensor("s", (20,), DType.INT8),)), StateLifetime(None))
)
FULL_HEADS = attention(4, FullLifetime(), heads=True)
FULL_LATENT = attention(4, FullLifetime(), heads=False)
LONG, SHORT = (
    attention(6, WindowLifetime(4), heads=True),
    attention(4, WindowLifetime(1), heads=True),
)


@pytest.mark.parametrize(
    ("layers", "bands"),
    [
        ((FULL_HEADS,), [(0,)]),
        ((LONG, FULL_HEADS), [(0, 1)]),
        ((LONG, FULL_LATENT), [(0,), (1,)]),
        ((LONG, SHORT, FULL_HEADS), [(0, 2), (1,)]),
        ((RECURRENT, LONG, FULL_HEADS), [(0,), (1,), (2,)]),
    ],
)
def test_the_ends_share_host_memory_if_both_hold_heads(
    layers: tuple[Layer, ...], bands: list[tuple[int, ...]]
) -> None:
    made, size = planned(*layers)
    assert [backing.bands for backing in storage_layout(made, size, 10_000).host] == bands


def test_host_memory_is_divided_by_the_bytes_that_bands_are_sized_for() -> None:
    made, size = planned(LONG, SHORT, FULL_HEADS)
    long, short, full = (band.bytes for band in size.bands)
    both, alone = storage_layout(made, size, 10_001).host
    assert both.total_bytes + alone.total_bytes == 10_001
    assert both.total_bytes == 10_001 * (long + full) // (long + short + full)


def test_no_host_memory_is_no_host_tier() -> None:
    made, size = planned(LONG, FULL_HEADS)
    assert storage_layout(made, size).host == ()
    assert build_kv_storage(made, size, StillDevice()).host is None


def test_a_storage_is_built_with_its_host_memory() -> None:
    made, size = planned(LONG, FULL_HEADS)
    storage = build_kv_storage(made, size, StillDevice(), host_bytes=1000)
    assert storage.host is not None
    assert storage.layout == storage_layout(made, size, 1000)


@pytest.mark.parametrize("host_bytes", [1, 30])
def test_host_memory_without_a_page_of_each_band_is_refused(host_bytes: int) -> None:
    made, size = planned(RECURRENT, LONG, FULL_HEADS)
    with pytest.raises(BuildError, match=f"host_bytes is {host_bytes}, of which '.*' would get"):
        storage_layout(made, size, host_bytes)


# Audits -------------------------------------------------------------------------------------


def test_a_sound_tier_has_no_finding() -> None:
    storage, tier = tiered(InvariantLevel.OFF)
    tier.begin_backup("a", [[1], [], [1, 2]])
    copy = tier.begin_backup("b", [[], [3], [2, 3]])
    tier.submit_backup("b")
    tier.acknowledge("b")
    tier.begin_load("l", copy)
    tier.begin_load("m", copy)
    assert storage.audit() == []


def hand_out_twice(tier: HostTier) -> None:
    tier.memory.pools[FULL]._states[1] = SlotState.FREE
    tier.begin_backup("c", [[], [], [1]])


def forget_the_frontier(tier: HostTier) -> None:
    tier.memory.pools[FULL]._frontier = 1


def forget_the_other_end(tier: HostTier) -> None:
    low = tier.memory.pools[STATE]
    low._other = None
    low.filled(low.take(8))


# With slots 9 and 8 in a backup's hands, and slot 7 read by a load.
BROKEN: Mapping[str, Callable[[HostTier], object]] = {
    "slots [8] are filled by two backups": hand_out_twice,
    "slots [8, 9] are being filled, but by no backup": lambda tier: tier.copies.pop("a"),
    "slots [8, 9] belong to a backup, but are not being filled": (
        lambda tier: tier.memory.pools[FULL].filled([8, 9])
    ),
    "slots [9] have another number of readers than loads read them": (
        lambda tier: tier.memory.pools[FULL].begin_read([9])
    ),
    "slots [7] have another number of readers than loads read them": (
        lambda tier: tier.memory.pools[FULL].end_read([7])
    ),
    "slots [7] are read, but hold no copy": lambda tier: tier.memory.pools[FULL].give_back([7]),
    "slots [7, 8] are in use outside of the bytes that the pool has claimed": forget_the_frontier,
    "slots [7] begin before byte 32, where 'state' ends": forget_the_other_end,
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_rule_of_the_slots_is_named(text: str) -> None:
    storage, tier = tiered(InvariantLevel.OFF)
    tier.begin_backup("a", [[], [], [1, 2]])
    copy = tier.begin_backup("b", [[], [], [3]])
    tier.submit_backup("b")
    tier.acknowledge("b")
    tier.begin_load("l", copy)
    BROKEN[text](tier)
    found = storage.audit()
    assert f"host.slot_unique: host pool 'full': {text}" in map(str, found)
    assert {finding.invariant for finding in found} == {SLOT_UNIQUE}


def test_a_refused_call_is_audited_too() -> None:
    _, tier = tiered(InvariantLevel.STRICT)
    copy = tier.begin_backup("a", [[], [], [1]])
    tier.memory.pools[FULL].begin_read([0])
    with pytest.raises(InvariantError, match=r"host\.slot_unique"):
        tier.drop(copy)


def test_at_rest_no_copy_is_left() -> None:
    storage, tier = tiered(InvariantLevel.OFF)
    held = Held(live=(1, 3, 3))
    assert idle_violations(storage, held) == []
    tier.begin_backup("a", [[], [], [1]])
    (found,) = idle_violations(storage, held)
    assert str(found) == ("host.slot_unique: the host tier: at rest, but copies ['a'] are not over")


# Traces -------------------------------------------------------------------------------------


def tell(storage: KVStorage, path: Path) -> None:
    """Record every call of a tier, and some that are refused."""
    with record(storage, path, "A copy goes out and comes back.") as recorder:
        chain, tier = recorder.chain, recorder.host
        assert tier is not None
        taken = chain.take(3, 1)
        copy = tier.begin_backup("out", [taken.slots, taken.ids[1:], taken.ids])
        tier.submit_backup("out")
        assert tier.in_flight() == ["out"]
        with pytest.raises(OwnershipError):
            tier.begin_load("back", copy)
        tier.acknowledge("out")
        with pytest.raises(Shortage):
            tier.begin_backup("more", [taken.slots, taken.ids, taken.ids])
        chain.free(taken.ids)
        assert chain.fits_load([1, 2, 3])
        loaded = tier.begin_load(name="back", source=copy)
        tier.name_rows("back")
        tier.submit_load("back")
        tier.order_forward(Stream.FORWARD, ["back"], 1)
        tier.acknowledge("back")
        chain.translate(FULL, loaded.ids)
        tier.begin_load("again", copy)
        tier.cancel("again")
        tier.drop(copy)
        chain.take_for_load([0, 1, 1])


def test_every_call_of_a_tier_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "host.jsonl"
    tell(build_still(LAYOUT), path)
    told = {traced.call.kind.name for traced in Trace(path).calls()}
    calls = {name for name in vars(HostTier) if not name.startswith("_")}
    assert {f"host.{name}" for name in calls} <= told
    assert {"chain.fits_load", "chain.take_for_load"} <= told


def test_a_trace_with_host_memory_is_replayed_and_compared(tmp_path: Path) -> None:
    path = tmp_path / "host.jsonl"
    tell(build_still(LAYOUT), path)
    assert Trace(path).layout == LAYOUT
    assert list(replay(path)) == []
    assert compare(path, build_still, build_still) is None


def test_another_choice_of_slots_is_a_divergence(tmp_path: Path) -> None:
    path = tmp_path / "host.jsonl"
    tell(build_still(LAYOUT), path)
    apart = (HostLayout(16, (STATE,)), HostLayout(16, (WINDOW,)), HostLayout(24, (FULL,)))

    def build_apart(layout: StorageLayout) -> KVStorage:
        return build_still(layout._replace(host=apart))

    found = compare(path, build_still, build_apart)
    assert found is not None
    assert found.call.kind.name == "host.begin_backup"
    assert (found.first.answer, found.second.answer) == (
        [[[0], [0, 1], [9, 8, 7]]],
        [[[0], [0, 1], [0, 1, 2]]],
    )


def test_a_trace_without_host_memory_says_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "plain.jsonl"
    with record(build_still(PLAIN), path) as recorder:
        assert recorder.host is None
    text = path.read_text(encoding="utf-8")
    assert "host" not in text
    assert "layer_groups" not in text


def test_host_memory_that_no_storage_has_is_refused_in_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "host.jsonl"
    tell(build_still(LAYOUT), path)
    text = path.read_text(encoding="utf-8")
    for old, new, words in (
        ('"bands":[0,2]', '"bands":[0,9]', "both ends"),
        ('"total_bytes":16', f'"total_bytes":{1 << 40}', "host slots; allowed"),
        ('"layer_groups":2', '"layer_groups":3', "a multiple of"),
    ):
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(TraceError, match=words):
            Trace(path)


def test_the_tier_is_a_part_of_a_storage() -> None:
    storage = build_still(LAYOUT)
    assert part_of(storage, TracePart.HOST) is storage.host
