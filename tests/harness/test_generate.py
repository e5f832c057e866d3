"""The generator: an engine that was refused waits until something is given back."""

from collections import Counter
from collections.abc import Iterator

import pytest

from harness.choices import SeedChoices
from harness.generate import Generator
from harness.ops import Admit, Chunk, Decode, Operation, Outcome
from harness.runner import Run
from harness.setup import draw_setup
from harness.world import World
from tests.harness.lived_in import scenario

SEEDS = range(1, 9)
OPERATIONS = 200


def drawn(name: str, seed: int) -> Iterator[tuple[World, Operation, Outcome]]:
    """Every operation of a run, with the world that it left and how it ended."""
    choices, family = SeedChoices(seed), scenario(name)
    run = Run(draw_setup(family, choices), None)
    generator = Generator(family, choices, "random", None)
    for _ in range(OPERATIONS):
        operation = generator.next(run.world)
        outcome = run.execute(operation)
        generator.heard(outcome)
        yield run.world, operation, outcome


@pytest.mark.parametrize("name", ["smoke", "full_only"])
def test_few_takes_are_tried_while_nothing_was_given_back(name: str) -> None:
    tried: Counter[bool] = Counter()
    for seed in SEEDS:
        frees_when_refused = -1
        for world, operation, outcome in drawn(name, seed):
            if isinstance(operation, Admit | Chunk | Decode):
                tried[world.frees == frees_when_refused] += 1
                if outcome is Outcome.REFUSED:
                    frees_when_refused = world.frees
    assert 0 < tried[True] < tried[False] / 4


def test_requests_are_queued_or_running() -> None:
    for seed in SEEDS:
        for world, _, _ in drawn("smoke", seed):
            assert world.requests.keys() == world.queued.keys() | world.running.keys()
            assert not world.queued.keys() & world.running.keys()
            assert all(request.row < 0 for request in world.queued.values())
            assert all(request.row >= 0 for request in world.running.values())
