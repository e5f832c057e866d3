"""Scenarios: a family of workloads as data, and the concrete setup that one seed draws from it.

A scenario states a real model and the factors that scale it down, because a bug needs a full pool
and a full pool of real size is slow.  Files come from strangers: they hold no code, unknown keys
are refused, and every figure has bounds.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta

from unikv.cache.checkpoint_policy import CheckpointStrategy
from unikv.declare import ModelDeclaration
from unikv.device.port import BandLayout, HostLayout, StorageLayout
from unikv.plan import KVStoragePlan, SubPoolKind

TABLE_ENTRIES_MAX = 1 << 22
PAGES_MAX = 4096
"""Most pages of one band: a refusal is judged by trying every layout."""
ARENA_BYTES_MAX = 1 << 26
ENTRY_CELLS_MAX = 4096
CELL_BYTES = 4
"""Bytes of one stamp: what the modeled device keeps for one slot, layer group and K/V half."""

Natural = Annotated[int, Meta(ge=1, le=1_000_000)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
RANKS_MAX = 8
Ranks = Annotated[int, Meta(ge=1, le=RANKS_MAX)]
STRATEGIES = ("random", "swarm")
"""How operations may be drawn."""

Strategy = Annotated[str, Meta(pattern=rf"\A({'|'.join(STRATEGIES)})\Z")]

Percent = Annotated[int, Meta(ge=0, le=100)]
Share = Annotated[int, Meta(ge=1, le=400)]
LayerGroups = Annotated[int, Meta(ge=1, le=4)]
Span = tuple[Natural, Natural]
"""Lowest and highest value, both possible; each seed draws its own."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of every section: frozen, and unknown keys are errors."""


class Scale(_Part, frozen=True, kw_only=True):
    """Factors from the real model to the modeled one.

    Attributes:
        entry_bytes: real bytes that one modeled stamp stands for.
        tokens: real tokens that one modeled token stands for; windows shrink by it.
        page_ratio_max: cap on the largest page of the chain over the smallest.
    """

    entry_bytes: Natural
    tokens: Natural = 1
    page_ratio_max: Annotated[int, Meta(ge=1, le=64)] = 8


class Pressure(_Part, frozen=True, kw_only=True):
    """How tight the storage is.

    Attributes:
        arena_pages: bytes of the arena above the sink, in units of its largest page.
        id_percent: token ids, in percent of the owner pages that an empty arena holds.
        slot_percent: state ids, in percent of the slots that an empty arena holds.
        rows: request rows.
    """

    arena_pages: Span
    id_percent: tuple[Share, Share] = (100, 100)
    slot_percent: tuple[Share, Share] = (100, 100)
    rows: Span


class Requests(_Part, frozen=True, kw_only=True):
    """What arrives, in modeled tokens.

    Attributes:
        prompt_tokens, output_tokens: lengths of a request.
        chunk_tokens: longest prefill of one step.
        block_pages: whole pages of one shareable block of a prompt.
        shared_percent: how many prompts begin like an earlier one.
    """

    prompt_tokens: Span
    output_tokens: Span
    chunk_tokens: Span
    block_pages: Natural = 1
    shared_percent: Percent = 30


class Loop(_Part, frozen=True, kw_only=True):
    """The engine's overlap loop.

    Attributes:
        steps_in_flight: recorded, unprocessed steps that it allows.
        unknown_writes_percent: how many steps decide on the device what they write.
        overlap_percent: how many seeds overlap steps with scheduling; the others run the forward on
            the schedule stream and process it before anything else happens.
        read_end_percent: how many seeds have a backend that declares the end of shared reads.
        pipeline_percent: how many seeds keep micro-batches in flight, each with a barrier of its
            own after the results of an earlier one; the others have the overlap loop.
    """

    steps_in_flight: tuple[Annotated[int, Meta(ge=1, le=8)], Annotated[int, Meta(ge=1, le=8)]]
    read_end_percent: Percent = 75
    unknown_writes_percent: Percent = 0
    overlap_percent: Percent = 100
    pipeline_percent: Percent = 0


class HostMemory(_Part, frozen=True, kw_only=True):
    """A host tier for cached prefixes.

    Attributes:
        arena_percent: host memory of all bands, in percent of the arena above the sink.
        layer_groups: pieces in which a load brings a page back, each with an event of its own.
    """

    arena_percent: tuple[Share, Share]
    layer_groups: tuple[LayerGroups, LayerGroups] = (1, 1)


class Peers(_Part, frozen=True, kw_only=True):
    """Prefill and decode peers over a network.

    Attributes:
        patience: rounds for which a host wait for a transfer lasts.
        refusals: how often an engine cannot be told to stop before it can.
        at_once_percent: how many seeds publish a receive in the iteration that takes it.
    """

    patience: Span
    refusals: tuple[Count, Count] = (0, 1)
    at_once_percent: Percent = 30


class Backend(_Part, frozen=True, kw_only=True):
    """What forwards keep and do beside the pages of their batch.

    Attributes:
        row_memory_percent: how many seeds keep memory per request row.
        in_step_percent, side_stream_percent: how many seeds commit states and row memory after the
            body, on its own stream or on a side stream; in the others the body does it.
        relayed_percent: how many seeds leave that to a commit that another stage relays later.
        captured_percent: how many seeds replay captured graphs, which find their state slots in a
            static buffer.
    """

    row_memory_percent: Percent = 0
    in_step_percent: Percent = 0
    side_stream_percent: Percent = 0
    relayed_percent: Percent = 0
    captured_percent: Percent = 0


class Checkpoints(_Part, frozen=True, kw_only=True):
    """Where states are kept for others to resume.

    Attributes:
        strategies: of which each seed draws one.
        interval_blocks: blocks of a prompt between two checkpoints of a strategy with a grid.
    """

    strategies: Annotated[tuple[CheckpointStrategy, ...], Meta(min_length=1, max_length=8)] = (
        CheckpointStrategy.NO_BUFFER,
    )
    interval_blocks: Span = (1, 1)


class Floors(_Part, frozen=True, kw_only=True):
    """Least figures per 10,000 counted operations; a run below one says nothing about pages."""

    moves: Count = 0
    settles: Count = 0
    reliefs: Count = 0
    relocations: Count = 0
    refusals: Count = 0
    page_accesses: Count = 0


class Scenario(_Part, frozen=True, kw_only=True):
    """A workload family.

    Attributes:
        why: which hazard it provokes, and which check fires if the guard is broken.
        model: real layers and geometries.
        page_slots: page size of every token band, in slots.
        host: the host tier; without one nothing is backed up.
        peers: network peers; without them nothing is sent or received.
        backend: what forwards do beside; without it they have no row memory and no late work.
        checkpoints: who holds those of states, and where they lie; without it at sequence ends.
        weights: how often each operation is tried, by its name; 0 leaves it out.
        floors, probes: what a healthy run must reach.
    """

    why: str
    model: ModelDeclaration
    page_slots: Annotated[int, Meta(ge=1, le=64)]
    scale: Scale
    pressure: Pressure
    requests: Requests
    loop: Loop
    host: HostMemory | None = None
    peers: Peers | None = None
    backend: Backend | None = None
    checkpoints: Checkpoints = Checkpoints()
    ranks: Ranks = 2
    weights: dict[str, Count] = {}
    floors: Floors = Floors()
    probes: tuple[str, ...] = ()


class BandSetup(_Part, frozen=True, kw_only=True):
    """One band of a concrete storage; `entry_cells` stamps per slot."""

    name: str
    kind: str
    window: Count
    entry_cells: Annotated[int, Meta(ge=1, le=ENTRY_CELLS_MAX)]
    slots_per_page: Annotated[int, Meta(ge=1, le=64)]
    id_count: Natural

    @property
    def page_bytes(self) -> int:
        """Bytes of one page on the modeled device."""
        return self.entry_cells * self.slots_per_page * CELL_BYTES


class HostSetup(_Part, frozen=True, kw_only=True):
    """One piece of host memory, for one band or for the two ends together."""

    total_bytes: Annotated[int, Meta(ge=0, le=ARENA_BYTES_MAX)]
    bands: Annotated[tuple[Count, ...], Meta(min_length=1, max_length=2)]


class NetworkSetup(_Part, frozen=True, kw_only=True):
    """How patient the host is with transfer engines, how deaf they are, and when ids leave."""

    patience: Natural
    refusals: Count
    publishes_at_once: bool = False


class Commit(Enum):
    """Where a forward leaves the states and the row memory of its batch."""

    BODY = "body"
    IN_STEP = "in_step"  # after the body, on its stream
    SIDE_STREAM = "side_stream"  # behind the body, on a stream that joins it before it is recorded
    RELAYED = "relayed"  # once another stage has relayed what it accepted: a step of its own


class BackendSetup(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What the forwards of one engine do beside."""

    row_memory: bool = False
    commit: Commit = Commit.BODY
    captured: bool = False

    @property
    def has_static_buffers(self) -> bool:
        """Whether some kernel of a forward finds its state slots in a static buffer."""
        return self.captured or self.commit in (Commit.IN_STEP, Commit.SIDE_STREAM)


PLAIN = BackendSetup()
"""Forwards that read and write the pages of their batch and do nothing beside."""


class CheckpointSetup(_Part, frozen=True, kw_only=True):
    """A strategy and its grid, in tokens; 0 for the strategy that has none."""

    strategy: CheckpointStrategy
    interval: Count


AT_THE_END = CheckpointSetup(strategy=CheckpointStrategy.NO_BUFFER, interval=0)
"""Also what a setup without state has, where nobody asks."""


class Setup(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """Everything a trace needs beside its operations: one storage, one engine, one device."""

    ranks: Ranks
    sink_bytes: Count
    total_bytes: Annotated[int, Meta(ge=1, le=ARENA_BYTES_MAX)]
    bands: Annotated[tuple[BandSetup, ...], Meta(min_length=1, max_length=16)]
    page_slots: Annotated[int, Meta(ge=1, le=64)]
    block_pages: Natural
    rows: Annotated[int, Meta(ge=1, le=4096)]
    row_pages: Annotated[int, Meta(ge=1, le=100_000)]
    steps_in_flight: Annotated[int, Meta(ge=1, le=8)]
    read_end: bool
    overlap: bool
    layer_groups: LayerGroups = 1
    host: Annotated[tuple[HostSetup, ...], Meta(max_length=16)] = ()
    network: NetworkSetup | None = None
    pipeline: bool = False
    backend: BackendSetup = PLAIN
    checkpoints: CheckpointSetup = AT_THE_END

    @property
    def staging_buffers(self) -> int:
        """One upload a step: as many buffers as steps that may be unprocessed, of each kind."""
        return self.steps_in_flight * (1 + self.backend.has_static_buffers)

    def layout(self) -> StorageLayout:
        """The storage's memory spaces, as the library wants them."""
        bands = tuple(
            BandLayout(
                band.name,
                band.page_bytes,
                band.slots_per_page,
                band.id_count,
                mints=band.kind != SubPoolKind.WINDOW.value,
                zeroed=band.kind != SubPoolKind.STATE.value,
            )
            for band in self.bands
        )
        return StorageLayout(
            self.sink_bytes,
            self.total_bytes,
            bands,
            self.rows,
            self.row_pages,
            self.page_slots,
            self.layer_groups,
            tuple(HostLayout(part.total_bytes, part.bands) for part in self.host),
        )


def page_cells(scenario: Scenario, plan: KVStoragePlan) -> dict[str, int]:
    """Stamps per page of each band, by its name."""
    return {
        pool.name: cells * (1 if pool.kind is SubPoolKind.STATE else scenario.page_slots)
        for pool, cells in zip(plan.sub_pools, entry_cells(scenario, plan), strict=True)
    }


def entry_cells(scenario: Scenario, plan: KVStoragePlan) -> list[int]:
    """Stamps per slot of each band: scaled, at least K and V, page ratios kept up to the cap."""
    slots = [
        1 if pool.kind is SubPoolKind.STATE else scenario.page_slots for pool in plan.sub_pools
    ]
    cells = [
        max(2, round(pool.entry_bytes / scenario.scale.entry_bytes)) for pool in plan.sub_pools
    ]
    smallest = min(cell * slot for cell, slot in zip(cells, slots, strict=True))
    most = smallest * scenario.scale.page_ratio_max
    return [min(cell, max(2, most // slot)) for cell, slot in zip(cells, slots, strict=True)]
