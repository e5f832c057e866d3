"""The same failing runs, made small here and by Hypothesis, in one process one after the other.

Hypothesis looks for an example that fails, and what it meets first is the common start of both.
It shrinks choices and knows nothing of what they come to mean: once as bytes of fixed number, and
once with every choice drawn as an integer in its own bounds, which is the form it is best at. The
figures are those of operations left, of runs, and of processor time.

    python -m benchmarks.shrink_faults
    python -m benchmarks.shrink_faults --faults freed-page-offered,move-over-writer
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from harness.choices import ByteChoices, Choices
from harness.faults.catalog import FAULTS
from harness.faults.failing import runner_for
from harness.faults.fault import Fault
from harness.generate import Generator
from harness.loading import load_scenario
from harness.ops.base import Op
from harness.runner import Run
from harness.scenario import Scenario, Setup
from harness.setup import draw_setup
from harness.shrinking import shrink_run
from harness.violation import Violation
from shrink import Budget

SCENARIOS = Path(__file__).parents[1] / "scenarios"
FAULTS_SHOWN = (
    "barrier-dropped",
    "freed-page-offered",
    "settle-without-wait",
    "state-read-before-written",
    "block-edge-short",
    "double-free-tolerated",
)
OPERATIONS = 120
BYTES = 3 * OPERATIONS
EXAMPLES_MAX = 300
EXECUTIONS_MAX = 4000


class Failed(AssertionError):
    """What the property of Hypothesis raises where the fault was seen."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One run of drawn operations."""

    setup: Setup
    operations: tuple[Op, ...]
    violation: Violation | None


@dataclass(slots=True)
class Watched:
    """What a search has met: the first failure, the last one, and the cost since the first.

    Invariant: `last` fails like `first`. Changed by `seen` alone.
    """

    first: Ran | None = None
    last: Ran | None = None
    runs: int = 0
    began: float = 0.0
    marks: list[float] = field(default_factory=list)

    def seen(self, ran: Ran) -> bool:
        """Count a run; whether it fails like the first that failed."""
        self.runs += self.first is not None
        if ran.violation is None:
            return False
        if self.first is None:
            self.first, self.began = ran, time.process_time()
        assert self.first is not None
        assert self.first.violation is not None
        if ran.violation.signature != self.first.violation.signature:
            return False
        self.last = ran
        return True


@dataclass(frozen=True, slots=True)
class Row:
    """One way to make one failure small."""

    operations: int
    runs: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.operations:4} {self.runs:6} {self.seconds:7.2f}"


def drawn(fault: Fault, scenario: Scenario, choices: Choices) -> Ran:
    """A run whose setup and operations follow from choices."""
    setup = draw_setup(scenario, choices)
    run = Run(setup, fault.id)
    generator = Generator(scenario, choices, "swarm", None, run.world.subjects[0].families)
    for _ in range(OPERATIONS):
        generator.heard(run.execute(generator.next(run.world)))
        if run.violations:
            break
    violation = next(filter(fault.explains, run.violations), None)
    return Ran(setup, tuple(run.trace), violation)


@dataclass(frozen=True, slots=True)
class DataChoices:
    """Choices that Hypothesis draws one by one, each in its own bounds."""

    data: st.DataObject

    def below(self, bound: int) -> int:
        """A number in `[0, bound)`."""
        return self.data.draw(st.integers(0, bound - 1))


def from_bytes(fault: Fault, scenario: Scenario) -> Watched:
    """Hypothesis on a string of bytes."""

    def run(watched: Watched, data: bytes) -> None:
        if watched.seen(drawn(fault, scenario, ByteChoices(data))):
            raise Failed

    return _search(
        lambda watched: given(st.binary(min_size=BYTES, max_size=BYTES))(
            lambda data: run(watched, data)
        )
    )


def from_integers(fault: Fault, scenario: Scenario) -> Watched:
    """Hypothesis on one integer for every choice."""

    def run(watched: Watched, data: st.DataObject) -> None:
        if watched.seen(drawn(fault, scenario, DataChoices(data))):
            raise Failed

    return _search(lambda watched: given(st.data())(lambda data: run(watched, data)))


def _search(build: Callable[[Watched], Callable[[], None]]) -> Watched:
    watched = Watched()
    quiet = settings(
        max_examples=EXAMPLES_MAX,
        database=None,
        deadline=None,
        derandomize=True,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        quiet(build(watched))()
    except Failed:
        watched.marks.append(time.process_time())
    return watched


def ours(fault: Fault, first: Ran) -> Row:
    """This project's shrinker on the failure that Hypothesis began with."""
    assert first.violation is not None
    begin = time.process_time()
    reduction = shrink_run(
        first.setup,
        first.operations,
        runner_for(fault),
        first.violation.signature,
        Budget(EXECUTIONS_MAX),
    )
    return Row(len(reduction.result) - 1, reduction.executions, time.process_time() - begin)


SEARCHES: Mapping[str, Callable[[Fault, Scenario], Watched]] = {
    "bytes": from_bytes,
    "integers": from_integers,
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--faults", default=",".join(FAULTS_SHOWN))
    wanted = parser.parse_args().faults.split(",")
    head = "operations, runs, cpu s"
    print(
        f"{'fault':32} {'choices':9} {'start':>5}  {'Hypothesis: ' + head:>34}  {'here: ' + head}"
    )
    for name in wanted:
        fault = FAULTS[name]
        scenario = load_scenario(SCENARIOS / f"{fault.scenario}.yaml")
        for choices, search in SEARCHES.items():
            watched = search(fault, scenario)
            if watched.first is None or watched.last is None:
                print(f"{name:32} {choices:9} nothing failed in {EXAMPLES_MAX} examples")
                continue
            seconds = watched.marks[0] - watched.began
            theirs = Row(len(watched.last.operations), watched.runs, seconds)
            start = len(watched.first.operations)
            print(f"{name:32} {choices:9} {start:5}  {theirs!s:>34}  {ours(fault, watched.first)}")


if __name__ == "__main__":
    main()
