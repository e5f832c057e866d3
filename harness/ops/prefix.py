"""Cached prefixes: a stand-in for the prefix tree, with the same holds on pages, rows and slots.

A cached prefix can be resumed only where every band can: its full pages, the window rows that the
next token attends, and the state after exactly its last token.
"""

from __future__ import annotations

from harness.library import answer_of
from harness.ops.base import Name, Op, Outcome
from harness.requests import Phase, Prefix, Request
from harness.states import Tracked
from harness.world import World

PREFIXES_MAX = 64


def longest_prefix(world: World, request: Request) -> Prefix | None:
    """The longest cached prefix of a prompt that leaves at least one token to compute."""
    block_tokens = world.setup.block_pages * world.setup.page_slots
    most = min(len(request.blocks), (request.prompt - 1) // block_tokens)
    for count in range(most, 0, -1):
        prefix = world.prefixes.get(request.blocks[:count])
        if prefix is not None and not world.host.has_unnamed_rows(prefix):
            return prefix
    return None


class CachePrefix(Op, frozen=True, tag="cache_prefix"):
    """The computed blocks of a prompt join the cache, as far as every band can resume them."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Hold the pages, the window rows behind their end, and the checkpoint if it fits."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING:
            return Outcome.SKIPPED
        if isinstance(world.states, Tracked):
            return _take_checkpoint(world, world.states, request)
        setup = world.setup
        block_tokens = setup.block_pages * setup.page_slots
        count = min(request.length // block_tokens, len(request.blocks))
        if not count:
            return Outcome.SKIPPED
        blocks = request.blocks[:count]
        whole = count * block_tokens
        if blocks in world.prefixes or len(world.prefixes) >= PREFIXES_MAX:
            return Outcome.SKIPPED
        pages = request.pages[: count * setup.block_pages]
        tails = []
        for band in world.window_bands:
            window = setup.bands[band].window
            first = world.retirement.first_needed(whole, window, setup.page_slots)
            if request.window_first[band] > first:
                return Outcome.SKIPPED
            tails.append(pages[first:])
        world.hold(pages, tails)
        world.prefixes[blocks] = Prefix(blocks, pages, tails, 0)
        world.probes["prefix_cached"] += 1
        return Outcome.DONE


class EvictPrefix(Op, frozen=True, tag="evict_prefix"):
    """The least recently used unlocked prefix leaves the cache, also under a running step."""

    def apply(self, world: World) -> Outcome:
        """Give up its holds: a logical free."""
        for key, prefix in world.prefixes.items():
            if not prefix.locks:
                del world.prefixes[key]
                if world.host.is_copying(key):
                    world.probes["evicted_under_a_copy"] += 1
                world.let_go(prefix.pages, prefix.tails)
                world.states.dropped(world, prefix.slot)
                world.free_slots([prefix.slot] if prefix.slot else [])
                return Outcome.DONE
        return Outcome.SKIPPED


class FinishCached(Op, frozen=True, tag="finish_cached"):
    """A request ends, and the cache takes its checkpoint instead of having it freed."""

    request: Name

    def apply(self, world: World) -> Outcome:
        """Hold what resumes there, then end the request."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING:
            return Outcome.SKIPPED
        states = world.states
        if not isinstance(states, Tracked) or request.length < request.prompt:
            return Outcome.SKIPPED
        blocks = checkpoint_blocks(world, request)
        if not blocks:
            return Outcome.SKIPPED
        world.relay.before(world, (request,))
        _hold_prefix(world, request, blocks, states.end_into_cache(world, request))
        world.release(request)
        world.forget(request)
        world.probes["checkpoint_left_to_the_cache"] += 1
        return Outcome.DONE


def checkpoint_blocks(world: World, request: Request) -> tuple[int, ...]:
    """The blocks after which the cache could resume from a request's checkpoint; empty for none.

    It has to lie after whole blocks of the prompt, and not be cached already.
    """
    assert isinstance(world.states, Tracked)
    length = answer_of(world, world.states.slots.checkpoint, request.name).length
    block_tokens = world.setup.block_pages * world.setup.page_slots
    count = length // block_tokens
    if length % block_tokens or count > len(request.blocks) or len(world.prefixes) >= PREFIXES_MAX:
        return ()
    blocks = request.blocks[:count]
    return () if blocks in world.prefixes else blocks


def _take_checkpoint(world: World, states: Tracked, request: Request) -> Outcome:
    """The cache takes the checkpoint of a running request, against a slot where it needs one."""
    blocks = checkpoint_blocks(world, request)
    if not blocks:
        return Outcome.SKIPPED
    slots: list[int] = []
    if states.slots.policy.replacement_slots:
        answer = world.take(0, states.slots.policy.replacement_slots)
        if answer is None:
            world.probes["replacement_refused"] += 1
            return Outcome.REFUSED
        slots = answer.slots
    world.relay.before(world, (request,))
    checkpoint = answer_of(world, states.slots.take_checkpoint, request.name, slots)
    prefix = _hold_prefix(world, request, blocks, checkpoint.slot)
    if states.slots.state_of(states.slots.held(request.name).slot).source == checkpoint.slot:
        states.resume(request, prefix)
    world.probes["checkpoint_donated"] += 1
    world.probes["checkpoint_donated_from_elsewhere"] += bool(request.came_from)
    return Outcome.DONE


def _hold_prefix(world: World, request: Request, blocks: tuple[int, ...], slot: int) -> Prefix:
    """A prefix of a request's pages, with the window rows that whoever resumes there attends.

    No row of them may be gone: the request kept its windows behind the checkpoint.
    """
    setup, first_needed = world.setup, world.retirement.first_needed
    pages = request.pages[: len(blocks) * setup.block_pages]
    tails = [
        pages[first_needed(len(pages) * setup.page_slots, band.window, setup.page_slots) :]
        for band in setup.bands
        if band.kind == "window"
    ]
    world.hold(pages, tails)
    prefix = world.prefixes[blocks] = Prefix(blocks, pages, tails, slot)
    world.probes["prefix_cached"] += 1
    return prefix
