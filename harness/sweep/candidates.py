"""Processes that run candidates of one reduction, also before they are asked for.

The insight: a verdict is the same whoever works it out and whenever, so processes can only be
early.  The reduction still asks for one candidate after the other, and waits for each.  Where one
of them is killed, so are all, and the process that asks goes on alone.

What a candidate is tried for, and which come next, is not known here.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from types import TracebackType

import msgspec

from harness.canonical import Item
from harness.case import Case
from harness.ops import Operation
from harness.ops.base import Op
from harness.scenario import Setup
from harness.shrinking import Run, parted
from harness.sweep.interrupts import deaf_children
from harness.sweep.patience import Measured, patient_runner
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


def _begin(case: Case, measured: Measured) -> None:
    # Ctrl-C goes to every process of a terminal, but the reduction decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    _Worker.run = staticmethod(patient_runner(case, measured))


def _end_with_parent() -> None:
    # A pool holds both ends of its own pipes, so none of them says that its owner was killed.
    parent = parent_process()
    assert parent is not None, "nobody asked for this process"
    wait([parent.sentinel])
    os._exit(0)


def _run(candidate: bytes) -> Found:
    return tuple(_Worker.run(*_DECODER.decode(candidate)))


class Candidates:
    """A pool that runs the candidates of one case; this process does where the pool has broken.

    Invariant: every candidate in `_coming` was handed out once and not yet asked for, and at most
    `DEPTH_MAX` are; none is once the pool has broken.  Changed by `run` and `expect`.

    Args:
        case: what candidates are made of.
        jobs: how many processes.
        measured: of each process.  It has to know its limit: the first candidate that a process
            gets is any one, and must not set another.
    """

    def __init__(self, case: Case, jobs: int, measured: Measured) -> None:
        self._least = self._depth = jobs
        self._alone = patient_runner(case, measured)
        self._is_broken = False
        self._coming: dict[tuple[Item, ...], Future[Found]] = {}
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(case, measured)
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
        try:
            future = self._coming.pop(items, None) or self._handed_out(items)
            return future.result()
        except BrokenProcessPool:
            self._note_broken()
            return self._alone(setup, operations)

    def room(self) -> int:
        """How many more candidates keep every process busy; 0 while enough are waiting."""
        if self._is_broken:
            return 0
        waiting = sum(not future.done() for future in self._coming.values())
        return 0 if waiting >= self._least else self._depth

    def expect(self, candidates: Sequence[Sequence[Item]], /) -> None:
        """Hand these out, and drop what is no longer expected."""
        wanted = [tuple(items) for items in candidates]
        stale = set(self._coming).difference(wanted)
        self._depth = self._least if stale else min(2 * self._depth, DEPTH_MAX)
        for items in stale:
            self._coming.pop(items).cancel()
        try:
            for items in wanted:
                if items not in self._coming:
                    self._coming[items] = self._handed_out(items)
        except BrokenProcessPool:
            self._note_broken()

    def _handed_out(self, items: tuple[Item, ...]) -> Future[Found]:
        # The pool starts its processes here, one by one as there is work for them.
        with deaf_children():
            return self._pool.submit(_run, _ENCODER.encode(parted(items)))

    def _note_broken(self) -> None:
        self._is_broken = True
        self._coming.clear()
