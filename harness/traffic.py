"""Recorded traffic: when real requests came, how long they were, and which prefixes they shared.

The insight: a shared prefix needs no text.  Equal block ids at the start of two prompts say all
that an allocator can notice, so a trace is four numbers a request and no user's words.

The format is one JSON object a line, as published with Mooncake (kvcache-ai/Mooncake, folder
FAST25-release/traces).  How requests are scaled down to a modeled arena is not known here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.errors import InputError

BLOCK_TOKENS = 512
"""Prompt tokens that one id of `hash_ids` stands for; the last block may be shorter."""

FILE_BYTES_MAX = 64 << 20
LINES_MAX = 1_000_000

Tokens = Annotated[int, Meta(ge=1, le=10_000_000)]
BlockId = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class TrafficRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One request of a trace.

    Attributes:
        timestamp: when it arrived, in ms from the start of the trace.
        input_length, output_length: tokens of the prompt and of the answer.
        hash_ids: one id per block of the prompt; equal beginnings are shared prefixes.
    """

    timestamp: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
    input_length: Tokens
    output_length: Tokens
    hash_ids: tuple[BlockId, ...]


@dataclass(frozen=True, slots=True)
class Traffic:
    """A recorded stream of requests, in order of arrival; `source` is the file's name."""

    requests: tuple[TrafficRequest, ...]
    source: str


def load_traffic(path: Path, limit: int | None = None) -> Traffic:
    """Decode a trace; with `limit`, its first `limit` requests, and nothing behind them is read.

    Raises:
        InputError: with file and line, the value and what is allowed.
    """
    assert limit is None or limit >= 1
    decoder = msgspec.json.Decoder(TrafficRequest)
    requests: list[TrafficRequest] = []
    for number, line in enumerate(_lines(path), start=1):
        if limit is not None and len(requests) == limit:
            break
        if not line.strip():
            continue
        try:
            request = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}:{number}: {error}") from error
        earliest = requests[-1].timestamp if requests else 0
        _check_request(request, earliest, f"{path}:{number}")
        requests.append(request)
    if not requests:
        raise InputError(f"{path}: no requests; want one JSON object a line")
    return Traffic(tuple(requests), path.name)


def _lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            # One byte more than allowed tells a file that is too large, whatever it is.
            data = file.read(FILE_BYTES_MAX + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot read this traffic: {error.strerror}") from error
    if len(data) > FILE_BYTES_MAX:
        raise InputError(f"{path}: more than {FILE_BYTES_MAX} bytes of traffic; split the file")
    lines = data.split(b"\n")
    if len(lines) > LINES_MAX + 1:
        raise InputError(f"{path}: {len(lines)} lines of traffic; at most {LINES_MAX} are read")
    return lines


def _check_request(request: TrafficRequest, earliest: int, place: str) -> None:
    """Refuse what would be silently misread: blocks of another length, time that goes back."""
    blocks = -(-request.input_length // BLOCK_TOKENS)
    if len(request.hash_ids) != blocks:
        raise InputError(
            f"{place}: {len(request.hash_ids)} hash_ids for {request.input_length} input tokens;"
            f" want {blocks}, one per {BLOCK_TOKENS} tokens"
        )
    if request.timestamp < earliest:
        raise InputError(
            f"{place}: timestamp {request.timestamp} is before {earliest} of the line above;"
            " want requests in order of arrival"
        )
