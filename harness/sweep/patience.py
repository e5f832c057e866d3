"""How long a candidate may run: an alarm clock for subjects that never come back.

The insight: a candidate takes milliseconds of the processor, so one that takes seconds has met a
loop without an end, and one that takes none has met a lock.  A process that was stopped, or that
others leave no room, shows neither: the alarm looks at the processor time of this thread each time
it rings, and of all rings that a stop holds up only one arrives.

Where a subject never comes back is remembered by whoever runs candidates, so each such place costs
this time once and not once for every candidate that comes by.

An alarm interrupts this process only, and only its main thread; elsewhere, and where the system has
no alarms, there is no limit.  What is run is not known here.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from harness.case import Case
from harness.known_runs import EndlessRun, KnownRuns

CANDIDATE_SECONDS_MAX = 10.0
"""Processor time of one candidate; a thousand times what most take."""

CANDIDATE_RUNS_MAX = 3
"""How many times as long as the run that is known to fail a candidate may take at least."""

RINGS, RINGS_MAX = 10, 120
"""How often an alarm rings in the time that a candidate has, and how often at all: a candidate that
waits for a lock gets twelve times as long as one that spins."""

ENDLESS_MAX = 3
"""Candidates that may never come back where nothing else bounds the time that they take."""

_MAIN = threading.main_thread()


class _Alarm:
    """Raises `EndlessRun` in whatever runs while it rings for too long.

    Invariant: `_rings` is how often it rang.  Changed by `ring` alone.
    """

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds
        self._rings = 0

    def ring(self, number: int, frame: FrameType | None) -> None:
        """Handle one signal.  An exception can be caught by whoever goes on for ever, so each
        later one raises again."""
        self._rings += 1
        if self._rings > RINGS_MAX or time.thread_time() >= self._end:
            raise EndlessRun


@contextmanager
def alarmed(seconds: float = CANDIDATE_SECONDS_MAX) -> Iterator[None]:
    """Within, what takes longer ends; a timer of somebody else goes on afterwards.

    Args:
        seconds: of the processor, spent by this thread.

    Raises:
        EndlessRun: when time is up.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not _MAIN:
        yield
        return
    begin = time.monotonic()
    handler = signal.signal(signal.SIGALRM, _Alarm(seconds).ring)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds / RINGS, seconds / RINGS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # None stands for a handler that is not Python's, which cannot be put back.
        signal.signal(signal.SIGALRM, handler or signal.SIG_DFL)
        if left:
            # One that is overdue rings at once; 0 would switch it off.
            rest = max(left - (time.monotonic() - begin), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, rest, interval)


class Measured:
    """A watch that measures its first run, which is known to end, and limits the others by it.

    Invariant: `seconds_max` is None until a first run has ended, and then never changes; `endless`
    counts runs that were ended.  Changed by `watch` alone.

    Attributes:
        seconds_max: processor time that a run may take; None while there is no limit.
        endless: how many took longer.
    """

    def __init__(self, seconds_max: float | None = None) -> None:
        self.seconds_max = seconds_max
        self.endless = 0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Within, what takes longer ends.

        Raises:
            EndlessRun: when time is up.
        """
        if self.seconds_max is None:
            begin = time.thread_time()
            yield
            seconds = CANDIDATE_RUNS_MAX * (time.thread_time() - begin)
            self.seconds_max = max(CANDIDATE_SECONDS_MAX, seconds)
            return
        try:
            with alarmed(self.seconds_max):
                yield
        except EndlessRun:
            self.endless += 1
            raise

    def is_lost(self) -> bool:
        """Whether so many never came back that it is not worth to go on without a clock."""
        return self.endless >= ENDLESS_MAX


def patient_runner(case: Case, measured: Measured | None = None) -> KnownRuns:
    """Runs candidates of a case in this process, each for so long at most.

    Args:
        case: what candidates are made of.
        measured: how long; by default the first run is that of the case, and decides.
    """
    return KnownRuns(case.plant, watch=(measured or Measured()).watch)
