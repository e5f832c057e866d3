"""Calls that no operation makes are refused, and translations kept, where nothing is broken."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from harness.choices import SeedChoices
from harness.faults.fault import Ground
from harness.faults.kept import KeepingWorld, Translate, UseTranslation
from harness.faults.mistakes import Mistake
from harness.faults.trials import AT_ONCE, Caller, TrialRun, try_seed
from harness.loading import load_scenario
from harness.ops.base import Outcome
from harness.scenario import Scenario
from harness.setup import draw_setup
from harness.world import World

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = [path.stem for path in sorted(SCENARIOS.glob("*.yaml"))]


@cache
def scenario(name: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.yaml")


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_where_nothing_is_broken(name: str, seed: int) -> None:
    trial = try_seed(None, Ground.CALLS, scenario(name), seed, 400, AT_ONCE)
    assert not trial.violations
    assert trial.applied > 100


def test_every_kind_of_call_is_made() -> None:
    made: Counter[str] = Counter()
    for seed in range(1, 5):
        choices = SeedChoices(seed)
        world = KeepingWorld(draw_setup(scenario("smoke"), choices))
        run, caller = TrialRun(world, AT_ONCE), Caller(scenario("smoke"), choices)
        for _ in range(300):
            operation = caller.next(world)
            outcome = run.execute(operation)
            caller.heard(outcome)
            made[type(operation).__name__] += outcome is Outcome.DONE
    assert all(made[kind.__name__] for kind in (Translate, UseTranslation, Mistake))


@pytest.mark.parametrize("operation", [Translate(), UseTranslation(), Mistake(0)])
def test_no_such_call_is_made_in_another_world(
    operation: Translate | UseTranslation | Mistake,
) -> None:
    world = World(draw_setup(scenario("smoke"), SeedChoices(1)))
    assert operation.apply(world) is Outcome.SKIPPED
