"""Faults of state slots: clears that are lost, slots that leak, windows given up too early."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.fault import Fault, Plant
from harness.faults.parts import become, chains, in_world
from harness.requests import Prefix, Request
from harness.states import StateWork, Tracked
from harness.subject import Answer
from harness.world import World
from unikv.cache.checkpoint_policy import CheckpointPolicy
from unikv.cache.state_slots import StateSlots
from unikv.cache.state_step import NO_CHECKPOINT, SINK, Checkpoint, Content, Ending, SlotState
from unikv.ids.unit_ids import MintedIds


def in_slots(broken: type[StateSlots]) -> Plant:
    """Plant slots that are kept wrongly, where a strategy keeps them."""

    def plant(world: World) -> None:
        if isinstance(world.states, Tracked):
            become(world.states.slots, broken)

    return plant


def in_tracked(broken: type[Tracked]) -> Plant:
    """Plant an engine that carries out wrongly what the library says of slots."""

    def plant(world: World) -> None:
        if isinstance(world.states, Tracked):
            become(world.states, broken)

    return plant


class _TakesTheReplacementForWritten(StateSlots):
    """Whoever goes on with a replacement finds there what its last holder left."""

    __slots__ = ()

    def take_checkpoint(self, name: str, slots: Sequence[int]) -> Checkpoint:
        checkpoint = super().take_checkpoint(name, slots)
        held = self.held(name)
        if held.slot in slots:
            self._states[held.slot] = SlotState(Content.WRITTEN, checkpoint.length, SINK)
        return checkpoint


class _TakesTheFirstStateForWritten(StateSlots):
    """A clear that is still due is forgotten when anybody else's request ends."""

    __slots__ = ()

    def end(self, name: str) -> tuple[int, ...]:
        ended = super().end(name)
        for slot, state in self._states.items():
            if state.content is Content.STALE and not self._is_for_checkpoints(slot):
                self._states[slot] = SlotState(Content.WRITTEN, 0, SINK)
        return ended

    def _is_for_checkpoints(self, slot: int) -> bool:
        return any(held.tracking == slot for held in self._requests.values())


class _TakesTheFirstSlotForWritten(StateSlots):
    __slots__ = ()

    def admit(self, name: str, slots: Sequence[int], start: Checkpoint) -> None:
        super().admit(name, slots, start)
        if start == NO_CHECKPOINT:
            self._states[slots[0]] = SlotState(Content.WRITTEN, 0, SINK)


class _BelievesInACopy(StateSlots):
    """Whoever matched the prefix was to copy its state, and the forward relies on that."""

    __slots__ = ()

    def admit(self, name: str, slots: Sequence[int], start: Checkpoint) -> None:
        super().admit(name, slots, start)
        if start != NO_CHECKPOINT:
            self._states[slots[0]] = SlotState(Content.WRITTEN, start.length, SINK)


class _SaysOneTokenLess(StateSlots):
    """A checkpoint goes by the end of the blocks before the last token."""

    __slots__ = ()

    def checkpoint(self, name: str) -> Checkpoint:
        slot, length = super().checkpoint(name)
        return Checkpoint(slot, max(0, length - 1))

    def take_checkpoint(self, name: str, slots: Sequence[int]) -> Checkpoint:
        taken = super().take_checkpoint(name, slots)
        held = self.held(name).slot
        if self._states[held].source == taken.slot:
            self._states[held] = SlotState(Content.RESUMING, taken.length + 1, taken.slot)
        self._states[taken.slot] = SlotState(Content.WRITTEN, taken.length, SINK)
        return taken

    def end_into_tree(self, name: str) -> Ending:
        ending = super().end_into_tree(name)
        slot, length = ending.checkpoint
        self._states[slot] = SlotState(Content.WRITTEN, length, SINK)
        return ending


class _ClearsWhatWasFilled(StateSlots):
    """A slot is fresh when it is handed out, whatever a load or a peer has brought there."""

    __slots__ = ()

    def filled(self, slot: int) -> None:
        super().filled(slot)
        if slot not in self._tree:
            self._states[slot] = self._states[slot]._replace(content=Content.STALE)


class _ClearsOnlyOnce(Tracked):
    """A clear is due for the first request that a slot is handed to, launched or not."""

    def admit(
        self, world: World, request: Request, slots: Sequence[int], prefix: Prefix | None
    ) -> None:
        super().admit(world, request, slots, prefix)
        states, seen = self.slots._states, self.left.setdefault("", ())
        if slots[0] in seen and states[slots[0]].content is Content.STALE:
            states[slots[0]] = SlotState(Content.WRITTEN, 0, SINK)
        self.left[""] = (*seen, slots[0])


class _WritesWhatItResumesFrom(Tracked):
    """A forward that reads the tree's slot leaves its own state there as well."""

    def work(self, world: World, request: Request) -> StateWork:
        work = super().work(world, request)
        if work.source in (SINK, *(slot for slot, _ in work.outputs)):
            return work
        return work._replace(
            outputs=(*work.outputs, Checkpoint(work.source, work.outputs[0].length))
        )


class _TracksTheEnd(Tracked):
    """What is kept for the boundary is the state at the end of the step."""

    def work(self, world: World, request: Request) -> StateWork:
        work = super().work(world, request)
        end = request.length + request.prepared
        return work._replace(outputs=tuple(Checkpoint(slot, end) for slot, _ in work.outputs))


class _EndsWithoutItsTrackingSlot(StateSlots):
    __slots__ = ()

    def end(self, name: str) -> tuple[int, ...]:
        return super().end(name)[:1]


class _KeepsASlotOfARefusal(World):
    """Looks a prefix up, takes a slot to copy its state to, and then has no room for the rest."""

    def take(self, pages: int, slots: int) -> Answer | None:
        answer = super().take(pages, slots)
        if answer is None and pages and slots:
            super().take(0, 1)
        return answer


class _MintsTheSink(MintedIds):
    __slots__ = ()

    def mint(self, count: int) -> list[int]:
        minted = super().mint(count)
        return [0, *minted[1:]] if minted else minted


def _mint_the_sink(world: World) -> None:
    for chain in chains(world):
        if world.state_band in chain.minted:
            become(chain.minted[world.state_band], _MintsTheSink)


class _LetsGoOfEveryWindow(Tracked):
    def floor(self, world: World, request: Request) -> int:
        return request.length


class _KeepsOneCheckpointMore(StateSlots):
    """The floor is the checkpoint before the one that can be taken."""

    __slots__ = ()

    def retention_floor(self, name: str) -> int:
        return max(0, super().retention_floor(name) - self.policy.interval)


class _EndsAnywhere(CheckpointPolicy):
    def chunk_tokens(self, first: int, limit: int, prompt: int) -> int:
        return min(limit, prompt - first)


def _end_chunks_anywhere(world: World) -> None:
    if isinstance(world.states, Tracked):
        policy = world.states.slots.policy
        world.states.slots.policy = _EndsAnywhere(policy.strategy, policy.interval)


class _KeepsItsPlans(Tracked):
    """What is planned for a request is carried out for whoever comes back under its name."""

    def work(self, world: World, request: Request) -> StateWork:
        stale = self.plans.get(f"{request.name} before")
        work = super().work(world, request)
        step = self.plans[request.name]
        self.plans[f"{request.name} before"] = step
        if stale is not None and stale.first > step.first:
            # It has come back, and was further when it went.
            self.plans[request.name] = stale
        return work


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="state-read-before-written",
        planted="a request starts from the state slot it was given as if somebody had written it",
        plant=in_slots(_TakesTheFirstSlotForWritten),
        checks=("initialised", "translation"),
        scenario="hybrid",
        rows=("B25",),
    ),
    Fault(
        id="state-copy-not-carried",
        planted="a request that resumes a cached prefix reads its own state slot, into which nobody"
        " has copied the prefix's state",
        plant=in_slots(_BelievesInACopy),
        checks=("initialised", "translation"),
        scenario="hybrid",
        rows=("B25",),
    ),
    Fault(
        id="state-of-more-tokens",
        planted="a prefix is cached with a state that covers more tokens than its blocks",
        plant=in_slots(_SaysOneTokenLess),
        checks=("content",),
        scenario="hybrid",
        rows=("B141",),
    ),
    Fault(
        id="replacement-slot-uncleared",
        planted="the slot that a request goes on with, after the tree has taken its own, counts as"
        " written",
        plant=in_slots(_TakesTheReplacementForWritten),
        checks=("initialised",),
        scenario="rows",
        rows=("B25",),
    ),
    Fault(
        id="clear-lost-with-another-request",
        planted="a slot whose clear is due counts as written once another request has ended",
        plant=in_slots(_TakesTheFirstStateForWritten),
        checks=("initialised",),
        scenario="rows",
        rows=("B25",),
    ),
    Fault(
        id="clear-lost-with-its-request",
        planted="a clear that was due for a request which was never launched is not due for the"
        " next holder of the slot",
        plant=in_tracked(_ClearsOnlyOnce),
        checks=("initialised",),
        scenario="rows",
        rows=("B25",),
    ),
    Fault(
        id="brought-state-cleared",
        planted="a request whose state a load or a peer has brought starts from a fresh one",
        plant=in_slots(_ClearsWhatWasFilled),
        checks=("content",),
        scenario="everything",
    ),
    Fault(
        id="state-written-in-the-trees-slot",
        planted="a forward that resumes from a slot of the tree leaves its own state there too",
        plant=in_tracked(_WritesWhatItResumesFrom),
        checks=("content",),
        scenario="rows",
        rows=("B25",),
    ),
    Fault(
        id="boundary-state-of-the-end",
        planted="the state that is kept for a grid boundary is the one at the end of the step",
        plant=in_tracked(_TracksTheEnd),
        checks=("content",),
        scenario="rows",
        rows=("B141",),
    ),
    Fault(
        id="tracking-slot-leaked",
        planted="the slot for checkpoints is not given back when its request ends",
        plant=in_slots(_EndsWithoutItsTrackingSlot),
        checks=("idle",),
        scenario="rows",
        rows=("B79",),
    ),
    Fault(
        id="slot-kept-on-a-failed-admission",
        planted="a request that is not admitted keeps the slot that its prefix was to be copied to",
        plant=in_world(_KeepsASlotOfARefusal),
        checks=("idle",),
        scenario="rows",
        rows=("B79",),
    ),
    Fault(
        id="sink-handed-out-as-a-slot",
        planted="the ids of state slots begin with the sink, which captures write",
        plant=_mint_the_sink,
        checks=("ownership",),
        scenario="rows",
        rows=("B135",),
    ),
    Fault(
        id="window-retired-past-the-floor",
        planted="window rows behind a checkpoint that the cache has not taken are freed",
        plant=in_tracked(_LetsGoOfEveryWindow),
        checks=("ownership",),
        scenario="rows",
    ),
    Fault(
        id="window-kept-behind-an-older-checkpoint",
        planted="window rows are kept for a resume at the checkpoint before the last one, which"
        " nobody has any more",
        plant=in_slots(_KeepsOneCheckpointMore),
        checks=("capacity",),
        scenario="rows",
    ),
    Fault(
        id="chunk-off-the-grid",
        planted="a chunk of a prompt ends wherever its limit does, so between two checkpoints",
        plant=_end_chunks_anywhere,
        checks=("capacity",),
        scenario="rows",
    ),
    Fault(
        id="plan-of-an-earlier-life",
        planted="what a forward was to do with the state of a request is carried out after the"
        " request was retracted and came back",
        plant=in_tracked(_KeepsItsPlans),
        checks=("ledger",),
        scenario="rows",
        rows=("B27",),
    ),
)
