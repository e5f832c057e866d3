"""Speed of the harness: checked operations per second, the price of the checks, worlds per second.

Run as `python -m benchmarks.harness [SCENARIO ...]`.  All figures are CPU time of one core and come
from one process, interleaved, so that ratios hold on a noisy machine.  Every seed is run several
times and its least time counts: other work on the machine can only add to it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path
from time import process_time

from harness.choices import SeedChoices
from harness.device.clock import Conflict, SpaceClock
from harness.generate import Generator
from harness.loading import load_scenario
from harness.runner import Run
from harness.scenario import Scenario
from harness.setup import draw_setup
from harness.violation import Violation
from harness.world import World

SEEDS = range(1, 41)
ROUNDS = 4
OPERATIONS = 400


class UncheckedSpace(SpaceClock):
    """Memory whose accesses nobody compares."""

    __slots__ = ()

    def read(
        self, lane: int, epoch: int, clock: Sequence[int], units: Sequence[int]
    ) -> Conflict | None:
        """Check nothing."""
        return None

    def write(
        self, lane: int, epoch: int, clock: Sequence[int], units: Sequence[int]
    ) -> Conflict | None:
        """Check nothing."""
        return None


class UncheckedRun(Run):
    """The same run with no clocks and no checks between operations.

    What the engine computes while it builds a step (the bytes that each page must hold) stays.
    """

    def _check(self) -> list[Violation]:
        return []


def measure(scenario: Scenario, kind: type[Run], seed: int) -> tuple[float, int, int]:
    """CPU seconds, applied operations and page accesses of one seed."""
    start = process_time()
    choices = SeedChoices(seed)
    run = kind(draw_setup(scenario, choices), None)
    if kind is UncheckedRun:
        device = run.world.device
        for space in (device.arena, device.rows, *device.maps):
            space.__class__ = UncheckedSpace
    generator = Generator(scenario, choices, "swarm", None)
    for _ in range(OPERATIONS):
        generator.heard(run.execute(generator.next(run.world)))
    result = run.result("", seed)
    assert not result.violations
    return process_time() - start, result.applied, result.counters["page_accesses"]


def report(path: Path) -> None:
    """Print the figures of one scenario."""
    scenario = load_scenario(path)
    times = {kind: dict.fromkeys(SEEDS, inf) for kind in (Run, UncheckedRun)}
    applied = accesses = 0
    for _ in range(ROUNDS):
        applied = accesses = 0
        for seed in SEEDS:
            for kind, least in times.items():
                seconds, count, touched = measure(scenario, kind, seed)
                least[seed] = min(least[seed], seconds)
            applied += count
            accesses += touched
    checked, unchecked = (sum(least.values()) for least in times.values())
    setups = [draw_setup(scenario, SeedChoices(seed)) for seed in SEEDS]
    start = process_time()
    for setup in setups:
        World(setup)
    build = (process_time() - start) / len(setups)
    print(
        f"{path.stem:12s} {applied / checked:9.0f} checked operations/s"
        f"  {checked / unchecked:5.2f} x the time without checks"
        f"  {build * 1e6:6.0f} us to build a world"
        f"  {accesses / applied:5.1f} page accesses an operation"
    )


def main() -> None:
    """Print one line per scenario, and how fast this core is at nothing in particular."""
    gc.disable()  # as within every run of the harness
    paths = [Path(name) for name in sys.argv[1:]] or sorted(Path("scenarios").glob("*.yaml"))
    start = process_time()
    total = 0
    for number in range(2_000_000):
        total += number
    print(f"a plain loop: {2 / (process_time() - start):.1f} million additions/s on this core")
    for path in paths:
        report(path)


if __name__ == "__main__":
    main()
