"""Pages that a load fills and a peer wants: they go when the load is over, and not before."""

from harness.faults.network_parts import in_sends
from harness.ops import AddPart, BeginSend, CloseSend, IdleCheck, Outcome, Round, SubmitCopy
from harness.runner import Run
from tests.harness.test_parked import apply, loading
from unikv.disagg.prefill import Sends


class Hasty(Sends):
    """Sends that do not look at loads."""

    __slots__ = ()

    def _is_filled(self, ids: tuple[tuple[int, ...], ...]) -> bool:
        return False


def queued() -> Run:
    """A send is queued of a request whose load is submitted and has not ended."""
    run, request = loading("everything")
    apply(run, SubmitCopy("back"), BeginSend("send", 0, request.name), AddPart("send"))
    apply(run, CloseSend("send"))
    return run


def test_a_send_of_pages_that_a_load_fills_waits_for_it() -> None:
    run = queued()
    run.execute(Round())
    network = run.world.network
    assert network is not None
    assert network.parts("send") == 0
    assert run.violations == []


def test_it_goes_once_the_load_is_over() -> None:
    run = queued()
    sent = run.world.probes["transfer_sent"]
    run.execute(IdleCheck())
    assert run.violations == []
    assert run.world.probes["sent_after_a_load"] > 0
    assert run.world.probes["transfer_sent"] > sent


def test_a_part_that_names_other_pages_than_were_queued_is_reported() -> None:
    run = queued()
    (send,) = (part for name, part in run.world.transfers.sends.items() if name == "send")
    send.contents[0][run.world.owner_band][0] = b"of somebody else"
    run.execute(IdleCheck())
    found = {(violation.check, violation.detail) for violation in run.violations}
    assert ("content", "send of other pages than were queued") in found


def test_a_send_that_does_not_wait_for_the_load_is_reported() -> None:
    run, request = loading("everything")
    in_sends(Hasty)(run.world)
    apply(run, SubmitCopy("back"), BeginSend("send", 0, request.name), AddPart("send"))
    assert run.execute(CloseSend("send")) is Outcome.DONE
    run.execute(Round())
    (first, *_) = run.violations
    assert (first.check, first.detail) == ("ordering", "arena race")
    assert first.missing_edge.startswith("peer <- load")
