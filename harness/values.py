"""Calls, arguments and answers in words, as they would be written in Python.

Events have no name, so they are told by what they are behind: what ours are told by holds no
address, and the same run is told in the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from harness.device.launches import ModeledEvent
from harness.device.submissions import LANE_NAMES

ITEMS_MAX = 64
"""Longest list that is told whole."""


def call_text(call: str, arguments: Sequence[object]) -> str:
    """A call as it was written."""
    return f"{call}({', '.join(map(value_text, arguments))})"


def value_text(value: object) -> str:
    """An argument or an answer."""
    if isinstance(value, ModeledEvent):
        return f"event behind {LANE_NAMES[value.stream]} #{value.epoch}"
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {value_text(own)}' for key, own in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return _sequence_text(value)
    return repr(value)


def _sequence_text(values: Sequence[object]) -> str:
    names = getattr(values, "_fields", ())
    if names:
        parts = [f"{name}={value_text(own)}" for name, own in zip(names, values, strict=True)]
        return f"{type(values).__name__}({', '.join(parts)})"
    left = len(values) - ITEMS_MAX
    more = [f"... and {left} more"] if left > 0 else []
    return f"[{', '.join([*map(value_text, values[:ITEMS_MAX]), *more])}]"
