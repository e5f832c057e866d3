"""What a budget comes to, by literal figures, and that no layout holds one page more."""

from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.check.layout_search import layout_exists
from unikv.advance import first_retained_page
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
from unikv.errors import SizingError
from unikv.plan import KVStoragePlan, SubPoolKind, plan_kv_storage
from unikv.sizing import (
    BandSize,
    ByteTerm,
    KVStorageSize,
    StateShare,
    StateSlots,
    StorageBudget,
    floor_terms,
    min_concurrency,
    request_pages,
    size_plan,
)

HEADS = MHA(kv_heads=8, head_size=64, dtype=DType.BFLOAT16)  # 2048 bytes a token
WIDE = MHA(kv_heads=8, head_size=128, dtype=DType.BFLOAT16)  # 4096 bytes a token
LATENT = MLA(latent=512, rope=64, dtype=DType.BFLOAT16)  # 1152 bytes a token
STATE = StateGeometry(  # 49152 + 2097152 bytes a slot
    (
        StateTensor("conv", (3, 8192), DType.BFLOAT16),
        StateTensor("ssm", (32, 128, 128), DType.FLOAT32),
    )
)


def full(geometry: Geometry = HEADS) -> Layer:
    return Layer(attention=Part(geometry, FullLifetime()))


def local(window: int, geometry: Geometry = HEADS) -> Layer:
    return Layer(attention=Part(geometry, WindowLifetime(window)))


def recurrent(checkpoint_interval: int | None, geometry: StateGeometry = STATE) -> Layer:
    return Layer(state=Part(geometry, StateLifetime(checkpoint_interval)))


def wide(bytes_each: int) -> MLA:
    """A geometry of so many bytes a token."""
    return MLA(latent=bytes_each, rope=0, dtype=DType.INT8)


def slot_of(bytes_each: int) -> StateGeometry:
    return StateGeometry((StateTensor("s", (bytes_each,), DType.INT8),))


def plan(*layers: Layer, draft: tuple[Layer, ...] = (), page_size: int = 64) -> KVStoragePlan:
    declaration = ModelDeclaration(name="m", source="by hand", layers=layers, draft_layers=draft)
    return plan_kv_storage(declaration, page_size)


GPT_OSS_20B = plan(*(local(128), full()) * 12)  # pages of 1572864 bytes in both bands
HYBRID = plan(*(recurrent(256), recurrent(256), recurrent(256), full()) * 12)

# Pages of 9, 4 and 2 bytes above a sink of 9, so that no band ends where the next one may start.
UNEVEN = plan(recurrent(None, slot_of(9)), local(2, wide(4)), full(wide(2)), page_size=1)


def targets(size: KVStorageSize) -> list[int]:
    return [band.pages for band in size.bands]


def floor_bytes(made: KVStoragePlan, budget: StorageBudget) -> int:
    return sum(term.bytes for term in floor_terms(made, budget))


def holds(made: KVStoragePlan, arena_bytes: int, pages: list[int]) -> bool:
    """Whether some layout of the arena has so many pages per band, by trying all layouts."""
    sink_bytes = max(sub_pool.page_bytes for sub_pool in made.sub_pools)
    bands = [(sub_pool.page_bytes, 0, 0, 0) for sub_pool in made.sub_pools]
    return layout_exists(arena_bytes, sink_bytes, bands, pages)


def assert_refused(message: str, made: KVStoragePlan, budget: StorageBudget) -> None:
    with pytest.raises(SizingError) as refusal:
        size_plan(made, budget)
    assert str(refusal.value) == message


# Real shapes, by hand.


def test_gpt_oss_20b_in_4_gib() -> None:
    budget = StorageBudget(
        total_bytes=4 << 30,
        row_count=256,
        row_tokens=131072,
        row_scratch_bytes=1024,
        scratch_bytes=64 << 20,
    )
    # The arena is 2686.5 pages long, page 0 is the sink, and 2685 are left.
    assert size_plan(GPT_OSS_20B, budget) == KVStorageSize(
        total_bytes=4294967296,
        fixed=(
            ByteTerm("request table", 2097152),  # 256 rows x 2048 entries x 4
            ByteTerm("scratch of request rows", 262144),
            ByteTerm("scratch", 67108864),
        ),
        sink_bytes=1572864,
        chain_bytes=4223926272,
        bands=(
            BandSize("window128", pages=768, slots=49152, bytes=1207959552),  # 256 x (2 + 1)
            BandSize("full", pages=1917, slots=122688, bytes=3015180288),  # 2685 - 768
        ),
        row_count=256,
        row_tokens=131072,
        max_concurrency=256,
    )


def test_a_window_is_never_sized_beyond_the_tokens_there_are() -> None:
    # 16777216 bytes of table leave 2720 pages, and 2048 requests would retain 6144.
    budget = StorageBudget(total_bytes=4 << 30, row_count=2048, row_tokens=131072)
    size = size_plan(GPT_OSS_20B, budget)
    assert targets(size) == [1359, 1359]
    assert size.max_concurrency == 1359


def test_a_latent_model_is_all_tokens() -> None:
    # (1073741824 - 8 x 64 x 4) // 4497408 = 238 pages of 61 layers x 1152 x 64, one is the sink.
    budget = StorageBudget(total_bytes=1 << 30, row_count=8, row_tokens=4096)
    size = size_plan(plan(*(full(LATENT),) * 61), budget)
    assert size.bands == (BandSize("full", pages=237, slots=15168, bytes=1065885696),)
    assert size.max_tokens == 15168
    assert size.max_concurrency == 8


def test_a_remainder_below_full_attention_costs_a_page() -> None:
    # The arena ends 5461.25 pages up.  Sink and 48 slots end 2407.125 pages up, so that the
    # bytes between are 3054.125 pages and the whole pages between 5461 - 2408.
    budget = StorageBudget(
        total_bytes=8 << 30, row_count=64, row_tokens=32768, state=StateSlots(48)
    )
    size = size_plan(HYBRID, budget)
    assert size.sink_bytes == 77266944
    assert size.arena_bytes == 8589803520
    assert targets(size) == [48, 3053]
    assert size.max_tokens == 195392
    assert size.max_concurrency == 16  # 48 slots // 3


def test_a_share_of_the_chain_is_rounded_down_to_slots() -> None:
    # Half of 8512536576 bytes is 55.08 slots; with the sink they end 2751 pages up.
    budget = StorageBudget(
        total_bytes=8 << 30, row_count=64, row_tokens=32768, state=StateShare(50)
    )
    size = size_plan(HYBRID, budget)
    assert size.chain_bytes == 8512536576
    assert targets(size) == [55, 2710]
    assert size.bands[0].slots == 55
    assert size.max_concurrency == 18


def test_a_share_never_gives_fewer_slots_than_one_request_needs() -> None:
    # 1 % is an eighth of a slot.  Sink and 3 slots end 196.5 pages up, the arena 682.67.
    budget = StorageBudget(total_bytes=1 << 30, row_count=4, row_tokens=4096, state=StateShare(1))
    size = size_plan(HYBRID, budget)
    assert targets(size) == [3, 485]
    assert size.max_concurrency == 1


def test_a_window_of_a_draft_alone_is_sized_like_any_other() -> None:
    # Sink and 48 pages of 1572864 end at 77070336, 294 pages of 262144; 32 more end 54.33
    # pages of full attention up, so 55; the arena ends at 682.66.
    made = plan(*(local(128), full()) * 12, draft=(local(64, WIDE),))
    size = size_plan(made, StorageBudget(total_bytes=1 << 30, row_count=16, row_tokens=8192))
    assert size.bands == (
        BandSize("window128", pages=48, slots=3072, bytes=75497472),  # 16 x 3
        BandSize("window64", pages=32, slots=2048, bytes=8388608),  # 16 x 2
        BandSize("full", pages=627, slots=40128, bytes=986185728),  # 682 - 55
    )
    assert size.max_concurrency == 16


# Small shapes, for what real ones do not show.


def test_every_remainder_of_three_bands_counts() -> None:
    # |0 sink 9|9 state 18|  |20 window 32|32 full 46| |47.  In bytes alone 8 pages would fit.
    budget = StorageBudget(total_bytes=72 + 47, row_count=2, row_tokens=9, state=StateSlots(1))
    size = size_plan(UNEVEN, budget)
    assert size.fixed[0] == ByteTerm("request table", 72)
    assert targets(size) == [1, 3, 7]
    assert size.max_concurrency == 1


def test_a_share_leaves_room_for_the_windows_of_one_request() -> None:
    # 99 % of 49 bytes is 5 slots.  Three window pages above 4 slots would end at byte 60, above
    # 3 slots at byte 48, and the arena has 58.
    budget = StorageBudget(total_bytes=36 + 58, row_count=1, row_tokens=9, state=StateShare(99))
    assert targets(size_plan(UNEVEN, budget)) == [3, 3, 5]


def test_state_without_checkpoints_is_one_slot_a_request() -> None:
    budget = StorageBudget(total_bytes=500, row_count=9, row_tokens=1, state=StateSlots(5))
    assert size_plan(UNEVEN, budget).max_concurrency == 5


def test_a_window_retains_no_more_than_the_longest_request_has() -> None:
    made = plan(local(128), full(), page_size=16)
    window = made.sub_pool("window128")
    assert request_pages(made, window, 1000) == 9  # 128 / 16 + 1
    assert request_pages(made, window, 144) == 9
    assert request_pages(made, window, 128) == 8
    assert request_pages(made, window, 1) == 1


def test_a_window_that_ends_inside_a_page_is_rounded_up() -> None:
    made = plan(local(129), full(), page_size=16)
    assert request_pages(made, made.sub_pool("window129"), 1000) == 10


@pytest.mark.parametrize("interval", [None, 1, 16, 24, 1024])
def test_a_window_behind_a_checkpoint_keeps_what_retirement_leaves(interval: int | None) -> None:
    made = plan(recurrent(interval), local(128), full(), page_size=16)
    most = 0
    for next_position in range(2048, 4096):
        floor = next_position // interval * interval if interval else next_position
        first = first_retained_page(next_position, floor, 128, 16)
        most = max(most, next_position // 16 + 1 - first)
    # A grid of whole pages needs one page less than one that ends inside a page.
    assert 0 <= request_pages(made, made.sub_pool("window128"), 100_000) - most <= 1


def test_rows_that_differ_only_in_length_differ_only_in_the_table() -> None:
    budget = StorageBudget(total_bytes=4 << 30, row_count=256, row_tokens=131072)
    longer = size_plan(GPT_OSS_20B, replace(budget, row_tokens=131073))
    assert longer.fixed[0].bytes - size_plan(GPT_OSS_20B, budget).fixed[0].bytes == 1024


@pytest.mark.parametrize("field", ["total_bytes", "bands", "max_concurrency"])
def test_a_size_cannot_be_changed(field: str) -> None:
    size = size_plan(GPT_OSS_20B, StorageBudget(total_bytes=1 << 30, row_count=1, row_tokens=1))
    with pytest.raises(FrozenInstanceError):
        setattr(size, field, ())


# The floor.


def test_the_floor_is_one_request_without_its_full_attention() -> None:
    # |0 sink 9|9 state 18|  |20 window 32|, and byte 32 is a page boundary of full attention.
    budget = StorageBudget(
        total_bytes=0,
        row_count=2,
        row_tokens=9,
        row_scratch_bytes=5,
        scratch_bytes=7,
        state=StateShare(50),
    )
    assert floor_terms(UNEVEN, budget) == (
        ByteTerm("request table", 72),
        ByteTerm("scratch of request rows", 10),
        ByteTerm("scratch", 7),
        ByteTerm("padding sink", 9),
        ByteTerm("state, 1 x 9", 9),
        ByteTerm("window2, 3 x 4", 12),
        ByteTerm("alignment", 2),
    )


def test_the_floor_ends_on_a_page_of_full_attention() -> None:
    # Sink and two window pages end at byte 27; the high end's wall is byte 28, a whole page.
    made = plan(local(1, wide(9)), full(wide(4)), page_size=1)
    budget = StorageBudget(total_bytes=0, row_count=1, row_tokens=9)
    assert floor_terms(made, budget)[-2:] == (
        ByteTerm("window1, 2 x 9", 18),
        ByteTerm("alignment", 1),
    )


def test_the_floor_counts_the_checkpoints_of_one_request() -> None:
    budget = StorageBudget(total_bytes=0, row_count=1, row_tokens=64, state=StateShare(50))
    assert ByteTerm("state, 3 x 77266944", 231800832) in floor_terms(HYBRID, budget)


def test_a_budget_at_the_floor_may_hold_no_token() -> None:
    made = plan(full(wide(4)), page_size=1)
    size = size_plan(made, StorageBudget(total_bytes=8, row_count=1, row_tokens=1))
    assert size.max_tokens == 0
    assert size.max_concurrency == 0


def test_a_budget_below_the_floor_is_refused_with_every_term() -> None:
    # 8 rows x 2048 entries x 4 bytes of table, and 128 / 64 + 1 window pages.
    assert_refused(
        "a budget of 67108864 bytes is below the floor of 71827456 bytes, which is one request "
        "at batch size 1 without its full-attention tokens (request table: 65536; "
        "scratch of request rows: 0; scratch: 65470464; padding sink: 1572864; "
        "window128, 3 x 1572864: 4718592; alignment: 0); allowed: 71827456 bytes or more; "
        "add 4718592 bytes or lower a term",
        GPT_OSS_20B,
        StorageBudget(total_bytes=64 << 20, row_count=8, row_tokens=131072, scratch_bytes=65470464),
    )


def test_more_slots_than_the_budget_holds_are_refused() -> None:
    assert_refused(
        "a budget of 100 bytes is below the floor of 128 bytes, which is one request at batch "
        "size 1 without its full-attention tokens (request table: 4; scratch of request rows: 0; "
        "scratch: 0; padding sink: 9; state, 12 x 9: 108; window2, 1 x 4: 4; alignment: 3); "
        "allowed: 128 bytes or more; add 28 bytes or lower a term",
        UNEVEN,
        StorageBudget(total_bytes=100, row_count=1, row_tokens=1, state=StateSlots(12)),
    )


# Impossible figures.


@pytest.mark.parametrize(
    ("figure", "value", "least"),
    [
        ("total_bytes", -1, 0),
        ("row_count", 0, 1),
        ("row_tokens", 0, 1),
        ("row_scratch_bytes", -4, 0),
        ("scratch_bytes", -1, 0),
    ],
)
def test_an_impossible_figure_is_refused(figure: str, value: int, least: int) -> None:
    figures: dict[str, Any] = {"total_bytes": 1 << 30, "row_count": 1, "row_tokens": 1}
    with pytest.raises(SizingError) as refusal:
        StorageBudget(**(figures | {figure: value}))
    assert str(refusal.value) == f"StorageBudget: {figure} is {value}; allowed: {least} or more"


@pytest.mark.parametrize("percent", [-1, 0, 100])
def test_a_share_of_nothing_or_everything_is_refused(percent: int) -> None:
    with pytest.raises(SizingError) as refusal:
        StateShare(percent)
    assert str(refusal.value) == f"StateShare: percent is {percent}; allowed: 1 to 99"


def test_state_without_a_figure_is_refused() -> None:
    assert_refused(
        "the budget's state is None and the plan's sub-pools are full, state; allowed: "
        "StateSlots or StateShare for a plan with state, None for one without",
        HYBRID,
        StorageBudget(total_bytes=8 << 30, row_count=1, row_tokens=64),
    )


def test_a_figure_without_state_is_refused() -> None:
    assert_refused(
        "the budget's state is StateShare(percent=50) and the plan's sub-pools are full, "
        "window128; allowed: StateSlots or StateShare for a plan with state, None for one without",
        GPT_OSS_20B,
        StorageBudget(total_bytes=8 << 30, row_count=1, row_tokens=64, state=StateShare(50)),
    )


@pytest.mark.parametrize("count", [-1, 0, 2])
def test_fewer_slots_than_one_request_needs_are_refused(count: int) -> None:
    assert_refused(
        f"the budget's state is StateSlots(count={count}); allowed: 3 or more, what one request "
        "needs of sub-pool 'state'",
        HYBRID,
        StorageBudget(total_bytes=8 << 30, row_count=1, row_tokens=64, state=StateSlots(count)),
    )


# Pipeline stages.


def stage(layers: int) -> KVStorageSize:
    """So many of the first layers of gpt-oss-20b, in 1 GiB, with rows to spare."""
    made = plan(*((local(128), full()) * 12)[:layers])
    return size_plan(made, StorageBudget(total_bytes=1 << 30, row_count=4096, row_tokens=1024))


def test_the_stage_that_can_run_the_fewest_decides() -> None:
    light, heavy = stage(16), stage(24)
    assert min_concurrency([light]) == light.max_concurrency
    assert heavy.max_concurrency < light.max_concurrency
    assert min_concurrency([light, heavy, light]) == heavy.max_concurrency


def test_no_stage_is_refused() -> None:
    with pytest.raises(SizingError) as refusal:
        min_concurrency([])
    assert str(refusal.value) == "concurrency of 0 pipeline stages; allowed: 1 or more"


def test_stages_of_other_sub_pools_are_refused() -> None:
    budget = StorageBudget(total_bytes=1 << 30, row_count=1, row_tokens=1024)
    other = size_plan(plan(full(LATENT)), budget)
    with pytest.raises(SizingError) as refusal:
        min_concurrency([stage(2), stage(2), other])
    assert str(refusal.value) == (
        "pipeline stage 2 has sub-pools full; allowed: window128, full, as on stage 0; give "
        "each stage layers of every kind"
    )


# Laws, on shapes small enough to try every layout.


@dataclass(frozen=True, slots=True)
class Case:
    """A plan and a budget at its floor."""

    plan: KVStoragePlan
    budget: StorageBudget

    def size(self, extra_bytes: int) -> KVStorageSize:
        """What so many bytes above the floor come to."""
        total_bytes = self.budget.total_bytes + extra_bytes
        return size_plan(self.plan, replace(self.budget, total_bytes=total_bytes))


COUNTED, SHARED, NEITHER = StateSlots, StateShare, None


@st.composite
def cases(
    draw: st.DrawFn,
    kinds: tuple[type[StateSlots] | type[StateShare] | None, ...] = (COUNTED, SHARED, NEITHER),
) -> Case:
    """Zero to two windows, and state of one of `kinds`."""
    widths = st.integers(1, 4)
    layers = [full(wide(draw(widths)))]
    for window in sorted(draw(st.sets(st.integers(1, 6), max_size=2))):
        layers.append(local(window, wide(draw(widths))))
    figure: StateSlots | StateShare | None = None
    kind = draw(st.sampled_from(kinds))
    if kind is not None:
        interval = draw(st.sampled_from([None, 4]))
        layers.append(recurrent(interval, slot_of(draw(st.integers(1, 9)))))
        figure = kind(draw(st.integers(3, 7) if kind is StateSlots else st.integers(1, 99)))
    made = plan(*layers, page_size=draw(st.integers(1, 3)))
    budget = StorageBudget(
        total_bytes=0,
        row_count=draw(st.integers(1, 4)),
        row_tokens=draw(st.integers(1, 9)),
        row_scratch_bytes=draw(st.integers(0, 2)),
        state=figure,
    )
    return Case(made, replace(budget, total_bytes=floor_bytes(made, budget)))


extras = st.integers(0, 60)


def retained(case: Case, requests: int, full_pages: int) -> list[int]:
    """Window targets of so many requests beside so much full attention."""
    page, longest = case.plan.page_size, case.budget.row_tokens
    return [
        min(full_pages, requests * min(-(-sub_pool.window // page) + 1, -(-longest // page)))
        for sub_pool in case.plan.sub_pools
        if sub_pool.window is not None
    ]


def with_one_more(case: Case, size: KVStorageSize) -> list[int]:
    """The targets with one more page of full attention, and the window pages that it adds."""
    *_, owner = targets(size)
    slots, runnable = [], case.budget.row_count
    state = case.plan.sub_pools[0]
    if state.kind is SubPoolKind.STATE:
        slots = targets(size)[:1]
        runnable = min(runnable, slots[0] // (1 if state.checkpoint_interval is None else 3))
    return [*slots, *retained(case, runnable, owner + 1), owner + 1]


@settings(max_examples=40)
@given(cases(), extras)
def test_some_layout_holds_all_targets(case: Case, extra_bytes: int) -> None:
    size = case.size(extra_bytes)
    assert holds(case.plan, size.arena_bytes, targets(size))


@settings(max_examples=40)
@given(cases(), extras)
def test_no_layout_holds_one_page_of_full_attention_more(case: Case, extra_bytes: int) -> None:
    size = case.size(extra_bytes)
    assert not holds(case.plan, size.arena_bytes, with_one_more(case, size))


@settings(max_examples=40)
@given(cases(), extras)
def test_window_targets_are_what_the_requests_retain(case: Case, extra_bytes: int) -> None:
    size = case.size(extra_bytes)
    windows = [band.pages for band in size.bands if band.name.startswith("window")]
    assert windows == retained(case, size.max_concurrency, size.bands[-1].pages)


@settings(max_examples=40)
@given(cases(), extras)
def test_the_concurrency_fits_with_a_page_each(case: Case, extra_bytes: int) -> None:
    size = case.size(extra_bytes)
    page = case.plan.page_size
    one_each = [request_pages(case.plan, sub_pool, page) for sub_pool in case.plan.sub_pools]
    one_each[-1] = 1
    assert holds(case.plan, size.arena_bytes, [pages * size.max_concurrency for pages in one_each])


@settings(max_examples=40)
@given(cases())
def test_a_budget_at_the_floor_is_the_smallest_that_holds_one_request(case: Case) -> None:
    size = case.size(0)
    request = [request_pages(case.plan, s, case.budget.row_tokens) for s in case.plan.sub_pools]
    if isinstance(case.budget.state, StateSlots):
        request[0] = case.budget.state.count
    assert holds(case.plan, size.arena_bytes, request)
    assert not holds(case.plan, size.arena_bytes - 1, request)


@settings(max_examples=40)
@given(cases())
def test_a_byte_below_the_floor_is_refused(case: Case) -> None:
    with pytest.raises(SizingError, match=r"below the floor of .* add 1 bytes"):
        case.size(-1)


@settings(max_examples=40)
@given(cases((COUNTED, NEITHER)), extras, st.integers(0, 30))
def test_more_bytes_never_give_fewer_tokens(case: Case, extra_bytes: int, more: int) -> None:
    before, after = case.size(extra_bytes), case.size(extra_bytes + more)
    assert after.max_tokens >= before.max_tokens
    assert after.max_concurrency >= before.max_concurrency


@settings(max_examples=40)
@given(cases((SHARED,)), extras, st.integers(0, 30))
def test_more_bytes_never_give_a_share_fewer_slots(case: Case, extra_bytes: int, more: int) -> None:
    before, after = case.size(extra_bytes), case.size(extra_bytes + more)
    assert after.bands[0].slots >= before.bands[0].slots
    if after.bands[0].slots == before.bands[0].slots:
        assert after.max_tokens >= before.max_tokens


def test_the_byte_that_affords_one_more_slot_costs_a_share_tokens() -> None:
    # Slots of 8 bytes, tokens of 1: half of 31 bytes is 1 slot, half of 32 bytes is 2.
    made = plan(recurrent(None, slot_of(8)), full(wide(1)), page_size=1)
    budget = StorageBudget(total_bytes=4 + 8 + 31, row_count=1, row_tokens=1, state=StateShare(50))
    assert targets(size_plan(made, budget)) == [1, 23]
    assert targets(size_plan(made, replace(budget, total_bytes=4 + 8 + 32))) == [2, 16]


@settings(max_examples=40)
@given(cases(), extras)
def test_every_byte_of_the_budget_has_one_place(case: Case, extra_bytes: int) -> None:
    size = case.size(extra_bytes)
    fixed = sum(term.bytes for term in size.fixed)
    assert fixed + size.arena_bytes == size.total_bytes == case.budget.total_bytes + extra_bytes
    assert size.sink_bytes == max(sub_pool.page_bytes for sub_pool in case.plan.sub_pools)
    for band, sub_pool in zip(size.bands, case.plan.sub_pools, strict=True):
        assert band.name == sub_pool.name
        assert band.bytes == band.slots * sub_pool.entry_bytes == band.pages * sub_pool.page_bytes
