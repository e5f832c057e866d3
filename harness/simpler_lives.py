"""Simpler lives: one request in the place of two, a longer prompt in the place of another start.

The insight: what a request is given is spread over a trace, so no change of one operation does.  A
whole life is told anew instead: who arrives, what it is given and when, and where it ends.

Which of two traces is the smaller one is not known here.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import combinations

import msgspec

from harness.canonical import Item, names_in, renamed, stem_of
from harness.ops import (
    Abort,
    Admit,
    Arrive,
    CachePrefix,
    Chunk,
    Decode,
    EvictPrefix,
    Finish,
    Launch,
    Retract,
)
from harness.ops.base import Op
from harness.scenario import Setup
from harness.simpler import are_storable, split


def fewer_names(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace with one thing in the place of two: what was done to either is done to one.

    Of two requests the second need not arrive.  The first is retracted where it ended, or holds at
    every time what both held.
    """
    head, operations = split(items)
    names = list(dict.fromkeys(name for op in operations for name in names_in(op)))
    for kept, gone in combinations(names, 2):
        if stem_of(kept) == stem_of(gone):
            one = [_named_once(renamed(op, {gone: kept}, {})) for op in operations]
            yield from ((*head, *shorter) for shorter in _arriving_once(one, kept))
            late = list(_given_late(operations, (kept, gone)))
            for given in [operations] if late == operations else [late, operations]:
                both = _holding_both(given, kept, gone)
                # Of a prompt that is never given as a whole there need not be more.
                given_at_once = _most_at_once(both, kept, (Admit, Chunk))
                for variant in (_with_prompt(both, kept, given_at_once), both):
                    if are_storable(variant):
                        yield (*map(_longer_rows, head), *variant)
            yield (*head, *one)
    for name in names:
        yield from ((*head, *shorter) for shorter in _arriving_once(operations, name))


def _arriving_once(operations: Sequence[Op], name: str) -> Iterator[Sequence[Op]]:
    """Where a request arrives twice, it arrives once, as the larger of both."""
    arrivals = [(i, op) for i, op in enumerate(operations) if isinstance(op, Arrive)]
    first, second, *_ = [*(a for a in arrivals if a[1].request == name), None, None]
    if first is None or second is None:
        return
    larger = Arrive(
        name,
        max(first[1].prompt, second[1].prompt),
        max(first[1].output, second[1].output),
        max(first[1].blocks, second[1].blocks, key=len),
    )
    once = list(operations)
    once[first[0]] = larger
    del once[second[0]]
    yield [Retract(name) if op in (Abort(name), Finish(name)) else op for op in once]
    yield once


def _holding_both(operations: Sequence[Op], kept: str, gone: str) -> Sequence[Op]:
    """One request that is given what two are; where one of them ends it begins with the rest.

    Tokens that are given one behind the other are given at once.
    """
    arrivals = [op for op in operations if isinstance(op, Arrive) and op.request in (kept, gone)]
    held = {kept: 0, gone: 0}
    found: list[Op] = []
    for operation in operations:
        name = getattr(operation, "request", "")
        if name not in held:
            found.append(_named_once(renamed(operation, {gone: kept}, {})))
        elif isinstance(operation, Arrive):
            if operation is arrivals[0]:
                prompt = sum(arrival.prompt for arrival in arrivals)
                blocks = max((arrival.blocks for arrival in arrivals), key=len)
                found.append(Arrive(kept, prompt, operation.output, blocks))
        elif isinstance(operation, Admit | Chunk):
            last = found[-1] if found else None
            if isinstance(last, Admit | Chunk) and last.request == kept:
                found[-1] = msgspec.structs.replace(last, tokens=last.tokens + operation.tokens)
            else:
                give = Chunk if any(held.values()) else Admit
                found.append(give(kept, operation.tokens))
            held[name] += operation.tokens
        elif _ends(operation, name):
            held[name] = 0
            found.append(Retract(kept))
            if any(held.values()):
                found.append(Admit(kept, sum(held.values())))
        else:
            found.append(renamed(operation, {gone: kept}, {}))
    return found


def _given_late(operations: Sequence[Op], names: Container[str]) -> Iterator[Op]:
    """The operations, but tokens that a launch of others passes by are given before their own."""
    waiting: dict[str, list[Op]] = {}
    for place, operation in enumerate(operations):
        if isinstance(operation, Admit | Chunk) and operation.request in names:
            if _is_passed_by(operations[place + 1 :], operation.request):
                waiting.setdefault(operation.request, []).append(operation)
                continue
        elif isinstance(operation, Launch):
            for name in operation.requests:
                yield from waiting.pop(name, ())
        yield operation


def _is_passed_by(later: Iterable[Op], name: str) -> bool:
    """Whether a launch of others comes before the one of this request, and that one comes."""
    passed = False
    for operation in later:
        if _ends(operation, name):
            return False
        if isinstance(operation, Launch):
            if name in operation.requests:
                return passed
            passed = True
    return False


def _longer_rows(item: Item) -> Item:
    """A setup where the pages of two requests fit into the row of one, if there are as many."""
    if not isinstance(item, Setup):
        return item
    most = max(band.id_count for band in item.bands)
    longer = max(item.row_pages, min(2 * item.row_pages, most))
    return msgspec.structs.replace(item, row_pages=longer)


def _named_once(operation: Op) -> Op:
    """The operation with every name once in its lists."""
    lists: dict[str, object] = {}
    for field in operation.__struct_fields__:
        value = getattr(operation, field)
        if isinstance(value, tuple):
            lists[field] = tuple(dict.fromkeys(value))
    return msgspec.structs.replace(operation, **lists) if lists else operation


def without_cache(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace in which a request ends where the prefix was evicted that it had cached."""
    for evicted, eviction in enumerate(items):
        if not isinstance(eviction, EvictPrefix):
            continue
        for place, item in enumerate(items[:evicted]):
            if isinstance(item, CachePrefix):
                later = [op for op in items[place + 1 : evicted] if not _ends(op, item.request)]
                yield (*items[:place], *later, Abort(item.request), *items[evicted + 1 :])


def longer_prompts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace with a longer prompt, and so a chunk of it in the place of something else.

    Either for every token that a request would produce, or where it is admitted again.
    """
    head, operations = split(items)
    for arrival in [op for op in operations if isinstance(op, Arrive)]:
        name = arrival.request
        produced = _most_at_once(operations, name, Decode)
        if produced:
            chunks = _chunks_for_decodes(operations, name)
            longer = _with_prompt(chunks, name, arrival.prompt + produced)
            if are_storable(longer):
                yield (*head, *longer)
        for place, operation in enumerate(operations):
            if operation == Retract(name):
                rest = _chunk_for_admission(operations[place + 1 :], name)
                goes_on = [*operations[:place], *rest]
                prompt = max(arrival.prompt, _most_at_once(goes_on, name, (Admit, Chunk)))
                longer = _with_prompt(goes_on, name, prompt)
                if are_storable(longer):
                    yield (*map(_longer_rows, head), *longer)


def _chunks_for_decodes(operations: Iterable[Op], name: str) -> Iterator[Op]:
    for operation in operations:
        if isinstance(operation, Decode) and name in operation.requests:
            others = tuple(other for other in operation.requests if other != name)
            if others:
                yield Decode(others)
            yield Chunk(name, 1)
        else:
            yield operation


def _chunk_for_admission(operations: Iterable[Op], name: str) -> Iterator[Op]:
    """The operations with a chunk for the first admission of a request."""
    is_first = True
    for operation in operations:
        if is_first and isinstance(operation, Admit) and operation.request == name:
            yield Chunk(name, operation.tokens)
            is_first = False
        else:
            yield operation


def _with_prompt(operations: Iterable[Op], name: str, prompt: int) -> list[Op]:
    """The operations with a prompt of so many tokens, at least one, and none that is produced."""
    return [
        msgspec.structs.replace(op, prompt=max(1, prompt), output=0)
        if isinstance(op, Arrive) and op.request == name
        else op
        for op in operations
    ]


def _most_at_once(
    operations: Iterable[Op], name: str, kinds: type[Op] | tuple[type[Op], ...]
) -> int:
    """Tokens that operations of these kinds give a request between two retractions, at most."""
    most = tokens = 0
    for operation in operations:
        if operation == Retract(name):
            tokens = 0
        elif isinstance(operation, kinds) and name in names_in(operation):
            tokens += getattr(operation, "tokens", 1)
        most = max(most, tokens)
    return most


def _ends(item: Item, request: str) -> bool:
    return item in (Abort(request), Finish(request), Retract(request))
