"""Which state slots a request holds, and what its next forward does with the bytes in them.

A slot handed out contains what its previous holder left.  It is cleared, or started from another
slot, by the forward that first runs on it, which may be launched long after and on behalf of a
request that has exchanged its slots in between.  So what is still to be done is written on the
slot, not on the request, and is over when a forward that does it was launched and not before.

Every call is bookkeeping: slots are taken from the allocator and given back to it by the caller.
Nothing here knows pages, streams or the shape of the tree.  A slot that goes back while a forward
still runs on it is the allocator's to keep pending.
"""

from __future__ import annotations

from collections.abc import Sequence

from unikv.arguments import check_names, check_number
from unikv.cache.checkpoint_policy import CheckpointPolicy
from unikv.cache.slot_refusals import check_count, check_is_there, check_offered, check_start
from unikv.cache.state_step import (
    NO_CHECKPOINT,
    SINK,
    STALE,
    Checkpoint,
    Content,
    Ending,
    HeldSlots,
    SlotState,
    StateStep,
)
from unikv.errors import ArgumentError, OwnershipError, StepOrderError

_OWN = (Content.WRITTEN, Content.FILLING)
"""A request whose slot is like that goes on from its own state."""


class StateSlots:
    """The state slots of all requests and of the tree.

    Law: a slot is free (unknown here), or held by exactly one request in one role, or by the tree.
    A tree's slot is written, or is being filled, and stays with the tree as long as a slot is to
    resume from it.

    Every refused call changes nothing: slots that were offered stay the caller's.

    Attributes:
        policy: where checkpoints are made.
        skipped_checkpoints: boundaries that a forward came to without a slot to write them to.
    """

    __slots__ = ("_requests", "_slot_count", "_states", "_tree", "policy", "skipped_checkpoints")

    def __init__(self, policy: CheckpointPolicy, slot_count: int) -> None:
        """No slot of `[1, slot_count]` is held."""
        self.policy = policy
        self.skipped_checkpoints = 0
        self._slot_count = slot_count
        self._states: dict[int, SlotState] = {}
        self._requests: dict[str, HeldSlots] = {}
        self._tree: set[int] = set()

    # Reading ---------------------------------------------------------------------------------

    def held(self, name: str) -> HeldSlots:
        """The slots of a request.

        Raises:
            OwnershipError: if it holds none.
        """
        if name not in self._requests:
            raise OwnershipError(f"request {name!r} holds no state slots; admit it first")
        return self._requests[name]

    def state_of(self, slot: int) -> SlotState:
        """What is in a slot.

        Raises:
            OwnershipError: if nobody holds it.
            ArgumentError: if the slot is no int.
        """
        check_number("state_of", "the slot", slot)
        if slot not in self._states:
            raise OwnershipError(
                f"state slot {slot}: nobody holds it; held are {len(self._states)} of"
                f" 1..{self._slot_count}"
            )
        return self._states[slot]

    def held_slots(self) -> tuple[int, ...]:
        """Every slot that a request or the tree holds, ascending."""
        return tuple(sorted(self._states))

    def tree_slots(self) -> tuple[int, ...]:
        """The tree's slots, ascending."""
        return tuple(sorted(self._tree))

    def length(self, name: str) -> int:
        """Tokens of a request that were launched, or that it starts behind.

        Raises:
            OwnershipError: if it holds no slots.
        """
        return self._states[self.held(name).slot].length

    def checkpoint(self, name: str) -> Checkpoint:
        """What the tree could take from a request; `NO_CHECKPOINT` if there is nothing.

        Its key in the tree is the first `length` tokens and no other number of them.  If the last
        one is not known yet, or not wanted, the checkpoint is not to be taken.

        Raises:
            OwnershipError: if the request holds no slots.
        """
        held = self.held(name)
        slot = held.tracking if self.policy.interval else held.slot
        if slot == SINK or self._states[slot].content is not Content.WRITTEN:
            return NO_CHECKPOINT
        return Checkpoint(slot, self._states[slot].length)

    def retention_floor(self, name: str) -> int:
        """Tokens behind which the request keeps every window, for `first_retained_page`.

        Raises:
            OwnershipError: if the request holds no slots.
        """
        length = self.length(name)
        # Without a grid the checkpoint moves with the request, and so does the floor.
        return self.checkpoint(name).length or length

    # A request -------------------------------------------------------------------------------

    def admit(self, name: str, slots: Sequence[int], start: Checkpoint) -> None:
        """Give a request the slots it needs to finish.

        Looking a prefix up takes no slot and copies nothing, so there is nothing to undo for a
        request that is not admitted.  If a later part of its admission fails, call `end`.

        Args:
            name: the request, which holds no slots.
            slots: `policy.admission_slots` of them, just taken.
            start: the tree's checkpoint that it resumes from, or `NO_CHECKPOINT`.

        Raises:
            OwnershipError: if the request, a slot or the start is not as said above.
            ArgumentError: if there are more or fewer slots, or one is no int.
        """
        check_names("admit", name)
        self._check_new(name)
        self._check_offered("admit", slots, self.policy.admission_slots)
        opening = STALE
        if start != NO_CHECKPOINT:
            check_start(start, self._states, self._tree)
            opening = SlotState(Content.RESUMING, start.length, start.slot)
        tracking = slots[1] if len(slots) > 1 else SINK
        self._requests[name] = HeldSlots(slots[0], tracking)
        self._states[slots[0]] = opening
        if tracking:
            self._states[tracking] = STALE

    def admit_filling(self, name: str, slot: int, length: int) -> None:
        """Give a request the slot that a load or a transfer fills with its state.

        It comes without a slot for checkpoints, whatever the policy: with one slot it finishes, and
        where a boundary comes it asks for another as any request does that has none.  A checkpoint
        that it had before it went, and the tree did not take, is not brought back.

        Args:
            name: the request, which holds no slots.
            slot: just taken.
            length: tokens whose state it gets, 1 or more.

        Raises:
            OwnershipError: if the request or the slot is not as said above.
            ArgumentError: if the slot is no int, or the length no tokens.
        """
        check_names("admit_filling", name)
        self._check_new(name)
        self._fill("admit_filling", slot, length)
        self._requests[name] = HeldSlots(slot, SINK)

    def filled(self, slot: int) -> None:
        """What fills a slot comes before every kernel that is enqueued from here on.

        Of a load that is so once it is submitted, since a forward waits for what it reads; of a
        transfer once it is released.

        Raises:
            OwnershipError: if nobody holds the slot, or nothing fills it.
            ArgumentError: if the slot is no int.
        """
        check_number("filled", "the slot", slot)
        state = self.state_of(slot)
        if state.content is not Content.FILLING:
            raise OwnershipError(
                f"filled: state slot {slot} is {state.content.value}; allowed: one that"
                " admit_filling or adopt was given, once"
            )
        self._states[slot] = SlotState(Content.WRITTEN, state.length, SINK)

    def lacks_tracking_slot(self, name: str, tokens: int) -> bool:
        """Whether the next forward comes to a boundary without a slot to write it to.

        The caller then takes one and calls `give_tracking_slot`, or lets the boundary go: the
        forward runs without it, nothing is held back for it, and the next boundary asks again.

        Raises:
            OwnershipError: if the request holds no slots.
        """
        boundary = self.policy.last_boundary(self.length(name), tokens)
        return bool(boundary) and self.held(name).tracking == SINK

    def give_tracking_slot(self, name: str, slot: int) -> None:
        """Give a request the slot for its next boundary.

        Raises:
            OwnershipError: if the request holds no slots or has one for checkpoints, or the slot is
                held or the sink.
            ArgumentError: if the policy has no grid, or the slot is no int.
        """
        held = self.held(name)
        if not self.policy.interval:
            raise ArgumentError(
                f"give_tracking_slot: {self.policy.strategy.value} tracks no boundary; allowed:"
                " a strategy with a grid"
            )
        if held.tracking:
            raise OwnershipError(
                f"request {name!r} tracks into slot {held.tracking} already; it needs no other"
            )
        self._check_offered("give_tracking_slot", (slot,), 1)
        self._requests[name] = held._replace(tracking=slot)
        self._states[slot] = STALE

    def before_forward(self, name: str, tokens: int) -> StateStep:
        """What a forward over the next `tokens` of a request has to do.  Changes nothing.

        Raises:
            OwnershipError: if the request holds no slots.
            ArgumentError: if there is no token.
            StepOrderError: if the state that it starts from is not there yet.
        """
        held = self.held(name)
        check_number("before_forward", "tokens", tokens)
        if tokens < 1:
            raise ArgumentError(f"before_forward: {tokens} tokens of {name!r}; allowed: 1 or more")
        state = self._states[held.slot]
        source = held.slot if state.content in _OWN else state.source
        check_is_there(name, source, self._states)
        boundary = self.policy.last_boundary(state.length, tokens)
        tracked = NO_CHECKPOINT
        if boundary and held.tracking:
            tracked = Checkpoint(held.tracking, boundary)
        return StateStep(name, state.length, tokens, source, held.slot, tracked)

    def launched(self, step: StateStep) -> None:
        """A forward that does all of `step` is launched: what was due on its slots is over.

        Raises:
            OwnershipError: if the request holds no slots.
            StepOrderError: if the step is not what the request's next forward has to do, because
                its slots were exchanged or another forward was launched after it was made.
        """
        due = self.before_forward(step.name, step.tokens)
        if step != due:
            raise StepOrderError(
                f"launch of {step}, but due is {due}; ask before_forward again before the launch"
            )
        end = step.first + step.tokens
        self._states[step.slot] = SlotState(Content.WRITTEN, end, SINK)
        if step.tracked != NO_CHECKPOINT:
            slot, length = step.tracked
            self._states[slot] = SlotState(Content.WRITTEN, length, SINK)
        elif self.policy.last_boundary(step.first, step.tokens):
            self.skipped_checkpoints += 1

    def take_checkpoint(self, name: str, slots: Sequence[int]) -> Checkpoint:
        """The tree takes a running request's checkpoint; the request goes on with other slots.

        Without a grid the tree takes the slot that the request runs on.  The next forward reads
        that one and writes the replacement, so the tree's state is left as it is and no copy is
        made: a copy for the tree would need a slot as well, and a kernel that nobody may overtake.

        Args:
            name: the request.
            slots: `policy.replacement_slots` of them, just taken.  Where they are short, take no
                checkpoint: it stays takeable until the next one is written over it.

        Raises:
            OwnershipError: if the request has no checkpoint, or a slot is held or the sink.
            ArgumentError: if there are more or fewer slots, or one is no int.
        """
        checkpoint = self._checkpoint_there_is("take_checkpoint", name)
        self._check_offered("take_checkpoint", slots, self.policy.replacement_slots)
        held, fresh = self.held(name), slots[0] if slots else SINK
        if checkpoint.slot == held.slot:
            resuming = SlotState(Content.RESUMING, checkpoint.length, checkpoint.slot)
            self._requests[name] = held._replace(slot=fresh)
            self._states[fresh] = resuming
        else:
            self._requests[name] = held._replace(tracking=fresh)
            if fresh:
                self._states[fresh] = STALE
        self._tree.add(checkpoint.slot)
        return checkpoint

    def end_into_tree(self, name: str) -> Ending:
        """A request ends and the tree takes its checkpoint.

        Raises:
            OwnershipError: if the request holds no slots or has no checkpoint.
        """
        checkpoint = self._checkpoint_there_is("end_into_tree", name)
        rest = tuple(slot for slot in self.held(name) if slot not in (SINK, checkpoint.slot))
        del self._requests[name]
        for slot in rest:
            del self._states[slot]
        self._tree.add(checkpoint.slot)
        return Ending(checkpoint, rest)

    def end(self, name: str) -> tuple[int, ...]:
        """A request ends, is aborted or retracted: the slots to be freed, each just this once.

        Whatever was due on them is forgotten with them.  Who comes back is admitted anew, into
        slots of its own.

        Raises:
            OwnershipError: if the request holds no slots.
        """
        slots = tuple(slot for slot in self.held(name) if slot != SINK)
        del self._requests[name]
        for slot in slots:
            del self._states[slot]
        return slots

    # The tree --------------------------------------------------------------------------------

    def adopt(self, slot: int, length: int) -> Checkpoint:
        """The tree holds a slot that a load, or a transfer, fills; then call `filled`.

        Requests may be admitted on it at once, and run behind it.

        Raises:
            OwnershipError: if the slot is held or the sink.
            ArgumentError: if the slot is no int, or the length no tokens.
        """
        self._fill("adopt", slot, length)
        self._tree.add(slot)
        return Checkpoint(slot, length)

    def drop(self, slot: int) -> None:
        """The tree gives a slot up; the caller frees it.

        Raises:
            OwnershipError: if it is not the tree's, or a slot is still to resume from it.
            ArgumentError: if the slot is no int.
        """
        check_number("drop", "the slot", slot)
        if slot not in self._tree:
            raise OwnershipError(
                f"state slot {slot}: drop, but the tree does not hold it; it has {len(self._tree)}"
            )
        readers = [
            name for name, held in self._requests.items() if self._states[held.slot].source == slot
        ]
        if readers:
            raise OwnershipError(
                f"state slot {slot}: drop, but requests {readers[:8]} resume from it; launch or end"
                " them first"
            )
        self._tree.discard(slot)
        del self._states[slot]

    def _fill(self, call: str, slot: int, length: int) -> None:
        self._check_offered(call, (slot,), 1)
        check_number(call, "length", length)
        if length < 1:
            raise ArgumentError(f"{call}: state after {length} tokens; allowed: 1 or more")
        self._states[slot] = SlotState(Content.FILLING, length, SINK)

    def _check_new(self, name: str) -> None:
        if name in self._requests:
            raise OwnershipError(
                f"request {name!r} holds slots {self._requests[name]} already; end it first"
            )

    def _checkpoint_there_is(self, call: str, name: str) -> Checkpoint:
        checkpoint = self.checkpoint(name)
        if checkpoint == NO_CHECKPOINT:
            raise OwnershipError(
                f"{call}: request {name!r} has no checkpoint at {self.length(name)} tokens; ask"
                " checkpoint(name) first"
            )
        return checkpoint

    def _check_offered(self, call: str, slots: Sequence[int], wanted: int) -> None:
        check_offered(call, slots, self._states, self._slot_count)
        check_count(call, slots, wanted, self.policy.strategy.value)
