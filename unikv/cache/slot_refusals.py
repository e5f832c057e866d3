"""What is refused of the state slots that a caller offers or names, with what is there instead.

Each function looks at slots as they are and changes nothing; who holds them is not known here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from unikv.arguments import check_ids
from unikv.cache.state_step import STALE, Checkpoint, Content, SlotState
from unikv.errors import ArgumentError, OwnershipError, StepOrderError


def check_offered(
    call: str, slots: Sequence[int], states: Mapping[int, SlotState], slot_count: int
) -> None:
    """Slots that a caller has taken for this call are real ones, and nobody's.

    Raises:
        OwnershipError: if one is held, offered twice, the sink or unknown.
        ArgumentError: if one is no int.
    """
    check_ids(call, slots)
    for slot in slots:
        if not 1 <= slot <= slot_count:
            raise OwnershipError(
                f"{call}: state slot {slot}; allowed: 1..{slot_count}, since 0 is the sink, which"
                " takes the writes of padding and of captures"
            )
        if slot in states or slots.count(slot) > 1:
            raise OwnershipError(
                f"{call}: state slot {slot} is held already or offered twice; offer slots that the"
                " allocator has just handed out"
            )


def check_start(start: Checkpoint, states: Mapping[int, SlotState], tree: Collection[int]) -> None:
    """A checkpoint that a request is admitted on is the tree's, and of that length.

    Raises:
        OwnershipError: if it is not.
    """
    found = states.get(start.slot) if start.slot in tree else None
    if found is None or found.length != start.length:
        there = f"after {found.length} tokens" if found else "not the tree's"
        raise OwnershipError(
            f"admit: resume after {start.length} tokens from slot {start.slot}, which is {there};"
            " match again"
        )


def check_is_there(name: str, source: int, states: Mapping[int, SlotState]) -> None:
    """The state that a forward starts from comes before it, or it needs none.

    Raises:
        StepOrderError: if what fills the slot is not enqueued.
    """
    if states.get(source, STALE).content is Content.FILLING:
        raise StepOrderError(
            f"before_forward: {name!r} starts from slot {source}, which is being filled; submit the"
            " load, or wait for the transfer's release, and call filled first"
        )


def check_count(call: str, slots: Sequence[int], wanted: int, strategy: str) -> None:
    """A strategy gets as many slots as it says.

    Raises:
        ArgumentError: if there are more or fewer.
    """
    if len(slots) != wanted:
        raise ArgumentError(f"{call}: {len(slots)} slots; allowed: {wanted} with {strategy}")
