"""Worlds with a past: real runs up to a moment that a test describes.

A test spoils such a world by hand and asks every check at once, so it sees both that its own check
reports and that no other one does.
"""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from harness.check import (
    Examiner,
    capacity,
    conservation,
    content,
    divergence,
    host_reads,
    idle,
    ledger,
    mapping,
    noted,
    ordering,
    ownership,
)
from harness.choices import SeedChoices
from harness.generate import Generator
from harness.loading import load_scenario
from harness.requests import Phase, Request
from harness.runner import Run
from harness.scenario import Scenario
from harness.setup import draw_setup
from harness.unikv_subject import UnikvSubject
from harness.violation import Violation
from harness.world import World
from unikv.alloc.band import Band

SCENARIOS = Path(__file__).parents[2] / "scenarios"
OPERATIONS_MAX = 150
SEEDS_MAX = 60

EXAMINERS: tuple[Examiner, ...] = (
    noted.examine,
    ordering.examine,
    content.examine,
    ownership.examine,
    mapping.examine,
    divergence.examine_submissions,
    divergence.examine,
    host_reads.examine,
    conservation.examine,
    ledger.examine,
    capacity.examine,
    idle.examine,
)


@cache
def scenario(name: str) -> Scenario:
    """A scenario of this repository."""
    return load_scenario(SCENARIOS / f"{name}.yaml")


def moments(name: str, seed: int) -> Iterator[Run]:
    """One run, after every operation of it."""
    choices = SeedChoices(seed)
    family = scenario(name)
    run = Run(draw_setup(family, choices), None)
    generator = Generator(family, choices, "random", None)
    for _ in range(OPERATIONS_MAX):
        generator.heard(run.execute(generator.next(run.world)))
        assert run.violations == []
        yield run


def run_when(name: str, is_reached: Callable[[World], object]) -> Run:
    """A run of a scenario, stopped at the first moment that is as described."""
    for seed in range(SEEDS_MAX):
        for run in moments(name, seed):
            if is_reached(run.world):
                return run
    raise AssertionError(f"no moment of {SEEDS_MAX} seeds of {name} is as described")


def world_when(name: str, is_reached: Callable[[World], object]) -> World:
    """The world of a run of a scenario, at the first moment that is as described."""
    return run_when(name, is_reached).world


def examine(world: World) -> list[Violation]:
    """What every check reports of a world as it is now."""
    world.books = world.subjects[0].books()
    found = [violation for check in EXAMINERS for violation in check(world)]
    world.truth.problems.clear()
    return found


def reports(world: World) -> list[tuple[str, str]]:
    """What is reported of a world: the check and the kind of break."""
    return [(violation.check, violation.detail) for violation in examine(world)]


def reported(world: World) -> tuple[str, str, str]:
    """The one thing that is reported of a world: check, kind of break, and the sentence."""
    (violation,) = examine(world)
    return violation.check, violation.detail, violation.what


def bands(world: World, band: int) -> list[Band]:
    """One band as every rank's allocator has it."""
    return [subject.storage.chain.bands[band] for subject in allocators(world)]


def allocators(world: World) -> list[UnikvSubject]:
    """Every rank's allocator."""
    found = [subject for subject in world.subjects if isinstance(subject, UnikvSubject)]
    assert len(found) == len(world.subjects)
    return found


def running(world: World) -> list[Request]:
    """Requests that hold pages."""
    return [r for r in world.requests.values() if r.phase is Phase.RUNNING]


def is_busy(world: World) -> bool:
    """Two requests run, a recorded step is in flight, and nothing is half done."""
    return len(running(world)) >= 2 and bool(world.steps) and world.open_step is None


def may_launch(world: World) -> bool:
    """The engine's loop allows one more step now."""
    return world.open_step is None and len(world.steps) < world.setup.steps_in_flight
