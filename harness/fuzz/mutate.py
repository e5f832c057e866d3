"""Mutations that keep frames whole, beside those a byte fuzzer has of its own.

The insight: a byte that is dropped shifts every frame behind it, and none means anymore what it
meant.  So the length changes by whole frames, and single bytes change in place.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.choices import Choices, between
from harness.fuzz.inputs import FRAME_BYTES, HEADER_BYTES

Frames = list[bytes]

FRESH_IN = 2
"""One in so many inputs is invented whole, at full length: neighbours of what is known reach fewer
situations than a new mix of operations does."""

HEADER_IN = 4
"""The setup or the mix of operations changes in one of so many other inputs."""

RUN_FRAMES_MAX = 16
"""Longest run of frames that one mutation drops, doubles or invents."""

TAIL_FRAMES_MAX = 256
"""Longest run that is appended: what is kept is a place worth going on from."""


def mutate_input(data: bytes, bytes_max: int, choices: Choices) -> bytes:
    """Another input near `data`.

    Args:
        data: of any length.
        bytes_max: at most so many bytes come back.
        choices: the only source of chance.
    """
    header, body = _split(data)
    if not body or choices.below(FRESH_IN) == 0:
        frames_max = max(0, bytes_max - HEADER_BYTES) // FRAME_BYTES
        return _invented(choices, min(HEADER_BYTES + FRAME_BYTES * frames_max, bytes_max))
    mutation = _MUTATIONS[choices.below(len(_MUTATIONS))]
    if choices.below(HEADER_IN) == 0:
        header = _one_byte_changed(header, choices)
    return _joined(header, mutation(body, choices), bytes_max)


def cross_inputs(left: bytes, right: bytes, bytes_max: int, choices: Choices) -> bytes:
    """The beginning of one input and the end of another, cut between frames.

    Args and result: as of `mutate_input`.
    """
    header, first = _split(left)
    _, second = _split(right)
    cut = choices.below(len(first) + 1)
    return _joined(header, first[:cut] + second[choices.below(len(second) + 1) :], bytes_max)


def _split(data: bytes) -> tuple[bytes, Frames]:
    """The header at its full length, and whole frames."""
    header = data[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0")
    starts = range(HEADER_BYTES, len(data), FRAME_BYTES)
    return header, [data[at : at + FRAME_BYTES].ljust(FRAME_BYTES, b"\0") for at in starts]


def _joined(header: bytes, body: Frames, bytes_max: int) -> bytes:
    return (header + b"".join(body))[:bytes_max]


def _one_byte_changed(piece: bytes, choices: Choices) -> bytes:
    at = choices.below(len(piece))
    return piece[:at] + bytes([choices.below(256)]) + piece[at + 1 :]


def _invented(choices: Choices, length: int = FRAME_BYTES) -> bytes:
    return bytes(choices.below(256) for _ in range(length))


def _run(body: Frames, choices: Choices) -> tuple[int, int]:
    """Some frames `[low, high)`; none where there are none."""
    low = choices.below(len(body) + 1)
    return low, min(len(body), low + between(choices, 1, RUN_FRAMES_MAX))


def _change(body: Frames, choices: Choices) -> Frames:
    at = choices.below(len(body))
    return [*body[:at], _one_byte_changed(body[at], choices), *body[at + 1 :]]


def _replace(body: Frames, choices: Choices) -> Frames:
    low, high = _run(body, choices)
    return [*body[:low], *(_invented(choices) for _ in range(low, high)), *body[high:]]


def _insert(body: Frames, choices: Choices) -> Frames:
    at = choices.below(len(body) + 1)
    fresh = [_invented(choices) for _ in range(between(choices, 1, RUN_FRAMES_MAX))]
    return body[:at] + fresh + body[at:]


def _append(body: Frames, choices: Choices) -> Frames:
    return body + [_invented(choices) for _ in range(between(choices, 1, TAIL_FRAMES_MAX))]


def _drop(body: Frames, choices: Choices) -> Frames:
    low, high = _run(body, choices)
    return body[:low] + body[high:]


def _double(body: Frames, choices: Choices) -> Frames:
    low, high = _run(body, choices)
    at = choices.below(len(body) + 1)
    return body[:at] + body[low:high] + body[at:]


def _swap(body: Frames, choices: Choices) -> Frames:
    low, high = _run(body, choices)
    rest = body[:low] + body[high:]
    at = choices.below(len(rest) + 1)
    return rest[:at] + body[low:high] + rest[at:]


_MUTATIONS: tuple[Callable[[Frames, Choices], Frames], ...] = (
    _change,
    _replace,
    _insert,
    _append,
    _drop,
    _double,
    _swap,
)
