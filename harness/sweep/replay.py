"""Once more, twice: a failure counts only if running it again gives the same answer.

The insight: a run that is not a function of its input proves nothing, so the two digests are
compared before anything else is said.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from harness.case import Case
from harness.printed import quoted
from harness.runner import SeedResult, run_trace
from harness.sweep.findings import replay_command
from harness.sweep.jobs import Job
from harness.sweep.tally import Tally
from harness.sweep.verdict import Exit
from harness.sweep.workload import About, SeedWork
from harness.violation import Violation, seen


class Replayable(Protocol):
    """Something that can be run again."""

    def run(self) -> SeedResult:
        """Run it once."""
        ...

    def about(self) -> About:
        """What is run."""
        ...

    def title(self) -> str:
        """What is run, for the first line."""
        ...

    def command(self) -> str:
        """The command line that does this."""
        ...

    def case(self, result: SeedResult, violation: Violation) -> Case:
        """What failed, as a case."""
        ...

    def expected(self) -> Violation | None:
        """The violation that must be seen; None where nothing was promised."""
        ...

    def planted(self) -> str | None:
        """The fault that must be caught; None where none must."""
        ...

    def stored_at(self) -> str | None:
        """The case file; None for a seed."""
        ...


class CaseReplay(NamedTuple):
    """A stored case, perhaps with another fault planted, perhaps only up to an operation."""

    path: Path
    stored: Case
    plant: str | None
    until: int | None

    def run(self) -> SeedResult:
        """Run its operations."""
        stored = self.stored
        plant = stored.plant if self.plant is None else self.plant
        return run_trace(stored.setup, stored.operations, plant=plant, until=self.until)

    def about(self) -> About:
        """What is run; a stored trace was drawn by no strategy any more."""
        return About(self.stored.scenario, self.stored.setup.ranks, None)

    def title(self) -> str:
        """Seed, scenario and length."""
        stored = self.stored
        return (
            f"seed {stored.seed}  scenario {stored.scenario}  case of {len(stored.operations)}"
            " operations"
        )

    def command(self) -> str:
        """The command line that does this."""
        words = [] if self.plant is None else ["--plant", self.plant]
        words += [] if self.until is None else ["--until", str(self.until)]
        return " ".join([replay_command(self.path), *map(quoted, words)])

    def case(self, result: SeedResult, violation: Violation) -> Case:
        """The stored case with what is seen now."""
        return msgspec.structs.replace(self.stored, operations=result.trace, violation=violation)

    def expected(self) -> Violation | None:
        """What it was stored for, unless the replay stops before."""
        stored = self.stored.violation
        seen_at = min(stored.operation, len(self.stored.operations) - 1)
        return stored if self.until is None or self.until >= seen_at else None

    def planted(self) -> str | None:
        """What a case was stored for is promised, and nothing else."""
        return None

    def stored_at(self) -> str | None:
        """Its file."""
        return str(self.path)


class SeedReplay(NamedTuple):
    """One seed, generated again; up to an operation, it is then brought to rest."""

    work: SeedWork
    seed: int
    until: int | None

    def run(self) -> SeedResult:
        """Generate and run it."""
        return self._shortened().run(self._job())

    def about(self) -> About:
        """What is run."""
        return self.work.about()

    def title(self) -> str:
        """Seed, scenario and strategy."""
        about = self.about()
        return f"seed {self.seed}  scenario {about.scenario}  strategy {about.strategy}"

    def command(self) -> str:
        """The command line that does this."""
        return self._shortened().command(0, str(self.seed))

    def case(self, result: SeedResult, violation: Violation) -> Case:
        """What failed, as a case."""
        return self.work.case(self._job(), result, violation)

    def expected(self) -> Violation | None:
        """A seed promises nothing."""
        return None

    def planted(self) -> str | None:
        """What was planted, unless the replay may stop before it shows."""
        return self.work.plant if self.until is None else None

    def stored_at(self) -> str | None:
        """No file."""
        return None

    def _job(self) -> Job:
        return Job(0, 0, self.seed)

    def _shortened(self) -> SeedWork:
        return self.work if self.until is None else self.work.up_to(self.until + 1)


class ReplayOutcome(NamedTuple):
    """What two runs proved.

    Attributes:
        status: the exit status.
        said: the same as a sentence.
        result: of the first run.
        violation: what it found, the expected one if it is among them; None if nothing.
        tally: its figures.
        seconds: wall time of both runs.
    """

    status: Exit
    said: str
    result: SeedResult
    violation: Violation | None
    tally: Tally
    seconds: float


def replay_twice(subject: Replayable) -> ReplayOutcome:
    """Run something twice in this process and judge what is seen."""
    begin, busy = time.monotonic(), time.process_time()
    first = subject.run()
    tally = Tally()
    tally.add(first, time.process_time() - busy)
    second = subject.run()
    found = seen(first.violations, _signature(subject.expected()))
    status, said = judge(first, second.digest, subject.expected(), subject.planted())
    return ReplayOutcome(status, said, first, found, tally, time.monotonic() - begin)


def judge(
    first: SeedResult,
    second_digest: str,
    expected: Violation | None,
    planted: str | None = None,
) -> tuple[Exit, str]:
    """Exit status and sentence for a result.

    Args:
        first: the result.
        second_digest: of its second run.
        expected: the violation that was stored.
        planted: the fault that must be caught.
    """
    found = seen(first.violations, _signature(expected))
    if first.digest != second_digest:
        return Exit.NOT_DETERMINISTIC, f"not deterministic: {first.digest}, then {second_digest}"
    if found is not None:
        if expected is None or found.signature == expected.signature:
            return Exit.VIOLATION, f"fails: {found.signature}"
        return (
            Exit.VIOLATION,
            f"fails in another way: {found.signature}; stored: {expected.signature}",
        )
    if expected is not None:
        return Exit.MISSED, f"no longer fails; stored: {expected.signature}"
    if not first.operations:
        return Exit.NOTHING_RAN, "nothing ran"
    if planted is not None:
        return Exit.MISSED, f"does not fail; planted fault {planted} was not caught"
    return Exit.CLEAN, "does not fail"


def _signature(violation: Violation | None) -> str | None:
    return None if violation is None else violation.signature
