"""Processes that run candidates of one reduction, also before they are asked for.

The insight: a verdict is the same whoever works it out and whenever, so processes can only be
early.  The reduction still asks for one candidate after the other, and waits for each.

What a candidate is tried for, and which come next, is not known here.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType

import msgspec

from harness.canonical import Item
from harness.case import Case
from harness.ops import Operation
from harness.ops.base import Op
from harness.scenario import Setup
from harness.shrinking import Run, parted
from harness.sweep.patience import Patience, patient_runner
from harness.violation import Violation

DEPTH_MAX = 256
"""Most candidates handed out at once.  Foreseeing them plays the pass from its beginning, so each
time twice as many are asked for, and few again once one was taken and the others were for nothing.
"""

Found = tuple[Violation, ...]


# Pickling thousands of small structs costs as much as running them.
_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(tuple[Setup, tuple[Operation, ...]])


class _Worker:
    """What one process runs; set once, before its first candidate."""

    run: Run


def _begin(case: Case, patience: Patience) -> None:
    # Ctrl-C goes to every process of a terminal, but the reduction decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Worker.run = staticmethod(patient_runner(case, patience))


def _run(candidate: bytes) -> Found:
    return tuple(_Worker.run(*_DECODER.decode(candidate)))


class Candidates:
    """A pool that runs the candidates of one case.

    Invariant: every candidate in `_coming` was handed out once and not yet asked for, and at most
    `DEPTH_MAX` are.  Changed by `run` and `expect`.

    Args:
        case: what candidates are made of.
        jobs: how many processes.
        patience: of each process.  It has to know its limit: the first candidate that a process
            gets is any one, and must not set another.
    """

    def __init__(self, case: Case, jobs: int, patience: Patience) -> None:
        self._least = self._depth = jobs
        self._coming: dict[tuple[Item, ...], Future[Found]] = {}
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(case, patience)
        )

    def __enter__(self) -> Candidates:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Drop what nobody asked for and end the processes."""
        self._pool.shutdown(cancel_futures=True)

    def run(self, setup: Setup, operations: Sequence[Op]) -> Sequence[Violation]:
        """What is found first; runs now what was not handed out before."""
        items: tuple[Item, ...] = (setup, *operations)
        future = self._coming.pop(items, None) or self._handed_out(items)
        return future.result()

    def room(self) -> int:
        """How many more candidates keep every process busy; 0 while enough are waiting."""
        waiting = sum(not future.done() for future in self._coming.values())
        return 0 if waiting >= self._least else self._depth

    def expect(self, candidates: Sequence[Sequence[Item]], /) -> None:
        """Hand these out, and drop what is no longer expected."""
        wanted = [tuple(items) for items in candidates]
        stale = set(self._coming).difference(wanted)
        self._depth = self._least if stale else min(2 * self._depth, DEPTH_MAX)
        for items in stale:
            self._coming.pop(items).cancel()
        for items in wanted:
            if items not in self._coming:
                self._coming[items] = self._handed_out(items)

    def _handed_out(self, items: tuple[Item, ...]) -> Future[Found]:
        return self._pool.submit(_run, _ENCODER.encode(parted(items)))
