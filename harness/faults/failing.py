"""Failing runs of a planted fault, one seed after the other, and how to run one again.

The insight: how well failures shrink is a question about many seeds of one fault, so here a hunt
does not end where the fault was seen for the first time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from harness.faults.fault import Fault, Ground
from harness.faults.hunt import OPERATIONS, SEEDS_MAX
from harness.faults.trials import AT_ONCE, try_seed, try_trace
from harness.known_runs import KnownRuns, Watch
from harness.ops.base import Op
from harness.runner import run_seed
from harness.scenario import Scenario, Setup
from harness.shrinking import Run
from harness.violation import Violation


@dataclass(frozen=True, slots=True)
class Failing:
    """One seed in which a check saw the fault as what it is."""

    scenario: str
    seed: int
    setup: Setup
    operations: tuple[Op, ...]
    violation: Violation


def failing_runs(
    fault: Fault,
    scenarios: Mapping[str, Scenario],
    *,
    seeds: int = SEEDS_MAX,
    operations: int = OPERATIONS,
) -> Iterator[Failing | None]:
    """Every run of a hunt that does not end at its first report; None where a run shows nothing.

    Args:
        fault: planted anew for each run.
        scenarios: by name; the fault's own comes first.
        seeds: how many seeds of each scenario to run, from 1 on.
        operations: operations of one seed.
    """
    order = sorted(scenarios, key=lambda name: (name != fault.scenario, name))
    for name in order:
        for seed in range(1, seeds + 1):
            setup, trace, violations = _run(fault, scenarios[name], name, seed, operations)
            seen = next(filter(fault.explains, violations), None)
            yield Failing(name, seed, setup, trace, seen) if seen is not None else None


def runner_for(fault: Fault, watch: Watch = nullcontext) -> Run:
    """Runs given operations in new worlds with the fault; `watch` ends what never comes back."""

    if fault.ground is Ground.OPERATIONS:
        return KnownRuns(fault.id, watch=watch)

    def run(setup: Setup, operations: Sequence[Op]) -> Sequence[Violation]:
        return try_trace(fault, setup, operations, AT_ONCE).violations

    return run


def _run(
    fault: Fault, scenario: Scenario, name: str, seed: int, operations: int
) -> tuple[Setup, tuple[Op, ...], tuple[Violation, ...]]:
    if fault.ground is Ground.OPERATIONS:
        result = run_seed(scenario, name, seed, operations, plant=fault.id)
        return result.setup, result.trace, result.violations
    trial = try_seed(fault, fault.ground, scenario, seed, operations, AT_ONCE)
    return trial.setup, trial.trace, trial.violations
