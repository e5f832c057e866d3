"""The next operation, from choices and what a scheduler can see.

It looks at requests, steps and prefixes, never at the allocator.  A seed's swarm switches some
operations off and skews the weights of others, because bugs like unusual mixes.

Source: swarm testing (Groce et al., 2012).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate, islice

from harness.choices import Choices, between, percent
from harness.errors import InputError
from harness.generate_copies import COPY_CORE, COPY_NAMES, CopyMakers, reader_of_a_load
from harness.generate_states import RELAYED_NAMES, ROW_NAMES, TRACKED_NAMES, StateMakers, launchable
from harness.generate_transfers import TRANSFER_CORE, TRANSFER_NAMES, TransferMakers
from harness.ops import (
    Abort,
    Admit,
    Advance,
    Arrive,
    Barrier,
    Chunk,
    Complete,
    Decode,
    EvictPrefix,
    Finish,
    Flush,
    HostSync,
    IdleCheck,
    Launch,
    Operation,
    Outcome,
    Prewarm,
    Process,
    Record,
    RecordUnknown,
    Relieve,
    Retract,
    SharedReadEnd,
)
from harness.ops.requests import BLOCKS_MAX
from harness.pipeline import is_full
from harness.requests import Request
from harness.scenario import Scenario
from harness.traffic import BLOCK_TOKENS, Traffic
from harness.weights import OPERATION_WEIGHTS
from harness.world import World

_ALWAYS = COPY_CORE | TRANSFER_CORE | {"arrive", "admit", "chunk", "decode", "launch", "process"}
"""Operations that no swarm switches off: without them nothing happens."""

FAMILIES: Mapping[str, frozenset[str]] = {
    "windows": frozenset({"advance"}),
    "state": frozenset({"checkpoint"}),
    "prefix": frozenset({"cache_prefix", "evict_prefix"}),
    # A prewarm is no draw: an engine begins with it.
    "layout": frozenset({"flush", "relieve"}),
    "host": COPY_NAMES,
    "network": TRANSFER_NAMES,
    "rows": ROW_NAMES,
}
"""Families that a subject may lack, with their operations; the others every engine needs."""

_TRIES = 10
"""Draws of an operation that turns out impossible before time passes instead."""

_IMPATIENCE = 8
"""One in so many takes is tried though nothing was given back since the last refusal: refusals and
their judge must be met, but a scheduler that only asks again does no work."""

_REFUSED = Outcome.REFUSED
_NEVER = -1


class Generator:
    """Draws operations for one world.

    Args:
        scenario: weights and lengths.
        choices: the only source of chance.
        strategy: `random` keeps the scenario's weights, `swarm` skews them for this seed.
        traffic: requests to arrive in order, scaled; without it lengths are drawn.
        families: what the subject supports; operations of other families are never drawn.

    Raises:
        InputError: if a family is unknown.
    """

    def __init__(
        self,
        scenario: Scenario,
        choices: Choices,
        strategy: str,
        traffic: Traffic | None,
        families: frozenset[str] = frozenset(FAMILIES),
    ) -> None:
        self._choices = choices
        self._requests = scenario.requests
        self._traffic = traffic
        self._arrivals = choices.below(len(traffic.requests)) if traffic else 0
        self._names = 0
        self._blocks = 0
        self._past_blocks: list[tuple[int, ...]] = []
        self._short_of_memory = False
        self._frees_when_short = _NEVER
        self._frees_at_flush = 0
        unknown = sorted(families - FAMILIES.keys())
        if unknown:
            raise InputError(
                f"subject: families {unknown} are unknown; known: {', '.join(FAMILIES)}"
            )
        absent = {"host": scenario.host, "network": scenario.peers, "rows": scenario.backend}
        families -= {family for family, section in absent.items() if section is None}
        left_out = frozenset().union(*(FAMILIES[name] for name in FAMILIES.keys() - families))
        if all(layer.state is None for layer in scenario.model.layers):
            left_out |= TRACKED_NAMES
        if scenario.backend is None or not scenario.backend.relayed_percent:
            left_out |= RELAYED_NAMES
        weights = {**OPERATION_WEIGHTS, **scenario.weights}
        weights = {name: weight for name, weight in weights.items() if name not in left_out}
        if strategy == "swarm":
            weights = {name: self._swarmed(name, weight) for name, weight in weights.items()}
        weights = {name: weight for name, weight in weights.items() if weight}
        makers = self._makers()
        self._unknown_percent = scenario.loop.unknown_writes_percent
        self._read_end_late = percent(choices, 25)
        self._barrier_percent = (100, 90, 50)[choices.below(3)]
        self._prewarms = "layout" in families
        self._bounds = list(accumulate(weights.values()))
        self._choose = [makers[name] for name in weights]

    def next(self, world: World) -> Operation:
        """An operation that is likely to make sense now."""
        if self._prewarms:
            self._prewarms = False
            return Prewarm()
        if self._short_of_memory:
            self._short_of_memory = False
            self._frees_when_short = world.frees
        if world.open_step is not None:
            return self._between_launch_and_record(world)
        if world.unordered_step is not None:
            results = self._results(world) if world.setup.pipeline else None
            if results is not None:
                return results
            if percent(self._choices, self._barrier_percent):
                return Barrier()
        below, bounds, choose = self._choices.below, self._bounds, self._choose
        for _ in range(_TRIES):
            operation = choose[bisect_right(bounds, below(bounds[-1]))](world)
            if operation is not None:
                return operation
        return self._get_going(world)

    def _results(self, world: World) -> Operation | None:
        """What a pipeline does between a launch and its barrier: results of an earlier batch."""
        step = world.unordered_step
        assert step is not None
        if len(world.steps) > 1 and self._choices.below(2):
            return Process()
        if self._choices.below(4) == 0:
            return None
        done = [r for r in world.running.values() if r.name not in step.requests and not r.prepared]
        request = self._pick([r for r in done if r.length > r.prompt])
        return Finish(request.name) if request else None

    def _get_going(self, world: World) -> Operation:
        """Something that is possible in any world; host waits would hide races from the clocks."""
        if world.steps:
            return Process()
        if world.frees == self._frees_when_short:
            given_back = self._give_back(world)
            if given_back is not None:
                return given_back
        return self._arrive(world) or self._abort(world) or IdleCheck()

    def heard(self, outcome: Outcome) -> None:
        """The engine's reaction to the last answer: after a refusal it waits for a free."""
        if outcome is _REFUSED:
            self._short_of_memory = True

    def _swarmed(self, name: str, weight: int) -> int:
        if name not in _ALWAYS and self._choices.below(4) == 0:
            return 0
        return weight * (1, 2, 2, 4)[self._choices.below(4)]

    def _makers(self) -> Mapping[str, Callable[[World], Operation | None]]:
        return {
            "arrive": self._arrive,
            "admit": self._admit,
            "chunk": self._chunk,
            "decode": self._decode,
            "launch": self._launch,
            "process": self._process,
            "finish": self._finish,
            "abort": self._abort,
            "retract": self._retract,
            "advance": self._advance,
            "flush": self._flush,
            "relieve": self._relieve,
            **StateMakers(self._choices).by_name(),
            **CopyMakers(self._choices, self._waits).by_name(),
            **TransferMakers(self._choices, self._waits).by_name(),
            "complete": self._complete,
            "host_sync": lambda world: HostSync(self._choices.below(2)),
            "idle_check": lambda world: IdleCheck(),
        }

    def _between_launch_and_record(self, world: World) -> Operation:
        step = world.open_step
        assert step is not None
        unordered = world.unordered_step is not None
        declare = world.setup.read_end and unordered and not step.declares_read_end
        if declare and not self._read_end_late:
            return SharedReadEnd()
        draw = self._choices.below(8)
        if draw == 0 and unordered:
            return Barrier()
        complete = self._complete(world) if draw <= 2 else None
        if complete is not None:
            return complete
        if declare:
            return SharedReadEnd()
        if self._unknown_percent and percent(self._choices, self._unknown_percent):
            return RecordUnknown()
        return Record()

    def _pick(self, requests: list[Request]) -> Request | None:
        return requests[self._choices.below(len(requests))] if requests else None

    def _arrive(self, world: World) -> Operation | None:
        if len(world.requests) >= 2 * world.setup.rows:
            return None
        name = f"r{self._names}"
        self._names += 1
        if self._traffic is not None:
            return self._from_traffic(world, name, self._traffic)
        prompt = between(self._choices, *self._requests.prompt_tokens)
        longest = world.setup.row_pages * world.setup.page_slots
        if prompt > longest and self._choices.below(4):
            # A client that knows the limit; the others are refused.
            prompt = longest
        output = between(self._choices, *self._requests.output_tokens)
        return Arrive(name, prompt, output, self._blocks_of(world, prompt))

    def _from_traffic(self, world: World, name: str, traffic: Traffic) -> Operation:
        """One request of real traffic: a block of it becomes a block of ours, token by token."""
        real = traffic.requests[self._arrivals % len(traffic.requests)]
        self._arrivals += 1
        block_tokens = world.setup.block_pages * world.setup.page_slots
        longest = world.setup.row_pages * world.setup.page_slots // 2
        prompt = max(1, min(real.input_length * block_tokens // BLOCK_TOKENS, longest))
        output = max(1, min(real.output_length * block_tokens // BLOCK_TOKENS, longest))
        return Arrive(
            name, prompt, output, tuple(real.hash_ids[: min(prompt // block_tokens, BLOCKS_MAX)])
        )

    def _blocks_of(self, world: World, prompt: int) -> tuple[int, ...]:
        count = min(prompt // (world.setup.block_pages * world.setup.page_slots), BLOCKS_MAX)
        shared: tuple[int, ...] = ()
        if self._past_blocks and percent(self._choices, self._requests.shared_percent):
            past = self._past_blocks[self._choices.below(len(self._past_blocks))]
            shared = past[: 1 + self._choices.below(len(past))][:count]
        fresh = range(self._blocks, self._blocks + count - len(shared))
        self._blocks += len(fresh)
        blocks = (*shared, *fresh)
        if blocks and len(self._past_blocks) < 32:
            self._past_blocks.append(blocks)
        return blocks

    def _tokens(self, world: World) -> int:
        """A chunk's length; every second one ends on a block, where a prefix can be cached."""
        tokens = between(self._choices, *self._requests.chunk_tokens)
        if self._choices.below(2):
            return tokens
        block_tokens = world.setup.block_pages * world.setup.page_slots
        return -(-tokens // block_tokens) * block_tokens

    def _waits(self, world: World) -> bool:
        """Whether a take would most likely be refused once more: nothing was freed since."""
        return world.frees == self._frees_when_short and self._choices.below(_IMPATIENCE) > 0

    def _admit(self, world: World) -> Operation | None:
        queued = world.queued
        if not queued or len(world.running) >= world.setup.rows:
            return None
        if self._waits(world):
            return self._give_back(world) if self._choices.below(2) else None
        first, *others = islice(queued.values(), 2)
        request = others[0] if others and self._choices.below(2) else first
        request = reader_of_a_load(self._choices, world) or request
        return Admit(request.name, self._tokens(world))

    def _chunk(self, world: World) -> Operation | None:
        ready = [r for r in world.running.values() if not r.prepared and r.length < r.prompt]
        if not ready:
            return None
        if self._waits(world):
            return self._give_back(world) if self._choices.below(2) else None
        return Chunk(ready[self._choices.below(len(ready))].name, self._tokens(world))

    def _decode(self, world: World) -> Operation | None:
        ready = [
            r
            for r in world.running.values()
            if not r.prepared and r.prompt <= r.length < r.prompt + r.output
        ]
        if not ready:
            return None
        if self._waits(world):
            # The last page of some may still have room.
            slots = world.setup.page_slots
            ready = [r for r in ready if r.length % slots]
            if not ready:
                return self._give_back(world) if self._choices.below(2) else None
        if len(ready) > 1 and self._choices.below(4) == 0:
            ready = ready[: 1 + self._choices.below(len(ready))]
        return Decode(tuple([r.name for r in ready]))

    def _give_back(self, world: World) -> Operation | None:
        """What a scheduler does when memory is short."""
        if world.prefixes and self._choices.below(2):
            return EvictPrefix()
        return self._retract(world)

    def _launch(self, world: World) -> Operation | None:
        prepared = launchable(self._choices, world)
        if not prepared:
            return None
        if is_full(world):
            return Process()
        if world.setup.pipeline:
            # A micro-batch is not all that is ready: the others come in the next ones.
            prepared = prepared[: 1 + self._choices.below(len(prepared))]
        return Launch(tuple(prepared))

    def _process(self, world: World) -> Operation | None:
        steps = len(world.steps)
        # The host lags behind: hazards live between steps that are in flight together.
        if 0 < steps < world.setup.steps_in_flight and self._choices.below(2):
            return None
        return Process() if steps or world.unsynced_step else None

    def _finish(self, world: World) -> Operation | None:
        running = world.running.values()
        done = [r for r in running if r.length >= r.prompt + r.output]
        if not done:
            # The client's stop token may come at any length.
            done = [r for r in running if r.length > r.prompt and not r.prepared]
            if self._choices.below(2):
                return None
        request = self._pick(done)
        return Finish(request.name) if request else None

    def _abort(self, world: World) -> Operation | None:
        request = self._pick(list(world.requests.values()))
        return Abort(request.name) if request else None

    def _retract(self, world: World) -> Operation | None:
        request = self._pick(list(world.running.values()))
        return Retract(request.name) if request else None

    def _advance(self, world: World) -> Operation | None:
        if not world.window_bands:
            return None
        slots = world.setup.page_slots
        floor, first_needed = world.states.floor, world.retirement.first_needed
        windows = [(band, world.setup.bands[band].window) for band in world.window_bands]
        ready = [
            r
            for r in world.running.values()
            if any(
                r.window_first[band] < first_needed(floor(world, r), window, slots)
                for band, window in windows
            )
        ]
        request = self._pick(ready)
        return Advance(request.name) if request else None

    def _flush(self, world: World) -> Operation | None:
        if world.frees == self._frees_at_flush:
            return None
        self._frees_at_flush = world.frees
        return Flush(1 + self._choices.below(8))

    def _relieve(self, world: World) -> Operation | None:
        return Relieve(1 + self._choices.below(8), self._choices.below(2))

    def _complete(self, world: World) -> Operation | None:
        started = world.device.started()
        if not started:
            return None
        rank, stream = started[self._choices.below(len(started))]
        return Complete(rank, stream, 1 + self._choices.below(3))
