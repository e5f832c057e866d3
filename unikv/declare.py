"""What each layer of a model stores, and for how long.

The lifetime of what a layer stores decides where it lives, its geometry how many
bytes it takes, and nothing else about the layer matters to an allocator.  So a
part is that pair, and a model is a list of layers with one or two parts each.

All types are plain frozen values.  They are built in Python or decoded with
`msgspec.convert`, and a `ModelDeclaration` checks them once, because only the
whole model knows the number of the layer that a refusal has to name.  The checks
sit below the types, in the same file: each is about a field just above it.

Nothing here knows of pages, sub-pools, budgets or devices.
"""

from collections.abc import Iterator
from typing import NamedTuple, assert_never

import msgspec

from unikv.arguments import check_figure
from unikv.errors import DeclarationError
from unikv.geometry import MHA, MLA, DType, Geometry, StateGeometry, StateTensor

__all__ = [
    "LAYERS_MAX",
    "MHA",
    "MLA",
    "DType",
    "FullLifetime",
    "Geometry",
    "Layer",
    "LayerGroup",
    "Lifetime",
    "ModelDeclaration",
    "Part",
    "StateGeometry",
    "StateLifetime",
    "StateTensor",
    "WindowLifetime",
    "expand",
]


LAYERS_MAX = 10_000
"""Layers of one model, draft layers apart: a slip in a count is refused before it fills memory."""


class FullLifetime(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="full"
):
    """An entry lives as long as its request, or the prefix tree, holds the token."""

    def __str__(self) -> str:
        return "full attention"


class WindowLifetime(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="window"
):
    """An entry is read while its token is among the last `window` tokens, and dead after."""

    window: int  # tokens

    def __str__(self) -> str:
        return f"a window of {self.window} tokens"


class StateLifetime(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="state"
):
    """A slot is overwritten in place, and copied where a prefix is to be resumed.

    With a `checkpoint_interval` the copies lie on a grid of that many tokens, which
    is a checkpoint policy; with None there is one at the end of a sequence only.
    """

    checkpoint_interval: int | None  # tokens

    def __str__(self) -> str:
        if self.checkpoint_interval is None:
            return "state without checkpoints"
        return f"state with a checkpoint every {self.checkpoint_interval} tokens"


Lifetime = FullLifetime | WindowLifetime | StateLifetime


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that a layer stores: how large, and for how long."""

    geometry: Geometry
    lifetime: Lifetime


class Layer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one layer stores: attention, recurrent state, or both side by side."""

    attention: Part | None = None  # MHA or MLA; full or window
    state: Part | None = None  # StateGeometry; StateLifetime

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts there are, attention first."""
        return tuple(part for part in (self.attention, self.state) if part is not None)


class LayerGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Several consecutive layers in one entry: one layer, or a pattern, `count` times.

    An entry has either parts of its own or a `pattern`, whose entries are groups
    again.  Thirty layers of "five windows, then one full" are

        count: 5
        pattern:
          - {count: 5, attention: WINDOW}
          - {attention: FULL}
    """

    count: int = 1
    attention: Part | None = None
    state: Part | None = None
    pattern: tuple["LayerGroup", ...] = ()


class ModelDeclaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A model as an allocator sees it; a layer's number is its place in the tuple.

    Draft layers are those of a draft model fused into the target's storage; they are
    numbered apart, from 0.  Either tuple may be given as groups instead.  Groups
    are expanded on construction and not kept, so a model declared both ways is
    the same value.

    Raises:
        DeclarationError: if a layer, a group or a figure in them is impossible, with the
            number of the layer, the value and what is allowed.
    """

    name: str
    source: str  # where the figures come from, for whoever has to check them
    layers: tuple[Layer, ...] = ()
    draft_layers: tuple[Layer, ...] = ()
    layer_groups: tuple[LayerGroup, ...] = ()
    draft_layer_groups: tuple[LayerGroup, ...] = ()

    def __post_init__(self) -> None:
        self._expand_groups("layers", "layer_groups")
        self._expand_groups("draft_layers", "draft_layer_groups")
        if not self.layers:
            raise DeclarationError(
                f"{self.name}: it has no layers; allowed: 1 or more, in layers or layer_groups"
            )
        for number, layer in enumerate(self.layers):
            _check_layer(f"{self.name}, layer {number}", layer)
        for number, layer in enumerate(self.draft_layers):
            _check_layer(f"{self.name}, draft layer {number}", layer)

    def _expand_groups(self, layers_field: str, groups_field: str) -> None:
        groups: tuple[LayerGroup, ...] = getattr(self, groups_field)
        if not groups:
            return
        listed = len(getattr(self, layers_field))
        if listed:
            raise DeclarationError(
                f"{self.name}: {listed} {layers_field} and {len(groups)} {groups_field} are given; "
                "allowed: one of the two forms; move the layers into the groups"
            )
        expanded = tuple(_expand(groups, f"{self.name}, {groups_field}", 0))
        msgspec.structs.force_setattr(self, layers_field, expanded)
        msgspec.structs.force_setattr(self, groups_field, ())


def expand(groups: tuple[LayerGroup, ...]) -> tuple[Layer, ...]:
    """The layers that `groups` stand for, in order.

    Raises:
        DeclarationError: if a group repeats less than once, or has both parts and a
            pattern, or neither; if there are more than `LAYERS_MAX` layers.
    """
    return tuple(_expand(groups, "groups", 0))


def _expand(groups: tuple[LayerGroup, ...], place: str, first_layer: int) -> list[Layer]:
    layers: list[Layer] = []
    for index, group in enumerate(groups):
        here = f"{place}[{index}]"
        next_layer = first_layer + len(layers)
        _check_group(f"{here}, from layer {next_layer}", group)
        if group.pattern:
            once = _expand(group.pattern, f"{here}.pattern", next_layer)
        else:
            once = [Layer(attention=group.attention, state=group.state)]
        total = next_layer + len(once) * group.count
        if total > LAYERS_MAX:
            raise DeclarationError(
                f"{here}: with count {group.count} there are {total} layers; "
                f"allowed: {LAYERS_MAX} or fewer"
            )
        layers.extend(once * group.count)
    return layers


def _check_group(place: str, group: LayerGroup) -> None:
    _check_figure(place, _Figure("count", group.count, 1))
    parts = [field for field in ("attention", "state") if getattr(group, field) is not None]
    if group.pattern and parts:
        raise DeclarationError(
            f"{place}: it has {' and '.join(parts)} beside a pattern of {len(group.pattern)}; "
            "allowed: parts or a pattern; put the parts into an entry of the pattern"
        )
    if not group.pattern and not parts:
        raise DeclarationError(
            f"{place}: it stands for no layer; allowed: attention, state or both, or a pattern"
        )


def _check_layer(place: str, layer: Layer) -> None:
    if not layer.parts:
        raise DeclarationError(f"{place}: it stores nothing; allowed: attention, state or both")
    if layer.attention is not None:
        _check_kinds(f"{place}, attention", layer.attention, _ATTENTION_KINDS)
    if layer.state is not None:
        _check_kinds(f"{place}, state", layer.state, _STATE_KINDS)
    for part in layer.parts:
        if isinstance(part.geometry, StateGeometry):
            _check_tensor_names(place, part.geometry)
        for figure in (*_geometry_figures(part.geometry), *_lifetime_figures(part.lifetime)):
            _check_figure(place, figure)


class _Kinds(NamedTuple):
    """The geometries and lifetimes that a field of a layer may hold."""

    geometries: tuple[type[Geometry], ...]
    lifetimes: tuple[type[Lifetime], ...]


_ATTENTION_KINDS = _Kinds((MHA, MLA), (FullLifetime, WindowLifetime))
_STATE_KINDS = _Kinds((StateGeometry,), (StateLifetime,))


def _check_kinds(place: str, part: Part, kinds: _Kinds) -> None:
    if not isinstance(part.geometry, kinds.geometries):
        allowed = " or ".join(kind.__name__ for kind in kinds.geometries)
        raise DeclarationError(f"{place}: its geometry is {part.geometry}; allowed: {allowed}")
    if not isinstance(part.lifetime, kinds.lifetimes):
        allowed = " or ".join(kind.__name__ for kind in kinds.lifetimes)
        raise DeclarationError(f"{place}: its lifetime is {part.lifetime}; allowed: {allowed}")


def _check_tensor_names(place: str, geometry: StateGeometry) -> None:
    names = [tensor.name for tensor in geometry.tensors]
    if not names:
        raise DeclarationError(f"{place}: its state has 0 tensors; allowed: 1 or more")
    if len(set(names)) < len(names):
        raise DeclarationError(
            f"{place}: its state tensors are named {', '.join(names)}; allowed: each name once"
        )


class _Figure(NamedTuple):
    """A number in a declaration and the least that it may be."""

    name: str
    value: int
    least: int


def _check_figure(place: str, figure: _Figure) -> None:
    check_figure(DeclarationError, f"{place}: {figure.name}", figure.value, figure.least)


def _geometry_figures(geometry: Geometry) -> Iterator[_Figure]:
    match geometry:
        case MHA():
            yield _Figure("kv_heads", geometry.kv_heads, 1)
            yield _Figure("head_size", geometry.head_size, 1)
            yield _Figure("head_size_v", geometry.value_head_size, 1)
        case MLA():
            yield _Figure("latent", geometry.latent, 1)
            yield _Figure("rope", geometry.rope, 0)
        case StateGeometry():
            for tensor in geometry.tensors:
                for axis, length in enumerate(tensor.shape):
                    yield _Figure(f"dimension {axis} of tensor {tensor.name}", length, 1)
        case _:
            assert_never(geometry)


def _lifetime_figures(lifetime: Lifetime) -> Iterator[_Figure]:
    match lifetime:
        case FullLifetime():
            return
        case WindowLifetime():
            yield _Figure("window", lifetime.window, 1)
        case StateLifetime():
            if lifetime.checkpoint_interval is not None:
                yield _Figure("checkpoint_interval", lifetime.checkpoint_interval, 1)
        case _:
            assert_never(lifetime)
