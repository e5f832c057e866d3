"""A figure that is no int is refused where it is written down, with its place and its value."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from unikv.build import storage_layout
from unikv.cache.checkpoint_policy import CheckpointPolicy, CheckpointStrategy
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
)
from unikv.device.port import BandLayout, HostLayout, StorageLayout
from unikv.errors import (
    ArgumentError,
    BuildError,
    DeclarationError,
    PlanError,
    SizingError,
    UnikvError,
)
from unikv.layout_rules import check_layout
from unikv.plan import plan_kv_storage
from unikv.sizing import StateShare, StateSlots, StorageBudget, size_plan

WRONG: tuple[Any, ...] = (8.0, 8.5, float("nan"), True, "8", np.int64(8))
HEADS = MHA(kv_heads=1, head_size=4, dtype=DType.BFLOAT16)
FULL = Layer(attention=Part(HEADS, FullLifetime()))
PLAN = plan_kv_storage(ModelDeclaration(name="m", source="s", layers=(FULL,)), 4)
BAND = BandLayout("full", 64, 64, 16, mints=True, zeroed=True)
LAYOUT = StorageLayout(64, 704, (BAND,), 4, 16, 64, 1, (HostLayout(64, (0,)),))
BUDGET: dict[str, Any] = {"total_bytes": 4096, "row_count": 4, "row_tokens": 64}
NO_BUFFER, EXTRA, _ = CheckpointStrategy


def attention(geometry: Geometry, lifetime: Lifetime | None = None) -> None:
    """Declare a model with one such part of attention."""
    part = Part(geometry, FullLifetime() if lifetime is None else lifetime)
    ModelDeclaration(name="m", source="s", layers=(Layer(attention=part),))


def state(length: int, interval: int | None) -> None:
    """Declare a model with state of one vector."""
    part = Part(
        StateGeometry((StateTensor("ssm", (length,), DType.INT8),)), StateLifetime(interval)
    )
    ModelDeclaration(name="m", source="s", layers=(Layer(state=part),))


def group(count: int) -> None:
    """Declare a model of `count` equal layers."""
    groups = (LayerGroup(count=count, attention=FULL.attention),)
    ModelDeclaration(name="m", source="s", layer_groups=groups)


def budget(field: str) -> Callable[[Any], object]:
    """Writes a figure into a budget."""
    return lambda value: StorageBudget(**{**BUDGET, field: value})


def layout(field: str) -> Callable[[Any], object]:
    """Writes a figure into a layout."""
    return lambda value: check_layout(LAYOUT._replace(**{field: value}))


def arena(value: Any) -> None:
    """Write the bytes of the arena into a layout of small pages."""
    small = BAND._replace(page_bytes=8)
    check_layout(LAYOUT._replace(sink_bytes=8, total_bytes=value, bands=(small,), host=()))


def band(field: str) -> Callable[[Any], object]:
    """Writes a figure into the band of a layout."""
    return lambda value: check_layout(LAYOUT._replace(bands=(BAND._replace(**{field: value}),)))


def host(value: Any) -> None:
    """Write the bytes of host memory into a layout."""
    check_layout(LAYOUT._replace(host=(HostLayout(value, (0,)),)))


def host_bytes(value: Any) -> None:
    """Ask for so much host memory."""
    storage_layout(PLAN, size_plan(PLAN, StorageBudget(**BUDGET)), value)


def mha(**figures: Any) -> None:
    """Declare a model of such heads."""
    attention(MHA(**{"kv_heads": 8, "head_size": 8, "dtype": DType.INT8, **figures}))


PLACES: dict[str, tuple[type[UnikvError], Callable[[Any], object]]] = {
    "m, layer 0: kv_heads": (DeclarationError, lambda value: mha(kv_heads=value)),
    "m, layer 0: head_size": (DeclarationError, lambda value: mha(head_size=value)),
    "m, layer 0: head_size_v": (DeclarationError, lambda value: mha(head_size_v=value)),
    "m, layer 0: latent": (
        DeclarationError,
        lambda value: attention(MLA(latent=value, rope=0, dtype=DType.INT8)),
    ),
    "m, layer 0: rope": (
        DeclarationError,
        lambda value: attention(MLA(latent=8, rope=value, dtype=DType.INT8)),
    ),
    "m, layer 0: window": (
        DeclarationError,
        lambda value: attention(HEADS, WindowLifetime(value)),
    ),
    "m, layer 0: dimension 0 of tensor ssm": (DeclarationError, lambda value: state(value, 8)),
    "m, layer 0: checkpoint_interval": (DeclarationError, lambda value: state(8, value)),
    "m, layer_groups[0], from layer 0: count": (DeclarationError, group),
    "m: page_size in tokens": (
        PlanError,
        lambda value: plan_kv_storage(
            ModelDeclaration(name="m", source="s", layers=(FULL,)), value
        ),
    ),
    "StateSlots: count": (SizingError, StateSlots),
    "StateShare: percent": (SizingError, StateShare),
    "StorageBudget: total_bytes": (SizingError, budget("total_bytes")),
    "StorageBudget: row_count": (SizingError, budget("row_count")),
    "StorageBudget: row_tokens": (SizingError, budget("row_tokens")),
    "StorageBudget: row_scratch_bytes": (SizingError, budget("row_scratch_bytes")),
    "StorageBudget: scratch_bytes": (SizingError, budget("scratch_bytes")),
    "layout.sink_bytes": (BuildError, layout("sink_bytes")),
    "layout.total_bytes": (BuildError, arena),
    "layout.row_count": (BuildError, layout("row_count")),
    "layout.row_pages": (BuildError, layout("row_pages")),
    "layout.slots_per_page": (BuildError, layout("slots_per_page")),
    "layout.layer_groups": (BuildError, layout("layer_groups")),
    "layout.bands[0].page_bytes": (BuildError, band("page_bytes")),
    "layout.bands[0].slots_per_page": (BuildError, band("slots_per_page")),
    "layout.bands[0].id_count": (BuildError, band("id_count")),
    "layout.host[0].total_bytes": (BuildError, host),
    "host_bytes": (BuildError, host_bytes),
    "checkpoint interval of strategy extra_buffer": (
        ArgumentError,
        lambda value: CheckpointPolicy(EXTRA, value),
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_figure_that_is_no_int_is_refused(place: str) -> None:
    error, write = PLACES[place]
    write(64)
    for value in WRONG:
        with pytest.raises(error) as refusal:
            write(value)
        said = f"{place} is {value!r}, a {type(value).__name__}; allowed: an int"
        assert str(refusal.value).startswith(said)


def test_host_memory_below_nothing_is_refused() -> None:
    with pytest.raises(BuildError, match="host_bytes is -1; allowed: 0 or more"):
        host_bytes(-1)


@pytest.mark.parametrize("interval", [False, 0.0])
def test_no_grid_is_the_int_0(interval: Any) -> None:
    with pytest.raises(ArgumentError, match="allowed: an int"):
        CheckpointPolicy(NO_BUFFER, interval)


@pytest.mark.parametrize("index", [0.0, False])
def test_the_band_of_host_memory_is_named_by_an_int(index: Any) -> None:
    with pytest.raises(BuildError, match=r"layout\.host\[0\]\.bands is .*; allowed: one band"):
        check_layout(LAYOUT._replace(host=(HostLayout(64, (index,)),)))
