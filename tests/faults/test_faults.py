"""Every planted fault is seen, by a check that may see it, for what it is."""

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from harness.check import PROMISES
from harness.choices import SeedChoices
from harness.errors import InputError
from harness.faults.catalog import FAULTS
from harness.faults.fault import Fault
from harness.faults.hunt import attempts, hunt
from harness.faults.parts import become, storages
from harness.generate import Generator
from harness.loading import load_scenario
from harness.runner import Run, run_seed
from harness.scenario import Scenario, draw_setup
from harness.static_subject import StaticSubject
from harness.world import World
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.fences import Fences, Ranges
from unikv.alloc.signals import HeldPages
from unikv.alloc.use import Use
from unikv.device.port import Event

SCENARIOS = Path(__file__).parents[2] / "scenarios"

SEEDS = 30
"""Seeds of each scenario in which a fault has to show; nearly all show in the first."""

EDGES = {
    "edge F <- S (launch)",
    "edge F <- X (record)",
    "edge S <- shared-read end (barrier)",
    "edge S <- all of F (barrier, no read end)",
    "edge step event on F (record)",
    "edge host <- step (process)",
    "edge host <- step (staging)",
    "edge S <- step (settle)",
    "edge S <- newest writer (move)",
    "edge S <- newest recorded step (relief)",
}
"""Every wait and event that the operations reach."""

OUT_OF_REACH = {InFlight.BACKUP, InFlight.LOAD, InFlight.NETWORK}
"""The allocator has calls for copies and transfers; no operation makes one."""

SAME_AS_KNOWN = {(Toucher.FORWARD, InFlight.UNKNOWN_FORWARD)}
"""On the forward stream a step of unknown writes runs like any other: one fault breaks both."""


SCENARIO_NAMES = [path.stem for path in sorted(SCENARIOS.glob("*.yaml"))]


class NoCopies(Fences):
    __slots__ = ()

    def add(self, use: Use, ranges: Ranges, event: Event) -> int:
        raise AssertionError("an operation copies: plant a fault in each cell of backup and load")


class NoTransfers(HeldPages):
    __slots__ = ()

    def add(self, name: str, use: Use, band: int, pages: Collection[int]) -> None:
        raise AssertionError("an operation transfers: plant a fault in each cell of network")


@cache
def scenarios() -> dict[str, Scenario]:
    return {path.stem: load_scenario(path) for path in sorted(SCENARIOS.glob("*.yaml"))}


@cache
def clean_digest(name: str) -> str:
    return run_seed(scenarios()[name], name, 1, 40).digest


def fresh_world(name: str) -> World:
    return World(draw_setup(scenarios()[name], SeedChoices(1)))


def allocator_parts(world: World) -> Iterator[object]:
    for storage in storages(world):
        chain = storage.chain
        yield from (storage.requests, chain, chain.steps, chain.ledger, chain.reclaim)
        yield from (chain.mover, chain.relief, *chain.minted.values())
        for band in chain.bands:
            yield from (band, band.ids)


def breaks_allocator_code(fault: Fault) -> bool:
    world = fresh_world(fault.scenario)
    fault.plant(world)
    return any(type(part).__module__.startswith("harness.") for part in allocator_parts(world))


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_caught_for_what_it_is(fault: Fault) -> None:
    caught = hunt(fault, scenarios(), seeds=SEEDS)
    assert caught.caught, f"{caught.check or 'nothing'} after {caught.operations} operations"
    assert caught.violation is not None
    assert fault.explains(caught.violation)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_leaves_nothing_behind(fault: Fault) -> None:
    before = clean_digest(fault.scenario)
    run_seed(scenarios()[fault.scenario], fault.scenario, 1, 40, plant=fault.id)
    assert run_seed(scenarios()[fault.scenario], fault.scenario, 1, 40).digest == before


@pytest.mark.parametrize("promise", PROMISES)
def test_promise_has_a_fault_that_it_alone_may_catch(promise: str) -> None:
    assert any(fault.checks == (promise,) for fault in FAULTS.values())


@pytest.mark.parametrize("promise", PROMISES)
def test_promise_is_proven_against_a_lie(promise: str) -> None:
    proofs = [fault for fault in FAULTS.values() if fault.together == promise]
    assert any(hunt(fault, scenarios(), seeds=SEEDS).check == promise for fault in proofs)


@pytest.mark.parametrize(
    "cell", [cell for cell in CLEARANCE if cell[1] not in OUT_OF_REACH], ids=str
)
def test_clearance_cell_is_ablated(cell: tuple[Toucher, InFlight]) -> None:
    if cell in SAME_AS_KNOWN:
        assert CLEARANCE[cell] is Clearance.SAME_STREAM
        return
    name = f"CLEARANCE[{cell[0].value}, {cell[1].value}]"
    assert any(fault.ablates == name for fault in FAULTS.values()), name


@pytest.mark.parametrize("name", SCENARIO_NAMES)
def test_cell_without_a_fault_is_out_of_reach(name: str) -> None:
    choices = SeedChoices(1)
    run = Run(draw_setup(scenarios()[name], choices), None)
    for storage in storages(run.world):
        become(storage.chain.ledger.fences, NoCopies)
        become(storage.chain.ledger.held, NoTransfers)
    generator = Generator(scenarios()[name], choices, "random", None)
    for _ in range(200):
        generator.heard(run.execute(generator.next(run.world)))
    assert not run.violations


def test_every_edge_is_ablated() -> None:
    ablated = {fault.ablates for fault in FAULTS.values() if fault.ablates.startswith("edge ")}
    assert ablated == EDGES


def test_more_than_half_break_allocator_code() -> None:
    broken = [fault.id for fault in FAULTS.values() if breaks_allocator_code(fault)]
    assert 2 * len(broken) > len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_described_in_known_words(fault: Fault) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", fault.id)
    assert fault.checks
    assert set(fault.checks) <= set(PROMISES)
    assert fault.together in {"", *PROMISES}
    assert fault.scenario in scenarios()
    assert len(fault.reports) == len(fault.rows)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_ordering_fault_names_its_accesses(fault: Fault) -> None:
    if fault.edge:
        assert "ordering" in fault.checks
        assert all(fault.pair)
    else:
        assert fault.pair == ("", "")


def test_hunt_ends_at_a_check_that_may_not_see_the_fault() -> None:
    fault = replace(FAULTS["copy-forgotten"], checks=("idle",))
    last = hunt(fault, scenarios(), seeds=SEEDS)
    assert not last.caught
    assert last.check == "content"


def test_ordering_report_of_another_edge_is_no_catch() -> None:
    fault = replace(FAULTS["barrier-dropped"], edge="forward <- load")
    last = hunt(fault, scenarios(), seeds=SEEDS)
    assert not last.caught
    assert last.check == "ordering"


def test_hunt_gives_up_after_its_seeds() -> None:
    fault = replace(FAULTS["promise-without-ids"], scenario="smoke")
    tried = list(attempts(fault, {"smoke": scenarios()["smoke"]}, seeds=2))
    assert [catch.seed for catch in tried] == [1, 2]
    assert not tried[-1].caught


def test_hunt_is_the_same_twice() -> None:
    fault = FAULTS["settle-without-wait"]
    first, second = (hunt(fault, scenarios(), seeds=SEEDS) for _ in range(2))
    assert first.operations == second.operations
    assert first.violation == second.violation


def test_other_subject_refuses_a_fault() -> None:
    world = World(draw_setup(scenarios()["smoke"], SeedChoices(1)), StaticSubject)
    with pytest.raises(InputError, match="StaticSubject"):
        FAULTS["copy-forgotten"].plant(world)
