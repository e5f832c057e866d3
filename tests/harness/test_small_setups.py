"""Setups: every switch falls where nothing needs it, and figures that go together fall together."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import pytest

from harness.canonical import Item, Size, setup_weight
from harness.choices import SeedChoices
from harness.ops import (
    Admit,
    Arrive,
    Barrier,
    BeginBackup,
    BeginSave,
    Chunk,
    IdleCheck,
    Launch,
    Process,
    Record,
    SubmitCopy,
)
from harness.ops.base import Op
from harness.scenario import AT_THE_END, PLAIN, Commit, Setup
from harness.setup import draw_setup
from harness.shrinking import shrink_run
from harness.simpler import fewer_blocks, plain_operations, rested
from harness.simpler_setup import is_possible, simpler_setups, with_small_pages
from harness.small_setups import small_setups
from harness.sweep.loading import default_scenarios, load_named
from harness.violation import Violation
from shrink import Budget
from tests.harness.backed import setup_of
from unikv.cache.checkpoint_policy import CheckpointStrategy

SCENARIOS = {named.name: named.scenario for named in load_named(default_scenarios())}
SETUPS = [
    draw_setup(scenario, SeedChoices(seed))
    for scenario in SCENARIOS.values()
    for seed in range(1, 4)
]
RICH = [
    setup_of(row_memory=True, commit=Commit.RELAYED, captured=True, pipeline=True),
    setup_of(commit=Commit.SIDE_STREAM, strategy=CheckpointStrategy.EXTRA_BUFFER_LAZY),
    setup_of(commit=Commit.IN_STEP, strategy=CheckpointStrategy.EXTRA_BUFFER),
]
ALWAYS = Violation(check="ledger", what="", detail="", operation=0, accesses=(), missing_edge="")


def always(setup: Setup, operations: Sequence[Op]) -> Sequence[Violation]:
    """A failure that needs nothing."""
    return (ALWAYS,)


@pytest.mark.parametrize("setup", SETUPS + RICH)
def test_what_nothing_needs_falls(setup: Setup) -> None:
    reduction = shrink_run(setup, [Record(), Record()], always, ALWAYS.signature, Budget())
    left = reduction.result[0]
    assert isinstance(left, Setup)
    assert reduction.result[1:] == ()
    assert setup_weight(left) == setup_weight(
        msgspec.structs.replace(
            with_small_pages(left, 1, 1),
            ranks=1,
            bands=with_small_pages(left, 1, 1).bands[-1:],
            steps_in_flight=1,
            read_end=False,
            overlap=False,
            layer_groups=1,
            host=(),
            network=None,
            pipeline=False,
            backend=PLAIN,
            checkpoints=AT_THE_END,
        )
    )


@pytest.mark.parametrize("setup", SETUPS + RICH)
def test_every_setup_that_is_offered_as_simpler_has_another_weight(setup: Setup) -> None:
    for simpler in simpler_setups(setup):
        assert isinstance(simpler, Setup)
        assert setup_weight(simpler) != setup_weight(setup)


def test_a_plain_part_is_left_out_of_a_file() -> None:
    drawn = [
        draw_setup(SCENARIOS[name], SeedChoices(seed))
        for name in ("rows", "everything")
        for seed in range(1, 30)
    ]
    plain = [setup for setup in drawn if setup.backend == PLAIN]
    at_the_end = [setup for setup in drawn if setup.checkpoints == AT_THE_END]
    assert plain
    assert at_the_end
    assert all("backend" not in msgspec.to_builtins(setup) for setup in plain)
    assert all("checkpoints" not in msgspec.to_builtins(setup) for setup in at_the_end)


def test_small_setups_come_simplest_first_and_can_be_built() -> None:
    trace = [Arrive("r0", 2, 0), Admit("r0", 1), Launch(("r0",)), Record(), Chunk("r0", 1)]
    for setup in SETUPS + RICH:
        found = list(small_setups([setup, *trace]))
        storages = [items[0] for items in found]
        assert all(is_possible(storage) for storage in storages if isinstance(storage, Setup))
        assert len(found) > 1
        assert not any(Size(later) < Size(earlier) for earlier, later in pairwise(found))


def test_a_long_trace_is_not_tried_on_small_setups() -> None:
    assert list(small_setups([SETUPS[0], *[Record()] * 13])) == []


def test_an_engine_of_one_step_processes_what_another_records() -> None:
    setup = msgspec.structs.replace(SETUPS[0], overlap=True, steps_in_flight=2)
    trace = [Arrive("r0", 2, 0), Admit("r0", 1), Launch(("r0",)), Record(), Chunk("r0", 1)]
    processed = [Process() if op == Record() else op for op in trace]
    without_a_loop = [op for op in trace if op != Record()]
    offered = [(items[0], list(items[1:])) for items in small_setups([setup, *trace])]
    assert any(
        isinstance(storage, Setup) and storage.steps_in_flight == 1 and operations == processed
        for storage, operations in offered
    )
    assert any(
        isinstance(storage, Setup) and not storage.overlap and operations == without_a_loop
        for storage, operations in offered
    )


def test_a_block_goes_with_its_tokens() -> None:
    setup = msgspec.structs.replace(SETUPS[0], page_slots=4, block_pages=1)
    trace: list[Item] = [
        setup,
        Arrive("r0", 9, 0, (3, 7)),
        Arrive("r1", 4, 0, (3,)),
        Admit("r0", 3),
        Chunk("r0", 6),
        Admit("r1", 4),
        BeginBackup("copy1", (3, 7)),
    ]
    assert [list(items) for items in fewer_blocks(trace)] == [
        [
            setup,
            Arrive("r0", 5, 0, (3,)),
            Arrive("r1", 4, 0, (3,)),
            Admit("r0", 3),
            Chunk("r0", 2),
            Admit("r1", 4),
            BeginBackup("copy1", (3,)),
        ],
        [
            setup,
            Arrive("r0", 5, 0, (7,)),
            Arrive("r1", 1, 0),
            Admit("r0", 3),
            Chunk("r0", 2),
            Admit("r1", 4),
            BeginBackup("copy1", (7,)),
        ],
    ]


def test_a_rest_stands_for_several_operations() -> None:
    trace = [Record(), Barrier(), Process(), SubmitCopy("copy1")]
    assert [list(items) for items in rested(trace)] == [
        [Record(), Barrier(), IdleCheck()],
        [Record(), IdleCheck(), SubmitCopy("copy1")],
        [IdleCheck(), Process(), SubmitCopy("copy1")],
    ]


def test_a_save_may_stand_for_a_backup() -> None:
    trace = [Arrive("r0", 4, 0, (0,)), BeginBackup("copy1", (0,))]
    assert BeginSave("copy1", "r0") in plain_operations(trace)
