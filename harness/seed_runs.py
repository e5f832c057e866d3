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
from typing import cast

import msgspec

from harness.case import CASE_VERSION, Case, Drawn, load_case, save_case
from harness.known_runs import KnownRuns
from harness.loading import load_scenario
from harness.ops import Operation
from harness.ops.base import Op
from harness.report.folder import REPORT, files_of, plain_report
from harness.report.text import render
from harness.runner import SeedResult, run_seed, run_trace
from harness.scenario import Scenario
from harness.shrinking import shrink_trace
from harness.sweep.artifacts import command_folder, new_folder, write_files
from harness.sweep.findings import replay_command
from harness.sweep.patience import alarmed
from harness.sweep.replay import seen
from harness.sweep.tally import Tally
from harness.unikv_subject import UnikvSubject
from harness.world import SubjectFactory
from shrink import Budget
from unikv import __version__

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
            subject: the allocator under test.
            operations: operations of one seed.
            strategy: `random` or `swarm`.
            ranks: instead of the scenario's.
            plant: id of a planted fault in unikv, to see that a test can fail.

        Returns:
            The figures of all runs together.

        Raises:
            BrokenPromise: with the report, the case's folder and the command that shows it again.
            InputError: if a file cannot be used.
        """
        __tracebackhide__ = True
        totals = Tally()
        if self.stored is not None:
            case = load_case(self.stored)
            result = run_trace(case.setup, case.operations, plant=case.plant, subject=subject)
            totals.add(result, 0.0)
            found = seen(result.violations, case.violation)
            if found is not None:
                case = msgspec.structs.replace(case, violation=found)
                raise BrokenPromise(render(case, found, self._command(subject, self.stored)))
            return totals
        name = self.test.rpartition("::")[2]
        if not isinstance(scenario, Scenario):
            name, scenario = Path(scenario).stem, load_scenario(Path(scenario))
        run = partial(run_seed, scenario, name, plant=plant, subject=subject)
        for seed in range(1, self.seeds + 1):
            result = run(seed, operations, ranks=ranks, strategy=strategy)
            totals.add(result, 0.0)
            if result.violations:
                drawn = Drawn(strategy=strategy, ranks=ranks, traffic="")
                case = _case(scenario, result, plant, drawn)
                raise BrokenPromise(self._written(case, subject))
        return totals

    def _written(self, case: Case, subject: SubjectFactory) -> str:
        """Write a failing case and the same made small; the report of the small one."""
        folder = command_folder(self.artifacts, "pytest")
        folder = new_folder(folder, case.violation.short_signature)
        save_case(folder / "case.json", case)
        small = _smaller(case, subject)
        path = folder / "min.json"
        save_case(path, small)
        command = self._command(subject, path)
        text = render(small, small.violation, command)
        files = files_of(small, command, subject)
        write_files(folder, files or {REPORT: plain_report(text).encode()})
        return f"{text}\ncase folder\n  {folder}\n"

    def _command(self, subject: SubjectFactory, path: Path) -> str:
        if subject is UnikvSubject:
            return replay_command(path)
        return f"python -m pytest {shlex.join([self.test, '--unikv-replay', str(path)])}"


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


def _smaller(case: Case, subject: SubjectFactory) -> Case:
    """A short case with the same signature."""
    signature = case.violation.signature
    run = KnownRuns(case.plant, subject, alarmed)

    def fails(trace: Sequence[Op]) -> bool:
        return any(v.signature == signature for v in run(case.setup, trace))

    trace = shrink_trace(case.operations, fails, Budget(executions_max=SHRINK_EXECUTIONS_MAX))
    violation = next(v for v in run(case.setup, trace) if v.signature == signature)
    operations = cast(tuple[Operation, ...], trace)
    return msgspec.structs.replace(case, operations=operations, violation=violation)
