"""Small failures with literal pages: one band of two pages behind the sink, and a planted fault."""

import dataclasses
from collections.abc import Sequence
from functools import cache

import msgspec

from harness.case import CASE_VERSION, Case
from harness.ops import (
    Abort,
    AbortTransfer,
    Admit,
    Arrive,
    BeginReceive,
    BeginSave,
    CachePrefix,
    Chunk,
    Flush,
    Launch,
    Operation,
    Process,
    Record,
    Relieve,
    Retract,
    Round,
    SharedReadEnd,
    SubmitCopy,
)
from harness.report.story import Story, tell
from harness.runner import run_trace
from harness.scenario import BandSetup, CheckpointSetup, HostSetup, NetworkSetup, Setup
from tests.harness.lived_in import scenario
from unikv.cache.checkpoint_policy import CheckpointStrategy

COMMAND = "python -m harness replay found/min.json"

PLAIN = Setup(
    ranks=1,
    sink_bytes=8,
    total_bytes=24,
    bands=(
        BandSetup(name="full", kind="full", window=0, entry_cells=2, slots_per_page=1, id_count=2),
    ),
    page_slots=1,
    block_pages=1,
    rows=2,
    row_pages=2,
    steps_in_flight=1,
    read_end=True,
    overlap=True,
)

RACE = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    Arrive(request="r1", prompt=1, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Admit(request="r1", tokens=1),
    Abort(request="r0"),
    Launch(requests=("r1",)),
    Record(),
    SharedReadEnd(),
    Flush(limit=1),
)
TABLE_RACE = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    Record(),
    Abort(request="r0"),
)
RANKS_APART = (
    Arrive(request="r0", prompt=2, output=0, blocks=()),
    Admit(request="r0", tokens=2),
    Launch(requests=("r0",)),
    Record(),
    Retract(request="r0"),
    Admit(request="r0", tokens=1),
)
WRONG_READ = (
    Arrive(request="r0", prompt=2, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    Record(),
    Chunk(request="r0", tokens=1),
    Process(),
)
UNDER_A_PEER = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    BeginReceive(transfer="transfer1", peer=0, request="r0"),
    Round(),
    AbortTransfer(transfer="transfer1"),
)
UNDER_A_COPY = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    Arrive(request="r1", prompt=1, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    BeginSave(copy="copy1", request="r0"),
    SubmitCopy(copy="copy1"),
    Admit(request="r1", tokens=1),
)
NO_ROOM = (
    Arrive(request="r0", prompt=2, output=0, blocks=()),
    Admit(request="r0", tokens=2),
    Launch(requests=("r0",)),
    Record(),
    Abort(request="r0"),
    Relieve(pages=1, slots=0),
)

WRONG_PAGE = (
    Arrive(request="r0", prompt=2, output=0, blocks=()),
    Admit(request="r0", tokens=2),
    Launch(requests=("r0",)),
    Process(),
)
CROSSING = (
    Arrive(request="r0", prompt=2, output=0, blocks=(0,)),
    Admit(request="r0", tokens=2),
    Launch(requests=("r0",)),
    Relieve(pages=2, slots=0),
    CachePrefix(request="r0"),
)


def case_of(plant: str, operations: Sequence[Operation], setup: Setup = PLAIN) -> Case:
    """A case of operations that fail with a planted fault."""
    result = run_trace(setup, operations, plant=plant)
    assert result.violations, f"{plant} shows nothing"
    return Case(
        version=CASE_VERSION,
        unikv="0.1.0",
        scenario="smoke",
        scenario_data=scenario("smoke"),
        setup=setup,
        seed=7,
        plant=plant,
        operations=result.trace,
        violation=result.violations[0],
    )


def story_of(plant: str, operations: Sequence[Operation], setup: Setup = PLAIN) -> Story:
    """The story of such a case."""
    story = tell(case_of(plant, operations, setup), COMMAND)
    assert story is not None
    return story


@cache
def race() -> Story:
    """A move that reads page 1 under the body that writes it."""
    return story_of("move-over-writer", RACE)


@cache
def table_race() -> Story:
    """An unbind under the metadata phase that looks the entry up."""
    return story_of("barrier-dropped", TABLE_RACE)


@cache
def ranks_apart() -> Story:
    """Two ranks that take different pages."""
    setup = msgspec.structs.replace(PLAIN, ranks=2, rows=1, read_end=False)
    return story_of("rank-chooses-another-hole", RANKS_APART, setup)


@cache
def wrong_read() -> Story:
    """A row that a rank does not find as it was written."""
    setup = msgspec.structs.replace(PLAIN, rows=1, read_end=False)
    return story_of("row-staging-reused", WRONG_READ, setup)


@cache
def wrong_page() -> Story:
    """A body that finds other bytes in page 1 than it should."""
    band = msgspec.structs.replace(PLAIN.bands[0], id_count=1)
    setup = msgspec.structs.replace(PLAIN, total_bytes=16, bands=(band,), rows=1, read_end=False)
    return story_of("block-edge-short", WRONG_PAGE, setup)


@cache
def crossing() -> Story:
    """A state page that takes bytes which a float has just moved to."""
    setup = msgspec.structs.replace(
        PLAIN,
        sink_bytes=32,
        total_bytes=192,
        bands=(
            BandSetup(
                name="state", kind="state", window=0, entry_cells=2, slots_per_page=1, id_count=3
            ),
            BandSetup(
                name="window128",
                kind="window",
                window=1,
                entry_cells=2,
                slots_per_page=2,
                id_count=1,
            ),
            BandSetup(
                name="full", kind="full", window=0, entry_cells=4, slots_per_page=2, id_count=1
            ),
        ),
        page_slots=2,
        rows=1,
        row_pages=1,
        read_end=False,
        overlap=False,
        checkpoints=CheckpointSetup(strategy=CheckpointStrategy.EXTRA_BUFFER, interval=1),
    )
    return story_of("layout-kept-too-long", CROSSING, setup)


@cache
def under_a_peer() -> Story:
    """A page that is given up while a peer writes it."""
    network = NetworkSetup(patience=1, refusals=0)
    setup = msgspec.structs.replace(PLAIN, overlap=False, network=network)
    return story_of("page-offered-under-a-transfer", UNDER_A_PEER, setup)


@cache
def no_room() -> Story:
    """A relief that calls pending pages used."""
    return story_of("pending-counted-as-used", NO_ROOM)


@cache
def under_a_copy() -> Story:
    """A page that is zeroed for its next owner while a backup reads it."""
    setup = msgspec.structs.replace(
        PLAIN,
        total_bytes=16,
        bands=(msgspec.structs.replace(PLAIN.bands[0], id_count=1),),
        overlap=False,
        host=(HostSetup(total_bytes=8, bands=(0,)),),
    )
    return story_of("hand-out-over-a-backup", UNDER_A_COPY, setup)


def hostile(story: Story, text: str) -> Story:
    """The same failure in a scenario, and of a sentence, that somebody else wrote."""
    violation = msgspec.structs.replace(story.case.violation, what=text, missing_edge=text)
    case = msgspec.structs.replace(story.case, scenario=text, plant=None, violation=violation)
    return dataclasses.replace(story, case=case, violation=violation, replay=text, order=text)
