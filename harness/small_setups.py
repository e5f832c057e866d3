"""Every small setup for a trace as it is: what a failure most likely needs of a storage.

The insight: a setup is made simpler by one figure at a time, and some only go together.  Two tokens
of one page do what two pages of one token do, but not half of either; and two steps in flight are
not needed where the first was processed instead of recorded.  There are few setups with a page or
two for each request, so a short trace is tried on all of them, the simplest first.

Which setup is simpler is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from msgspec.structs import replace

from harness.canonical import Item, Size
from harness.ops import Admit, Arrive, Barrier, Chunk, Process, Record, SharedReadEnd
from harness.ops.base import Op
from harness.scenario import Setup
from harness.simpler_setup import is_possible, with_small_pages

OPERATIONS_MAX = 12
"""Longest trace that is tried."""

PAGES_MAX = 4
"""Most pages of each band."""

TOKENS_MAX = 2
"""Tokens that each operation of a shorter variant adds at most."""


def small_setups(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """The trace on small storages, by engines that do no more than its own, the simplest first."""
    setup, operations = items[0], [item for item in items if isinstance(item, Op)]
    if isinstance(setup, Setup) and len(operations) <= OPERATIONS_MAX:
        found: list[Sequence[Item]] = [
            (storage, *variant)
            for engine, variant in _engines(setup, operations)
            for storage in _storages(engine, variant)
            if is_possible(storage)
        ]
        yield from sorted(found, key=Size)


def _engines(setup: Setup, operations: Sequence[Op]) -> Iterator[tuple[Setup, Sequence[Op]]]:
    """Engines that do less, each with the operations that come to the same there."""
    fewer_tokens = _fewer_tokens(operations)
    variants = [operations, fewer_tokens] if fewer_tokens != operations else [operations]
    switches = product({False, setup.overlap}, {False, setup.read_end}, {1, setup.steps_in_flight})
    for variant, (overlap, read_end, steps) in product(variants, switches):
        engine = replace(
            setup,
            overlap=overlap,
            pipeline=setup.pipeline and overlap,
            read_end=read_end,
            steps_in_flight=steps,
        )
        yield engine, variant
        if not overlap:
            loop = (Record, Barrier, SharedReadEnd, Process)
            yield engine, [op for op in variant if not isinstance(op, loop)]
        elif steps < setup.steps_in_flight:
            yield engine, [Process() if isinstance(op, Record) else op for op in variant]


def _storages(engine: Setup, operations: Sequence[Op]) -> Iterator[Setup]:
    """Bands of equal pages, or with an owner whose pages are twice as large, roomy and tight."""
    arrivals = [op for op in operations if isinstance(op, Arrive)]
    tokens = max((op.prompt + op.output for op in arrivals), default=1)
    bands = len(engine.bands)
    windows = {1, 2} if any(band.window for band in engine.bands) else {1}
    for slots, pages in product({1, 2, tokens} if bands == 1 else {1, 2}, range(1, PAGES_MAX + 1)):
        rooms = range(pages, pages * bands + 1)
        for owner, window, room in product((1, 2)[:bands], windows, rooms):
            yield with_small_pages(
                engine,
                pages,
                len(arrivals),
                slots=slots,
                window_pages=window,
                owner_cells=owner,
                arena_pages=room,
            )


def _fewer_tokens(operations: Sequence[Op]) -> Sequence[Op]:
    """The operations with few tokens each, and prompts to match."""
    chunks = [op for op in operations if isinstance(op, Admit | Chunk)]
    changed: list[Op] = []
    for op in operations:
        if isinstance(op, Admit | Chunk):
            changed.append(replace(op, tokens=min(op.tokens, TOKENS_MAX)))
        elif isinstance(op, Arrive):
            given = [min(c.tokens, TOKENS_MAX) for c in chunks if c.request == op.request]
            changed.append(replace(op, prompt=min(op.prompt, max(1, sum(given)))))
        else:
            changed.append(op)
    return changed
