"""Capacity beside transfers: waits, moves and refusals that nothing asked for are reported."""

import pytest

from harness import transfer_room
from harness.runner import run_seed
from harness.transfer_room import RoomCall
from harness.world import World
from tests.harness.lived_in import examine, reports, scenario, world_when


def running(world: World) -> list[str]:
    """Transfers that engines were handed and nobody gave up, nor has any failed."""
    network = world.network
    assert network is not None
    unwanted = world.transfers.given_up | world.transfers.told
    return [
        name
        for name, entry in network.handed.items()
        if not entry.failed and not entry.is_stopped and name not in unwanted
    ]


def is_sending(world: World) -> bool:
    """A transfer is under way and no rank's engine has said that it is over."""
    names, network = running(world), world.network
    assert network is not None
    return world.open_step is None and bool(names) and not network.handed[names[0]].quiet


def holds(world: World) -> bool:
    """Rows of the owner wait for a peer."""
    held = world.truth.transfers.held
    return world.open_step is None and any(ids[world.owner_band] for ids in held.values())


def no_demand(world: World) -> RoomCall:
    """A call that asks for nothing, which every layout holds."""
    return RoomCall((0,) * len(world.setup.bands))


def test_a_wait_for_what_is_under_way_is_no_report() -> None:
    world = world_when("peers", is_sending)
    transfer_room.while_waiting(world, running(world)[:1])
    assert reports(world) == []


def test_a_wait_for_what_every_engine_called_over_is_reported() -> None:
    world = world_when("peers", is_sending)
    network, name = world.network, running(world)[0]
    assert network is not None
    network.handed[name].quiet = {0}
    transfer_room.while_waiting(world, [name])
    assert reports(world) == []
    network.handed[name].quiet = set(range(world.setup.ranks))
    transfer_room.while_waiting(world, [name])
    (violation,) = examine(world)
    assert (violation.check, violation.detail) == ("capacity", "wait for quiet transfers")
    assert name in violation.what


def test_what_was_given_up_is_over_by_the_proof_of_every_engine_alone() -> None:
    world = world_when("peers", is_sending)
    network, name = world.network, running(world)[0]
    assert network is not None
    entry, ranks = network.handed[name], set(range(world.setup.ranks))
    entry.is_stopped, entry.quiet = True, set(ranks)
    transfer_room.while_waiting(world, [name])
    assert reports(world) == []
    entry.proved = set(ranks)
    transfer_room.while_waiting(world, [name])
    assert reports(world) == [("capacity", "wait for quiet transfers")]


@pytest.mark.parametrize("reason", ["failed", "given up"])
def test_a_wait_that_does_not_stop_what_cannot_end_well_is_reported(reason: str) -> None:
    world = world_when("peers", is_sending)
    network, name = world.network, running(world)[0]
    assert network is not None
    if reason == "failed":
        network.fail(name, 1)
    else:
        world.transfers.given_up.add(name)
    transfer_room.while_waiting(world, [name])
    assert reports(world) == [("capacity", "wait for a failed transfer")]
    network.handed[name].is_stopped = True
    transfer_room.while_waiting(world, [name])
    assert reports(world) == []


def test_a_wait_that_ends_before_the_patience_does_is_reported() -> None:
    world = world_when("peers", is_sending)
    assert world.network is not None
    patience = world.network.patience
    transfer_room.after_a_wait_in_vain(world, running(world)[:1], patience)
    assert reports(world) == []
    transfer_room.after_a_wait_in_vain(world, running(world)[:1], patience - 1)
    (violation,) = examine(world)
    assert violation.detail == "wait given up early"
    assert f"expected are {patience}" in violation.what


def test_a_wait_is_judged_by_what_is_asked_for() -> None:
    world = world_when("peers", is_sending)
    parts = list(world.truth.transfers.begun)[:1]
    transfer_room.before_a_wait(world, parts)
    assert reports(world) == []
    world.room = no_demand(world)
    transfer_room.before_a_wait(world, parts)
    assert reports(world) == [("capacity", "wait that no layout needs")]


def test_parts_are_named_in_the_order_in_which_they_began() -> None:
    world = world_when("peers", lambda world: len(world.truth.transfers.begun) > 1)
    first, second, *_ = world.truth.transfers.begun
    transfer_room.before_a_wait(world, [first, second])
    assert reports(world) == []
    transfer_room.before_a_wait(world, [second, first])
    assert reports(world) == [("divergence", "wait in an order of its own")]


def test_every_rank_waits_for_the_same() -> None:
    world = world_when("peers", is_sending)
    network = world.network
    assert network is not None
    part = (running(world)[0], 0)
    engines = [network.rank(rank, port) for rank, port in enumerate(world.ports)]
    engines[0].waits_for([part])
    engines[1].waits_for([part])
    assert reports(world) == []
    engines[1].waits_for([])
    assert reports(world) == [("divergence", "ranks wait for other transfers")]


def test_a_held_page_moves_only_where_nothing_else_serves() -> None:
    world = world_when("peers", holds)
    band = world.owner_band
    ids = next(ids[band] for ids in world.truth.transfers.held.values() if ids[band])
    (page,) = world.subjects[0].translate(band, ids[:1])
    transfer_room.before_moves(world, band, [page])
    assert reports(world) == [("ownership", "held page moved by a flush")]
    world.room = no_demand(world)
    transfer_room.before_moves(world, band, [page])
    assert reports(world) == [("capacity", "held page moved without need")]
    world.room = RoomCall((999,) * len(world.setup.bands))
    transfer_room.before_moves(world, band, [page])
    assert reports(world) == []
    # What moves later in the same call is not judged by a layout that the first move has changed.
    world.room.demand = no_demand(world).demand
    transfer_room.before_moves(world, band, [page])
    assert reports(world) == []


@pytest.mark.parametrize("limit", ["transfers", "pages"])
def test_a_send_to_a_peer_with_too_much_in_quarantine_is_reported(limit: str) -> None:
    world = world_when("peers", is_sending)
    network, subject = world.network, world.network_subject
    assert network is not None
    assert subject is not None
    entry = network.handed[running(world)[0]]
    entry.is_stopped = True
    if limit == "pages":
        entry.pages = subject.quarantine_pages_max
    else:
        subject.quarantine_max = 1
    assert transfer_room.begin_send(world, "new", entry.peer)
    assert reports(world) == [("capacity", "transfer with a peer in quarantine")]


@pytest.mark.parametrize(
    ("fault", "name", "seed", "detail"),
    [
        ("relief-waits-for-every-band", "everything", 4, "wait for more than has to move"),
        ("relief-waits-without-asking", "peers", 17, "wait that no layout needs"),
        ("relief-moves-holds-first", "everything", 23, "held page moved without need"),
        ("flush-moves-receive-holds", "peers", 18, "held page moved by a flush"),
        ("wait-named-in-another-order", "peers", 2, "ranks wait for other transfers"),
        ("wait-takes-no-proof", "peers", 2, "wait for quiet transfers"),
        ("wait-gives-nothing-up", "peers", 2, "wait for a failed transfer"),
        ("wait-without-patience", "peers", 2, "wait given up early"),
        ("quarantine-full-one-early", "peers", 2, "refused for no transfer"),
        ("quarantine-full-for-every-peer", "peers", 5, "refused for no transfer"),
    ],
)
def test_a_mistake_is_reported_for_what_it_is(
    fault: str, name: str, seed: int, detail: str
) -> None:
    found = run_seed(scenario(name), name, seed, 400, plant=fault).violations
    assert found
    assert found[0].detail == detail
