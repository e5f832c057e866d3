"""Ledger: a page that is free too early or pending too long is reported, and a write not shared."""

import msgspec

from harness.faults.catalog import FAULTS
from harness.ops import (
    Abort,
    Admit,
    Arrive,
    BeginReceive,
    BeginSave,
    Flush,
    Launch,
    Operation,
    SubmitCopy,
)
from harness.runner import run_trace
from harness.scenario import HostSetup, NetworkSetup, Setup
from harness.simpler_setup import with_small_pages
from harness.subject import HoldRecord
from harness.subject import Use as UseRecord
from harness.unikv_subject import UnikvSubject
from harness.world import World
from tests.harness.backed import run_of, setup_of
from tests.harness.lived_in import allocators, bands, is_busy, reports, running, world_when
from unikv.alloc.band import HOLE, LIVE, PENDING
from unikv.alloc.page_usage import Use


def has_inner(world: World, state: int) -> bool:
    """The low end has a page in this state behind its frontier, and something is in flight."""
    if not is_busy(world):
        return False
    states = world.books[0].states
    return 0 < states.find(state) < states.rfind(LIVE)


def test_a_page_that_is_free_under_a_running_step_is_reported() -> None:
    world = world_when(
        "smoke",
        lambda world: (
            has_inner(world, PENDING)
            and world.truth.retired_through < min(world.truth.pending[0].values())
        ),
    )
    page = world.books[0].states.find(PENDING)
    for band in bands(world, 0):
        band.release_pending([page])
    assert reports(world) == [("ledger", "free too early")]


def test_a_page_that_is_free_once_its_steps_are_over_is_not_reported() -> None:
    world = world_when("smoke", lambda world: has_inner(world, PENDING))
    world.truth.settled_through = world.steps[-1].number
    page = world.books[0].states.find(PENDING)
    for band in bands(world, 0):
        band.release_pending([page])
    for subject in allocators(world):
        subject.storage.chain.ledger.end_writes(world.steps[-1].number)
    assert reports(world) == []


def test_a_page_that_pends_on_nothing_is_reported() -> None:
    world = world_when("smoke", lambda world: has_inner(world, HOLE) and not world.truth.pending[0])
    page = world.books[0].states.find(HOLE)
    for band in bands(world, 0):
        band.occupy_holes([page])
        band.pend_live([page])
    assert reports(world) == [("ledger", "kept too long")]


def test_a_write_that_no_step_makes_is_reported() -> None:
    world = world_when("smoke", is_busy)
    for subject in allocators(world):
        subject.storage.chain.ledger.add(Use.FORWARD_WRITE, 0, [1], world.steps[-1].number + 1)
    assert reports(world) == [("ledger", "writes differ")]


def test_a_write_that_the_allocator_forgot_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and len(world.subjects[0].uses()))
    for subject in allocators(world):
        subject.storage.chain.ledger.end_writes(world.steps[-1].number)
    assert reports(world) == [("ledger", "writes differ")]


def test_a_move_under_unknown_writes_is_reported() -> None:
    world = world_when(
        "smoke",
        lambda world: is_busy(world) and world.truth.newest_unknown > world.truth.retired_through,
    )
    world.truth.moved(0, [])
    assert ("ledger", "move under unknown writes") in reports(world)


STORAGE = with_small_pages(setup_of(), 1, 1)
SAVED: tuple[Operation, ...] = (
    Arrive("r0", 1, 0),
    Admit("r0", 1),
    Launch(("r0",)),
    BeginSave("copy1", "r0"),
    SubmitCopy("copy1"),
)


def storage_with_a_host() -> Setup:
    """One band of one page, and host memory for it."""
    setup = msgspec.structs.replace(STORAGE, bands=STORAGE.bands[-1:], overlap=False)
    page = setup.bands[0].page_bytes
    host = (HostSetup(total_bytes=page, bands=(0,)),)
    return msgspec.structs.replace(setup, ranks=1, total_bytes=2 * page, host=host)


def test_a_copy_is_compared_as_soon_as_it_is_submitted() -> None:
    result = run_trace(storage_with_a_host(), SAVED, plant="backup-without-its-last-page")
    assert [(v.check, v.detail, v.operation) for v in result.violations] == [
        ("ledger", "copies differ", len(SAVED) - 1)
    ]


def test_a_copy_that_is_forgotten_while_nothing_else_changes_is_reported() -> None:
    run = run_of(storage_with_a_host(), *SAVED)
    for subject in allocators(run.world):
        fences = subject.storage.chain.ledger.fences
        fences.end(fences.newest)
    run.execute(Flush(1))
    assert [(v.check, v.detail, v.what) for v in run.violations] == [
        ("ledger", "copies differ", "the allocator's ledger lacks a backup that reads bytes 8..16")
    ]


def test_of_two_copies_of_the_same_bytes_the_second_is_missed() -> None:
    run = run_of(storage_with_a_host(), *SAVED)
    copies = run.world.truth.copies
    (use,) = copies.uses.values()
    copies.uses["another"] = use
    copies.revision += 1
    run.execute(Flush(1))
    assert [v.what for v in run.violations] == [
        "the allocator's ledger lacks a backup that reads bytes 8..16"
    ]


class _NoSuchBand(UnikvSubject):
    def holds(self) -> list[HoldRecord]:
        return [HoldRecord("network_send", 9, frozenset({1}), isolated=False)]

    def uses(self) -> list[UseRecord]:
        return [UseRecord("forward_write", -1, frozenset(), 4)]


def test_an_account_of_a_band_that_there_is_not_is_reported() -> None:
    setup = msgspec.structs.replace(
        storage_with_a_host(), host=(), network=NetworkSetup(patience=1, refusals=0)
    )
    result = run_trace(setup, (Arrive("r0", 1, 0), Flush(1)), subject=_NoSuchBand)
    assert [v.what for v in result.violations] == [
        "the allocator's ledger still has the write of step 4 to any page of band -1 (none)",
        "the allocator's ledger still has pages [1] of band 9 (none) that a send's peer reads",
    ]


def test_a_hold_that_is_over_in_one_account_alone_is_reported() -> None:
    network = NetworkSetup(patience=1, refusals=0)
    setup = msgspec.structs.replace(storage_with_a_host(), host=(), network=network)
    run = run_of(setup, Arrive("r0", 1, 0), BeginReceive("transfer1", 0, "r0"))
    run.execute(Flush(1))
    assert run.violations == []
    run.world.truth.transfers.held.clear()
    run.execute(Flush(1))
    held = "pages [1] of band 'full' held for a receive"
    assert [(v.check, v.detail, v.what) for v in run.violations] == [
        ("ledger", "holds differ", f"the allocator's ledger still has {held}")
    ]


# Behind a settle --------------------------------------------------------------------------------


def settled(world: World) -> bool:
    """Pages are held, and the newest step in flight is settled."""
    newest = world.truth.newest_recorded
    return is_busy(world) and 0 < newest <= world.truth.retired_through


def test_a_page_freed_behind_a_settle_pends_again() -> None:
    world = world_when("smoke", settled)
    Abort(running(world)[0].name).apply(world)
    assert world.truth.problems == []


def test_a_page_freed_behind_a_settle_and_free_at_once_is_reported() -> None:
    world = world_when("smoke", settled)
    FAULTS["free-behind-a-settle-at-once"].plant(world)
    Abort(running(world)[0].name).apply(world)
    found = [(problem.check, problem.detail) for problem in world.truth.problems]
    assert set(found) == {("ledger", "free too early behind a settle")}
