"""A storage that writes down what it is asked and what it answers.

The recorder stands where the storage stood, and whoever calls it need not know.  A line is written
when its call has ended, so a trace ends with the last call that came back.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from unikv.alloc.audit import NO_LENGTHS, Lengths
from unikv.alloc.invariants import Finding
from unikv.alloc.statistics import Statistics
from unikv.device.port import Event
from unikv.errors import TraceError
from unikv.storage import KVStorage
from unikv.trace.calls import (
    ANSWERED_ERRORS,
    CALLS,
    Call,
    CallKind,
    Outcome,
    Part,
    error_name,
    part_of,
    plain_answer,
    plain_arguments,
)
from unikv.trace.lines import checked_arguments, encode_call, encode_header

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

    Attributes:
        storage: what answers.
        layout: its memory spaces.
        chain, users, requests, ids: its parts, recorded.
        host: its host tier, recorded; None where it has none.
    """

    __slots__ = (
        "_events",
        "_met",
        "_out",
        "chain",
        "host",
        "ids",
        "layout",
        "requests",
        "storage",
        "users",
    )

    def __init__(self, storage: KVStorage, out: BinaryIO, why: str = "") -> None:
        """Write the header; the storage should be empty still, or a replay will not find its state.

        Args:
            storage: what answers.
            out: where lines go; it stays open.
            why: what the trace will show, in a sentence.

        Raises:
            TraceError: if the layout is larger than a trace may describe.
        """
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
        out.write(encode_header(storage.layout, why))
        out.flush()

    def audit(self, lengths: Mapping[int, Lengths] = NO_LENGTHS) -> list[Finding]:
        """As `KVStorage.audit`; it changes nothing and is not recorded."""
        return self.storage.audit(lengths)

    def statistics(self) -> Statistics:
        """As `KVStorage.statistics`; it changes nothing and is not recorded."""
        return self.storage.statistics()

    def recorded(self, kind: CallKind, method: Callable[..., Any]) -> Callable[..., Any]:
        """`method`, which also writes a line at every call.

        A call raises `TraceError`, and is not made, if a trace cannot hold its arguments.
        """

        def ask(*arguments: Any, **named: Any) -> Any:
            given = arguments
            if named:
                given = inspect.signature(method).bind(*arguments, **named).args
            call = self._call(kind, given)
            try:
                answer = method(*given)
            except ANSWERED_ERRORS as error:
                self._write(call, Outcome(None, error_name(error)))
                raise
            self._write(call, Outcome(plain_answer(kind, answer)))
            return answer

        return ask

    def _call(self, kind: CallKind, given: tuple[object, ...]) -> Call:
        values = list(given)
        for _ in kind.events:
            values[1] = self._number_of(values[1])
        try:
            arguments = plain_arguments(kind, values)
        except TypeError as error:
            raise TraceError(f"{kind.name} cannot be recorded: {error}") from error
        return checked_arguments(Call(kind, arguments))

    def _number_of(self, event: Event) -> int:
        known = self._events.get(id(event))
        if known is not None:
            return known[0]
        self._met += 1
        self._events[id(event)] = (self._met, event)
        if len(self._events) > KEPT_EVENTS:
            self._events.popitem(last=False)
        return self._met

    def _write(self, call: Call, outcome: Outcome) -> None:
        self._out.write(encode_call(call, outcome))
        self._out.flush()


@contextmanager
def record(storage: KVStorage, path: Path, why: str = "") -> Iterator[Recorder]:
    """Record the calls of a block into a new file.

    Raises:
        TraceError: if the file is there already or cannot be written.
    """
    try:
        out = path.open("xb")
    except OSError as error:
        raise TraceError(
            f"{path}: cannot be written: {error.strerror}; name a file that is not there yet"
        ) from error
    with out:
        yield Recorder(storage, out, why)
