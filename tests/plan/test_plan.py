"""Sub-pools, chain order and tree slots of real model shapes, by literal figures."""

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from unikv.declare import (
    MHA,
    MLA,
    DType,
    FullLifetime,
    Geometry,
    Layer,
    Lifetime,
    ModelDeclaration,
    Part,
    StateGeometry,
    StateLifetime,
    StateTensor,
    WindowLifetime,
)
from unikv.errors import PlanError
from unikv.plan import KVStoragePlan, Placement, SubPool, SubPoolKind, plan_kv_storage

HEADS = MHA(kv_heads=8, head_size=64, dtype=DType.BFLOAT16)  # 2048 bytes a token
WIDE = MHA(kv_heads=8, head_size=128, dtype=DType.BFLOAT16)  # 4096 bytes a token
LATENT = MLA(latent=512, rope=64, dtype=DType.BFLOAT16)  # 1152 bytes a token
STATE = StateGeometry(  # 49152 + 2097152 bytes a slot
    (
        StateTensor("conv", (3, 8192), DType.BFLOAT16),
        StateTensor("ssm", (32, 128, 128), DType.FLOAT32),
    )
)


def full(geometry: MHA | MLA = HEADS) -> Layer:
    return Layer(attention=Part(geometry, FullLifetime()))


def local(window: int, geometry: MHA | MLA = HEADS) -> Layer:
    return Layer(attention=Part(geometry, WindowLifetime(window)))


def recurrent(checkpoint_interval: int | None, geometry: StateGeometry = STATE) -> Layer:
    return Layer(state=Part(geometry, StateLifetime(checkpoint_interval)))


def both(attention: Layer, state: Layer) -> Layer:
    return Layer(attention=attention.attention, state=state.state)


def declare(*layers: Layer, draft: tuple[Layer, ...] = ()) -> ModelDeclaration:
    return ModelDeclaration(name="m", source="by hand", layers=layers, draft_layers=draft)


def plan(*layers: Layer, draft: tuple[Layer, ...] = (), page_size: int = 16) -> KVStoragePlan:
    return plan_kv_storage(declare(*layers, draft=draft), page_size)


def names(made: KVStoragePlan) -> list[str]:
    return [sub_pool.name for sub_pool in made.sub_pools]


def assert_refused(
    message: str, *layers: Layer, draft: tuple[Layer, ...] = (), page_size: int = 16
) -> None:
    with pytest.raises(PlanError) as refusal:
        plan(*layers, draft=draft, page_size=page_size)
    assert str(refusal.value) == message


def test_gpt_oss_20b() -> None:
    made = plan(*(local(128), full()) * 12, page_size=64)
    window128 = SubPool(
        name="window128",
        kind=SubPoolKind.WINDOW,
        window=128,
        layers=(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22),
        draft_layers=(),
        geometry=HEADS,
        entry_bytes=24576,  # 12 layers x 2 x 8 x 64 x 2
        page_bytes=1572864,
    )
    owner = SubPool(
        name="full",
        kind=SubPoolKind.FULL,
        window=None,
        layers=(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23),
        draft_layers=(),
        geometry=HEADS,
        entry_bytes=24576,
        page_bytes=1572864,
    )
    assert made == KVStoragePlan(
        sub_pools=(window128, owner), tree_slots=("full", "window128"), page_size=64
    )
    assert made.placements == (Placement.GROWS_UP, Placement.GROWS_DOWN)


def test_a_latent_model_is_one_band_that_grows_down() -> None:
    made = plan(*(full(LATENT),) * 61, page_size=64)
    assert names(made) == ["full"]
    assert made.owner.layers == tuple(range(61))
    assert made.owner.entry_bytes == 70272  # 61 x 1152
    assert made.owner.page_bytes == 4497408
    assert made.placements == (Placement.GROWS_DOWN,)
    assert made.tree_slots == ("full",)


def test_a_hybrid_has_one_slot_per_page_of_state() -> None:
    made = plan(*(recurrent(256), recurrent(256), recurrent(256), full()) * 12, page_size=64)
    state = made.sub_pool("state")
    assert names(made) == ["state", "full"]
    assert state.kind is SubPoolKind.STATE
    assert len(state.layers) == 36
    assert state.entry_bytes == 77266944  # 36 x 2146304
    assert state.page_bytes == 77266944
    assert state.checkpoint_interval == 256
    assert made.owner.layers == (3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47)
    assert made.owner.page_bytes == 1572864  # 12 x 2048 x 64
    assert made.tree_slots == ("full", "state")


def test_a_layer_with_attention_beside_state_is_in_both_sub_pools() -> None:
    made = plan(both(local(1024), recurrent(None)), both(full(), recurrent(None)))
    assert made.sub_pool("state").layers == (0, 1)
    assert made.sub_pool("window1024").layers == (0,)
    assert made.owner.layers == (1,)


def test_the_chain_runs_from_state_over_the_longest_window_to_full() -> None:
    made = plan(full(), local(128), local(4096, WIDE), local(1024), recurrent(None))
    assert names(made) == ["state", "window4096", "window1024", "window128", "full"]
    assert made.placements == (
        Placement.GROWS_UP,
        Placement.FLOATS,
        Placement.FLOATS,
        Placement.FLOATS,
        Placement.GROWS_DOWN,
    )
    assert made.tree_slots == ("full", "window4096", "window1024", "window128", "state")


def test_two_windows_may_differ_in_geometry() -> None:
    made = plan(local(4096, WIDE), full(LATENT), local(128))
    assert [s.page_bytes for s in made.sub_pools] == [65536, 32768, 18432]


def test_draft_layers_share_the_pages_of_equal_lifetimes() -> None:
    made = plan(full(), full(), local(128), draft=(full(), local(128)))
    assert made.owner.layers == (0, 1)
    assert made.owner.draft_layers == (0,)
    assert made.owner.entry_bytes == 6144  # 3 x 2048
    assert made.sub_pool("window128").draft_layers == (1,)
    assert made.sub_pool("window128").entry_bytes == 4096


def test_a_window_of_the_draft_alone_is_a_band_of_its_own() -> None:
    made = plan(full(), local(128), draft=(local(64, WIDE),))
    assert names(made) == ["window128", "window64", "full"]
    assert made.sub_pool("window64").layers == ()
    assert made.sub_pool("window64").draft_layers == (0,)
    assert made.sub_pool("window64").page_bytes == 65536


def test_a_longer_window_of_the_draft_stays_behind_the_primary_in_the_tree() -> None:
    made = plan(full(), local(128), local(1024), draft=(local(4096), local(512)))
    assert names(made) == ["window4096", "window1024", "window512", "window128", "full"]
    assert made.tree_slots == ("full", "window1024", "window4096", "window512", "window128")


def test_windows_of_a_draft_are_listed_where_the_target_has_none() -> None:
    made = plan(full(), draft=(local(128), local(512)))
    assert made.tree_slots == ("full", "window512", "window128")


def test_draft_state_joins_the_checkpointed_state_of_the_target() -> None:
    made = plan(full(), recurrent(256), draft=(recurrent(256),))
    assert made.sub_pool("state").layers == (1,)
    assert made.sub_pool("state").draft_layers == (0,)
    assert made.sub_pool("state").page_bytes == 4292608  # 2 x 2146304


def test_state_without_checkpoints_is_planned_for_a_target() -> None:
    assert plan(full(), recurrent(None)).sub_pool("state").checkpoint_interval is None


def test_a_page_of_less_than_a_token_is_refused() -> None:
    assert_refused("m: page_size in tokens is 0; allowed: 1 or more", full(), page_size=0)


def test_a_model_without_full_attention_is_refused() -> None:
    assert_refused(
        "m: no layer of the target has full attention, so nothing mints virtual pages; "
        "layers 0, 2 to 4 store a window of 128 tokens; layer 1 stores state without checkpoints; "
        "allowed: full attention in 1 layer of the target or more",
        local(128),
        recurrent(None),
        *(local(128),) * 3,
    )


def test_full_attention_of_a_draft_is_no_owner() -> None:
    assert_refused(
        "m: no layer of the target has full attention, so nothing mints virtual pages; "
        "layers 0, 1 store a window of 128 tokens; draft layer 0 stores full attention; "
        "allowed: full attention in 1 layer of the target or more",
        local(128),
        local(128),
        draft=(full(),),
    )


def test_two_geometries_in_one_sub_pool_are_refused() -> None:
    assert_refused(
        "m: sub-pool 'window128' would hold 2 geometries: "
        "layers 1, 2 store mha of 8 KV heads, K 64, V 64, bfloat16 (2048 bytes a token) and "
        "layer 3 stores mla of latent 512, rope 64, bfloat16 (1152 bytes a token); "
        "allowed: exactly one, draft layers included; make them equal",
        full(),
        local(128),
        local(128),
        local(128, LATENT),
    )


def test_a_draft_of_another_geometry_is_refused() -> None:
    assert_refused(
        "m: sub-pool 'full' would hold 2 geometries: "
        "layers 0 to 2 store mha of 8 KV heads, K 64, V 64, bfloat16 (2048 bytes a token) and "
        "draft layer 0 stores mha of 8 KV heads, K 128, V 128, bfloat16 (4096 bytes a token); "
        "allowed: exactly one, draft layers included; make them equal",
        full(),
        full(),
        full(),
        draft=(full(WIDE),),
    )


def test_geometries_of_equal_bytes_are_still_two() -> None:
    same_bytes = MHA(kv_heads=8, head_size=96, head_size_v=32, dtype=DType.BFLOAT16)
    with pytest.raises(PlanError, match=r"layer 0 stores mha .* and layer 1 stores mha"):
        plan(full(), full(same_bytes))


def test_two_geometries_of_state_are_refused() -> None:
    conv_only = StateGeometry(STATE.tensors[:1])
    with pytest.raises(PlanError, match=r"layer 1 stores state .* and draft layer 0 stores state"):
        plan(full(), recurrent(256), draft=(recurrent(256, conv_only),))


def test_draft_state_beside_a_target_without_state_is_refused() -> None:
    assert_refused(
        "m: draft layers 0, 1 store state, but the target stores no state; allowed: "
        "draft state beside target state with a checkpoint_interval of 1 token or more",
        full(),
        draft=(recurrent(256), recurrent(256)),
    )


def test_draft_state_beside_state_without_a_checkpoint_policy_is_refused() -> None:
    assert_refused(
        "m: draft layer 1 stores state, but layers 1, 2 store state without checkpoints; allowed: "
        "draft state beside target state with a checkpoint_interval of 1 token or more",
        full(),
        recurrent(None),
        recurrent(None),
        draft=(full(), recurrent(None)),
    )


@pytest.mark.parametrize("other", [None, 512])
def test_two_checkpoint_intervals_are_refused(other: int | None) -> None:
    with pytest.raises(PlanError) as refusal:
        plan(full(), recurrent(256), recurrent(256), recurrent(other))
    assert str(refusal.value) == (
        "m: layers 1, 2 store state with a checkpoint every 256 tokens and "
        f"layer 3 stores {StateLifetime(other)}; allowed: one checkpoint_interval, because one "
        "slot holds the state of all layers at the same token; give these layers the same one"
    )


def test_a_draft_with_another_checkpoint_interval_is_refused() -> None:
    with pytest.raises(PlanError, match=r"layer 1 stores .* 256 tokens and draft layer 0 stores"):
        plan(full(), recurrent(256), draft=(recurrent(512),))


def test_an_unknown_sub_pool_is_refused_with_the_known_names() -> None:
    with pytest.raises(PlanError, match=r"^no sub-pool is named 'swa'; allowed: full, window128$"):
        plan(full(), local(128)).sub_pool("swa")


def test_importing_the_planner_loads_no_heavy_library() -> None:
    heavy = "{'numpy', 'torch', 'yaml', 'rich', 'click', 'hypothesis'}"
    program = f"import sys, unikv.plan; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# One geometry per lifetime, so that every model drawn from these can be planned.
LAYERS = st.sampled_from(
    [
        full(),
        local(128),
        local(1024, WIDE),
        local(4096, LATENT),
        recurrent(256),
        both(full(), recurrent(256)),
        both(local(128), recurrent(256)),
    ]
)
TARGETS = st.lists(LAYERS, max_size=6).map(lambda layers: [full(), recurrent(256), *layers])
DRAFTS = st.lists(LAYERS, max_size=3)
PLANNED = settings(derandomize=True, database=None, deadline=None, max_examples=40)


def parts_of(declaration: ModelDeclaration) -> Counter[tuple[str, int, Geometry, Lifetime]]:
    sides = {"target": declaration.layers, "draft": declaration.draft_layers}
    return Counter(
        (side, number, part.geometry, part.lifetime)
        for side, layers in sides.items()
        for number, layer in enumerate(layers)
        for part in layer.parts
    )


def lifetime_of(sub_pool: SubPool) -> Lifetime:
    if sub_pool.window is not None:
        return WindowLifetime(sub_pool.window)
    if sub_pool.kind is SubPoolKind.STATE:
        return StateLifetime(sub_pool.checkpoint_interval)
    return FullLifetime()


def parts_in(made: KVStoragePlan) -> Counter[tuple[str, int, Geometry, Lifetime]]:
    return Counter(
        (side, number, sub_pool.geometry, lifetime_of(sub_pool))
        for sub_pool in made.sub_pools
        for side, numbers in (("target", sub_pool.layers), ("draft", sub_pool.draft_layers))
        for number in numbers
    )


@PLANNED
@given(TARGETS, DRAFTS, st.integers(1, 128))
def test_every_part_is_in_exactly_one_sub_pool(
    target: list[Layer], draft: list[Layer], page_size: int
) -> None:
    declaration = declare(*target, draft=tuple(draft))
    assert parts_in(plan_kv_storage(declaration, page_size)) == parts_of(declaration)


@PLANNED
@given(TARGETS, DRAFTS)
def test_no_byte_is_lost_between_declaration_and_plan(
    target: list[Layer], draft: list[Layer]
) -> None:
    made = plan(*target, draft=tuple(draft))
    declared_bytes = sum(p.geometry.entry_bytes for x in (*target, *draft) for p in x.parts)
    assert sum(sub_pool.entry_bytes for sub_pool in made.sub_pools) == declared_bytes


def renumbered(sub_pool: SubPool, number_of: list[int]) -> SubPool:
    return SubPool(
        name=sub_pool.name,
        kind=sub_pool.kind,
        window=sub_pool.window,
        layers=tuple(sorted(number_of[layer] for layer in sub_pool.layers)),
        draft_layers=sub_pool.draft_layers,
        geometry=sub_pool.geometry,
        entry_bytes=sub_pool.entry_bytes,
        page_bytes=sub_pool.page_bytes,
        checkpoint_interval=sub_pool.checkpoint_interval,
    )


@PLANNED
@given(TARGETS, DRAFTS, st.data())
def test_the_order_of_layers_changes_nothing_but_their_numbers(
    target: list[Layer], draft: list[Layer], data: st.DataObject
) -> None:
    # Layer `order[i]` of the one model is layer `i` of the other.
    order = data.draw(st.permutations(range(len(target))))
    shuffled = plan(*(target[number] for number in order), draft=tuple(draft))
    straight = plan(*target, draft=tuple(draft))
    assert [renumbered(sub_pool, order) for sub_pool in shuffled.sub_pools] == list(
        straight.sub_pools
    )
    assert shuffled.tree_slots == straight.tree_slots


@PLANNED
@given(TARGETS, DRAFTS)
def test_a_draft_never_changes_the_primary_window(target: list[Layer], draft: list[Layer]) -> None:
    alone = plan(*target).tree_slots
    fused = plan(*target, draft=tuple(draft)).tree_slots
    assume(alone[1].startswith("window"))
    assert fused[:2] == alone[:2]
