"""Hunting a planted fault: seeds from 1 on, with default settings, until a check has seen it.

A limit is a number of seeds, never a time: whoever wants to know how long it took reads a clock
around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness.faults.fault import Fault, Ground
from harness.faults.trials import AT_ONCE, try_seed
from harness.runner import SeedResult, run_seed
from harness.scenario import Scenario
from harness.violation import Violation

SEEDS_MAX = 60
"""Seeds of each scenario after which a fault counts as missed."""

OPERATIONS = 400
"""Operations of one seed, as the command line has it."""


@dataclass(frozen=True, slots=True)
class Catch:
    """What a hunt has found so far.

    Attributes:
        caught: whether a check that may see the fault has reported it as what it is.
        check: that check, or the one that reported something else; empty where none did.
        scenario, seed: of the last run.
        operations: operations applied over all runs of the hunt.
        violation: the report; None where there was none.
        result: the last run, whose trace fails where there is a violation.
    """

    caught: bool
    check: str
    scenario: str
    seed: int
    operations: int
    violation: Violation | None
    result: SeedResult


def attempts(
    fault: Fault,
    scenarios: Mapping[str, Scenario],
    *,
    seeds: int = SEEDS_MAX,
    operations: int = OPERATIONS,
) -> Iterator[Catch]:
    """The hunt after each of its runs; the last one is its outcome.

    The fault's own scenario is tried first.  The hunt ends at the first report that is the fault,
    and at one that no allowed check made: then the fault shows as something that it is not.  A
    report by an allowed check that lacks the right accesses or edge is passed over.

    Args:
        fault: planted anew for each run.
        scenarios: by name.
        seeds: how many seeds of each scenario to try, from 1 on.
        operations: operations of one seed.
    """
    applied = 0
    order = sorted(scenarios, key=lambda name: (name != fault.scenario, name))
    for name in order:
        for seed in range(1, seeds + 1):
            result = _RUNS[fault.ground](fault, scenarios[name], name, seed, operations)
            applied += result.applied
            seen = next(filter(fault.explains, result.violations), None)
            shown = seen or next(iter(result.violations), None)
            check = shown.check if shown else ""
            yield Catch(seen is not None, check, name, seed, applied, shown, result)
            if seen is not None or (shown is not None and not _may_pass(fault, shown)):
                return


def hunt(
    fault: Fault,
    scenarios: Mapping[str, Scenario],
    *,
    seeds: int = SEEDS_MAX,
    operations: int = OPERATIONS,
) -> Catch:
    """Hunt to the end; arguments as in `attempts`."""
    *_, last = attempts(fault, scenarios, seeds=seeds, operations=operations)
    return last


def _with_operations(
    fault: Fault, scenario: Scenario, name: str, seed: int, operations: int
) -> SeedResult:
    return run_seed(scenario, name, seed, operations, plant=fault.id)


def _with_calls(
    fault: Fault, scenario: Scenario, name: str, seed: int, operations: int
) -> SeedResult:
    trial = try_seed(fault, fault.ground, scenario, seed, operations, AT_ONCE)
    return SeedResult(
        scenario=name,
        seed=seed,
        operations=len(trial.trace),
        applied=trial.applied,
        refused=0,
        skipped=0,
        checks={},
        probes={},
        counters={},
        violations=trial.violations,
        digest="",
        # A stored trace has operations of scenarios only.
        trace=(),
        setup=trial.setup,
    )


_RUNS: Mapping[Ground, Callable[[Fault, Scenario, str, int, int], SeedResult]] = {
    Ground.OPERATIONS: _with_operations,
    Ground.CALLS: _with_calls,
}


def _may_pass(fault: Fault, violation: Violation) -> bool:
    """Whether a run that ended in this report says nothing against the fault's own.

    An ordering fault may be seen by another allowed check first; two accesses that are not the
    right ones, or a check that is not allowed, are a wrong report.
    """
    return violation.check in fault.checks and violation.check != "ordering"
