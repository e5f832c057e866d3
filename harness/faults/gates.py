"""Faults of what leaves for a peer, and when: gates, holds, parts of sends, published rows.

A peer is on no stream of ours, so the host has to have seen whatever its pages were used for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.faults.fault import Fault
from harness.faults.network_parts import in_board, in_receives, in_sends
from harness.faults.parts import in_world
from harness.requests import Prefix, Request
from harness.world import World
from unikv.advance import first_needed_page
from unikv.alloc.band import Band
from unikv.alloc.chain import Taken
from unikv.disagg.board import Board, Transfer
from unikv.disagg.decode import Receives
from unikv.disagg.engine import Pages
from unikv.disagg.gate import wait_gate
from unikv.disagg.life import Change, Phase
from unikv.disagg.prefill import SENDABLE, Part, Sends


class _PublishesAtOnce(Receives):
    __slots__ = ()

    def prepare(self, transfer: Transfer) -> None:
        if transfer.phase is Phase.HELD:
            self._check_rows(transfer, self._held[transfer.name])


class _HoldsWhenItPublishes(Receives):
    __slots__ = ()

    def take(self, name: str, peer: str, pages: int, slots: int) -> Taken:
        taken = super().take(name, peer, pages, slots)
        self._chain.users.release(f"receive {name}")
        return taken

    def prepare(self, transfer: Transfer) -> None:
        if transfer.phase is Phase.HELD:
            self._chain.users.hold_receive(transfer.uses[0], self._held[transfer.name].ids)
        super().prepare(transfer)


class _ReleasesTheHoldFirst(Receives):
    __slots__ = ()

    def advance(self, transfer: Transfer) -> list[str]:
        if transfer.phase is Phase.HELD:
            pages = self._pages(self._held[transfer.name])
            self._board.engine.receive(transfer.name, transfer.peer, pages)
            self._chain.users.release(transfer.uses[0])
            self._board.change(transfer, Change.PUBLISH)
            transfer.parts_left = 0
            transfer.handed_over.append(pages)
        return []


class _StartsBehindNoMove(Sends):
    __slots__ = ()

    def prepare(self, transfer: Transfer) -> None:
        for part in self._ready(transfer):
            self._pages(part)


class _StartsBehindItsFirstGate(Sends):
    __slots__ = ()

    def prepare(self, transfer: Transfer) -> None:
        for part in self._ready(transfer):
            self._pages(part)
            self._chain.device.host_wait(part.gate.event)


class _StartsUnderALoad(Sends):
    __slots__ = ()

    def _is_filled(self, ids: tuple[tuple[int, ...], ...]) -> bool:
        return False


class _StartsBehindAnOldLoad(Sends):
    __slots__ = ()

    def prepare(self, transfer: Transfer) -> None:
        for part in self._ready(transfer):
            self._pages(part)
            wait_gate(self._chain, part.gate)


class _StartsAtOnce(Sends):
    __slots__ = ()

    def _ready(self, transfer: Transfer) -> list[Part]:
        waiting = self._parts[transfer.name].waiting if transfer.phase in SENDABLE else []
        return [part for part in waiting if not self._is_filled(part.ids)]


class _StartsWhatIsSettled(Sends):
    __slots__ = ()

    def _ready(self, transfer: Transfer) -> list[Part]:
        waiting = self._parts[transfer.name].waiting if transfer.phase in SENDABLE else []
        settled = self._chain.steps.retired_through
        return [
            part
            for part in waiting
            if part.written_through <= settled and not self._is_filled(part.ids)
        ]


@dataclass(frozen=True, slots=True)
class _PartWithPages(Part):
    """A part of a send, and the pages that its ids named when it was queued."""

    pages: Pages


class _SendsWhatWasThere(Sends):
    __slots__ = ()

    def add(self, name: str, ids: Sequence[Sequence[int]], written_through: int) -> None:
        super().add(name, ids, written_through)
        waiting = self._parts[name].waiting
        part = waiting[-1]
        waiting[-1] = _PartWithPages(
            part.claim, part.written_through, part.gate, part.under_load, self._pages(part)
        )

    def _pages(self, part: Part) -> Pages:
        return part.pages if isinstance(part, _PartWithPages) else super()._pages(part)


class _AbortsWhatIsUnderWay(Board):
    __slots__ = ()

    def abort(self, name: str) -> None:
        if self.find(name).handed_over:
            super().abort(name)


class _FreesWhatIsQueued(World):
    """The engine gives up no send before it frees the pages."""

    def release(self, request: Request) -> None:
        for name in self.transfers.sends_of(request.name):
            self.transfers.sends[name].request = ""
        super().release(request)


class _StartsWhenIdsAreBound(Sends):
    """A part whose ids name no page waits until they do, whoever they belong to by then."""

    __slots__ = ()

    def _ready(self, transfer: Transfer) -> list[Part]:
        chain, ready = self._chain, super()._ready(transfer)
        return [part for part in ready if all(map(_are_bound, chain.bands, part.ids))]

    def _check_held(self, transfer: Transfer, part: Part) -> None:
        """Nobody asks."""


def _are_bound(band: Band, ids: Sequence[int]) -> bool:
    return all(map(band.ids.forward.__getitem__, ids))


def _free_and_forget_what_is_queued(world: World) -> None:
    in_world(_FreesWhatIsQueued)(world)
    in_sends(_StartsWhenIdsAreBound)(world)


class _RunsOnWhatWasPublished(World):
    """The engine takes a receive that was published for one that is over."""

    def ask(self, name: str, *arguments: Any) -> Any:
        answer = super().ask(name, *arguments)
        if name == "transfer_round" and self.network is not None:
            for transfer, receive in self.transfers.receives.items():
                if receive.request and transfer in self.network.handed:
                    self.received(self.requests[receive.request])
                    receive.request = ""
        return answer


class _CachesWhatIsReceived(World):
    """A prompt is cached for others as soon as a peer begins to write it."""

    def ask(self, name: str, *arguments: Any) -> Any:
        answer = super().ask(name, *arguments)
        if name == "transfer_round" and self.network is not None and self.state_band < 0:
            for transfer, receive in self.transfers.receives.items():
                if receive.request and transfer in self.network.handed:
                    _cache(self, self.requests[receive.request])
        return answer


def _cache(world: World, request: Request) -> None:
    slots, block_pages = world.setup.page_slots, world.setup.block_pages
    count = min(request.prompt // (slots * block_pages), len(request.blocks))
    blocks, pages = request.blocks[:count], request.pages[: count * block_pages]
    windows = [(band, world.setup.bands[band].window) for band in world.window_bands]
    firsts = [first_needed_page(len(pages) * slots, window, slots) for _, window in windows]
    bound = [request.window_first[band] for band in world.window_bands]
    is_bound = all(map(int.__le__, bound, firsts))
    if count and blocks not in world.prefixes and is_bound:
        tails = [pages[first:] for first in firsts]
        world.hold(pages, tails)
        world.prefixes[blocks] = Prefix(blocks, pages, tails, 0)
        world.truth.remember_prefix(pages, 0, blocks, block_pages)


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="ids-leave-before-the-take",
        planted="ids are published before the host has waited for the take of their pages",
        plant=in_receives(_PublishesAtOnce),
        checks=("ordering",),
        scenario="peers",
        ablates="edge host <- S (publication)",
        edge="peer <-",
        pair=("zero write|move|body|load|backup read", "receive write"),
    ),
    Fault(
        id="rows-held-when-published",
        planted="rows taken for a receive are held only once their ids leave",
        plant=in_receives(_HoldsWhenItPublishes),
        checks=("ledger",),
        scenario="peers",
    ),
    Fault(
        id="hold-ends-before-its-receive",
        planted="the hold of a receive ends when its ids leave, and nothing takes its place",
        plant=in_receives(_ReleasesTheHoldFirst),
        checks=("ledger", "ordering"),
        scenario="peers",
        rows=("B55",),
        ablates="edge receive recorded before ids leave",
        edge="<- peer",
        pair=("receive write", "zero write|move"),
        ahead=("ledger",),
    ),
    Fault(
        id="send-behind-no-move",
        planted="a send starts before the host has waited for the last move of its pages",
        plant=in_sends(_StartsBehindNoMove),
        checks=("ordering",),
        scenario="peers",
        ablates="edge host <- last move (send)",
        edge="peer <- schedule",
        pair=("move write", "send read"),
    ),
    Fault(
        id="send-behind-its-first-gate",
        planted="a send waits for the moves up to its queueing, and its pages moved since",
        plant=in_sends(_StartsBehindItsFirstGate),
        checks=("ordering",),
        scenario="peers",
        edge="peer <- schedule",
        pair=("move write", "send read"),
    ),
    Fault(
        id="send-before-its-writer-ended",
        planted="a send starts while a step that writes its pages is in flight",
        plant=in_sends(_StartsAtOnce),
        checks=("ordering",),
        scenario="peers",
        rows=("B63",),
        ablates="edge host <- writing steps (send)",
        edge="peer <- forward",
        pair=("body write", "send read"),
    ),
    Fault(
        id="send-of-what-is-settled",
        planted="a send starts once the schedule stream has waited for its writers",
        plant=in_sends(_StartsWhatIsSettled),
        checks=("ordering",),
        scenario="peers",
        rows=("B63",),
        edge="peer <- forward",
        pair=("body write", "send read"),
    ),
    Fault(
        id="send-under-a-load",
        planted="a send starts while a load fills its pages",
        plant=in_sends(_StartsUnderALoad),
        checks=("ordering",),
        scenario="everything",
        ablates="edge host <- load (send)",
        edge="peer <- load",
        pair=("load write", "send read"),
    ),
    Fault(
        id="send-behind-an-old-load",
        planted="a send of loaded pages waits for its gate, set before anybody waited for the load",
        plant=in_sends(_StartsBehindAnOldLoad),
        checks=("ordering",),
        scenario="everything",
        edge="peer <- load",
        pair=("load write", "send read"),
    ),
    Fault(
        id="send-of-pages-as-queued",
        planted="a send hands over the pages that its ids named when it was queued",
        plant=in_sends(_SendsWhatWasThere),
        checks=("ledger", "content"),
        scenario="peers",
        rows=("B03",),
    ),
    Fault(
        id="abort-forgets-queued-parts",
        planted="an abort of a send that no engine knows is forgotten, so freed pages are sent",
        plant=in_board(_AbortsWhatIsUnderWay),
        checks=("ledger", "assertion", "ownership"),
        scenario="peers",
        rows=("B61",),
    ),
    Fault(
        id="queued-pages-freed",
        planted="pages are freed while a send of them waits for its turn",
        plant=in_world(_FreesWhatIsQueued),
        checks=("ownership",),
        scenario="peers",
        rows=("B65",),
    ),
    Fault(
        id="queued-ids-minted-again",
        planted="pages are freed while a send of them waits for its turn, which comes when somebody"
        " else has their ids",
        plant=_free_and_forget_what_is_queued,
        checks=("content", "idle"),
        scenario="peers",
        rows=("B65",),
    ),
    Fault(
        id="receive-used-before-its-release",
        planted="a request runs on what a peer still writes",
        plant=in_world(_RunsOnWhatWasPublished),
        checks=("ordering",),
        scenario="peers",
        rows=("B59",),
        edge="forward <- peer|schedule <- peer",
        pair=("receive write", "body|move read"),
    ),
    Fault(
        id="receive-cached-before-its-release",
        planted="a prompt is cached, backed up and shared while a peer still writes it",
        plant=in_world(_CachesWhatIsReceived),
        checks=("ordering",),
        scenario="peers",
        ablates="CLEARANCE[backup copy, network]",
        edge="<- peer",
        pair=("receive write", "body read|backup read"),
    ),
)
