"""What peers do on their own, and what a receive may go through before its peer is done."""

from collections.abc import Callable
from functools import cache

import pytest

from harness.faults.network_parts import in_receives, rounds
from harness.faults.parts import become
from harness.ops import (
    AddPart,
    AddPrefix,
    BeginPrefixSend,
    BeginReceive,
    BeginSend,
    CloseSend,
    Complete,
    EvictPrefix,
    ForgetAbort,
    IdleCheck,
    Operation,
    Outcome,
    PeerAbort,
    PublishReceive,
    RetireReceived,
    Round,
    StallPeer,
)
from harness.peers import FIRST_LANE
from harness.runner import Run
from harness.world import World
from tests.harness.lived_in import SEEDS_MAX, moments
from unikv.disagg.aborts import Aborts
from unikv.disagg.decode import Receives


def apply(run: Run, *operations: Operation) -> None:
    """All of them are done, and nothing is reported."""
    for operation in operations:
        assert run.execute(operation) is Outcome.DONE, operation
        assert run.violations == []


@cache
def seed_of(name: str, is_reached: Callable[[World], object]) -> int:
    """The first seed of a scenario with such a moment."""
    return next(
        seed
        for seed in range(SEEDS_MAX)
        if any(is_reached(run.world) for run in moments(name, seed))
    )


def run_at(name: str, is_reached: Callable[[World], object]) -> Run:
    """A run of a scenario, stopped at the first moment that is as described."""
    runs = moments(name, seed_of(name, is_reached))
    return next(run for run in runs if is_reached(run.world))


def at_ease(world: World) -> bool:
    """Nothing is half done and no transfer is under way."""
    return (
        world.open_step is None
        and world.unsynced_step is None
        and not world.transfers.names()
        and not world.transfers.vetoed
    )


def may_receive(world: World) -> bool:
    """A queued request with a long prompt gets its rows at once, and ids leave at once."""
    if world.network is None or not world.network.publishes_at_once or not at_ease(world):
        return False
    first = next(iter(world.queued.values()), None)
    if first is None or first.prompt <= world.setup.bands[0].window + 2 * world.setup.page_slots:
        return False
    pages = -(-first.prompt // world.setup.page_slots)
    return bool(world.subjects[0].free_rows()) and world.subjects[0].fits(pages, 0)


def may_send(world: World) -> bool:
    """A running request has a whole page."""
    return at_ease(world) and any(
        request.length >= world.setup.page_slots for request in world.running.values()
    )


def received() -> Run:
    """A receive is held, and it is the only transfer."""
    run = run_at("peers", may_receive)
    apply(run, BeginReceive("take", 0, next(iter(run.world.queued))))
    return run


def sending() -> Run:
    """A send is with every rank's engine, and it is the only transfer."""
    run = run_at("peers", may_send)
    slots = run.world.setup.page_slots
    request = next(r for r in run.world.running.values() if r.length >= slots)
    apply(run, BeginSend("send", 0, request.name), AddPart("send"), CloseSend("send"))
    while run.world.steps:
        run.world.process_oldest_step()
    apply(run, Round())
    return run


def outcomes(run: Run) -> dict[str, int]:
    """How transfers have ended so far."""
    kinds = ("sent", "received", "aborted", "failed")
    return {kind: run.world.probes[f"transfer_{kind}"] for kind in kinds}


# Aborts of peers ----------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [0, 1])
def test_a_transfer_that_a_peer_gave_up_before_it_was_known_never_begins(rank: int) -> None:
    run = run_at("peers", may_receive)
    before = outcomes(run)
    apply(run, PeerAbort("take", 0, rank), BeginReceive("take", 0, next(iter(run.world.queued))))
    apply(run, PublishReceive("take"), Round())
    assert run.world.truth.transfers.uses == {}
    assert outcomes(run) == {**before, "aborted": before["aborted"] + 1}


def test_an_abort_of_one_rank_isolates_on_all() -> None:
    run = sending()
    apply(run, PeerAbort("send", 1, 1), Round())
    assert run.world.transfers.isolated == {"send"}
    assert run.world.transfers.owed[1, "send", "peer1"] == 1
    run.execute(IdleCheck())
    assert run.violations == []
    assert not run.world.transfers.owed[1, "send", "peer1"]


def test_a_forgotten_name_does_not_begin() -> None:
    run = run_at("peers", may_receive)
    apply(run, PeerAbort("take", 0, 1), ForgetAbort("take"))
    queued = next(iter(run.world.queued))
    assert run.execute(BeginReceive("take", 0, queued)) is Outcome.SKIPPED


class Hurried(Aborts):
    """Answers at once, whatever the engine does."""

    __slots__ = ()

    def owe(self, name: str, requester: str) -> None:
        """Answer now."""
        self.answer(name, requester)


class Silent(Aborts):
    """Answers nobody."""

    __slots__ = ()

    def over(self, name: str) -> None:
        """Forget who waits."""
        self._waiting.pop(name, None)
        super().over(name)


def planted(run: Run, broken: type[Aborts]) -> None:
    """Every rank answers like that."""
    for part in rounds(run.world):
        become(part.board.aborts, broken)


@pytest.mark.parametrize(
    ("broken", "detail"),
    [(Hurried, "answer before the end"), (Silent, "peers left without an answer")],
)
def test_wrong_answers_to_peers_are_reported(broken: type[Aborts], detail: str) -> None:
    run = sending()
    planted(run, broken)
    apply(run, PeerAbort("send", 0, 1))
    run.execute(Round())
    run.execute(IdleCheck())
    assert detail in [violation.detail for violation in run.violations]


class AtOnce(Receives):
    """Publishes without asking the other ranks."""

    __slots__ = ()

    def publish(self, name: str) -> None:
        """Publish on this rank."""
        transfer = self._board.find(name)
        self.prepare(transfer)
        self.advance(transfer)


def test_a_publication_that_asks_nobody_is_reported() -> None:
    run = run_at("peers", may_receive)
    in_receives(AtOnce)(run.world)
    apply(run, PeerAbort("take", 0, 1), BeginReceive("take", 0, next(iter(run.world.queued))))
    run.execute(PublishReceive("take"))
    details = [violation.detail for violation in run.violations]
    assert "transfer begins after its abort was answered" in details


# Publication and retirement -----------------------------------------------------------------


def test_ids_that_leave_at_once_are_in_use_before_any_round() -> None:
    run = received()
    apply(run, PublishReceive("take"))
    assert run.world.truth.transfers.uses.keys() == {"take"}
    assert run.world.truth.transfers.held == {}


@pytest.mark.parametrize("operations", [[], [PublishReceive("take")], [Round()]])
def test_rows_outside_the_window_may_go_at_any_time(operations: list[Operation]) -> None:
    run = received()
    apply(run, *operations, RetireReceived("take"))
    held = bool(run.world.truth.transfers.held)
    assert held is not bool(operations)
    assert bool(run.world.truth.transfers.stuck[0]) is bool(operations)
    run.execute(IdleCheck())
    assert run.violations == []


# Stalled peers, prefixes --------------------------------------------------------------------


def test_a_stalled_peer_ends_nothing() -> None:
    run = sending()
    apply(run, StallPeer(0))
    for rank in range(run.world.setup.ranks):
        assert run.execute(Complete(rank, FIRST_LANE, 1)) is Outcome.SKIPPED
    run.execute(Round())
    assert run.world.transfers.names() == ["send"]
    apply(run, StallPeer(0), Complete(0, FIRST_LANE, 1))


def test_everything_gets_on_at_rest() -> None:
    run = sending()
    apply(run, StallPeer(0))
    run.execute(IdleCheck())
    assert run.violations == []
    assert run.world.transfers.names() == []


@cache
def with_prefix(name: str) -> Callable[[World], bool]:
    """A moment at which one cached prefix is there, all of it computed."""

    def is_reached(world: World) -> bool:
        prefixes = list(world.prefixes.values())
        return (
            at_ease(world)
            and len(prefixes) == 1
            and not prefixes[0].locks
            and not world.host.loads
            and bool(prefixes[0].slot) is (name == "everything")
        )

    return is_reached


@pytest.mark.parametrize("name", ["peers", "everything"])
def test_a_prefix_stays_until_its_pages_are_with_the_engine(name: str) -> None:
    run = run_at(name, with_prefix(name))
    (blocks,) = run.world.prefixes
    apply(run, BeginPrefixSend("send", 0, blocks), AddPrefix("send"), CloseSend("send"))
    assert run.execute(EvictPrefix()) is Outcome.SKIPPED
    while run.world.steps:
        run.world.process_oldest_step()
    apply(run, Round(), EvictPrefix())
    assert any(run.world.truth.transfers.stuck) or run.world.page_holds.counts.count(0) > 0
    run.execute(IdleCheck())
    assert run.violations == []


def test_a_prefix_whose_send_is_dropped_can_go() -> None:
    run = run_at("peers", with_prefix("peers"))
    (blocks,) = run.world.prefixes
    apply(run, BeginPrefixSend("send", 0, blocks), PeerAbort("send", 0, 1), Round(), EvictPrefix())
    assert run.world.prefixes == {}
