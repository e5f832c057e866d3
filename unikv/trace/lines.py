"""A trace as a file: a header line with the memory spaces, then one JSON line per call.

A trace may come from anybody, so it is read as if from an enemy: every line has a bounded length
and exactly the shape of its call, and the memory that its layout asks for is bounded before
anything is built.  What the calls mean is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NamedTuple, NoReturn

import msgspec
from msgspec import UNSET, Meta, UnsetType

from unikv.device.port import BandLayout, HostLayout, StorageLayout
from unikv.errors import BuildError, TraceError
from unikv.layout_rules import check_layout
from unikv.trace.calls import CALLS, MAX_BANDS, Call, CallKind, Outcome, plain

FORMAT = "unikv-trace"
VERSION = 1
MAX_LINE_BYTES = 1 << 20
MAX_ARGUMENT_BYTES = MAX_LINE_BYTES - 512
"""The rest of a line has room for the call's name and for any error, so a refusal always fits."""
MAX_CALLS = 1_000_000
MAX_UNITS = 1 << 22
"""Pages and ids that all bands of a layout may have together."""
MAX_ROW_ENTRIES = 1 << 22

_DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_Bytes = Annotated[int, Meta(ge=1, le=1 << 48)]
_Count = Annotated[int, Meta(ge=1, le=MAX_UNITS)]
_Word = Annotated[str, Meta(min_length=1, max_length=64)]
_ErrorName = Annotated[str, Meta(pattern=r"^\w{1,80}(:[\w ]{1,20})?$")]


class BandRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `BandLayout` in a header."""

    name: _Word
    page_bytes: _Bytes
    slots_per_page: _Count
    id_count: _Count
    mints: bool
    zeroed: bool


class HostRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `HostLayout` in a header."""

    total_bytes: _Bytes
    bands: Annotated[tuple[int, ...], Meta(min_length=1, max_length=2)]


class LayoutRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A `StorageLayout` in a header; without host memory its fields are left out."""

    sink_bytes: _Bytes
    total_bytes: _Bytes
    bands: Annotated[tuple[BandRecord, ...], Meta(min_length=1, max_length=MAX_BANDS)]
    row_count: _Count
    row_pages: _Count
    slots_per_page: _Count
    layer_groups: _Count = 1
    host: Annotated[tuple[HostRecord, ...], Meta(max_length=MAX_BANDS)] = ()


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line.

    Attributes:
        format: always `unikv-trace`.
        version: of the lines that follow.
        why: what the trace shows, in a sentence; may be empty.
        layout: every memory space of the storage that was recorded.
    """

    format: str
    version: int
    why: Annotated[str, Meta(max_length=1000)]
    layout: LayoutRecord


class CallLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Any other line; it has an answer or an error."""

    call: _Word
    args: msgspec.Raw
    answer: msgspec.Raw | UnsetType = UNSET
    error: _ErrorName | UnsetType = UNSET


class TracedCall(NamedTuple):
    """One call of a trace; `number` counts them from 1, so it stands in line `number + 1`."""

    number: int
    call: Call
    outcome: Outcome


class Trace:
    """A trace in a file.

    Attributes:
        path: the file.
        layout: the memory spaces of the storage that was recorded.
        why: what the trace shows.
    """

    __slots__ = ("layout", "path", "why")

    def __init__(self, path: Path) -> None:
        """Read the header.

        Raises:
            TraceError: if the file cannot be read, is none of ours, or asks for too much memory.
        """
        self.path = path
        with _opened(path) as file:
            header = _header(path, _line(file, path, 1))
        self.why = header.why
        self.layout = _layout(path, header.layout)

    def calls(self) -> Iterator[TracedCall]:
        """The calls in order, read as they are asked for.

        Raises:
            TraceError: at a line that is cut off, too long or not of the shape of its call, and
                after more than `MAX_CALLS` of them.
        """
        with _opened(self.path) as file:
            _line(file, self.path, 1)
            number = 0
            while line := _line(file, self.path, number + 2):
                number += 1
                if number > MAX_CALLS:
                    _refuse(self.path, number + 1, f"more than {MAX_CALLS} calls; split the trace")
                yield _call(self.path, number, line)


def encode_header(layout: StorageLayout, why: str) -> bytes:
    """The first line of a trace.

    Raises:
        TraceError: if the layout or the sentence is larger than a trace may hold.
    """
    bands = tuple(BandRecord(*band) for band in layout.bands)
    record = LayoutRecord(
        layout.sink_bytes,
        layout.total_bytes,
        bands,
        layout.row_count,
        layout.row_pages,
        layout.slots_per_page,
        layout.layer_groups,
        tuple(HostRecord(*backing) for backing in layout.host),
    )
    line = msgspec.json.encode(Header(FORMAT, VERSION, why, record)) + b"\n"
    # What could not be read back is refused while the storage is still there.
    place = Path("a new trace")
    _layout(place, _header(place, line).layout)
    return line


def encode_arguments(kind: CallKind, arguments: tuple[object, ...]) -> msgspec.Raw:
    """The arguments of one call, as `encode_call` takes them.

    Raises:
        TraceError: if they have not the shape that a trace of the call has, or are longer than
            `MAX_ARGUMENT_BYTES`.
    """
    encoded = _encoded("args", kind, arguments, kind.arguments)
    size = len(memoryview(encoded))
    if size > MAX_ARGUMENT_BYTES:
        raise TraceError(
            f"{kind.name}: its arguments have {size} bytes; a trace takes {MAX_ARGUMENT_BYTES};"
            " call with shorter lists of ids"
        )
    return encoded


def encode_call(kind: CallKind, arguments: msgspec.Raw, outcome: Outcome) -> bytes:
    """One line of a trace.

    Args:
        kind: the call.
        arguments: of `encode_arguments`.
        outcome: what came of it.

    Raises:
        TraceError: if it is longer than a line may be, or the answer has another shape.
    """
    if outcome.error:
        record = CallLine(kind.name, arguments, error=outcome.error)
    else:
        answer = _encoded("answer", kind, outcome.answer, kind.answer)
        record = CallLine(kind.name, arguments, answer)
    line = msgspec.json.encode(record) + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise TraceError(
            f"{kind.name}: its line has {len(line)} bytes; a trace takes {MAX_LINE_BYTES};"
            " record with shorter lists of ids"
        )
    return line


def _encoded(what: str, kind: CallKind, value: object, shape: Any) -> msgspec.Raw:
    try:
        return msgspec.Raw(msgspec.json.encode(msgspec.convert(value, shape)))
    except (msgspec.ValidationError, UnicodeEncodeError) as error:
        raise TraceError(
            f"{kind.name} {what}: {error}; a trace cannot hold that, so keep to what the call says"
            " of itself"
        ) from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}; name a trace file") from error
    with file:
        yield file


def _line(file: BinaryIO, path: Path, number: int) -> bytes:
    """The next line; empty at the end of the file."""
    line = file.readline(MAX_LINE_BYTES + 1)
    if len(line) > MAX_LINE_BYTES:
        _refuse(path, number, f"longer than {MAX_LINE_BYTES} bytes; this is no trace")
    if line and not line.endswith(b"\n"):
        _refuse(path, number, "does not end: the file was cut off; record it again")
    return line


def _header(path: Path, line: bytes) -> Header:
    what = f"no header; allowed: a JSON object of format {FORMAT!r}"
    try:
        header = msgspec.json.decode(line, type=Header)
    except _DECODE_ERRORS as error:
        raise TraceError(f"{path}, line 1: {what}: {error}") from error
    if (header.format, header.version) != (FORMAT, VERSION):
        found = f"format {header.format!r}, version {header.version}"
        _refuse(path, 1, f"{found}; allowed: {FORMAT!r}, version {VERSION}; record it again")
    return header


def _layout(path: Path, record: LayoutRecord) -> StorageLayout:
    names = [band.name for band in record.bands]
    if len(set(names)) < len(names):
        _refuse(path, 1, f"bands {names}; each needs a name of its own")
    if not record.bands[-1].mints:
        _refuse(path, 1, f"band {names[-1]!r} is last and mints no ids; the last band owns the ids")
    if record.sink_bytes > record.total_bytes:
        _refuse(path, 1, f"a sink of {record.sink_bytes} bytes in {record.total_bytes}; no room")
    units = sum(record.total_bytes // b.page_bytes + b.id_count for b in record.bands)
    if units > MAX_UNITS:
        _refuse(path, 1, f"{units} pages and ids in all bands; allowed: {MAX_UNITS}")
    if record.row_count * record.row_pages > MAX_ROW_ENTRIES:
        entries = f"{record.row_count} rows of {record.row_pages} pages"
        _refuse(path, 1, f"{entries}; allowed: {MAX_ROW_ENTRIES} in all rows")
    layout = StorageLayout(
        record.sink_bytes,
        record.total_bytes,
        tuple(BandLayout(*msgspec.structs.astuple(band)) for band in record.bands),
        record.row_count,
        record.row_pages,
        record.slots_per_page,
        record.layer_groups,
        tuple(HostLayout(*msgspec.structs.astuple(backing)) for backing in record.host),
    )
    try:
        check_layout(layout)
    except BuildError as error:
        raise TraceError(f"{path}, line 1: {error}") from error
    slots = sum(b.total_bytes // layout.bands[i].page_bytes for b in layout.host for i in b.bands)
    if slots > MAX_UNITS:
        _refuse(path, 1, f"{slots} host slots; allowed: {MAX_UNITS}")
    return layout


def _call(path: Path, number: int, text: bytes) -> TracedCall:
    place = number + 1
    try:
        line = msgspec.json.decode(text, type=CallLine)
    except _DECODE_ERRORS as error:
        raise TraceError(
            f"{path}, line {place}: {error}; allowed: an object with call, args and an answer or"
            " an error"
        ) from error
    kind = CALLS.get(line.call)
    if kind is None:
        _refuse(path, place, f"call {line.call!r}; allowed: {', '.join(CALLS)}")
    arguments: tuple[object, ...] = _decoded(
        path, place, f"{line.call} args", line.args, kind.arguments
    )
    if isinstance(line.answer, UnsetType) == isinstance(line.error, UnsetType):
        _refuse(path, place, f"{line.call}: allowed: an answer or an error, and not both")
    if not isinstance(line.error, UnsetType):
        return TracedCall(number, Call(kind, arguments), Outcome(None, line.error))
    assert not isinstance(line.answer, UnsetType)
    answer = _decoded(path, place, f"{line.call} answer", line.answer, kind.answer)
    return TracedCall(number, Call(kind, arguments), Outcome(plain(answer)))


def _decoded(path: Path, place: int, what: str, raw: msgspec.Raw, shape: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=shape)
    except _DECODE_ERRORS as error:
        raise TraceError(f"{path}, line {place}: {what}: {error}") from error


def _refuse(path: Path, line: int, what: str) -> NoReturn:
    raise TraceError(f"{path}, line {line}: {what}")
