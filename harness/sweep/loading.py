"""From names on a command line to what can be run: scenarios, a planted fault, traffic.

Everything is read and checked here, before a folder is made or a seed is run, so a command that
is refused has done nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.case import load_case
from harness.errors import InputError
from harness.faults.ablation import ablated
from harness.faults.catalog import FAULTS
from harness.loading import load_scenario
from harness.printed import shown
from harness.program import DEFAULT_SCENARIOS
from harness.sweep.replay import CaseReplay
from harness.sweep.workload import NamedScenario, Recording, SeedWork
from harness.traffic import load_traffic

TRAFFIC_REQUESTS_MAX = 200_000
"""Requests of a recording that are read; every worker process holds them all."""


def check_fault(place: str, fault: str) -> None:
    """See that there is a planted fault of that id.

    Raises:
        InputError: with the known ones.
    """
    if fault not in FAULTS:
        raise InputError(f"{place}: {fault!r}: no such fault; known: {', '.join(FAULTS)}")


def check_ablated(place: str, fault: str) -> None:
    """See that a planted fault takes out an edge.

    Raises:
        InputError: with those that do.
    """
    if fault not in ablated():
        raise InputError(
            f"{place}: {fault!r}: takes out no edge; allowed: {', '.join(ablated())}; any other"
            " fault is hunted without --edges"
        )


def load_named(paths: Sequence[str]) -> tuple[NamedScenario, ...]:
    """Scenarios and their names.

    Raises:
        InputError: if a file is no scenario, or two have one name.
    """
    named: dict[str, NamedScenario] = {}
    for text in paths:
        path = Path(text)
        name = shown(path.stem)
        if name in named:
            raise InputError(
                f"--scenario: {text!r}: {named[name].path} has the same name, {name!r}; want names"
                " that differ"
            )
        named[name] = NamedScenario(name, path, load_scenario(path))
    return tuple(named.values())


def default_scenarios() -> list[str]:
    """The scenarios that come with the project, as paths from here where that is shorter.

    Raises:
        InputError: if there are none.
    """
    found = sorted(DEFAULT_SCENARIOS.glob("*.yaml"))
    if not found:
        raise InputError(f"{DEFAULT_SCENARIOS}: no *.yaml; name scenarios with --scenario")
    here = Path.cwd()
    return [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in found]


def seed_work(
    scenarios: Sequence[str],
    operations: int,
    *,
    plant: str | None = None,
    ranks: int | None = None,
    strategy: str = "swarm",
    traffic: str | None = None,
) -> SeedWork:
    """Everything that the seeds of a command share, loaded and checked.

    Raises:
        InputError: if a file cannot be used.
    """
    if plant is not None:
        check_fault("--plant", plant)
    recording = None
    if traffic is not None:
        recording = Recording(Path(traffic), load_traffic(Path(traffic), TRAFFIC_REQUESTS_MAX))
    return SeedWork(load_named(scenarios), operations, plant, ranks, strategy, recording)


def load_replay(path: Path, plant: str | None, until: int | None) -> CaseReplay:
    """A stored case, to be run again; `plant` overrides its own fault.

    Raises:
        InputError: if it cannot be used here.
    """
    if plant is not None:
        check_fault("--plant", plant)
    stored = load_case(path)
    if stored.plant is not None:
        check_fault(f"{path}: plant", stored.plant)
    return CaseReplay(path, stored, plant, until)
