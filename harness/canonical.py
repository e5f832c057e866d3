"""One text for traces that differ in names only, and which of two traces is the smaller one.

The insight: the order looks at a trace under its canonical names.  What something is called then
never decides which of two candidates wins, and giving canonical names is one more step downwards.

What may stand in the place of what is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec

from harness.ops.base import Op
from harness.scenario import Commit, Setup
from unikv.cache.checkpoint_policy import CheckpointStrategy

Item = Setup | Op
"""A trace begins with the storage and the engine it runs on."""

AnyOp = TypeVar("AnyOp", bound=Op)

SIMPLEST_FIRST = (
    "prewarm",
    "arrive",
    "admit",
    "chunk",
    "decode",
    "record",
    "launch",
    "process",
    "abort",
    "flush",
    "cache_prefix",
    "evict_prefix",
    "begin_backup",
    "begin_save",
    "begin_load",
    "begin_resume",
    "begin_receive",
    "publish_receive",
    "begin_send",
    "begin_prefix_send",
    "add_part",
    "add_prefix",
    "submit_copy",
    "acknowledge",
    "round",
    "close_send",
    "hand_over",
    "retire_received",
    "abort_transfer",
    "cancel_copy",
    "drop_saved",
    "name_rows",
    "checkpoint",
    "advance",
    "relieve",
    "finish",
    "finish_cached",
    "retract",
    "pause",
    "resume",
    "restore_row",
    "relay_commit",
    "barrier",
    "shared_read_end",
    "record_unknown",
    "fail_transfer",
    "peer_abort",
    "forget_abort",
    "stall_peer",
    "idle_check",
    "host_sync",
    "complete",
)
"""Kinds of operations: what every run has, then what frees and moves, and last what only tells
when something happens.  Those that are not here come behind all that are."""

_RANKS: Mapping[str, int] = {kind: rank for rank, kind in enumerate(SIMPLEST_FIRST)}

_COMMITS = tuple(Commit)
_STRATEGIES = tuple(CheckpointStrategy)
"""Both name the plainest first."""

FIRST_NUMBER: Mapping[str, int] = {"r": 0}
"""Numbers begin at 1, those of requests at 0: as the generator gives them."""


def kind_of(operation: Op | type[Op]) -> str:
    """What an operation is called in a file."""
    return str(operation.__struct_config__.tag)


def rank_of(operation: Op | type[Op]) -> int:
    """Place of its kind in `SIMPLEST_FIRST`."""
    return _RANKS.get(kind_of(operation), len(SIMPLEST_FIRST))


def stem_of(name: str) -> str:
    """A name without its number: two things of one stem are of one sort."""
    return name.rstrip("0123456789")


def names_in(operation: Op) -> list[str]:
    """Names of requests, copies and transfers, in the order of the fields."""
    found: list[str] = []
    for field in operation.__struct_fields__:
        value = getattr(operation, field)
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, tuple):
            found += [name for name in value if isinstance(name, str)]
    return [name for name in found if name]


def renamed(operation: AnyOp, names: Mapping[str, str], blocks: Mapping[int, int]) -> AnyOp:
    """The operation under other names; those that are in neither mapping stay."""
    changes: dict[str, object] = {}
    for field in operation.__struct_fields__:
        value = getattr(operation, field)
        if isinstance(value, str):
            changes[field] = names.get(value, value)
        elif isinstance(value, tuple):
            changes[field] = tuple(
                names.get(part, part) if isinstance(part, str) else blocks.get(part, part)
                for part in value
            )
    return msgspec.structs.replace(operation, **changes) if changes else operation


def canonical(operations: Sequence[AnyOp]) -> tuple[AnyOp, ...]:
    """The same operations, names and blocks numbered in the order in which they first occur."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    blocks: dict[int, int] = {}
    for operation in operations:
        for name in names_in(operation):
            if name not in names:
                stem = stem_of(name)
                number = counts.get(stem, FIRST_NUMBER.get(stem, 1))
                counts[stem] = number + 1
                names[name] = f"{stem}{number}"
        for field in operation.__struct_fields__:
            value = getattr(operation, field)
            for part in value if isinstance(value, tuple) else ():
                if isinstance(part, int):
                    blocks.setdefault(part, len(blocks))
    return tuple(renamed(operation, names, blocks) for operation in operations)


class Size:
    """How large a trace is: smaller is better.

    1. Fewer operations: each is something to understand.
    2. A simpler storage and engine, by `setup_weight`.
    3. Fewer names, then plainer kinds of operations, then smaller numbers.
    4. Plainer kinds first, then the earlier text: decides where all else is equal, so that
       different traces of one failure end as one.
    5. Canonical names rather than others.

    What comes after the first is only worked out where lengths are equal, and the texts only where
    all figures are.
    """

    __slots__ = ("_figures", "_items", "_text", "length")

    def __init__(self, items: Sequence[Item]) -> None:
        self.length = len(items)
        self._items = items
        self._figures: tuple[object, ...] = ()
        self._text: tuple[object, ...] = ()

    def __lt__(self, other: Size, /) -> bool:
        if self.length != other.length:
            return self.length < other.length
        mine, others = self.figures(), other.figures()
        if mine != others:
            return mine < others
        return self.text() < other.text()

    def figures(self) -> tuple[object, ...]:
        """Everything between the length and the text; no name has any part in it."""
        if not self._figures:
            setup = tuple(setup_weight(i) for i in self._items if isinstance(i, Setup))
            parts = [_figures_of(item) for item in self._items if isinstance(item, Op)]
            ranks = tuple(part.rank for part in parts)
            numbers = sum(part.numbers for part in parts)
            names = len({name for part in parts for name in part.names})
            self._figures = (setup, names, sum(ranks), numbers, ranks)
        return self._figures

    def text(self) -> tuple[object, ...]:
        """What decides where all figures are equal."""
        if not self._text:
            raw = tuple(item for item in self._items if isinstance(item, Op))
            plain = canonical(raw)
            self._text = (msgspec.json.encode(plain), raw != plain)
        return self._text


@lru_cache(maxsize=4096)
def setup_weight(setup: Setup) -> tuple[int, ...]:
    """Smaller is simpler: whole parts of an engine first, then figures.

    The bytes of an arena count as pages of its largest band, and those of a sink not at all.
    """
    backend, network = setup.backend, setup.network
    pages = [band.page_bytes for band in setup.bands]
    return (
        len(setup.bands),
        int(network is not None),
        len(setup.host),
        setup.ranks,
        int(setup.pipeline),
        int(setup.overlap),
        int(setup.read_end),
        int(backend.row_memory),
        _COMMITS.index(backend.commit),
        int(backend.captured),
        _STRATEGIES.index(setup.checkpoints.strategy),
        int(network is not None and network.publishes_at_once),
        setup.steps_in_flight,
        setup.layer_groups,
        setup.page_slots,
        setup.block_pages,
        sum(band.entry_cells for band in setup.bands),
        sum(band.window for band in setup.bands),
        (setup.total_bytes - setup.sink_bytes) // max(pages),
        setup.checkpoints.interval,
        setup.rows,
        setup.row_pages,
        sum(band.id_count for band in setup.bands),
        setup.total_bytes,
        sum(part.total_bytes for part in setup.host),
        network.patience + network.refusals if network else 0,
    )


class _Figures(NamedTuple):
    """What one operation adds to the size of a trace."""

    rank: int
    numbers: int
    names: tuple[str, ...]


# Candidates differ in an operation or two, so nearly every operation was seen before.
@lru_cache(maxsize=8192)
def _figures_of(operation: Op) -> _Figures:
    return _Figures(rank_of(operation), _numbers(operation), tuple(names_in(operation)))


def _numbers(operation: Op) -> int:
    """Numbers and lengths of lists, not the blocks themselves: those are names."""
    total = 0
    for field in operation.__struct_fields__:
        value = getattr(operation, field)
        if isinstance(value, int):
            total += value
        elif isinstance(value, tuple):
            total += len(value)
    return total
