"""What every seed of a command has in common: scenarios, length, planted fault, traffic.

It can be sent to another process whole, and it can write the command that runs one of its seeds
again, so the two never differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from harness.case import CASE_VERSION, Case, Drawn
from harness.printed import quoted, shown
from harness.runner import SeedResult, run_seed
from harness.scenario import Scenario
from harness.sweep.jobs import Job
from harness.traffic import Traffic
from harness.violation import Violation
from unikv import __version__

PROGRAM = "python -m harness"


class NamedScenario(NamedTuple):
    """A scenario, the file it came from, and its name: the file's stem."""

    name: str
    path: Path
    scenario: Scenario


class Recording(NamedTuple):
    """Recorded traffic and the file it came from."""

    path: Path
    traffic: Traffic


class About(NamedTuple):
    """What was run, in words: scenarios by name, ranks and strategy where there is only one."""

    scenario: str
    ranks: int | None
    strategy: str | None


@dataclass(frozen=True, slots=True)
class SeedWork:
    """Runs seeds of scenarios.

    Attributes:
        scenarios: at least one.
        operations: operations of one seed.
        plant: id of the planted fault; None for the allocator as it is.
        ranks: instead of the scenario's; None keeps them.
        strategy: `swarm` or `random`.
        recording: instead of generated requests; None generates them.
    """

    scenarios: tuple[NamedScenario, ...]
    operations: int
    plant: str | None = None
    ranks: int | None = None
    strategy: str = "swarm"
    recording: Recording | None = None

    def run(self, job: Job) -> SeedResult:
        """Run one seed to its end."""
        chosen = self.scenarios[job.scenario]
        return run_seed(
            chosen.scenario,
            chosen.name,
            job.seed,
            self.operations,
            plant=self.plant,
            ranks=self.ranks,
            strategy=self.strategy,
            traffic=self.recording.traffic if self.recording else None,
        )

    def name(self, job: Job) -> str:
        """The scenario's name."""
        return self.scenarios[job.scenario].name

    def case(self, job: Job, result: SeedResult, violation: Violation) -> Case:
        """A failed seed as a file that runs without its scenario or its traffic."""
        chosen = self.scenarios[job.scenario]
        return Case(
            version=CASE_VERSION,
            unikv=__version__,
            scenario=chosen.name,
            scenario_data=chosen.scenario,
            setup=result.setup,
            seed=job.seed,
            plant=self.plant,
            operations=result.trace,
            violation=violation,
            drawn=self.drawn(),
        )

    def drawn(self) -> Drawn:
        """How every seed is drawn."""
        traffic = shown(self.recording.path.name) if self.recording else ""
        return Drawn(strategy=self.strategy, ranks=self.ranks, traffic=traffic)

    def about(self) -> About:
        """What is run."""
        ranks = {self.ranks or named.scenario.ranks for named in self.scenarios}
        names = ",".join(named.name for named in self.scenarios)
        return About(names, ranks.pop() if len(ranks) == 1 else None, self.strategy)

    def probes(self) -> list[str]:
        """What the scenarios together must reach, each once."""
        wanted = {probe: None for named in self.scenarios for probe in named.scenario.probes}
        return list(wanted)

    def up_to(self, operations: int) -> SeedWork:
        """The same with at most so many operations a seed."""
        return replace(self, operations=min(self.operations, operations))

    def command(self, scenario: int, seed: str) -> str:
        """The command line that runs one seed again; `seed` is a number or stands for one."""
        return self._command(str(self.scenarios[scenario].path), seed)

    def command_form(self) -> str:
        """The command line that runs any seed again, with words in capitals to fill in."""
        alone = len(self.scenarios) == 1
        return self._command(str(self.scenarios[0].path) if alone else "SCENARIO", "SEED")

    def _command(self, scenario: str, seed: str) -> str:
        words = ["replay", "--scenario", scenario, "--seed", seed, "--ops", str(self.operations)]
        if self.strategy != "swarm":
            words += ["--strategy", self.strategy]
        if self.plant is not None:
            words += ["--plant", self.plant]
        if self.ranks is not None:
            words += ["--ranks", str(self.ranks)]
        if self.recording is not None:
            words += ["--traffic", str(self.recording.path)]
        return command_line(words)


def command_line(words: Sequence[str]) -> str:
    """The words of one command of this program, there to be copied."""
    return " ".join([PROGRAM, *map(quoted, words)])
