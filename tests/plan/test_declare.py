"""What a model may declare, how many bytes it comes to, and what is refused."""

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from unikv.declare import (
    MHA,
    MLA,
    DType,
    FullLifetime,
    Geometry,
    Layer,
    LayerGroup,
    Lifetime,
    ModelDeclaration,
    Part,
    StateGeometry,
    StateLifetime,
    StateTensor,
    WindowLifetime,
    expand,
)
from unikv.errors import DeclarationError

HEADS = MHA(kv_heads=8, head_size=64, dtype=DType.BFLOAT16)
LATENT = MLA(latent=512, rope=64, dtype=DType.BFLOAT16)
CONV = StateTensor("conv", (3, 8192), DType.BFLOAT16)
SSM = StateTensor("ssm", (32, 128, 128), DType.FLOAT32)
STATE = StateGeometry((CONV, SSM))

FULL = Layer(attention=Part(HEADS, FullLifetime()))
LOCAL = Layer(attention=Part(HEADS, WindowLifetime(128)))
RECURRENT = Layer(state=Part(STATE, StateLifetime(256)))

GPT_OSS_20B = """
name: gpt-oss-20b
source: config.json of openai/gpt-oss-20b
layer_groups:
  - count: 12
    pattern:
      - attention:
          geometry: &heads {kind: mha, kv_heads: 8, head_size: 64, dtype: bfloat16}
          lifetime: {kind: window, window: 128}
      - attention:
          geometry: *heads
          lifetime: {kind: full}
"""


def declare(*layers: Layer, draft: tuple[Layer, ...] = ()) -> ModelDeclaration:
    return ModelDeclaration(name="m", source="by hand", layers=layers, draft_layers=draft)


def assert_refused(message: str, *layers: Layer, draft: tuple[Layer, ...] = ()) -> None:
    with pytest.raises(DeclarationError) as refusal:
        declare(*layers, draft=draft)
    assert str(refusal.value) == message


def test_every_dtype_has_its_bytes() -> None:
    assert {dtype.value: dtype.bytes for dtype in DType} == {
        "float32": 4,
        "bfloat16": 2,
        "float16": 2,
        "float8_e4m3fn": 1,
        "float8_e5m2": 1,
        "int8": 1,
        "uint8": 1,
    }


@pytest.mark.parametrize(
    ("geometry", "entry_bytes"),
    [
        (HEADS, 2048),  # 8 x (64 + 64) x 2
        (MHA(kv_heads=16, head_size=192, head_size_v=128, dtype=DType.BFLOAT16), 10240),
        (MHA(kv_heads=1, head_size=256, dtype=DType.FLOAT8_E4M3FN), 512),
        (LATENT, 1152),  # (512 + 64) x 2
        (MLA(latent=512, rope=0, dtype=DType.FLOAT8_E5M2), 512),
        (StateGeometry((CONV,)), 49152),  # 3 x 8192 x 2
        (STATE, 2146304),  # 49152 + 32 x 128 x 128 x 4
    ],
)
def test_entry_bytes_count_every_element(geometry: Geometry, entry_bytes: int) -> None:
    assert geometry.entry_bytes == entry_bytes


def test_a_value_head_left_out_is_as_large_as_the_key_head() -> None:
    spelled_out = MHA(kv_heads=8, head_size=64, head_size_v=64, dtype=DType.BFLOAT16)
    assert spelled_out == HEADS
    assert hash(spelled_out) == hash(HEADS)
    assert HEADS.head_size_v == 64


@pytest.mark.parametrize(
    "other",
    [
        MHA(kv_heads=8, head_size=64, dtype=DType.FLOAT16),
        MHA(kv_heads=4, head_size=128, dtype=DType.BFLOAT16),
        MHA(kv_heads=8, head_size=96, head_size_v=32, dtype=DType.BFLOAT16),
    ],
)
def test_geometries_of_equal_bytes_still_differ(other: MHA) -> None:
    assert other.entry_bytes == HEADS.entry_bytes
    assert other != HEADS


def test_the_order_of_state_tensors_is_part_of_the_geometry() -> None:
    assert StateGeometry((CONV, SSM)) != StateGeometry((SSM, CONV))


def test_compact_yaml_is_the_model_written_out() -> None:
    decoded = msgspec.convert(yaml.safe_load(GPT_OSS_20B), ModelDeclaration)
    written_out = ModelDeclaration(
        name="gpt-oss-20b",
        source="config.json of openai/gpt-oss-20b",
        layers=(LOCAL, FULL) * 12,
    )
    assert decoded == written_out


def test_a_group_of_one_layer_repeats_it() -> None:
    assert expand((LayerGroup(attention=FULL.attention, count=3),)) == (FULL,) * 3


def test_patterns_nest() -> None:
    five_then_one = LayerGroup(
        count=2,
        pattern=(
            LayerGroup(count=5, attention=LOCAL.attention),
            LayerGroup(attention=FULL.attention),
        ),
    )
    tail = LayerGroup(count=2, state=RECURRENT.state)
    layers = expand((five_then_one, tail))
    assert len(layers) == 14
    assert [number for number, layer in enumerate(layers) if layer == FULL] == [5, 11]
    assert layers[12:] == (RECURRENT, RECURRENT)


def test_a_group_may_have_attention_beside_state() -> None:
    group = LayerGroup(attention=LOCAL.attention, state=RECURRENT.state)
    assert expand((group,)) == (Layer(attention=LOCAL.attention, state=RECURRENT.state),)


def test_draft_layers_may_be_given_as_groups() -> None:
    grouped = ModelDeclaration(
        name="m",
        source="by hand",
        layers=(FULL,),
        draft_layer_groups=(LayerGroup(count=2, attention=LOCAL.attention),),
    )
    assert grouped == declare(FULL, draft=(LOCAL, LOCAL))


def test_a_layer_lists_attention_before_state() -> None:
    both = Layer(attention=FULL.attention, state=RECURRENT.state)
    assert both.parts == (Part(HEADS, FullLifetime()), Part(STATE, StateLifetime(256)))


@pytest.mark.parametrize("field", ModelDeclaration.__struct_fields__)
def test_a_declaration_cannot_be_changed(field: str) -> None:
    declaration = declare(FULL)
    with pytest.raises(AttributeError):
        setattr(declaration, field, ())


def test_a_model_without_layers_is_refused() -> None:
    assert_refused("m: it has no layers; allowed: 1 or more, in layers or layer_groups")


def test_a_layer_that_stores_nothing_is_refused() -> None:
    message = "m, layer 1: it stores nothing; allowed: attention, state or both"
    assert_refused(message, FULL, Layer())


def test_a_draft_layer_is_refused_under_its_own_number() -> None:
    message = "m, draft layer 0: it stores nothing; allowed: attention, state or both"
    assert_refused(message, FULL, FULL, draft=(Layer(),))


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (
            Part(StateGeometry((CONV,)), FullLifetime()),
            "its geometry is state of conv [3, 8192] bfloat16 (49152 bytes a slot); "
            "allowed: MHA or MLA",
        ),
        (
            Part(HEADS, StateLifetime(256)),
            "its lifetime is state with a checkpoint every 256 tokens; "
            "allowed: FullLifetime or WindowLifetime",
        ),
    ],
)
def test_attention_of_the_wrong_kind_is_refused(part: Part, complaint: str) -> None:
    assert_refused(f"m, layer 1, attention: {complaint}", FULL, Layer(attention=part))


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        (
            Part(LATENT, StateLifetime(None)),
            "its geometry is mla of latent 512, rope 64, bfloat16 (1152 bytes a token); "
            "allowed: StateGeometry",
        ),
        (
            Part(STATE, WindowLifetime(128)),
            "its lifetime is a window of 128 tokens; allowed: StateLifetime",
        ),
    ],
)
def test_state_of_the_wrong_kind_is_refused(part: Part, complaint: str) -> None:
    assert_refused(f"m, layer 1, state: {complaint}", FULL, Layer(state=part))


@pytest.mark.parametrize(
    ("geometry", "complaint"),
    [
        (
            MHA(kv_heads=0, head_size=64, dtype=DType.INT8),
            "kv_heads is 0; allowed: 1 or more",
        ),
        (
            MHA(kv_heads=8, head_size=-64, dtype=DType.INT8),
            "head_size is -64; allowed: 1 or more",
        ),
        (
            MHA(kv_heads=8, head_size=64, head_size_v=0, dtype=DType.INT8),
            "head_size_v is 0; allowed: 1 or more",
        ),
        (MLA(latent=0, rope=64, dtype=DType.INT8), "latent is 0; allowed: 1 or more"),
        (MLA(latent=512, rope=-1, dtype=DType.INT8), "rope is -1; allowed: 0 or more"),
    ],
)
def test_an_impossible_attention_geometry_is_refused(geometry: MHA | MLA, complaint: str) -> None:
    layer = Layer(attention=Part(geometry, FullLifetime()))
    assert_refused(f"m, layer 2: {complaint}", FULL, FULL, layer)


@pytest.mark.parametrize(
    ("tensors", "complaint"),
    [
        ((), "its state has 0 tensors; allowed: 1 or more"),
        (
            (CONV, SSM, CONV),
            "its state tensors are named conv, ssm, conv; allowed: each name once",
        ),
        (
            (StateTensor("ssm", (32, 0), DType.FLOAT32),),
            "dimension 1 of tensor ssm is 0; allowed: 1 or more",
        ),
    ],
)
def test_an_impossible_state_is_refused(tensors: tuple[StateTensor, ...], complaint: str) -> None:
    layer = Layer(state=Part(StateGeometry(tensors), StateLifetime(None)))
    assert_refused(f"m, layer 1: {complaint}", FULL, layer)


def test_an_empty_window_is_refused() -> None:
    layer = Layer(attention=Part(HEADS, WindowLifetime(0)))
    assert_refused("m, layer 1: window is 0; allowed: 1 or more", FULL, layer)


def test_an_empty_checkpoint_interval_is_refused() -> None:
    layer = Layer(state=Part(STATE, StateLifetime(0)))
    assert_refused("m, layer 1: checkpoint_interval is 0; allowed: 1 or more", FULL, layer)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (
            LayerGroup(count=0, attention=FULL.attention),
            "count is 0; allowed: 1 or more",
        ),
        (
            LayerGroup(),
            "it stands for no layer; allowed: attention, state or both, or a pattern",
        ),
        (
            LayerGroup(state=RECURRENT.state, pattern=(LayerGroup(attention=FULL.attention),)),
            "it has state beside a pattern of 1; allowed: parts or a pattern; "
            "put the parts into an entry of the pattern",
        ),
    ],
)
def test_a_bad_group_is_refused_with_the_layer_it_starts_at(
    bad: LayerGroup, complaint: str
) -> None:
    three = LayerGroup(count=3, attention=FULL.attention)
    with pytest.raises(DeclarationError) as refusal:
        expand((three, LayerGroup(count=2, pattern=(three, bad))))
    assert str(refusal.value) == f"groups[1].pattern[1], from layer 6: {complaint}"


def test_layers_beside_groups_are_refused() -> None:
    with pytest.raises(DeclarationError) as refusal:
        ModelDeclaration(
            name="m",
            source="by hand",
            layers=(FULL, FULL),
            layer_groups=(LayerGroup(attention=FULL.attention),),
        )
    assert str(refusal.value) == (
        "m: 2 layers and 1 layer_groups are given; allowed: one of the two forms; "
        "move the layers into the groups"
    )


def test_a_refusal_of_decoded_data_names_the_expanded_layer() -> None:
    raw = yaml.safe_load(GPT_OSS_20B)
    raw["layer_groups"][0]["pattern"][1]["attention"]["geometry"]["kv_heads"] = 0
    with pytest.raises(DeclarationError, match=r"^gpt-oss-20b, layer 0: kv_heads is 0; allowed"):
        msgspec.convert(raw, ModelDeclaration)


def test_an_unknown_key_is_refused() -> None:
    raw = yaml.safe_load(GPT_OSS_20B)
    raw["layer_groups"][0]["repeat"] = 2
    with pytest.raises(msgspec.ValidationError, match=r"unknown field `repeat`"):
        msgspec.convert(raw, ModelDeclaration)


def test_an_unknown_dtype_is_refused() -> None:
    raw = {"kind": "mla", "latent": 512, "rope": 64, "dtype": "float64"}
    with pytest.raises(msgspec.ValidationError, match=r"float64"):
        msgspec.convert(raw, MLA)


SIZES = st.integers(1, 512)
DTYPES = st.sampled_from(DType)
ATTENTION_GEOMETRIES = st.one_of(
    st.builds(MHA, kv_heads=SIZES, head_size=SIZES, head_size_v=st.none() | SIZES, dtype=DTYPES),
    st.builds(MLA, latent=SIZES, rope=st.integers(0, 64), dtype=DTYPES),
)
ATTENTION_LIFETIMES: st.SearchStrategy[Lifetime] = st.one_of(
    st.just(FullLifetime()), st.builds(WindowLifetime, SIZES)
)
STATE_PARTS = st.builds(
    Part, st.sampled_from([STATE, StateGeometry((CONV,))]), st.builds(StateLifetime, st.none())
)
LAYERS = st.builds(
    Layer,
    attention=st.builds(Part, ATTENTION_GEOMETRIES, ATTENTION_LIFETIMES),
    state=st.none() | STATE_PARTS,
)


@settings(derandomize=True, database=None, deadline=None, max_examples=25)
@given(st.lists(LAYERS, min_size=1, max_size=4), st.lists(LAYERS, max_size=2))
def test_a_declaration_survives_encoding(layers: list[Layer], draft: list[Layer]) -> None:
    declaration = declare(*layers, draft=tuple(draft))
    assert msgspec.convert(msgspec.to_builtins(declaration), ModelDeclaration) == declaration
