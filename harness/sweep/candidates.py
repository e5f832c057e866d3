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

from harness.canonical import Item
from harness.case import Case
from harness.ops.base import Op
from harness.scenario import Setup
from harness.shrinking import Run, parted, runner_of
from harness.violation import Violation

QUEUED_PER_JOB = 4
"""Candidates that each process is given ahead: enough to hide the handing out of them."""

Found = tuple[Violation, ...]


class _Worker:
    """What one process runs; set once, before its first candidate."""

    run: Run


def _begin(case: Case) -> None:
    # Ctrl-C goes to every process of a terminal, but the reduction decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _Worker.run = staticmethod(runner_of(case))


def _run(items: tuple[Item, ...]) -> Found:
    return tuple(_Worker.run(*parted(items)))


class Candidates:
    """A pool that runs the candidates of one case.

    Invariant: every candidate in `_coming` was handed out once and not yet asked for.  Changed by
    `run` and `expect`.
    """

    def __init__(self, case: Case, jobs: int) -> None:
        self._most = jobs * QUEUED_PER_JOB
        self._least = jobs
        self._coming: dict[tuple[Item, ...], Future[Found]] = {}
        self._pool = ProcessPoolExecutor(
            jobs, mp_context=get_context("spawn"), initializer=_begin, initargs=(case,)
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
        future = self._coming.pop(items, None) or self._pool.submit(_run, items)
        return future.result()

    def room(self) -> int:
        """How many more candidates keep every process busy; 0 while enough are waiting."""
        waiting = sum(not future.done() for future in self._coming.values())
        return 0 if waiting >= self._least else self._most

    def expect(self, candidates: Sequence[Sequence[Item]], /) -> None:
        """Hand these out, and drop what is no longer expected."""
        wanted = [tuple(items) for items in candidates]
        for items in set(self._coming).difference(wanted):
            self._coming.pop(items).cancel()
        for items in wanted:
            if items not in self._coming:
                self._coming[items] = self._pool.submit(_run, items)
