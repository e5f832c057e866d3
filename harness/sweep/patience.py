"""How long a candidate may run: an alarm clock for subjects that never come back.

The insight: a candidate takes milliseconds, so one that runs for seconds has met a loop without an
end.  Where it does is remembered by whoever runs candidates, so each such place costs this time
once and not once for every candidate that comes by.

An alarm interrupts this process only, and only its main thread; elsewhere, and where the system has
no alarms, there is no limit.  What is run is not known here.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from harness.case import Case
from harness.known_runs import EndlessRun, KnownRuns

CANDIDATE_SECONDS_MAX = 10.0
"""Wall time of one candidate; a thousand times what it takes where nothing else runs."""

ENDLESS_MAX = 3
"""Candidates that may never come back where nothing else bounds the time that they take."""


@contextmanager
def alarmed(seconds: float = CANDIDATE_SECONDS_MAX) -> Iterator[None]:
    """Within, what takes longer ends.

    Raises:
        EndlessRun: when time is up.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not _MAIN:
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    # It rings again, for an exception can be caught by whoever goes on for ever.
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # None stands for a handler that is not Python's, which cannot be put back.
        signal.signal(signal.SIGALRM, before or signal.SIG_DFL)


@dataclass(slots=True)
class Patience:
    """Lets candidates of somebody else's subject run, and is lost when too many never come back.

    Invariant: `endless` counts those that were ended.  Changed by `watch` alone.

    Attributes:
        seconds: wall time of one candidate.
        endless: how many took longer.
    """

    seconds: float = CANDIDATE_SECONDS_MAX
    endless: int = 0

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Within, what takes longer ends.

        Raises:
            EndlessRun: when time is up.
        """
        try:
            with alarmed(self.seconds):
                yield
        except EndlessRun:
            self.endless += 1
            raise

    def is_lost(self) -> bool:
        """Whether enough of them never came back."""
        return self.endless >= ENDLESS_MAX


def patient_runner(case: Case) -> KnownRuns:
    """Runs candidates of a case in this process, each for so long at most."""
    return KnownRuns(case.plant, watch=alarmed)


_MAIN = threading.main_thread()


def _ring(number: int, frame: FrameType | None) -> None:
    raise EndlessRun
