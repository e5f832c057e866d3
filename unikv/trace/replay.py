"""The calls of a trace on another build, and where its answers differ from the recorded ones.

A replay asks what was asked, with the ids that were answered then; so one early difference may lead
to many, and the first is the one to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unikv.device.port import StorageLayout
from unikv.storage import KVStorage
from unikv.trace.calls import Call, Outcome, Performer
from unikv.trace.lines import Trace
from unikv.trace.still_device import build_still

Build = Callable[[StorageLayout], KVStorage]
"""Makes an empty storage with the given memory spaces."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One call that a build answers in another way.

    Attributes:
        number: of the call in the trace, from 1.
        call: what was asked.
        recorded: what the trace says.
        replayed: what the build says.
    """

    number: int
    call: Call
    recorded: Outcome
    replayed: Outcome

    def __str__(self) -> str:
        return (
            f"call {self.number}, {self.call}: the trace {self.recorded},"
            f" this build {self.replayed}"
        )


def replay(path: Path, build: Build = build_still) -> Iterator[Difference]:
    """Make every call of a trace on a new storage.

    Args:
        path: the trace.
        build: makes the storage; by default this package's, on a device without memory.

    Yields:
        Each difference, when it is met.

    Raises:
        TraceError: if the file is no trace, or stops being one at a later line.
    """
    trace = Trace(path)
    performer = Performer(build(trace.layout))
    for number, call, recorded in trace.calls():
        replayed = performer.perform(call)
        if replayed != recorded:
            yield Difference(number, call, recorded, replayed)
