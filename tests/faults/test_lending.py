"""Lending pages is safe where nothing is broken, and every kind of loan is made."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from harness.choices import SeedChoices
from harness.faults.fault import Ground
from harness.faults.lending import LendingWorld
from harness.faults.loans import Backup, Drop, Hold, Load, Publish, Return, Send
from harness.faults.trials import LENT, Lender, TrialRun, try_seed
from harness.loading import load_scenario
from harness.ops import Admit, Arrive, Launch, Record
from harness.ops.base import Op, Outcome
from harness.scenario import Scenario
from harness.setup import draw_setup
from harness.world import World

SCENARIOS = Path(__file__).parents[2] / "scenarios"
NAMES = [path.stem for path in sorted(SCENARIOS.glob("*.yaml"))]

ADMITTED = (Arrive("r0", 4, 4), Admit("r0", 4))
LAUNCHED = (*ADMITTED, Launch(("r0",)), Record())


@cache
def scenario(name: str) -> Scenario:
    return load_scenario(SCENARIOS / f"{name}.yaml")


def outcome_of(*trace: Op) -> Outcome:
    """How the last of some operations ends, in a lending world that finds nothing wrong."""
    world = LendingWorld(draw_setup(scenario("smoke"), SeedChoices(1)))
    run = TrialRun(world, LENT)
    *_, last = [run.execute(operation) for operation in trace]
    assert not run.violations
    return last


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_where_nothing_is_broken(name: str, seed: int) -> None:
    trial = try_seed(None, Ground.LENDING, scenario(name), seed, 400, LENT)
    assert not trial.violations
    assert trial.applied > 100


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_loan_is_made(name: str) -> None:
    made: Counter[str] = Counter()
    waits = 0
    for seed in range(1, 9):
        choices = SeedChoices(seed)
        world = LendingWorld(draw_setup(scenario(name), choices))
        run, lender = TrialRun(world, LENT), Lender(scenario(name), choices)
        for _ in range(300):
            operation = lender.next(world)
            outcome = run.execute(operation)
            lender.heard(outcome)
            made[type(operation).__name__] += outcome is Outcome.DONE
        waits += world.storages()[0].chain.counters.host_waits
    assert all(made[kind.__name__] for kind in (Backup, Load, Hold, Publish, Send, Drop, Return))
    assert waits, "no relief has waited for a transfer"


def test_a_loan_is_made_once() -> None:
    assert outcome_of(Hold("a", 1)) is Outcome.DONE
    assert outcome_of(Hold("a", 1), Hold("a", 1)) is Outcome.SKIPPED


def test_a_hold_is_published_once() -> None:
    assert outcome_of(Hold("a", 1), Publish("a"), Publish("a")) is Outcome.SKIPPED


def test_what_is_dropped_under_a_transfer_is_not_freed_again() -> None:
    trace = (Hold("a", 1), Publish("a"), Drop("a"), Return("a"))
    assert outcome_of(*trace) is Outcome.DONE
    assert outcome_of(*trace, Return("a")) is Outcome.SKIPPED


def test_a_load_fills_what_nobody_has_written() -> None:
    assert outcome_of(*ADMITTED, Load("a", "r0")) is Outcome.DONE
    assert outcome_of(*LAUNCHED, Load("a", "r0")) is Outcome.SKIPPED


def test_a_send_waits_for_the_steps_that_write_its_pages() -> None:
    assert outcome_of(*LAUNCHED, Backup("a", "r0")) is Outcome.DONE
    assert outcome_of(*LAUNCHED, Send("a", "r0")) is Outcome.SKIPPED


def test_no_loan_is_made_in_another_world() -> None:
    world = World(draw_setup(scenario("smoke"), SeedChoices(1)))
    assert Hold("a", 1).apply(world) is Outcome.SKIPPED
