"""Prefill and decode over a network: transfers in parts, and what happens to them in between.

Engines are handed something only in a round.  Between any two parts everything else may happen:
steps, frees, moves, aborts, failures on one rank only.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from harness import transfer_room
from harness.endings import compare, due_changes
from harness.network import (
    Receive,
    Send,
    abort,
    free_rows,
    give_up_receive,
    hear_answers,
    left,
    queue_part,
)
from harness.ops.base import Name, Op, Outcome
from harness.ops.requests import pages_for
from harness.peers import PEER_NAMES
from harness.requests import Phase, Request
from harness.world import World
from unikv.errors import TransferError

Peer = Annotated[int, Meta(ge=0, lt=len(PEER_NAMES))]


class BeginReceive(Op, frozen=True, tag="begin_receive"):
    """A queued request gets rows for its whole prompt, which a peer will write."""

    transfer: Name
    peer: Peer
    request: Name

    def apply(self, world: World) -> Outcome:
        """Take and hold the rows, or change nothing."""
        request = world.requests.get(self.request)
        if world.network_subject is None or request is None or request.phase is not Phase.QUEUED:
            return Outcome.SKIPPED
        if not world.transfers.may_begin(self.transfer) or world.subjects[0].free_rows() == 0:
            return Outcome.SKIPPED
        pages = pages_for(request.prompt, world.setup.page_slots)
        slots = int(world.state_band >= 0)
        answer = world.take_with(
            "begin_receive", pages, slots, self.transfer, PEER_NAMES[self.peer]
        )
        if answer is None:
            return Outcome.REFUSED
        world.hold(answer.ids, [answer.ids for _ in world.window_bands])
        world.receive(request)
        world.rows.take(world, request)
        request.window_first = [0] * len(world.setup.bands)
        request.pages = list(answer.ids)
        if answer.slots:
            world.states.expect(world, request, answer.slots[0], request.prompt)
        world.ask("append_row", request.row, list(request.pages))
        world.truth.transfers.holds(self.transfer, _rows_of(world, request))
        world.transfers.receives[self.transfer] = Receive(self.request, PEER_NAMES[self.peer])
        return Outcome.DONE


class BeginSend(Op, frozen=True, tag="begin_send"):
    """A send of a request's pages is announced; nothing is queued yet."""

    transfer: Name
    peer: Peer
    request: Name

    def apply(self, world: World) -> Outcome:
        """Announce it, or change nothing."""
        request = world.requests.get(self.request)
        if world.network_subject is None or request is None or request.phase is not Phase.RUNNING:
            return Outcome.SKIPPED
        if not world.transfers.may_begin(self.transfer):
            return Outcome.SKIPPED
        if len(world.transfers.sends_of(self.request)) >= len(PEER_NAMES):
            return Outcome.SKIPPED
        if not transfer_room.begin_send(world, self.transfer, PEER_NAMES[self.peer]):
            return Outcome.REFUSED
        world.transfers.sends[self.transfer] = Send(self.request, PEER_NAMES[self.peer])
        return Outcome.DONE


class AddPart(Op, frozen=True, tag="add_part"):
    """The pages of a request that no later token writes are queued for its peer."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Queue them; they may move until a round starts the part."""
        send = world.transfers.sends.get(self.transfer)
        request = world.requests.get(send.request) if send else None
        if (
            send is None
            or request is None
            or send.is_closed
            or self.transfer in world.transfers.isolated
        ):
            return Outcome.SKIPPED
        whole = request.length // world.setup.page_slots
        pages = request.pages[send.queued : whole]
        if not pages or world.host.waits_for_submission(pages, 0):
            return Outcome.SKIPPED
        ids: list[list[int]] = [[] for _ in world.setup.bands]
        ids[world.owner_band] = pages
        for band in world.window_bands:
            ids[band] = request.pages[max(send.queued, request.window_first[band]) : whole]
        if not queue_part(world, self.transfer, ids, request.last_step, pages, 0):
            return Outcome.REFUSED
        if request.came_from:
            world.probes[f"sent_on_from_{request.came_from}"] += 1
        send.queued = whole
        world.probes["send_part_queued"] += 1
        return Outcome.DONE


class CloseSend(Op, frozen=True, tag="close_send"):
    """No part of a send comes any more."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Close it."""
        send = world.transfers.sends.get(self.transfer)
        if (
            send is None
            or send.is_closed
            or not send.queued
            or self.transfer in world.transfers.isolated
        ):
            return Outcome.SKIPPED
        if isinstance(world.ask("close_send", self.transfer), TransferError):
            return Outcome.REFUSED
        send.is_closed = True
        return Outcome.DONE


class AbortTransfer(Op, frozen=True, tag="abort_transfer"):
    """The scheduler gives a transfer up; a receive's request loses its rows under the peer."""

    transfer: Name

    def apply(self, world: World) -> Outcome:
        """Abort it on every rank, then free what it was for."""
        if self.transfer not in world.transfers.names():
            return Outcome.SKIPPED
        give_up(world, self.transfer)
        return Outcome.DONE


class FailTransfer(Op, frozen=True, tag="fail_transfer"):
    """One rank's engine gives a transfer up, though its work goes on."""

    transfer: Name
    rank: Annotated[int, Meta(ge=0, le=7)]
    counted: ClassVar[bool] = False
    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Let it fail."""
        if world.network is None or self.rank >= world.setup.ranks:
            return Outcome.SKIPPED
        if self.transfer not in world.network.handed:
            return Outcome.SKIPPED
        world.network.fail(self.transfer, self.rank)
        world.probes["transfer_failed_on_one_rank"] += 1
        return Outcome.DONE


class Round(Op, frozen=True, tag="round"):
    """Every rank judges its engine, all agree, and carry out the same."""

    def apply(self, world: World) -> Outcome:
        """Start what may start, end what is over, quarantine what failed."""
        if world.network is None:
            return Outcome.SKIPPED
        return Outcome.DONE if hold_round(world) else Outcome.SKIPPED


def hold_round(world: World) -> bool:
    """One round of all ranks; whether anything changed."""
    state = world.transfers
    if not state.names():
        return hear_answers(world) > 0
    assert world.network is not None
    due = due_changes(world, world.network)
    report = world.ask("transfer_round")
    compare(world, due, report)
    state.even_out(world.device.operation)
    over: list[tuple[Send, str]] = []
    for name in report.isolated:
        state.isolated.add(name)
        world.probes["transfer_quarantined"] += 1
        receive = state.receives.get(name)
        if receive is not None and receive.request:
            free_rows(world, name, receive)
        if name in state.sends:
            over.append((state.sends[name], "isolated"))
    for name, outcome in report.ended:
        world.truth.transfer_over(name)
        state.isolated.discard(name)
        state.stopped.pop(name, None)
        state.vetoed.discard(name)
        state.given_up.discard(name)
        send = state.sends.pop(name, None)
        if send is not None and outcome == "sent" and send.started < send.parts:
            text = f"{name} is over after {send.started} of {send.parts} parts"
            world.truth.note("ledger", "send over with parts left", text)
        if send is not None:
            send.unlock()
            over.append((send, outcome))
        receive = state.receives.pop(name, None)
        world.probes[f"transfer_{outcome}"] += 1
        if receive is None or not receive.request:
            continue
        if outcome == "received":
            world.received(world.requests[receive.request])
        else:
            free_rows(world, name, receive)
    for send, outcome in over:
        # Only now, because a request that leaves gives up its other sends, which may be over too.
        if send.takes_over and send.request:
            left(world, send, outcome)
    answers = hear_answers(world)
    return bool(report.isolated or report.ended or answers or world.ports[0].handed_over())


def give_up(world: World, name: str) -> None:
    """Abort a transfer on every rank; what a receive has taken is freed at once."""
    receive = world.transfers.receives.get(name)
    if receive is not None and receive.request:
        give_up_receive(world, world.requests[receive.request])
    else:
        abort(world, name)
        world.probes["transfer_given_up"] += 1


def _rows_of(world: World, request: Request) -> list[list[int]]:
    ids: list[list[int]] = [[] for _ in world.setup.bands]
    for band in world.token_bands:
        ids[band] = list(request.pages)
    slot = world.states.slot_of(world, request)
    if slot:
        ids[world.state_band] = [slot]
    return ids
