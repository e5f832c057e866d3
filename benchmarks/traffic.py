"""Recorded requests through the fully checked harness, until every one has come and ended.

    python -m benchmarks.traffic --traffic FILE [--requests N|all] [--scenario FILE ...]

One run keeps every launch until its end, so its memory grows with its length.  The recording is
therefore cut into stretches of consecutive requests: each is a run of its own, with its own seed
and its own world, and starts with an empty arena and an empty prefix cache.

A row per model: operations tried, of which some were skipped or refused and the others count, the
pace of one core in counted operations, and what happened per 10,000 of them.  When a request
arrives is up to the seed; the recording decides only the order, the lengths and the prefixes.
What an operation or a check is, is not known here.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import NamedTuple

from harness.choices import SeedChoices
from harness.errors import InputError
from harness.generate import Generator
from harness.ops import Abort, Arrive, Operation
from harness.runner import Run, SeedResult
from harness.setup import draw_setup
from harness.shrinking import shrink_case
from harness.sweep.artifacts import command_folder
from harness.sweep.findings import Findings
from harness.sweep.jobs import Job
from harness.sweep.loading import check_fault, load_named
from harness.sweep.tally import PER_10K, Tally, never_ran
from harness.sweep.verdict import Exit
from harness.sweep.workload import NamedScenario, SeedWork
from harness.traffic import Traffic, load_traffic
from harness.ways_out import WaysOut
from shrink import Budget

MODELS = Path("scenarios/models")
REQUESTS, STRETCH = 2000, 100
STRATEGY = "swarm"

PATIENCE = 1000
"""Operations in which no request comes or ends, after which the oldest one gives up."""

SHRINK_SECONDS = 20.0

COLUMNS = (
    "model", "requests", "runs", "operations", "skipped", "refused", "counted", "seconds",
    "counted/s", *(name.replace("_", " ") for name in PER_10K), "gave up", "violations",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive requests for one world.

    Attributes:
        named: the scenario that the world is drawn from.
        seed: all the chance of the run.
        traffic: the requests.
        plant: id of a planted fault; None for the allocator as it is.
    """

    named: NamedScenario
    seed: int
    traffic: Traffic
    plant: str | None


class Served(NamedTuple):
    """What came of a stretch, how many requests gave up, and seconds of processor time."""

    result: SeedResult
    gave_up: int
    seconds: float


class Service:
    """One world while the requests of a stretch come and go.

    Invariant: `_to_come` requests of the stretch have not arrived, and none arrives twice.
    Changed by `serve` alone.

    Attributes:
        run: the checked run.
        gave_up: requests that were sent away because nothing came or ended any more.
    """

    def __init__(self, stretch: Stretch) -> None:
        scenario, choices = stretch.named.scenario, SeedChoices(stretch.seed)
        self.run = Run(draw_setup(scenario, choices), stretch.plant)
        self.gave_up = 0
        self._world = self.run.world
        self._generator = Generator(
            scenario, choices, STRATEGY, stretch.traffic, self._world.subjects[0].families
        )
        self._to_come = len(stretch.traffic.requests)

    def serve(self) -> None:
        """Go on until all have come and ended and the world is at an empty rest, or a violation."""
        world, run = self._world, self.run
        patience = PATIENCE
        while (self._to_come or world.requests) and not run.violations:
            before = (self._to_come, len(world.requests))
            self._act(self._generator.next(world))
            patience = patience - 1 if before == (self._to_come, len(world.requests)) else PATIENCE
            # A seed may leave out what ends requests, or draw an arena too small for one of them.
            if not patience and world.requests and not run.violations:
                self._generator.heard(run.execute(Abort(next(iter(world.requests)))))
                self.gave_up += 1
                patience = PATIENCE
        for operation in run.finish():
            if run.violations:
                return
            run.execute(operation)

    def _act(self, operation: Operation) -> None:
        if isinstance(operation, Arrive):
            # The generator would begin the recording again.
            if not self._to_come:
                return
            self._to_come -= 1
        self._generator.heard(self.run.execute(operation))


def serve(stretch: Stretch) -> Served:
    """Run one stretch; the collector pauses, since a run lets go of nothing before its end."""
    gc.disable()
    try:
        start = process_time()
        service = Service(stretch)
        service.serve()
        result = service.run.result(stretch.named.name, stretch.seed)
        return Served(result, service.gave_up, process_time() - start)
    finally:
        gc.enable()


def stretches(
    named: NamedScenario, traffic: Traffic, length: int, first_seed: int, plant: str | None
) -> list[Stretch]:
    """The recording in pieces of `length` requests, with seeds from `first_seed` on."""
    pieces = [
        Traffic(traffic.requests[at : at + length], traffic.source)
        for at in range(0, len(traffic.requests), length)
    ]
    seeds = count(first_seed)
    return [Stretch(named, seed, piece, plant) for seed, piece in zip(seeds, pieces, strict=False)]


def served(work: Sequence[Stretch], workers: int) -> Iterator[Served]:
    """Results in order of the stretches, whatever the number of processes."""
    if workers == 1:
        yield from map(serve, work)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        yield from pool.map(serve, work)


def report(named: NamedScenario, result: SeedResult, plant: str | None, artifacts: Path) -> str:
    """Store the failed run as a case, make it smaller, and say what broke."""
    work = SeedWork((named,), result.operations, plant, strategy=STRATEGY)
    violation = result.violations[0]
    case = work.case(Job(0, 0, result.seed), result, violation)
    findings = Findings(command_folder(artifacts, "traffic"))
    findings.add_case(case)
    finding = findings.all()[0]
    end = process_time() + SHRINK_SECONDS
    findings.add_smaller(finding, shrink_case(case, Budget(deadline=lambda: process_time() > end)))
    return findings.report(finding)


def row(named: NamedScenario, tally: Tally, requests: int, gave_up: int, violations: int) -> str:
    """One model's line of the table."""
    tried = max(1, tally.operations)
    rates = tally.per_10k()
    cells = (
        named.name,
        requests,
        tally.seeds,
        f"{tally.operations:,}",
        f"{tally.skipped / tried:.1%}",
        f"{tally.refused / tried:.1%}",
        f"{tally.applied:,}",
        f"{tally.busy_seconds:.0f}",
        f"{tally.operations_per_second():,.0f}",
        *(f"{rates[name]:,.0f}" for name in PER_10K),
        gave_up,
        violations,
    )
    return f"| {' | '.join(map(str, cells))} |"


def run_models(given: argparse.Namespace) -> Exit:
    """Run every model and print its row; stop at the first violation with its report.

    Raises:
        InputError: if a file, a name or a number cannot be used.
    """
    limit = request_limit(given.requests)
    for option, least in (("stretch", 1), ("jobs", 1), ("seed", 0)):
        value = getattr(given, option)
        if value < least:
            raise InputError(f"--{option}: {value}: want {least} or more")
    if given.plant is not None:
        check_fault("--plant", given.plant)
    paths = given.scenario or sorted(map(str, MODELS.glob("*.yaml")))
    if not paths:
        raise InputError(f"{MODELS}: no *.yaml here; name scenarios with --scenario")
    models = load_named(paths)
    traffic = load_traffic(given.traffic, limit)
    print(
        f"{len(traffic.requests)} requests of {traffic.source}, cut into runs of {given.stretch}"
        f" requests each, every run with a seed (from {given.seed} on) and a world of its own;"
        f" strategy {STRATEGY}\nmoves and what follows are per 10,000 counted operations\n"
    )
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}", flush=True)
    total = Tally()
    for named in models:
        tally, requests, gave_up = Tally(), 0, 0
        work = stretches(named, traffic, given.stretch, given.seed, given.plant)
        for stretch, (result, left, seconds) in zip(work, served(work, given.jobs), strict=True):
            tally.add(result, seconds)
            total.add(result, seconds)
            requests += len(stretch.traffic.requests)
            gave_up += left
            if result.violations:
                print(row(named, tally, requests, gave_up, 1))
                print(f"\n{report(named, result, given.plant, given.artifacts)}")
                return Exit.VIOLATION
        print(row(named, tally, requests, gave_up, 0), flush=True)
    print(f"\nno violation; checks that never ran: {', '.join(never_ran(total)) or 'none'}")
    return Exit.CLEAN if given.plant is None else Exit.MISSED


def request_limit(text: str) -> int | None:
    """`all` or how many of the first requests.

    Raises:
        InputError: if it is neither.
    """
    if text == "all":
        return None
    if text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text):
        return int(text)
    raise InputError(f"--requests: {text!r}: want a number of 1 or more, or all")


def main(arguments: Sequence[str] | None = None) -> Exit:
    """Read the arguments and run; an `Exit` as its status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.traffic")
    parser.add_argument("--traffic", type=Path, required=True, help="recorded requests, JSON lines")
    parser.add_argument("--requests", default=str(REQUESTS), help=f"N or all; default {REQUESTS}")
    parser.add_argument("--scenario", nargs="+", help=f"files; default {MODELS}/*.yaml")
    parser.add_argument("--stretch", type=int, default=STRETCH, help="requests of one run")
    parser.add_argument("--seed", type=int, default=1, help="of the first run of every model")
    parser.add_argument("--jobs", type=int, default=1, help="processes; default 1")
    parser.add_argument("--plant", help="plant this fault; it should then be found")
    parser.add_argument("--artifacts", type=Path, default=Path("artifacts"), help="for a finding")
    return run_models(parser.parse_args(arguments))


if __name__ == "__main__":
    with WaysOut():
        sys.exit(main())
