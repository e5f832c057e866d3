"""The quick gate: fixed seeds of every scenario, and what a healthy run of it must have reached.

The insight: a run that found nothing proves something only if it was under pressure, so a scenario
below its floors fails like one that found a bug.
"""

from __future__ import annotations

from harness.sweep.tally import PER_10K, Tally
from harness.sweep.workload import NamedScenario

SMOKE_SEEDS = range(1, 101)
SMOKE_OPERATIONS = 400


def shortfalls(named: NamedScenario, tally: Tally) -> list[str]:
    """Floors that a scenario did not reach, and probes, one sentence each."""
    floors, rates = named.scenario.floors, tally.per_10k()
    short = [
        f"{named.name}: {name} at {rates[name]} per 10,000 applied; floor {getattr(floors, name)}"
        for name in PER_10K
        if rates[name] < getattr(floors, name)
    ]
    short += [
        f"{named.name}: probe {name} not reached"
        for name in named.scenario.probes
        if not tally.probes[name]
    ]
    return short
