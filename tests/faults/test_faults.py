"""Every planted fault is seen, by a check that may see it, for what it is."""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from harness.check import PROMISES
from harness.choices import SeedChoices
from harness.errors import InputError
from harness.faults.ablation import first_collision
from harness.faults.catalog import FAULTS
from harness.faults.fault import Fault
from harness.faults.hunt import SEEDS_MAX, attempts, hunt
from harness.faults.network_parts import rounds
from harness.faults.parts import storages, subjects, tiers
from harness.faults.trials import WORLDS
from harness.loading import load_scenario
from harness.rules import rule_of
from harness.runner import run_seed
from harness.scenario import Scenario
from harness.setup import draw_setup
from harness.states import Tracked
from harness.static_subject import StaticSubject
from harness.world import World
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher

SCENARIOS = Path(__file__).parents[2] / "scenarios"

SEEDS = SEEDS_MAX
"""Seeds of each scenario in which a fault has to show; nearly all show in the first few."""

REACHED = {
    Toucher.HAND_OUT,
    Toucher.MOVE_SOURCE,
    Toucher.TABLE_WRITE,
    Toucher.GROWTH,
    Toucher.FORWARD,
    Toucher.ROW_RESTORE,
    Toucher.LOAD_COPY,
    Toucher.BACKUP_COPY,
}
"""Touchers that act in some world here; the others wait for operations of their own."""

SAME_AS_KNOWN = {
    (Toucher.FORWARD, InFlight.UNKNOWN_FORWARD),
    (Toucher.ROW_RESTORE, InFlight.UNKNOWN_FORWARD),
    (Toucher.LOAD_COPY, InFlight.UNKNOWN_FORWARD),
    (Toucher.BACKUP_COPY, InFlight.UNKNOWN_FORWARD),
}
"""What a step writes makes no difference there: one fault breaks both."""

KEPT_TWICE = {(Toucher.LOAD_COPY, InFlight.LOAD)}
"""Whoever hands a page to a load has waited the load before, so their stream adds nothing."""

NOT_WORDS = re.compile(r" object at 0x|frozenset|<\w+\.\w+:|\(\(|\[\(|,\)|step (0|-1)\b")
"""What an object prints as, and numbers that stand for nothing, in a sentence for a reader."""

CELLS = [
    cell
    for cell, rule in CLEARANCE.items()
    if cell[0] in REACHED and cell not in KEPT_TWICE and rule is not Clearance.NONE
]
"""Cells that ask for something of somebody."""


@cache
def scenarios() -> dict[str, Scenario]:
    return {path.stem: load_scenario(path) for path in sorted(SCENARIOS.glob("*.yaml"))}


@cache
def clean_digest(name: str) -> str:
    return run_seed(scenarios()[name], name, 1, 40).digest


def fresh_world(fault: Fault) -> World:
    return WORLDS[fault.ground](draw_setup(scenarios()[fault.scenario], SeedChoices(1)))


def allocator_parts(world: World) -> Iterator[object]:
    for storage in storages(world):
        chain = storage.chain
        yield from (storage.requests, chain, chain.steps, chain.ledger, chain.reclaim)
        yield from (chain.mover, chain.relief, *chain.minted.values())
        yield from (chain.ledger.fences, chain.ledger.held, chain.users, chain.relief._waiter)
        for band in chain.bands:
            yield from (band, band.ids)
    for subject in subjects(world):
        yield subject.row_memory
    for tier in tiers(world):
        yield from (tier, *tier.memory.pools)
    for part in rounds(world):
        yield from (part, part.board, part.board.quarantine, part.sends, part.receives)
    if isinstance(world.states, Tracked):
        yield world.states.slots
    yield from world.engine.statics.buffers


def breaks_allocator_code(fault: Fault) -> bool:
    world = fresh_world(fault)
    fault.plant(world)
    return any(map(is_broken, allocator_parts(world)))


def is_broken(part: object) -> bool:
    return type(part).__module__.startswith("harness.faults.")


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_is_caught_for_what_it_is(fault: Fault) -> None:
    caught = hunt(fault, scenarios(), seeds=SEEDS)
    assert caught.caught, f"{caught.check or 'nothing'} after {caught.operations} operations"
    assert caught.violation is not None
    assert fault.explains(caught.violation)
    assert not NOT_WORDS.search(caught.violation.what)
    assert bool(rule_of(caught.violation.detail)) != bool(caught.violation.missing_edge)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_fault_leaves_nothing_behind(fault: Fault) -> None:
    before = clean_digest(fault.scenario)
    next(attempts(fault, scenarios(), seeds=1, operations=40))
    assert run_seed(scenarios()[fault.scenario], fault.scenario, 1, 40).digest == before


@pytest.mark.parametrize("promise", PROMISES)
def test_promise_has_a_fault_that_it_alone_may_catch(promise: str) -> None:
    assert any(fault.checks == (promise,) for fault in FAULTS.values())


@pytest.mark.parametrize("promise", PROMISES)
def test_promise_is_proven_against_a_lie(promise: str) -> None:
    proofs = [fault for fault in FAULTS.values() if fault.together == promise]
    assert any(hunt(fault, scenarios(), seeds=SEEDS).check == promise for fault in proofs)


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_clearance_cell_is_ablated(cell: tuple[Toucher, InFlight]) -> None:
    if cell in SAME_AS_KNOWN:
        assert CLEARANCE[cell] is CLEARANCE[cell[0], InFlight.FORWARD]
        return
    name = f"CLEARANCE[{cell[0].value}, {cell[1].value}]"
    assert any(fault.ablates == name for fault in FAULTS.values()), name


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
    assert ("ordering" in fault.checks) == bool(fault.edge) == all(fault.pair)
    assert set(fault.ahead) <= set(fault.checks) - {"ordering"}
    assert fault.edge or not fault.ahead


@pytest.mark.parametrize(
    "fault",
    [fault for fault in FAULTS.values() if fault.ahead],
    ids=lambda fault: fault.id,
)
def test_order_alone_names_the_accesses_of_what_another_check_sees_first(fault: Fault) -> None:
    collision = first_collision(fault, scenarios())
    assert collision is not None
    assert fault.explains(collision)


@pytest.mark.parametrize("fault", ["host-slot-freed-twice", "released-twice"])
def test_fault_of_a_part_that_is_not_there_breaks_nothing(fault: str) -> None:
    world = World(draw_setup(scenarios()["smoke"], SeedChoices(1)))
    FAULTS[fault].plant(world)
    assert not any(map(is_broken, allocator_parts(world)))


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
