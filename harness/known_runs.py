"""Runs of candidates that do not look twice at what an earlier candidate has shown.

The insight: a world is a function of its setup and of the operations that did something in it.  So
all worlds that candidates went through are one tree, in which an operation that was skipped leads
nowhere.  A candidate that never leaves the known part of it breaks nothing and is not run, and one
that leaves it is checked from there on.

Only what broke nothing is kept: a violation is always found by running, so its indices and its
words are those of the candidate.  What is tried and why is not known here, nor how long is too
long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, TypeAlias, cast

from harness.ops import Operation, Outcome
from harness.ops.base import Op
from harness.runner import PAGES_COMPARED_ALWAYS, Run, run_trace
from harness.scenario import Setup
from harness.unikv_subject import UnikvSubject
from harness.violation import Violation
from harness.world import SubjectFactory

WORLDS_MAX = 200_000
"""Worlds that are kept at most, some sixty megabytes; then the tree begins anew."""

_After: TypeAlias = "dict[Operation, _After | None]"
"""What becomes of a world by an operation; None where it is skipped without asking the subject."""

_UNKNOWN: _After = {}
_ENDLESS: _After = {}
"""Where an operation never came back."""

Watch = Callable[[], AbstractContextManager[None]]
"""Ends what runs for too long within, by an `EndlessRun`."""


class EndlessRun(BaseException):
    """A run does not come back; not an exception that a subject might take for one of its own."""


class _Known(NamedTuple):
    """How far a candidate stays in known worlds."""

    after: _After
    acting: list[tuple[int, Operation]]  # what is not skipped, by its place in the candidate
    end: int  # place of the first operation that is not known


class KnownRuns:
    """Runs candidates in new worlds, each up to its first violation.

    Invariant: in no world of the tree was anything found.  Changed by calls alone.

    Args:
        plant: id of the fault that is planted in every world; None for none.
        subject: the allocator under test.
        watch: stands around every run; by default nothing is too long.
    """

    def __init__(
        self,
        plant: str | None,
        subject: SubjectFactory = UnikvSubject,
        watch: Watch = nullcontext,
    ) -> None:
        self._plant = plant
        self._subject = subject
        self._watch = watch
        self._roots: dict[Setup, _After] = {}
        self._count = 0

    def __call__(self, setup: Setup, candidate: Sequence[Op]) -> Sequence[Violation]:
        """What is found first, as a run that knows nothing finds it; nothing by an endless one."""
        operations = cast(Sequence[Operation], candidate)
        try:
            with self._watch():
                return self._run(setup, operations)
        except EndlessRun:
            return ()

    def _run(self, setup: Setup, operations: Sequence[Operation]) -> Sequence[Violation]:
        if not _is_looked_at_always(setup):
            result = run_trace(setup, operations, plant=self._plant, subject=self._subject)
            return result.violations
        if self._count > WORLDS_MAX:
            self._roots.clear()
            self._count = 0
        known = _walk(self._roots.setdefault(setup, {}), operations, 0)
        if known.end == len(operations):
            return ()
        return self._run_on(_FollowingRun(setup, self._plant, self._subject), operations, known)

    def _run_on(
        self, run: _FollowingRun, operations: Sequence[Operation], known: _Known
    ) -> Sequence[Violation]:
        """Run what is known without looking, and the next operation; and so on to the end."""
        while known.end < len(operations):
            run.follow(operations[len(run.trace) : known.end], known.acting)
            after, operation = known.after, operations[known.end]
            try:
                outcome = run.execute(operation)
            except EndlessRun:
                after[operation] = _ENDLESS
                raise
            if run.violations:
                return run.violations
            if outcome is Outcome.SKIPPED and not run.world.asked:
                after[operation] = None
            else:
                self._count += 1
                following: _After = {}
                after[operation] = following
                after = following
            known = _walk(after, operations, known.end + 1)
        return ()


class _FollowingRun(Run):
    """A run that can follow another one in which nothing was found."""

    def follow(
        self, operations: Sequence[Operation], acting: Sequence[tuple[int, Operation]]
    ) -> None:
        """Apply what is known to break nothing; only what acts is applied.

        Args:
            operations: all of them.
            acting: those that are not skipped, by their index in the trace.
        """
        world = self.world
        self.trace += operations
        for index, operation in acting:
            world.device.operation = index
            if world.asked:
                world.asked = False
                for port in world.ports:
                    port.begin_operation()
            operation.apply(world)
            if world.asked:
                world.books = world.subjects[0].books()
            world.answers.clear()
            world.capacity_answers.clear()
            world.at_rest = False


def _walk(after: _After, operations: Sequence[Operation], begin: int) -> _Known:
    """Go from a known world as far as worlds are known."""
    acting: list[tuple[int, Operation]] = []
    for place in range(begin, len(operations)):
        operation = operations[place]
        following = after.get(operation, _UNKNOWN)
        if following is _UNKNOWN:
            return _Known(after, acting, place)
        if following is _ENDLESS:
            break
        if following is not None:
            acting.append((place, operation))
            after = following
    return _Known(after, acting, len(operations))


def _is_looked_at_always(setup: Setup) -> bool:
    """Whether books are compared after every operation, wherever in a trace it stands."""
    pages = setup.total_bytes // min(band.page_bytes for band in setup.bands)
    return pages <= PAGES_COMPARED_ALWAYS
