"""What transfer engines are told is what the world asked for: pages in order, part and peer."""

import pytest

from harness.faults.catalog import FAULTS
from harness.ops import (
    AddPart,
    BeginReceive,
    BeginSend,
    CloseSend,
    IdleCheck,
    PublishReceive,
    RetireReceived,
    Round,
)
from harness.runner import Run
from tests.harness.test_peer_acts import apply, may_receive, may_send, received, run_at


def reports(run: Run) -> set[tuple[str, str]]:
    """What was reported: the check and the kind of break."""
    return {(violation.check, violation.detail) for violation in run.violations}


@pytest.mark.parametrize("fault", ["receive-pages-in-reverse", "receive-leaves-out-retired-rows"])
def test_a_receive_into_other_pages_than_its_ids_name_is_reported(fault: str) -> None:
    run = received()
    apply(run, RetireReceived("take"))
    FAULTS[fault].plant(run.world)
    run.execute(PublishReceive("take"))
    assert ("content", "receive into other pages than its ids name") in reports(run)


def test_a_receive_with_a_retired_row_is_told_its_place() -> None:
    run = received()
    apply(run, RetireReceived("take"), PublishReceive("take"))
    (pages,) = (entry[3] for entry in run.world.ports[0].log if entry[0] == "receive")
    assert isinstance(pages, tuple)
    assert any(0 in band for band in pages)


def test_a_receive_from_another_peer_is_reported() -> None:
    run = run_at("peers", may_receive)
    FAULTS["handed-to-another-peer"].plant(run.world)
    apply(run, BeginReceive("take", 0, next(iter(run.world.queued))))
    run.execute(PublishReceive("take"))
    assert ("ledger", "handed to another peer") in reports(run)
    assert "take is handed to peer1, and was begun with peer0" in run.violations[0].what


def test_a_part_under_another_number_is_reported() -> None:
    run = run_at("peers", may_send)
    world = run.world
    slots = world.setup.page_slots
    request = next(r for r in world.running.values() if r.length >= slots)
    apply(run, BeginSend("send", 0, request.name), AddPart("send"), CloseSend("send"))
    assert world.network is not None
    world.network.listener.addressed("send", "peer0", 0)
    assert world.truth.problems == []
    while world.steps:
        world.process_oldest_step()
    apply(run, Round())
    world.network.listener.addressed("send", "peer0", 0)
    (problem,) = world.truth.problems
    assert (problem.check, problem.detail) == ("ledger", "part under another number")
    assert "as part 0 after 1 parts; expected 1" in problem.what


def test_an_engine_that_never_hears_of_an_end_is_reported_at_rest() -> None:
    run = received()
    FAULTS["end-not-told-to-the-engine"].plant(run.world)
    apply(run, PublishReceive("take"))
    run.execute(IdleCheck())
    assert ("idle", "engines know other transfers") in reports(run)
    assert run.violations[0].what == "an engine still remembers what is over: take"
