"""Ctrl-C as a fact to look at, not an exception to survive.

An exception can arrive between any two lines, also while a finding is half written.  So a signal
is only remembered, whoever waits looks at it, and what was found gets to the disk.  Only inside
`raising`, around work that may take long and can be dropped, it raises; so does a second one.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], Any] | int


@contextmanager
def deaf_children() -> Iterator[None]:
    """Within, a process that is started never hears Ctrl-C.

    It goes to every process of a terminal, but who ends, and when, is decided by the one that
    started the others.  A child inherits the mask and is deaf from its very first instruction on.
    """
    # The tracker starts first because starting it would clear the mask.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Interrupts:
    """Remembers a signal while it is open.

    Attributes:
        seen: whether one came.
    """

    def __init__(self) -> None:
        self.seen = False
        self._raises = False
        self._before: list[Handler] = []

    def __enter__(self) -> Interrupts:
        """Watch for signals; only the main thread can."""
        # None stands for a handler that is not Python's, which cannot be put back.
        self._before = [signal.signal(number, self._note) or signal.SIG_DFL for number in WATCHED]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave signals as they were."""
        for number, handler in zip(WATCHED, self._before, strict=True):
            signal.signal(number, handler)

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Within, a signal raises `KeyboardInterrupt` as well."""
        self._raises = True
        try:
            yield
        finally:
            self._raises = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        again, self.seen = self.seen, True
        if again or self._raises:
            raise KeyboardInterrupt
