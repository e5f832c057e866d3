"""Small cases: what is proposed, what is smaller, and how small failures get."""

from collections.abc import Sequence
from functools import cache
from typing import cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.canonical import Item, Size, canonical, names_in
from harness.case import CASE_VERSION, Case
from harness.choices import SeedChoices
from harness.faults.catalog import FAULTS
from harness.faults.failing import Failing, failing_runs, runner_for
from harness.ops import (
    Abort,
    Admit,
    Arrive,
    BeginBackup,
    CachePrefix,
    Chunk,
    Complete,
    Decode,
    EvictPrefix,
    Finish,
    Flush,
    Launch,
    Operation,
    Process,
    Record,
    Retract,
    SubmitCopy,
)
from harness.ops.base import Op
from harness.runner import run_trace
from harness.scenario import AT_THE_END, Setup
from harness.setup import draw_setup
from harness.short_traces import Engine, short_lives, short_traces
from harness.shrinking import Means, parted, shrink_case, shrink_run, shrink_trace
from harness.simpler import (
    fewer_blocks,
    merged,
    names_of,
    other_names,
    plainer_kinds,
    rested,
    smaller_numbers,
    without,
)
from harness.simpler_lives import fewer_names, longer_prompts, without_cache
from harness.simpler_setup import fewer_slots, is_possible, lower, simpler_setups
from harness.sweep.loading import default_scenarios, load_named
from harness.violation import Violation
from shrink import Budget, DoesNotFail
from tests.harness.lived_in import moments

SCENARIOS = {named.name: named.scenario for named in load_named(default_scenarios())}
EVERY_SETUP = [
    draw_setup(scenario, SeedChoices(seed))
    for scenario in SCENARIOS.values()
    for seed in range(1, 4)
]


def failing(fault: str, count: int = 1) -> list[Failing]:
    """The first failing runs of a fault."""
    runs = failing_runs(FAULTS[fault], SCENARIOS)
    found: list[Failing] = []
    while len(found) < count:
        run = next(runs)
        found += [run] if run is not None else []
    return found


def case_of(fault: str) -> Case:
    """The first failing run of a fault as a case."""
    run = failing(fault)[0]
    return Case(
        version=CASE_VERSION,
        unikv="0",
        scenario=run.scenario,
        scenario_data=SCENARIOS[run.scenario],
        setup=run.setup,
        seed=run.seed,
        plant=fault,
        operations=msgspec.convert(msgspec.to_builtins(run.operations), tuple[Operation, ...]),
        violation=run.violation,
    )


@cache
def life_of(name: str, seed: int) -> tuple[Setup, tuple[Op, ...]]:
    """A run of a scenario in which nothing is found."""
    *_, run = moments(name, seed)
    return run.world.setup, tuple(run.trace)


def test_names_are_numbered_in_order_of_appearance() -> None:
    trace = (
        Arrive("r7", 4, 0, (9, 5)),
        Arrive("r3", 1, 0, (9,)),
        Launch(("r3", "r7")),
        BeginBackup("copy12", (9, 5)),
        SubmitCopy("copy12"),
    )
    assert canonical(trace) == (
        Arrive("r0", 4, 0, (0, 1)),
        Arrive("r1", 1, 0, (0,)),
        Launch(("r1", "r0")),
        BeginBackup("copy1", (0, 1)),
        SubmitCopy("copy1"),
    )


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ([Abort("r0")], [Abort("r0"), Record()]),
        ([Admit("r0", 1)], [Admit("r0", 2)]),
        ([Abort("r0")], [Finish("r0")]),
        ([Abort("r0")], [Abort("r1")]),
        ([Abort("r0"), Retract("r0")], [Abort("r0"), Retract("r1")]),
        ([Abort("r0"), Flush(1)], [Flush(1), Abort("r0")]),
        ([Arrive("r0", 2, 0, (0,))], [Arrive("r0", 2, 0, (0, 1))]),
    ],
)
def test_this_is_smaller_than_that(smaller: Sequence[Op], larger: Sequence[Op]) -> None:
    assert Size(smaller) < Size(larger)
    assert not Size(larger) < Size(smaller)


@pytest.mark.parametrize("setup", EVERY_SETUP)
def test_a_simpler_setup_is_smaller(setup: Setup) -> None:
    simpler = list(simpler_setups(setup))
    assert simpler
    assert all(is_possible(other) for other in simpler if isinstance(other, Setup))
    assert any(Size([other]) < Size([setup]) for other in simpler)


@pytest.mark.parametrize("setup", EVERY_SETUP)
def test_a_world_can_be_built_of_every_simpler_setup(setup: Setup) -> None:
    variants = [*simpler_setups(setup), *lower(setup), *(v[0] for v in fewer_slots([setup]))]
    for variant in variants:
        assert isinstance(variant, Setup)
        assert not run_trace(variant, ()).violations


def test_a_name_that_is_gone_leaves_the_others_of_its_batch() -> None:
    assert without(Launch(("r0", "r1")), {"r0"}) == Launch(("r1",))
    assert without(Launch(("r0",)), {"r0"}) is None
    assert without(Record(), {"r0"}) == Record()


def test_time_goes_by_one_name() -> None:
    assert names_of(Complete(0, 1, 1)) == ["time"]
    assert without(Complete(0, 1, 1), {"time"}) is None


def test_a_number_never_falls_below_what_a_case_file_allows() -> None:
    assert list(smaller_numbers(Complete(0, 0, 1))) == []
    assert Complete(0, 0, 1) in list(smaller_numbers(Complete(0, 0, 3)))


def test_every_plainer_kind_can_be_stored() -> None:
    for operation in plainer_kinds(Complete(1, 2, 3)):
        assert msgspec.json.decode(msgspec.json.encode(operation), type=Operation) == operation


def test_two_completions_become_one() -> None:
    assert Complete(0, 1, 3) in list(merged(Complete(0, 1, 1), Complete(0, 1, 2)))


def test_a_chunk_joins_the_admission_before_it() -> None:
    assert Admit("r0", 7) in list(merged(Admit("r0", 4), Chunk("r0", 3)))


def test_two_decodes_become_one() -> None:
    assert Decode(("r0", "r1")) in list(merged(Decode(("r0",)), Decode(("r1",))))


def test_one_request_in_the_place_of_two_is_retracted_where_the_first_ended() -> None:
    trace = [Arrive("r0", 1, 0), Arrive("r1", 2, 0), Admit("r0", 1), Abort("r0"), Admit("r1", 2)]
    expected = [Arrive("r0", 2, 0), Admit("r0", 1), Retract("r0"), Admit("r0", 2)]
    assert expected in [list(shorter) for shorter in fewer_names(trace)]


def test_one_request_holds_what_two_held() -> None:
    trace = [
        Arrive("r0", 1, 0),
        Arrive("r1", 2, 0),
        Admit("r0", 1),
        Admit("r1", 1),
        Abort("r0"),
        Launch(("r1",)),
        Chunk("r1", 1),
    ]
    expected = [
        Arrive("r0", 3, 0),
        Admit("r0", 2),
        Retract("r0"),
        Admit("r0", 1),
        Launch(("r0",)),
        Chunk("r0", 1),
    ]
    assert expected in [list(shorter) for shorter in fewer_names(trace)]


def test_the_other_request_of_one_gets_its_tokens_before_its_own_launch() -> None:
    trace = [
        Arrive("r0", 1, 0),
        Arrive("r1", 1, 0),
        Admit("r0", 1),
        Admit("r1", 1),
        Launch(("r0",)),
        Process(),
        Launch(("r1",)),
    ]
    expected = [
        Arrive("r0", 2, 0),
        Admit("r0", 1),
        Launch(("r0",)),
        Process(),
        Chunk("r0", 1),
        Launch(("r0",)),
    ]
    assert expected in [list(shorter) for shorter in fewer_names(trace)]


def test_one_request_has_a_row_for_two() -> None:
    setup = EVERY_SETUP[0]
    trace: list[Item] = [
        setup,
        Arrive("r0", 1, 0),
        Arrive("r1", 1, 0),
        Admit("r0", 1),
        Admit("r1", 1),
    ]
    trace[0] = short = msgspec.structs.replace(setup, row_pages=1)
    longer = msgspec.structs.replace(short, row_pages=2)
    assert [longer, Arrive("r0", 2, 0), Admit("r0", 2)] in [list(o) for o in fewer_names(trace)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
@given(data=st.data())
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
def test_whatever_is_left_of_a_trace_is_rewritten_as_one_that_can_be_stored(
    name: str, data: st.DataObject
) -> None:
    setup, lived = life_of(name, data.draw(st.integers(1, 5)))
    places = data.draw(st.sets(st.sampled_from(range(len(lived))), max_size=12))
    trace: list[Item] = [setup, *(lived[place] for place in sorted(places))]
    passes = (fewer_names, longer_prompts, without_cache, fewer_blocks, rested, other_names)
    for other in (variant for rewrite in passes for variant in rewrite(trace)):
        first, *operations = other
        assert is_possible(cast(Setup, first))
        stored = msgspec.json.decode(msgspec.json.encode(operations), type=list[Operation])
        assert stored == operations


def test_a_row_for_two_is_never_longer_than_there_are_pages() -> None:
    setup = EVERY_SETUP[0]
    requests = [f"r{i}" for i in range(20)]
    trace: Sequence[Item] = [setup, *(Arrive(name, 1, 0) for name in requests)]
    for _ in requests[1:]:
        trace = max(fewer_names(trace), key=lambda other: cast(Setup, other[0]).row_pages)
    assert cast(Setup, trace[0]).row_pages == setup.row_pages


def test_prompts_of_two_requests_that_no_file_allows_are_not_added() -> None:
    most = 1_000_000
    trace = [Arrive("r0", most, 0), Arrive("r1", most, 0), Admit("r0", 1), Admit("r1", 1)]
    prompts = [op.prompt for other in fewer_names(trace) for op in other if isinstance(op, Arrive)]
    assert prompts
    assert max(prompts) == most


def test_a_launch_of_two_requests_is_one_of_one() -> None:
    trace = [Arrive("r0", 1, 0), Arrive("r1", 1, 0), Launch(("r0", "r1"))]
    assert [Arrive("r0", 1, 0), Launch(("r0",))] in [list(other) for other in fewer_names(trace)]


def test_a_chunk_comes_in_the_place_of_a_new_beginning() -> None:
    trace = [Arrive("r0", 1, 0), Admit("r0", 1), Retract("r0"), Record(), Admit("r0", 1)]
    expected = [Arrive("r0", 2, 0), Admit("r0", 1), Record(), Chunk("r0", 1)]
    assert [list(other) for other in longer_prompts(trace)] == [expected]


def test_a_request_may_end_where_its_prefix_was_evicted() -> None:
    trace = [CachePrefix("r0"), Abort("r0"), Record(), EvictPrefix()]
    assert [list(other) for other in without_cache(trace)] == [[Record(), Abort("r0")]]


def test_tokens_of_the_prompt_replace_those_that_are_produced() -> None:
    trace = [Arrive("r0", 1, 5), Decode(("r0", "r1")), Decode(("r0",))]
    expected = [Arrive("r0", 3, 0), Decode(("r1",)), Chunk("r0", 1), Chunk("r0", 1)]
    assert [list(other) for other in longer_prompts(trace)] == [expected]


@pytest.mark.parametrize("overlap", [False, True])
def test_nothing_is_skipped_in_a_short_life(overlap: bool) -> None:
    setup = msgspec.structs.replace(
        EVERY_SETUP[0],
        overlap=overlap,
        read_end=True,
        steps_in_flight=2,
        checkpoints=AT_THE_END,
    )
    engine = Engine(overlap=overlap, read_end=True, windows=False, steps=2)
    for length in range(2, 7):
        for life in short_lives(engine, 1, length):
            result = run_trace(setup, life)
            wasted = result.skipped - sum(isinstance(operation, Flush) for operation in life)
            assert wasted <= 0, life


def test_short_traces_come_shortest_first() -> None:
    long: list[Item] = [EVERY_SETUP[0], *[Record()] * 6]
    lengths = [len(items) for items in short_traces(long)]
    half = lengths[: lengths.index(max(lengths)) + 1]
    assert half == sorted(half)


@pytest.mark.parametrize("setup", EVERY_SETUP)
def test_a_world_can_be_built_for_every_short_trace(setup: Setup) -> None:
    long: list[Item] = [setup, *[Record()] * 4]
    tried = {storage for storage, _ in map(parted, short_traces(long))}
    assert tried
    assert all(is_possible(storage) for storage in tried)


def test_no_short_trace_breaks_a_promise_of_the_allocator() -> None:
    long: list[Item] = [EVERY_SETUP[0], *[Record()] * 4]
    for setup, operations in map(parted, short_traces(long)):
        trace = msgspec.convert(msgspec.to_builtins(operations), tuple[Operation, ...])
        assert not run_trace(setup, trace).violations


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        "freed-page-offered",
        "double-free-tolerated",
        "backup-without-its-last-page",
        "row-never-reset",
        "tracking-slot-leaked",
    ],
)
def test_different_seeds_end_in_the_same_text(fault: str) -> None:
    results = {shrunk(run, fault) for run in failing(fault, 3)}
    assert len(results) == 1
    assert len(next(iter(results))) <= 6


def shrunk(run: Failing, fault: str) -> tuple[Item, ...]:
    """What is left of a failing run; it fails like the run."""
    runner = runner_for(FAULTS[fault])
    signature = run.violation.signature
    result = shrink_run(run.setup, run.operations, runner, signature, Budget(3000)).result
    assert any(found.signature == signature for found in runner(*parted(result)))
    return result


@pytest.mark.slow
def test_a_smaller_case_fails_like_the_case() -> None:
    case = case_of("freed-page-offered")
    small, _ = shrink_case(case, Budget(300))
    found = run_trace(small.setup, small.operations, plant=small.plant).violations
    assert case.violation.signature in [violation.signature for violation in found]
    assert len(small.operations) < len(case.operations)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["freed-page-offered", "settle-without-wait", "barrier-dropped"])
def test_no_operation_can_be_left_out_of_what_is_complete(fault: str) -> None:
    small, complete = shrink_case(case_of(fault), Budget())
    assert complete
    for at in range(len(small.operations)):
        left = (*small.operations[:at], *small.operations[at + 1 :])
        found = run_trace(small.setup, left, plant=small.plant).violations
        assert small.violation.signature not in [violation.signature for violation in found]


def test_what_the_budget_ended_is_not_complete() -> None:
    assert not shrink_case(case_of("freed-page-offered"), Budget(20)).complete


def test_a_case_that_does_not_fail_is_refused() -> None:
    case = msgspec.structs.replace(case_of("freed-page-offered"), plant=None)
    with pytest.raises(DoesNotFail):
        shrink_case(case, Budget(10))


@pytest.mark.slow
def test_another_signature_is_handed_over_and_never_followed() -> None:
    case = case_of("settle-without-wait")
    met: list[Violation] = []
    small, _ = shrink_case(
        case, Budget(400), means=Means(met=lambda setup, trace, violation: met.append(violation))
    )
    assert small.violation.signature == case.violation.signature
    assert met
    assert all(violation.signature != case.violation.signature for violation in met)


def test_a_trace_alone_shrinks_on_its_setup() -> None:
    def fails(trace: Sequence[Op]) -> bool:
        return {"r1"} <= {name for operation in trace for name in names_in(operation)}

    trace = (Arrive("r0", 1, 0), Arrive("r1", 1, 0), Admit("r0", 1), Admit("r1", 3))
    assert shrink_trace(trace, fails, Budget(200)) == (Arrive("r1", 0, 0),)
