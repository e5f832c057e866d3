"""How many bytes one entry of a layer takes, and as what.

A geometry is a plain frozen value; equal geometries may share pages.  Nothing here knows of
lifetimes or pages, and nothing is refused: `unikv.declare` checks the figures, because only a whole
model knows the number of the layer that a refusal has to name.
"""

import math
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

import msgspec

__all__ = ["MHA", "MLA", "DType", "Geometry", "StateGeometry", "StateTensor"]


class DType(Enum):
    """Element types that a layer may store; the values are the names in YAML."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    INT8 = "int8"
    UINT8 = "uint8"

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return _ELEMENT_BYTES[self]


_ELEMENT_BYTES: Mapping[DType, int] = MappingProxyType(
    {
        DType.FLOAT32: 4,
        DType.BFLOAT16: 2,
        DType.FLOAT16: 2,
        DType.FLOAT8_E4M3FN: 1,
        DType.FLOAT8_E5M2: 1,
        DType.INT8: 1,
        DType.UINT8: 1,
    }
)


class MHA(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="kind",
    tag="mha",
):
    """A key and a value vector per KV head; covers grouped and multi-query heads.

    Left out, `head_size_v` takes the value of `head_size`, so that both ways of
    writing one geometry compare equal.
    """

    kv_heads: int
    head_size: int  # elements of a key
    head_size_v: int | None = None  # elements of a value; an int once constructed
    dtype: DType

    def __post_init__(self) -> None:
        if self.head_size_v is None:
            msgspec.structs.force_setattr(self, "head_size_v", self.head_size)

    @property
    def value_head_size(self) -> int:
        """Elements of one head's value: `head_size_v` with a type that excludes None."""
        assert self.head_size_v is not None
        return self.head_size_v

    @property
    def entry_bytes(self) -> int:
        """Bytes of one token in one layer."""
        return self.kv_heads * (self.head_size + self.value_head_size) * self.dtype.bytes

    def __str__(self) -> str:
        return (
            f"mha of {self.kv_heads} KV heads, K {self.head_size}, V {self.head_size_v}, "
            f"{self.dtype.value} ({self.entry_bytes} bytes a token)"
        )


class MLA(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    tag_field="kind",
    tag="mla",
):
    """One compressed vector per token, shared by all heads, and its rotary part."""

    latent: int
    rope: int  # 0 for a model without rotary positions
    dtype: DType

    @property
    def entry_bytes(self) -> int:
        """Bytes of one token in one layer."""
        return (self.latent + self.rope) * self.dtype.bytes

    def __str__(self) -> str:
        return (
            f"mla of latent {self.latent}, rope {self.rope}, "
            f"{self.dtype.value} ({self.entry_bytes} bytes a token)"
        )


class StateTensor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One named tensor of a recurrent layer's state, as one request holds it."""

    name: str
    shape: tuple[int, ...]
    dtype: DType

    @property
    def tensor_bytes(self) -> int:
        """Bytes of this tensor in one slot."""
        return math.prod(self.shape) * self.dtype.bytes

    def __str__(self) -> str:
        return f"{self.name} {list(self.shape)} {self.dtype.value}"


class StateGeometry(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="state"
):
    """What a recurrent layer keeps per slot, however many tokens it has seen.

    Tensors lie one behind the other in the order given, so the order is part of
    the geometry.
    """

    tensors: tuple[StateTensor, ...]

    @property
    def entry_bytes(self) -> int:
        """Bytes of one slot in one layer."""
        return sum(tensor.tensor_bytes for tensor in self.tensors)

    def __str__(self) -> str:
        tensors = ", ".join(map(str, self.tensors))
        return f"state of {tensors} ({self.entry_bytes} bytes a slot)"


Geometry = MHA | MLA | StateGeometry
