"""Requests: arrive, get their first pages, grow, end, or lose everything and come back."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from harness.check import capacity
from harness.check.content import compare_prefix
from harness.network import give_up_receive
from harness.ops.base import Name, Op, Outcome, Tokens
from harness.ops.prefix import longest_prefix
from harness.parked import give_up
from harness.requests import Phase, Request
from harness.world import World

REQUESTS_MAX = 256
BLOCKS_MAX = 4096


def pages_for(tokens: int, page_slots: int) -> int:
    """Pages that hold `tokens` (rounds up)."""
    return -(-tokens // page_slots)


class Arrive(Op, frozen=True, tag="arrive"):
    """A request joins the queue; a prompt no request row can name is refused."""

    request: Name
    prompt: Tokens
    output: Tokens
    blocks: Annotated[tuple[int, ...], Meta(max_length=BLOCKS_MAX)] = ()

    def apply(self, world: World) -> Outcome:
        """Queue it, its output clipped to what a row can name."""
        if self.request in world.requests or len(world.requests) >= REQUESTS_MAX:
            return Outcome.SKIPPED
        most = world.setup.row_pages * world.setup.page_slots
        if not 1 <= self.prompt <= most:
            return Outcome.REFUSED
        output = min(self.output, most - self.prompt)
        world.arrive(Request(self.request, self.prompt, output, self.blocks))
        return Outcome.DONE


class Admit(Op, frozen=True, tag="admit"):
    """A queued request gets a row, what a cached prefix holds, and pages for its first chunk."""

    request: Name
    tokens: Tokens

    def apply(self, world: World) -> Outcome:
        """Take its row and first pages, or change nothing."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.QUEUED or self.tokens < 1:
            return Outcome.SKIPPED
        if world.subjects[0].free_rows() == 0:
            return Outcome.REFUSED
        prefix = longest_prefix(world, request)
        matched = len(prefix.pages) * world.setup.page_slots if prefix else 0
        tokens = world.states.chunk_tokens(matched, self.tokens, request.prompt)
        if tokens < 1:
            return Outcome.SKIPPED  # the limit is too short for a chunk that ends on the grid
        capacity.after_a_chunk(world, request, matched, tokens)
        pages = pages_for(tokens, world.setup.page_slots)
        answer = world.take(pages, world.states.admission_slots)
        if answer is None:
            return Outcome.REFUSED
        world.admit(request)
        world.rows.take(world, request)
        request.window_first = [0] * len(world.setup.bands)
        request.pages = []
        tails: list[list[int]] = [[] for _ in world.window_bands]
        if prefix is not None:
            compare_prefix(world, request, prefix)
            world.probes["prefix_shared"] += 1
            world.prefixes.move_to_end(prefix.blocks)
            request.pages += prefix.pages
            # Who wrote them last is forgotten, but no step that comes later writes them.
            request.last_step = world.step_count
            tails = prefix.tails
            for band, rows in zip(world.window_bands, tails, strict=True):
                request.window_first[band] = len(prefix.pages) - len(rows)
        world.hold(request.pages, tails)
        world.hold(answer.ids, [answer.ids for _ in world.window_bands])
        request.pages += answer.ids
        request.length = matched
        request.prepared = tokens
        world.states.admit(world, request, answer.slots, prefix)
        world.ask("append_row", request.row, list(request.pages))
        return Outcome.DONE


class Chunk(Op, frozen=True, tag="chunk"):
    """A running request gets pages for more of its prompt."""

    request: Name
    tokens: Tokens

    def apply(self, world: World) -> Outcome:
        """Take the pages, or change nothing."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING or request.prepared:
            return Outcome.SKIPPED
        tokens = world.states.chunk_tokens(request.length, self.tokens, request.prompt)
        if tokens < 1:
            return Outcome.SKIPPED
        capacity.after_a_chunk(world, request, request.length, tokens)
        return extend(world, [(request, tokens)])


class Decode(Op, frozen=True, tag="decode"):
    """Running requests whose prompt is done each get a slot for one more token, in one take."""

    requests: Annotated[tuple[Name, ...], Meta(max_length=REQUESTS_MAX)]

    def apply(self, world: World) -> Outcome:
        """Take the pages they need together, or change nothing."""
        ready = []
        for name in dict.fromkeys(self.requests):
            request = world.requests.get(name)
            if (
                request is not None
                and request.phase is Phase.RUNNING
                and not request.prepared
                and request.prompt <= request.length < request.total
            ):
                ready.append((request, 1))
        return extend(world, ready) if ready else Outcome.SKIPPED


def extend(world: World, growth: list[tuple[Request, int]]) -> Outcome:
    """Prepare more tokens of running requests, with one take for all of them."""
    slots = world.setup.page_slots
    needs = [
        pages_for(request.length + tokens, slots) - len(request.pages) for request, tokens in growth
    ]
    total = sum(needs)
    ids: list[int] = []
    if total:
        answer = world.take(total, 0)
        if answer is None:
            return Outcome.REFUSED
        ids = answer.ids
        world.hold(ids, [ids for _ in world.window_bands])
    at = 0
    for (request, tokens), need in zip(growth, needs, strict=True):
        request.prepared = tokens
        if need:
            fresh = ids[at : at + need]
            at += need
            request.pages += fresh
            world.ask("append_row", request.row, fresh)
    return Outcome.DONE


class Finish(Op, frozen=True, tag="finish"):
    """A request that has produced its tokens gives everything back, also under a running step."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Free it, if it is at its end."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING:
            return Outcome.SKIPPED
        if request.length < request.prompt:
            return Outcome.SKIPPED
        return _end(world, request)


class Abort(Op, frozen=True, tag="abort"):
    """A client goes away: queued, in the middle of its prompt, or decoding."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Free whatever it holds."""
        request = world.requests.get(self.request)
        if request is None:
            return Outcome.SKIPPED
        if request.phase is Phase.RECEIVING:
            give_up_receive(world, request)
        elif request.phase in (Phase.SAVING, Phase.PARKED, Phase.LOADING):
            give_up(world, request)
        return _end(world, request)


class Retract(Op, frozen=True, tag="retract"):
    """A running request loses everything and goes back to the queue to prefill again."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Free what it holds and queue it with what it has produced as part of its prompt."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING:
            return Outcome.SKIPPED
        _note_running(world, request)
        produced = max(request.length, request.prompt)
        rest = request.total - produced
        world.release(request)
        request.prompt, request.output = produced, rest
        world.probes["retracted"] += 1
        return Outcome.DONE


def _end(world: World, request: Request) -> Outcome:
    if request.phase in (Phase.RUNNING, Phase.PAUSED, Phase.LEAVING):
        _note_running(world, request)
        world.release(request)
    world.forget(request)
    return Outcome.DONE


def _note_running(world: World, request: Request) -> None:
    if any(request.name in step.requests for step in world.steps):
        world.probes["freed_under_a_running_step"] += 1
