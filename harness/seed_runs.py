"""Seeds of a scenario inside somebody's test: a broken promise is a failed assertion with a report.

The command line knows no other allocator than unikv.  So for a subject of your own, the command
that shows a case again is the test itself, told to run that case instead of seeds.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from harness.case import CASE_VERSION, Case, Drawn, load_case
from harness.errors import InputError
from harness.known_runs import KnownRuns
from harness.loading import load_scenario
from harness.mistakes import NO_ANSWERS
from harness.ops.base import Op
from harness.options import OPERATIONS_MAX
from harness.printed import shown
from harness.report.text import render
from harness.runner import SeedResult, run_seed, run_trace
from harness.scenario import RANKS_MAX, STRATEGIES, Scenario, Setup
from harness.shrinking import Means, Met, Run, Smaller, shrink_run, smaller_case
from harness.subject import Subject
from harness.sweep.artifacts import command_folder
from harness.sweep.findings import Finding, Findings, replay_command
from harness.sweep.interrupts import Interrupts
from harness.sweep.loading import check_fault
from harness.sweep.patience import Measured
from harness.sweep.smaller import make_small
from harness.sweep.tally import Tally
from harness.unikv_subject import UnikvSubject
from harness.violation import Violation, seen
from harness.world import SubjectFactory
from shrink import Budget
from unikv import __version__
from unikv.device.port import CopyDevice, StorageLayout

SHRINK_EXECUTIONS_MAX = 2000
"""A test has no clock, so making a case small is bounded by runs: some seconds of them."""


class BrokenPromise(AssertionError):
    """A check found something; the text is the report."""


@dataclass(frozen=True, slots=True)
class SeedRuns:
    """Runs seeds of a scenario, or one stored case, and fails at the first broken promise.

    Attributes:
        seeds: how many: 1, 2, ... up to this one.
        artifacts: where a failing case goes, in a new folder.
        stored: a case to run instead of seeds; None runs seeds.
        test: the test's own name on a command line.
    """

    seeds: int
    artifacts: Path
    stored: Path | None
    test: str

    def __call__(
        self,
        scenario: Scenario | Path | str,
        *,
        subject: SubjectFactory = UnikvSubject,
        operations: int = 400,
        strategy: str = "swarm",
        ranks: int | None = None,
        plant: str | None = None,
    ) -> Tally:
        """Run them all.

        Args:
            scenario: a file, or what was loaded from one.
            subject: the allocator under test. A failing case is simplified to no storage that it
                refuses to be built for by an `UnikvError`, a `ValueError` or the like.
            operations: operations of one seed.
            strategy: `random` or `swarm`.
            ranks: instead of the scenario's.
            plant: id of a planted fault in unikv, to see that a test can fail.

        Returns:
            The figures of all runs together.

        Raises:
            BrokenPromise: with the report, the case's folder and the command that shows it again.
            InputError: if a file cannot be used, or an argument is none that can be run.
        """
        __tracebackhide__ = True
        _check_arguments(operations, strategy, ranks, plant)
        if self.stored is not None:
            return self._run_again(self.stored, subject)
        totals = Tally()
        name = self.test.rpartition("::")[2]
        if not isinstance(scenario, Scenario):
            name, scenario = shown(Path(scenario).stem), load_scenario(Path(scenario))
        run = partial(run_seed, scenario, name, plant=plant, subject=subject)
        for seed in range(1, self.seeds + 1):
            result = run(seed, operations, ranks=ranks, strategy=strategy)
            totals.add(result, 0.0)
            if result.violations:
                drawn = Drawn(strategy=strategy, ranks=ranks, traffic="")
                case = _case(scenario, result, plant, drawn)
                raise BrokenPromise(self._written(case, subject))
        return totals

    def _run_again(self, path: Path, subject: SubjectFactory) -> Tally:
        """Run a stored case; its figures, where nothing is broken."""
        __tracebackhide__ = True
        case = load_case(path)
        if case.plant is not None:
            check_fault(f"{path}: plant", case.plant)
        result = run_trace(case.setup, case.operations, plant=case.plant, subject=subject)
        found = seen(result.violations, case.violation.signature)
        if found is not None:
            case = msgspec.structs.replace(case, violation=found)
            raise BrokenPromise(render(case, found, self._command(subject, path)))
        totals = Tally()
        totals.add(result, 0.0)
        return totals

    def _written(self, case: Case, subject: SubjectFactory) -> str:
        """Write a failing case and the same made small; the report of the small one."""
        folder = command_folder(self.artifacts, "pytest")
        findings = Findings(folder, subject, partial(self._command, subject))
        findings.add_case(case)
        make_small(findings, partial(_shorter, subject), Interrupts(), count_max=1)
        first, *met = findings.all()
        lines = [findings.report(first).rstrip("\n"), "", "case folder", f"  {first.folder}"]
        for other in met:
            lines += ["another failure met on the way", f"  {other.signature}", f"  {other.folder}"]
        return "\n".join(lines) + "\n"

    def _command(self, subject: SubjectFactory, path: Path) -> str:
        if subject is UnikvSubject:
            return replay_command(path)
        return f"python -m pytest {shlex.join([self.test, '--unikv-replay', str(path)])}"


def _check_arguments(operations: int, strategy: str, ranks: int | None, plant: str | None) -> None:
    """See that seeds can be run with these.

    Raises:
        InputError: if not, with what is allowed.
    """
    _check("operations", operations, range(1, OPERATIONS_MAX + 1))
    _check("strategy", strategy, STRATEGIES)
    if ranks is not None:
        _check("ranks", ranks, range(1, RANKS_MAX + 1))
    if plant is not None:
        check_fault("plant", plant)


def _check(name: str, value: object, allowed: Sequence[object]) -> None:
    """See that an argument of `unikv_run` is one of what is allowed.

    Raises:
        InputError: if it is not.
    """
    if value not in allowed:
        raise InputError(
            f"unikv_run: {name}={value!r}: want {allowed[0]!r} to {allowed[-1]!r}"
            if isinstance(allowed, range)
            else f"unikv_run: {name}={value!r}: want {' or '.join(map(repr, allowed))}"
        )


def _case(scenario: Scenario, result: SeedResult, plant: str | None, drawn: Drawn) -> Case:
    return Case(
        version=CASE_VERSION,
        unikv=__version__,
        scenario=result.scenario,
        scenario_data=scenario,
        setup=result.setup,
        seed=result.seed,
        plant=plant,
        operations=result.trace,
        violation=result.violations[0],
        drawn=drawn,
    )


def _shorter(subject: SubjectFactory, finding: Finding, case: Case, met: Met) -> Smaller:
    """The smallest case found that fails likewise.

    Raises:
        DoesNotFail: if a run of the case, or of what is left of it, does not fail likewise.
    """
    measured = Measured()
    budget = Budget(SHRINK_EXECUTIONS_MAX, measured.is_lost)
    signature = case.violation.signature
    built = partial(_built, subject)
    run = _CandidateRuns(KnownRuns(case.plant, built, measured.watch))
    reduction = shrink_run(
        case.setup, case.operations, run, signature, budget, means=Means(met=met)
    )
    again = _CandidateRuns(KnownRuns(case.plant, built, measured.watch))
    return smaller_case(case, reduction, again)


class _RefusedStorage(Exception):
    """Somebody's own allocator is for other storages than a candidate has."""


def _built(subject: SubjectFactory, layout: StorageLayout, device: CopyDevice) -> Subject:
    """The subject on one rank.

    Raises:
        _RefusedStorage: if it cannot be built for this storage.
    """
    try:
        return subject(layout, device)
    except NO_ANSWERS as error:
        raise _RefusedStorage from error


@dataclass(frozen=True, slots=True)
class _CandidateRuns:
    """Runs candidates on a subject that may refuse a storage which is none of its author's."""

    run: Run

    def __call__(self, setup: Setup, operations: Sequence[Op]) -> Sequence[Violation]:
        """What is found first; nothing where the subject cannot be built."""
        try:
            return self.run(setup, operations)
        except _RefusedStorage:
            return ()
