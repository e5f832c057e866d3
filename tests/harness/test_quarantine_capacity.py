"""Pages of transfers that were given up: no take counts on them, and no host waits for them."""

from collections.abc import Collection, Iterable

import pytest

from harness.choices import SeedChoices
from harness.faults.parts import in_held
from harness.generate import Generator
from harness.runner import Run
from harness.setup import draw_setup
from harness.world import World
from tests.harness.lived_in import allocators, reports, scenario, world_when
from unikv.alloc.signals import HeldPages
from unikv.alloc.use import Use
from unikv.errors import Shortage


class Forgetful(HeldPages):
    """A ledger that does not hear that a transfer was given up."""

    __slots__ = ()

    def isolate(self, name: str) -> None:
        """Nothing."""


class Hopeful(HeldPages):
    """A ledger that knows what was given up and lets layouts count on a wait for it."""

    __slots__ = ()

    def kept(self, band: int, uses: Iterable[Use]) -> set[int]:
        """Pages of these kinds of holds only."""
        return self.pages(band, uses)

    def transfers(self, bands: Collection[int]) -> list[str]:
        """Transfers that touch one of `bands`, given up or not."""
        isolated, self.isolated = self.isolated, set()
        try:
            return super().transfers(bands)
        finally:
            self.isolated = isolated


def first_report(broken: type[HeldPages]) -> tuple[str, str]:
    """What is reported first of runs with a broken ledger."""
    family = scenario("peers")
    for seed in range(60):
        choices = SeedChoices(seed)
        run = Run(draw_setup(family, choices), None)
        in_held(broken)(run.world)
        generator = Generator(family, choices, "random", None)
        for _ in range(250):
            generator.heard(run.execute(generator.next(run.world)))
            if run.violations:
                return run.violations[0].check, run.violations[0].detail
    return "", ""


@pytest.mark.parametrize(
    ("broken", "report"),
    [
        (Forgetful, ("ledger", "holds differ")),
        (Hopeful, ("capacity", "wait for an isolated transfer")),
    ],
)
def test_a_ledger_that_takes_a_quarantine_for_something_else_is_reported(
    broken: type[HeldPages], report: tuple[str, str]
) -> None:
    assert first_report(broken) == report


def is_in_the_way(world: World) -> bool:
    """A page of the owner fits, but only if a transfer that was given up moves."""
    truth = world.truth
    return (
        world.open_step is None
        and bool(truth.transfers.isolated)
        and not world.subjects[0].fits(1, 0)
        and any(truth.transfers.stuck[world.owner_band])
        and truth.held_count[-1] < world.layout.bands[-1].id_count
    )


def test_a_refusal_for_a_quarantine_is_confirmed() -> None:
    world = world_when("peers", is_in_the_way)
    world.capacity_answers.append((Shortage("bytes", "", 1, 0), (1, 1)))
    assert reports(world) == []


def test_the_same_refusal_without_the_quarantine_is_not() -> None:
    world = world_when("peers", is_in_the_way)
    for subject in allocators(world):
        subject.storage.chain.ledger.held.isolated.clear()
    world.truth.transfers.isolated.clear()
    world.capacity_answers.append((Shortage("bytes", "", 1, 0), (1, 1)))
    assert ("capacity", "refused bytes that are there") in reports(world)
