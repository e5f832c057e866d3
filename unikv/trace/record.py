"""A storage that writes down what it is asked and what it answers.

The recorder stands where the storage stood, and whoever calls it need not know.  A line is written
when its call has ended, so a trace ends with the last call that came back.

A line that cannot be written must not cost the caller its answer, whose ids nobody else has.  So
the answer is given, the trace ends before that call, and the next call is refused before it is
made.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from unikv.alloc.audit import NO_LENGTHS, Lengths
from unikv.alloc.invariants import Finding
from unikv.alloc.statistics import Statistics
from unikv.device.port import Event
from unikv.errors import TraceError
from unikv.storage import KVStorage
from unikv.trace.calls import (
    ANSWERED_ERRORS,
    CALLS,
    CallKind,
    Outcome,
    Part,
    error_name,
    part_of,
    plain_answer,
    plain_arguments,
)
from unikv.trace.lines import encode_arguments, encode_call, encode_header

KEPT_EVENTS = 256
"""Events whose numbers are remembered: far more than an engine has in flight."""


class RecordedPart:
    """One object of a storage with its public calls recorded; all else is passed through."""

    __slots__ = ("_part", "_recorder", "_target")

    def __init__(self, target: object, part: Part, recorder: Recorder) -> None:
        self._target = target
        self._part = part
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        kind = CALLS.get(f"{self._part.value}.{name}")
        if kind is not None:
            return self._recorder.recorded(kind, found)
        storage = self._recorder.storage
        if found is storage.chain.users:
            return self._recorder.users
        return self._recorder.ids if found is storage.ids else found


class Recorder:
    """A `KVStorage` for its callers, and a writer of their calls.

    Law: the lines written are the calls that came back, from the first on without a gap; all of
    them while `failure` is empty.

    Attributes:
        storage: what answers.
        layout: its memory spaces.
        chain, users, requests, ids: its parts, recorded.
        host: its host tier, recorded; None where it has none.
        failure: why the trace ends before the last call that came back; empty while it does not.
        written_bytes: of the header and of all whole lines.
    """

    __slots__ = (
        "_calls",
        "_events",
        "_met",
        "_out",
        "chain",
        "failure",
        "host",
        "ids",
        "layout",
        "requests",
        "storage",
        "users",
        "written_bytes",
    )

    def __init__(self, storage: KVStorage, out: BinaryIO, why: str = "") -> None:
        """Write the header; the storage should be empty still, or a replay will not find its state.

        Args:
            storage: what answers.
            out: where lines go; it stays open.
            why: what the trace will show, in a sentence.

        Raises:
            TraceError: if the layout is larger than a trace may describe.
            OSError: if the header cannot be written.
        """
        header = encode_header(storage.layout, why)
        self.storage = storage
        self.layout = storage.layout
        self.users = RecordedPart(part_of(storage, Part.USERS), Part.USERS, self)
        self.chain = RecordedPart(part_of(storage, Part.CHAIN), Part.CHAIN, self)
        self.requests = RecordedPart(part_of(storage, Part.REQUESTS), Part.REQUESTS, self)
        self.ids = RecordedPart(part_of(storage, Part.IDS), Part.IDS, self)
        self.host = None
        if storage.host is not None:
            self.host = RecordedPart(storage.host, Part.HOST, self)
        self._out = out
        self._met = 0
        # By identity, with the event itself: a number is only safe while its event is alive.
        self._events: OrderedDict[int, tuple[int, Event]] = OrderedDict()
        self._calls = 0
        self.failure = ""
        self.written_bytes = 0
        self._append(header)

    def audit(self, lengths: Mapping[int, Lengths] = NO_LENGTHS) -> list[Finding]:
        """As `KVStorage.audit`; it changes nothing and is not recorded."""
        return self.storage.audit(lengths)

    def statistics(self) -> Statistics:
        """As `KVStorage.statistics`; it changes nothing and is not recorded."""
        return self.storage.statistics()

    def check_complete(self) -> None:
        """Refuse a trace that ends before the last call that came back.

        Raises:
            TraceError: with that call, and how far the trace goes.
        """
        if self.failure:
            raise TraceError(self.failure)

    def recorded(self, kind: CallKind, method: Callable[..., Any]) -> Callable[..., Any]:
        """`method`, which also writes a line at every call.

        A call raises `TraceError`, and is not made, if a trace cannot hold its arguments, lacks an
        earlier call (see `check_complete`), or is closed.
        """

        def ask(*arguments: Any, **named: Any) -> Any:
            given = arguments
            if named:
                given = inspect.signature(method).bind(*arguments, **named).args
            self.check_complete()
            if self._out.closed:
                raise TraceError(
                    f"{kind.name}: the recording has ended; call the recorder's storage"
                )
            asked = self._arguments(kind, given)
            with ExitStack() as stack:
                stack.push(partial(self._note_error, kind, asked))
                answer = method(*given)
            try:
                outcome = Outcome(plain_answer(kind, answer))
            except TypeError as error:
                self._end(f"{kind.name}: its answer cannot be recorded: {error}")
            else:
                self._write(kind, asked, outcome)
            return answer

        return ask

    def _arguments(self, kind: CallKind, given: tuple[object, ...]) -> msgspec.Raw:
        values = list(given)
        if kind.events:
            values[1:2] = map(self._number_of, values[1:2])
        try:
            arguments = plain_arguments(kind, values)
        except TypeError as error:
            raise TraceError(f"{kind.name} cannot be recorded: {error}") from error
        return encode_arguments(kind, arguments)

    def _number_of(self, event: Event) -> int:
        known = self._events.get(id(event))
        if known is not None:
            return known[0]
        self._met += 1
        self._events[id(event)] = (self._met, event)
        if len(self._events) > KEPT_EVENTS:
            self._events.popitem(last=False)
        return self._met

    def _note_error(self, kind: CallKind, asked: msgspec.Raw, *left: object) -> None:
        """Note what a call raised, if it did; `left` is what an `__exit__` is given."""
        _, error, _ = left
        if isinstance(error, ANSWERED_ERRORS):
            self._write(kind, asked, Outcome(None, error_name(error)))
        elif error is not None:
            self._end(f"{kind.name} raised {type(error).__name__}, which no trace holds")

    def _write(self, kind: CallKind, asked: msgspec.Raw, outcome: Outcome) -> None:
        # A call may be made inside another one, and then its line may already be lacking.
        if self.failure:
            return
        try:
            self._append(encode_call(kind, asked, outcome))
        except TraceError as error:
            self._end(f"{error}")
        except OSError as error:
            self._end(f"{kind.name}: its line was not written: {error.strerror or error}")
        else:
            self._calls += 1

    def _append(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            # A file without a buffer may take a part, and says why only when asked again.
            rest = rest[self._out.write(rest) :]
        self._out.flush()
        self.written_bytes += len(line)

    def _end(self, why: str) -> None:
        self.failure = self.failure or (
            f"{why}; the call was made, but the trace ends before it, with {self._calls} in it: go"
            " on with the recorder's storage, or record again from an empty one"
        )


@contextmanager
def record(storage: KVStorage, path: Path, why: str = "") -> Iterator[Recorder]:
    """Record the calls of a block into a new file.

    However the block ends, the file ends with a whole line; an error that leaves the block has a
    note if the trace lacks a call.

    Raises:
        TraceError: if the layout is larger than a trace may describe, or the file is there already
            or cannot be written, and then there is no new file; when the block has ended, as
            `Recorder.check_complete`.
    """
    encode_header(storage.layout, why)  # Refused while there is no file yet.
    try:
        # Without a buffer, or it would try again to write what was cut off.
        out = path.open("xb", buffering=0)
    except OSError as error:
        raise TraceError(
            f"{path}: cannot be written: {error.strerror}; name a file that is not there yet"
        ) from error
    with out:
        try:
            recorder = Recorder(storage, out, why)
        except OSError as error:
            path.unlink()
            raise TraceError(
                f"{path}: cannot be written: {error.strerror}; name a file that has room"
            ) from error

        def finish(_: object, error: BaseException | None, __: object) -> None:
            out.truncate(recorder.written_bytes)  # A failed write may have left a part of a line.
            if error is None:
                recorder.check_complete()
            elif recorder.failure:
                error.add_note(f"{path}: {recorder.failure}")

        with ExitStack() as stack:
            stack.push(finish)
            yield recorder
