"""Idle: whatever is left over once nothing is in flight is reported."""

from collections.abc import Callable

import pytest

from harness.ops.host_tier import acknowledge
from harness.peers import Handed
from harness.world import World
from tests.harness.lived_in import allocators, bands, is_busy, reports, running, world_when
from unikv.alloc.page_usage import Use
from unikv.disagg.prefill import NO_PARTS
from unikv.disagg.rounds import TransferRounds


def rested() -> World:
    """A world with requests in which nothing is in flight."""
    world = world_when("smoke", is_busy)
    world.come_to_rest()
    return world


def test_a_pending_page_is_reported() -> None:
    world = rested()
    unit = running(world)[0].pages[0]
    for band in bands(world, world.owner_band):
        band.pend_live([band.ids.forward[unit]])
    assert ("idle", "pages left over") in reports(world)


def test_a_use_is_reported() -> None:
    world = rested()
    for subject in allocators(world):
        subject.storage.chain.ledger.add(Use.VACATED, 0, [1], 1)
    assert reports(world) == [("idle", "uses left over")]


def test_a_row_that_nobody_gave_back_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and world.subjects[0].free_rows() > 0)
    world.come_to_rest()
    for subject in allocators(world):
        subject.take_row()
    assert reports(world) == [("idle", "rows leaked")]


def test_a_span_without_a_page_is_reported() -> None:
    world = rested()
    for name in list(world.requests):
        if world.requests[name] in running(world):
            world.release(world.requests[name])
    for key in list(world.prefixes):
        prefix = world.prefixes.pop(key)
        world.let_go(prefix.pages, prefix.tails)
    world.come_to_rest()
    assert reports(world) == []
    for band in bands(world, 0):
        band.claim(1, 3)
    assert ("idle", "span left over") in reports(world)


def rested_with_peers() -> World:
    """A world without a transfer, at rest."""
    world = world_when("peers", lambda world: is_busy(world) and not world.transfers.names())
    world.come_to_rest()
    return world


def test_a_transfer_that_engines_alone_know_is_reported() -> None:
    world = rested_with_peers()
    assert reports(world) == []
    assert world.network is not None
    world.network.handed["gone"] = Handed("peer0")
    assert reports(world) == [("idle", "engines know other transfers")]


def test_a_transfer_that_engines_have_forgotten_is_reported() -> None:
    world = rested_with_peers()
    world.truth.transfers.handed["here"] = 1
    assert reports(world) == [("idle", "engines know other transfers")]


@pytest.mark.parametrize(
    "remember",
    [
        lambda rounds: rounds.sends._parts.update(gone=NO_PARTS),
        lambda rounds: rounds.receives._held.update(gone=None),
        lambda rounds: rounds.board.aborts.stop("gone"),
        lambda rounds: rounds.board.aborts.owe("gone", "peer0"),
    ],
    ids=["parts", "rows", "veto", "answer"],
)
def test_what_is_kept_of_a_transfer_that_is_over_is_reported(
    remember: Callable[[TransferRounds], None],
) -> None:
    world = rested_with_peers()
    remember(allocators(world)[-1]._rounds)
    assert reports(world) == [("idle", "transfers remembered")]


def test_what_is_kept_of_a_copy_that_is_over_is_reported() -> None:
    world = world_when(
        "host_tier", lambda world: is_busy(world) and world.host.backups and not world.host.loads
    )
    tier = allocators(world)[0].storage.host
    assert tier is not None
    copy = next(iter(tier.copies.values()))
    world.come_to_rest()
    for name in world.host.submitted():
        acknowledge(world, name)
    assert reports(world) == []
    tier.copies["gone"] = copy
    assert reports(world) == [("idle", "copies remembered")]


def test_nothing_is_reported_while_something_is_in_flight() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and len(world.subjects[0].uses()))
    assert reports(world) == []
