"""What a round makes of a transfer is what its engines, its peers and the engine's own wish say."""

from harness.faults.catalog import FAULTS
from harness.ops import AbortTransfer, FailTransfer, IdleCheck, Outcome, PeerAbort, Round
from harness.runner import Run
from tests.harness.test_peer_acts import apply, outcomes, received, sending
from tests.harness.test_told import reports


def done() -> Run:
    """A send that is with every rank's engine, and whose work has ended on every rank."""
    run = sending()
    run.world.device.drain()
    return run


def test_done_on_every_rank_beats_a_wish_to_stop() -> None:
    run = done()
    before = outcomes(run)["sent"]
    apply(run, PeerAbort("send", 1, 1), Round())
    assert outcomes(run)["sent"] == before + 1


def test_a_wish_to_stop_that_beats_done_is_reported() -> None:
    run = done()
    FAULTS["stop-beats-done"].plant(run.world)
    apply(run, PeerAbort("send", 1, 1))
    run.execute(Round())
    assert reports(run) == {
        ("ledger", "transfer that is over goes on"),
        ("ledger", "transfers given up differ"),
    }
    assert "send goes on; expected: it ends sent with this round" in run.violations[0].what


def test_a_failure_on_one_rank_ends_failed() -> None:
    run = sending()
    before = outcomes(run)["failed"]
    assert run.execute(FailTransfer("send", 1)) is Outcome.DONE
    apply(run, Round())
    run.execute(IdleCheck())
    assert run.violations == []
    assert outcomes(run)["failed"] == before + 1


def test_a_failure_that_ends_as_an_abort_is_reported() -> None:
    run = sending()
    FAULTS["failed-and-aborted-swapped"].plant(run.world)
    run.execute(FailTransfer("send", 1))
    apply(run, Round())
    run.execute(IdleCheck())
    assert ("ledger", "transfer ended in another way") in reports(run)
    assert "send ends aborted; expected: it ends failed" in run.violations[0].what


def test_an_abort_that_ends_as_a_failure_is_reported() -> None:
    run = sending()
    FAULTS["failed-and-aborted-swapped"].plant(run.world)
    apply(run, AbortTransfer("send"), Round())
    run.execute(IdleCheck())
    assert ("ledger", "transfer ended in another way") in reports(run)
    assert "send ends failed; expected: it ends aborted" in run.violations[0].what


def test_a_transfer_that_goes_into_quarantine_unsaid_is_reported() -> None:
    run = sending()
    FAULTS["quarantine-not-reported"].plant(run.world)
    apply(run, AbortTransfer("send"))
    run.execute(Round())
    assert reports(run) == {("ledger", "transfers given up differ")}
    assert run.violations[0].what == (
        "a round reports none as given up and waiting for proof; expected: send"
    )


def test_a_transfer_that_was_to_be_dropped_and_stays_is_reported() -> None:
    run = received()
    FAULTS["aborted-receive-published"].plant(run.world)
    apply(run, AbortTransfer("take"))
    run.execute(Round())
    assert reports(run) == {("ledger", "transfer that is over goes on")}
    assert "take goes on; expected: it ends aborted with this round" in run.violations[0].what
