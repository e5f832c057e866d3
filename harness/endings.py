"""What a round must do to each transfer, by what the world asked and what its peers have done.

The allocator asks its engines and agrees with the other ranks; here the same follows from the
engine's own account, and from whether the work on every rank's device has ended.  When a proof
comes is the engines' business, so of a transfer that was given up only the outcome is expected.
"""

from __future__ import annotations

from typing import NamedTuple

from harness.network import NetworkState, Send
from harness.peers import Network
from harness.subject import RoundAnswer
from harness.words import joined
from harness.world import World


class Due(NamedTuple):
    """What the next round must report.

    Attributes:
        ended: transfers that are over with it, each with its outcome.
        given_up: those whose engines were told to stop before it, each with the outcome that it has
            once there is proof.
        isolated: those that go into quarantine with it, or did in a wait since the last round.
    """

    ended: dict[str, str]
    given_up: dict[str, str]
    isolated: set[str]


def due_changes(world: World, network: Network) -> Due:
    """What a round that is held now must report; asks no engine."""
    state = world.transfers
    ended: dict[str, str] = {}
    isolated = state.stopped.keys() - state.isolated
    for name in state.names():
        if name in state.stopped:
            continue
        is_wished = state.is_unwanted(name)
        if not network.parts(name):
            if is_wished:
                ended[name] = "aborted"
        elif _is_done(world, network, name):
            # Nothing is left that could be stopped.
            ended[name] = "sent" if name in state.sends else "received"
        elif is_wished or network.handed[name].failed:
            isolated.add(name)
    return Due(ended, dict(state.stopped), isolated)


def _is_done(world: World, network: Network, name: str) -> bool:
    """Whether everything was handed over, and all of it has ended well on every rank."""
    send = world.transfers.sends.get(name)
    if network.handed[name].failed or (send is not None and _has_parts_left(send)):
        return False
    return all(network.has_ended(name, rank) for rank in range(world.setup.ranks))


def _has_parts_left(send: Send) -> bool:
    return not send.is_closed or send.started < send.parts


def compare(world: World, due: Due, report: RoundAnswer) -> None:
    """Note every transfer that a round has ended, kept or given up otherwise than it must."""
    if not (report.ended or report.isolated or due.ended or due.isolated):
        return
    note, state = world.truth.note, world.transfers
    expected = dict(due.ended)
    for name, outcome in report.ended:
        if name in due.given_up:
            expected[name] = due.given_up[name]
        if expected.get(name) != outcome:
            text = f"{name} ends {outcome}; expected: {_expectation(state, due, name)}"
            note("ledger", "transfer ended in another way", text)
    reported = {name for name, _ in report.ended}
    for name in sorted(due.ended.keys() - reported):
        text = f"{name} goes on; expected: it ends {due.ended[name]} with this round"
        note("ledger", "transfer that is over goes on", text)
    if sorted(report.isolated) != sorted(due.isolated):
        text = (
            f"a round reports {joined(sorted(report.isolated))} as given up and waiting for proof;"
            f" expected: {joined(sorted(due.isolated))}"
        )
        note("ledger", "transfers given up differ", text)


def _expectation(state: NetworkState, due: Due, name: str) -> str:
    if name in due.ended or name in due.given_up:
        return f"it ends {due.ended.get(name) or due.given_up[name]}"
    if name in due.isolated:
        return "it is given up, and its pages stay until every rank has proof"
    return "it goes on" if name in state.names() else "no transfer of that name is there"
