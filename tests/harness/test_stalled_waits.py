"""Waits for a transfer over two and four ranks of one world, when the peer of one stands still."""

import pytest
from msgspec.structs import replace

from harness.choices import SeedChoices
from harness.ops import (
    AddPart,
    Admit,
    Arrive,
    BeginSend,
    CloseSend,
    Complete,
    IdleCheck,
    Launch,
    Operation,
    Outcome,
    Process,
    Record,
    Round,
    StallPeer,
)
from harness.peers import FIRST_LANE
from harness.runner import Run
from harness.setup import draw_setup
from harness.unikv_subject import UnikvSubject
from tests.harness.lived_in import scenario
from unikv.errors import TransferError

USE = "send transfer1 part 0"
RANKS = [(2, 0), (2, 1), (4, 0), (4, 1), (4, 3)]
"""How many there are, and which of them is behind."""


def one_rank_behind(count: int, behind: int) -> Run:
    """A send has ended on every rank but one."""
    setup = replace(draw_setup(scenario("peers"), SeedChoices(1)), ranks=count, overlap=True)
    run = Run(setup, None)
    tokens = setup.page_slots
    operations: list[Operation] = [
        Arrive("r0", tokens, 4),
        Admit("r0", tokens),
        Launch(("r0",)),
        Record(),
        Process(),
        BeginSend("transfer1", 0, "r0"),
        AddPart("transfer1"),
        CloseSend("transfer1"),
        Round(),
        *(Complete(rank, FIRST_LANE, 1) for rank in range(count) if rank != behind),
    ]
    for operation in operations:
        assert run.execute(operation) is Outcome.DONE, operation
    assert run.violations == []
    return run


def waited(run: Run) -> list[str]:
    """What every rank says of a wait for the send; nothing where it ended well."""
    world = run.world

    def wait(rank: int) -> str:
        subject = world.subjects[rank]
        assert isinstance(subject, UnikvSubject)
        try:
            subject.storage.chain.relief._waiter.wait([USE])
        except TransferError as error:
            return str(error)
        return ""

    return world.lockstep.run(wait)


@pytest.mark.parametrize(("count", "behind"), RANKS)
def test_every_rank_returns_once_the_last_one_has_ended(count: int, behind: int) -> None:
    run = one_rank_behind(count, behind)
    assert waited(run) == [""] * count


@pytest.mark.parametrize(("count", "behind"), RANKS)
def test_every_rank_fails_in_the_round_of_the_deadline(count: int, behind: int) -> None:
    run = one_rank_behind(count, behind)
    assert run.execute(StallPeer(0)) is Outcome.DONE
    network = run.world.network
    assert network is not None
    first, *others = waited(run)
    assert f"after {network.patience} rounds" in first
    assert others == [first] * (count - 1)
    assert run.world.probes["waited_for_a_stalled_peer"] == 1


@pytest.mark.parametrize(("count", "behind"), RANKS)
def test_every_rank_returns_after_the_peer_gets_on(count: int, behind: int) -> None:
    run = one_rank_behind(count, behind)
    run.execute(StallPeer(0))
    assert all(waited(run))
    run.execute(StallPeer(0))
    assert waited(run) == [""] * count
    run.execute(IdleCheck())
    assert run.violations == []
