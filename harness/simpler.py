"""Simpler operations: what may stand for one of them, for two, and for all that share a name.

Nothing here is sure to keep a failure.  It is worth a try, the most ambitious first, and whoever
tries it runs it.  What size means is in `harness.canonical`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from typing import NamedTuple, cast, get_args

import msgspec

from harness.canonical import Item, canonical, kind_of, names_in, rank_of, renamed, stem_of
from harness.ops import (
    Abort,
    Admit,
    Arrive,
    BeginBackup,
    BeginSave,
    Chunk,
    Flush,
    IdleCheck,
    Launch,
    Operation,
    Process,
    Record,
    Retract,
)
from harness.ops.base import Op
from harness.scenario import Setup

TIME = "time"
"""What all operations go by that only let time pass; no name of anything is that."""


class _Field(NamedTuple):
    """A field of an operation: its least and its most, or None where it is no number."""

    name: str
    least: int | None
    most: int | None
    required: bool


@lru_cache(maxsize=256)
def _fields(kind: type[Op]) -> tuple[_Field, ...]:
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    found = []
    for field in info.fields:
        least = most = None
        if isinstance(field.type, msgspec.inspect.IntType):
            least = field.type.ge or 0
            most = field.type.le if field.type.lt is None else field.type.lt - 1
        found.append(_Field(field.name, least, most, field.required))
    return tuple(found)


def are_storable(operations: Iterable[Op]) -> bool:
    """Whether no number is above what a case file allows."""
    return all(
        getattr(operation, field.name) <= field.most
        for operation in operations
        for field in _fields(type(operation))
        if field.most is not None
    )


_KINDS: tuple[type[Op], ...] = tuple(sorted(get_args(Operation), key=rank_of))


def names_of(item: Item) -> list[str]:
    """What an item goes by: deleting a name deletes all that is about it."""
    if isinstance(item, Setup):
        return []
    return names_in(item) if item.counted else [TIME, *names_in(item)]


def without(item: Item, gone: Set[object]) -> Item | None:
    """An item without some of its names; None where one of them was its only subject."""
    if isinstance(item, Setup):
        return item
    if not item.counted and TIME in gone:
        return None
    changes = {}
    for field in item.__struct_fields__:
        value = getattr(item, field)
        if isinstance(value, str) and value in gone:
            return None
        if isinstance(value, tuple) and any(part in gone for part in value):
            rest = tuple(part for part in value if part not in gone)
            if not rest:
                return None
            changes[field] = rest
    return msgspec.structs.replace(item, **changes) if changes else item


def smaller_numbers(item: Item) -> Iterator[Item]:
    """The same operation with one smaller number or one shorter list, the smallest first."""
    if isinstance(item, Setup):
        return
    for field in _fields(type(item)):
        value = getattr(item, field.name)
        smaller: Sequence[object] = ()
        if field.least is not None:
            smaller = descending(value, field.least)
        elif isinstance(value, tuple) and value:
            shorter = [value[:at] + value[at + 1 :] for at in reversed(range(len(value)))]
            smaller = shorter if len(value) == 1 else [value[:1], *shorter]
        for candidate in smaller:
            yield msgspec.structs.replace(item, **{field.name: candidate})


def lower_by_one(item: Item) -> Iterator[Item]:
    """The same operation with one number less by one, or one list without its last."""
    if isinstance(item, Setup):
        return
    for field in _fields(type(item)):
        value = getattr(item, field.name)
        if field.least is not None and value > field.least:
            yield msgspec.structs.replace(item, **{field.name: value - 1})
        elif isinstance(value, tuple) and value and isinstance(value[0], int):
            yield msgspec.structs.replace(item, **{field.name: value[:-1]})


def plainer_kinds(item: Item) -> Iterator[Item]:
    """Operations of every plainer kind that this one's fields are enough for."""
    if isinstance(item, Setup):
        return
    for kind in _KINDS:
        if rank_of(kind) >= rank_of(item):
            return
        arguments: dict[str, object] = {}
        for field in _fields(kind):
            if field.name in item.__struct_fields__:
                arguments[field.name] = getattr(item, field.name)
            elif field.least is not None and field.required:
                arguments[field.name] = max(1, field.least)
            elif field.required:
                break
        else:
            yield kind(**arguments)


def merged(early: Item, late: Item) -> Iterator[Item]:
    """One operation for two of a kind: the numbers of both together, the names of either."""
    if isinstance(early, Setup) or isinstance(late, Setup):
        return
    fields = _fields(type(late))
    if type(early) is not type(late):
        # A chunk behind an admission is more of the same prompt.
        if {kind_of(early), kind_of(late)} == {"admit", "chunk"}:
            yield from _summed(early, late)
        return
    lists = {}
    for field in fields:
        one, other = getattr(early, field.name), getattr(late, field.name)
        if isinstance(one, tuple):
            lists[field.name] = tuple(dict.fromkeys((*one, *other)))
        elif one != other and field.least is None:
            return
    if lists:
        yield msgspec.structs.replace(late, **lists)
    yield from _summed(early, late)


def _summed(early: Op, late: Op) -> Iterator[Op]:
    for field in _fields(type(early)):
        if field.least is not None and hasattr(late, field.name):
            total = getattr(early, field.name) + getattr(late, field.name)
            if field.most is not None and total > field.most:
                continue  # a stream or a rank that there is not
            yield msgspec.structs.replace(early, **{field.name: total})


def fewer_blocks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace without one block of all prompts that have it, and without its tokens."""
    setup, operations = items[0], [item for item in items if isinstance(item, Op)]
    if not isinstance(setup, Setup):
        return
    block_tokens = setup.block_pages * setup.page_slots
    arrivals = [op for op in operations if isinstance(op, Arrive)]
    for gone in dict.fromkeys(block for op in arrivals for block in reversed(op.blocks)):
        shorter = {op.request for op in arrivals if gone in op.blocks}
        changed: list[Item] = [setup]
        for operation in operations:
            rest = without(operation, {gone}) or operation
            if isinstance(rest, Arrive) and rest.request in shorter:
                prompt, blocks = max(1, rest.prompt - block_tokens), rest.blocks
                if blocks == (gone,):
                    blocks = ()
                rest = msgspec.structs.replace(rest, prompt=prompt, blocks=blocks)
            elif (
                isinstance(rest, Admit | Chunk)
                and rest.request in shorter
                and rest.tokens > block_tokens
            ):
                shorter.discard(rest.request)
                rest = msgspec.structs.replace(rest, tokens=rest.tokens - block_tokens)
            changed.append(rest)
        yield changed


def rested(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace with a rest in the place of several operations, the most of them first."""
    head, operations = split(items)
    width = len(operations) // 2
    while width > 1:
        for begin in range(len(operations) - width, -1, -1):
            yield (*head, *operations[:begin], IdleCheck(), *operations[begin + width :])
        width = width // 2 if width > 8 else width - 1


def plain_operations(items: Sequence[Item]) -> list[Item]:
    """Operations that bring about most states, for the requests of a trace."""
    names = list(dict.fromkeys(i.request for i in items if isinstance(i, Arrive)))
    about = [
        make(name)
        for name in names
        for make in (Abort, Retract, lambda r: Admit(r, 1), lambda r: Launch((r,)))
    ]
    copies = dict.fromkeys(i.copy for i in items if isinstance(i, BeginBackup))
    saves: list[Item] = [BeginSave(copy, name) for copy in copies for name in names]
    return [*saves, *about, Record(), Process(), Flush(1)]


def split(items: Sequence[Item]) -> tuple[Sequence[Item], list[Op]]:
    """What a trace begins with, and its operations."""
    operations = [item for item in items if isinstance(item, Op)]
    return items[: len(items) - len(operations)], operations


def other_names(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace with one operation about something else, or two names exchanged from there on."""
    head, operations = split(items)
    names = list(dict.fromkeys(name for op in operations for name in names_in(op)))
    for place in range(len(operations) - 1, 0, -1):
        before, operation, after = (
            operations[:place],
            operations[place],
            operations[place + 1 :],
        )
        for old in names_in(operation):
            for new in names:
                if stem_of(old) == stem_of(new) and old != new:
                    yield (*head, *before, renamed(operation, {old: new}, {}), *after)
                    exchanged = {old: new, new: old}
                    rest = [renamed(op, exchanged, {}) for op in operations[place:]]
                    yield (*head, *before, *rest)


def canonically_named(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace under canonical names."""
    setups = [item for item in items if isinstance(item, Setup)]
    yield (*setups, *canonical([item for item in items if isinstance(item, Op)]))


def descending(value: int, least: int) -> list[int]:
    """Smaller numbers worth a try, the least first."""
    near = {least, least + 1, (least + value) // 2, value - 1}
    return sorted(number for number in near if least <= number < value)


def with_tokens_divided(items: Iterable[Item], divisor: int) -> list[Item]:
    """The trace with so many times fewer tokens, rounded up."""
    changed: list[Item] = []
    for item in items:
        counts = {
            field: -(-getattr(item, field) // divisor)
            for field in ("prompt", "output", "tokens")
            if isinstance(item, Op) and field in item.__struct_fields__
        }
        changed.append(msgspec.structs.replace(cast(Op, item), **counts) if counts else item)
    return changed
