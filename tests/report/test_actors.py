"""What an operation had to go by: requests, transfers, the engine, and what led to it."""

from collections.abc import Callable
from functools import cache

import msgspec
import pytest

from harness.ops import (
    Abort,
    AbortTransfer,
    AddPart,
    Admit,
    Advance,
    Arrive,
    BeginPrefixSend,
    BeginSend,
    CachePrefix,
    Chunk,
    CloseSend,
    Complete,
    EvictPrefix,
    Flush,
    IdleCheck,
    Launch,
    Pause,
    Process,
    RecordUnknown,
    Relieve,
    Retract,
    Round,
)
from harness.report.actors import actor_facts, actor_tables
from harness.report.explain import story_lines
from harness.report.history import enqueued, folded
from harness.report.html import report_html
from harness.report.markdown import report_markdown
from harness.report.recorder import RecordingRun
from harness.report.setup_text import setup_text
from harness.report.story import Story
from harness.scenario import BackendSetup, BandSetup, CheckpointSetup, Commit, NetworkSetup, Setup
from tests.report.stories import PLAIN, race, story_of, table_race, under_a_peer
from unikv.cache.checkpoint_policy import CheckpointStrategy

SENT = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    BeginSend(transfer="transfer1", peer=0, request="r0"),
    AddPart(transfer="transfer1"),
    Round(),
    CloseSend(transfer="transfer1"),
    Complete(rank=0, stream=7, count=1),
    Round(),
)
RESET = (
    Arrive(request="r0", prompt=1, output=0, blocks=()),
    Arrive(request="r1", prompt=1, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    Process(),
    Pause(request="r0"),
    Admit(request="r1", tokens=1),
    Launch(requests=("r1",)),
)
RETIRED = (
    Arrive(request="r0", prompt=2, output=0, blocks=()),
    Admit(request="r0", tokens=1),
    Launch(requests=("r0",)),
    Chunk(request="r0", tokens=1),
    Advance(request="r0"),
    Launch(requests=("r0",)),
)


def three_bands(*cells: int) -> Setup:
    """State, a window of one token and full attention in an arena without a page to spare."""
    state, window, full = cells
    kinds = (("state", 0, state), ("window", 1, window), ("full", 0, full))
    bands = tuple(
        BandSetup(
            name=kind, kind=kind, window=width, entry_cells=size, slots_per_page=1, id_count=2
        )
        for kind, width, size in kinds
    )
    return msgspec.structs.replace(PLAIN, bands=bands, overlap=False, sink_bytes=12)


@cache
def one_rank_sent() -> Story:
    """A send that ends although the peer of the second rank still reads."""
    setup = msgspec.structs.replace(
        PLAIN, ranks=2, overlap=False, network=NetworkSetup(patience=1, refusals=0)
    )
    return story_of("done-with-the-first-rank", SENT, setup)


@cache
def never_lifted() -> Story:
    """A send that was given up and stays in quarantine."""
    setup = msgspec.structs.replace(
        PLAIN, overlap=False, network=NetworkSetup(patience=1, refusals=0)
    )
    operations = (*SENT[:6], AbortTransfer(transfer="transfer1"), Round(), IdleCheck())
    return story_of("quarantine-never-lifted", operations, setup)


@cache
def reset_too_soon() -> Story:
    """Row memory that is reset in front of the wait for the save that reads it."""
    setup = msgspec.structs.replace(
        PLAIN, rows=1, row_pages=1, backend=BackendSetup(row_memory=True)
    )
    return story_of("row-reset-before-the-wait", RESET, setup)


@cache
def retired_ahead() -> Story:
    """A window row that is given up before the token in it has run."""
    window = msgspec.structs.replace(PLAIN.bands[0], name="window", kind="window", window=1)
    setup = msgspec.structs.replace(
        PLAIN, total_bytes=40, bands=(window, PLAIN.bands[0]), overlap=False
    )
    return story_of("window-retired-ahead", RETIRED, setup)


SENDING = msgspec.structs.replace(
    PLAIN, overlap=False, network=NetworkSetup(patience=1, refusals=0)
)


def quarantined(refusals: int) -> RecordingRun:
    """A send that was given up under its part, with an operation behind that."""
    network = NetworkSetup(patience=1, refusals=refusals)
    run = RecordingRun(msgspec.structs.replace(SENDING, network=network), None)
    for operation in (*SENT[:6], AbortTransfer(transfer="transfer1"), Round(), Flush(limit=1)):
        run.execute(operation)
    return run


def rows_before(run: RecordingRun) -> tuple[tuple[str, ...], ...]:
    """Transfers before the last operation of a run."""
    (rows,) = [t.rows for t in actor_tables(run.recording()) if t.title == "The transfers"]
    return rows


def rows_of(story: Story, title: str) -> list[tuple[str, ...]]:
    """The rows of one table."""
    return [row for table in story.actors if table.title == title for row in table.rows]


def test_a_transfer_is_told_rank_by_rank() -> None:
    assert rows_of(one_rank_sent(), "The transfers") == [
        (
            "transfer1",
            "send of r0 to peer0",
            "1 part queued, closed",
            "1 of 1 part ended",
            "0 of 1 part ended",
            "full 2",
        )
    ]


def test_a_receive_is_told_by_who_writes_for_whom() -> None:
    assert rows_of(under_a_peer(), "The transfers") == [
        ("transfer1", "receive from peer0 for r0", "", "0 of 1 part ended", "full 2")
    ]


def test_a_transfer_that_was_stopped_waits_for_proof() -> None:
    ((_, _, asked, far, _),) = rows_of(never_lifted(), "The transfers")
    assert asked == (
        "1 part queued, more may come, somebody has asked to stop it, given up, so it waits for"
        " proof"
    )
    assert far == "0 of 1 part ended, its engine was told to stop"


def test_an_engine_that_does_not_answer_was_not_told_to_stop() -> None:
    run = quarantined(refusals=50)
    ((_, _, _, far, _),) = rows_before(run)
    assert far == "0 of 1 part ended, not told to stop yet"


def test_what_engines_have_said_is_told() -> None:
    run = quarantined(refusals=0)
    handed = run.world.network.handed["transfer1"] if run.world.network else None
    assert handed is not None
    handed.failed.add(0)
    handed.proved.add(0)
    run.execute(Flush(limit=1))
    run.execute(Flush(limit=1))
    ((_, _, _, far, _),) = rows_before(run)
    assert far == "0 of 1 part ended, its engine gave up, proved quiet"


def test_a_send_that_its_request_has_left_is_of_nobody() -> None:
    run = RecordingRun(SENDING, None)
    for operation in (*SENT[:6], Abort(request="r0"), Flush(limit=1)):
        run.execute(operation)
    assert [row[1] for row in rows_before(run)] == ["send to peer0"]


def test_a_send_of_a_cached_prefix_says_so() -> None:
    run = RecordingRun(SENDING, None)
    first = Arrive(request="r0", prompt=1, output=0, blocks=(7,))
    cached = CachePrefix(request="r0")
    begun = BeginPrefixSend(transfer="transfer1", peer=0, blocks=(7,))
    for operation in (first, *SENT[1:3], cached, begun, Flush(limit=1)):
        run.execute(operation)
    assert [row[1] for row in rows_before(run)] == ["send of a cached prefix to peer0"]


def test_rounds_of_a_rest_stand_once() -> None:
    assert "... the last line" in " ".join(never_lifted().deeds)


def test_a_request_says_what_it_has_run_and_keeps() -> None:
    assert rows_of(retired_ahead(), "The requests") == [
        ("r0", "running", "0", "1", "1", "2", "1, 2", "window from none")
    ]


def test_what_there_is_not_has_no_table() -> None:
    assert [table.title for table in race().actors] == ["The requests"]
    assert "The transfers" not in report_markdown(race())


@pytest.mark.parametrize("told", [one_rank_sent, retired_ahead])
def test_tables_are_in_the_report_and_on_the_page(told: Callable[[], Story]) -> None:
    story = told()
    text, page = report_markdown(story), report_html(story)
    for table in story.actors:
        assert f"## {table.title} before operation {len(story.case.operations) - 1}" in text
        for row in table.rows:
            assert f"| {' | '.join(row)} |" in text
            assert "".join(f"<td>{cell}</td>" for cell in row) in page


def test_a_failure_that_is_nowhere_is_explained_by_them() -> None:
    lines = story_lines(one_rank_sent())
    at = lines.index("the transfers before it")
    told = " ".join(line.strip() for line in lines[at + 1 : at + 3])
    assert told.endswith("on rank 1: 0 of 1 part ended; pages that its peer may touch: full 2")
    assert "the requests before it" not in story_lines(race())


def test_operations_of_the_accesses_are_told_too() -> None:
    assert 5 in race().leads
    assert "body of step 1 is enqueued" in report_markdown(race()).partition("operation 6 did")[0]


def test_without_accesses_the_last_change_of_a_place_leads() -> None:
    assert retired_ahead().leads == (3, 4)
    assert "## What operation 4 did" in report_markdown(retired_ahead())


def test_what_only_lets_time_pass_shows_what_ended() -> None:
    lead = report_markdown(one_rank_sent()).partition("## What operation 7 did")[2]
    assert lead.splitlines()[2] == "- rank 0: peer 0: send ends"


def test_a_host_that_learns_of_an_end_has_not_waited() -> None:
    assert "host learns that peer 0 #1 has ended" in one_rank_sent().deeds
    page = report_html(one_rank_sent())
    assert "op 8: host learns that peer 0 #1 has ended" in page
    assert "host waits for peer 0" not in page


def test_a_wait_that_comes_too_late_is_told() -> None:
    assert reset_too_soon().order.endswith(
        "; the forward stream waits for it in operation 7, but only after the reset"
    )


@pytest.mark.parametrize("told", [race, table_race])
def test_where_nobody_waits_no_wait_is_told(told: Callable[[], Story]) -> None:
    assert told().order
    assert "only after" not in told().order


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("abc", ["a", "b", "c"]),
        ("aab", ["a", "a", "b"]),
        ("aaab", ["a", "... the last line 2 more times", "b"]),
        ("ababc", ["a", "b", "... the last 2 lines 1 more time", "c"]),
        ("xababab", ["x", "a", "b", "... the last 2 lines 2 more times"]),
        ("", []),
    ],
)
def test_what_comes_again_and_again_stands_once(lines: str, shown: list[str]) -> None:
    assert list(folded([*lines])) == shown


def test_the_engine_is_told_by_what_is_not_plain() -> None:
    plain = "a page holds 1 token; a block of a prompt 1 token"
    assert setup_text(PLAIN) == f"steps run on the forward stream, 1 unprocessed at most; {plain}"
    rich = msgspec.structs.replace(
        three_bands(2, 2, 2),
        pipeline=True,
        layer_groups=2,
        page_slots=2,
        backend=BackendSetup(commit=Commit.SIDE_STREAM, captured=True),
        checkpoints=CheckpointSetup(strategy=CheckpointStrategy.EXTRA_BUFFER, interval=4),
    )
    assert setup_text(rich) == (
        "steps run on the schedule stream, 1 unprocessed at most; an iteration launches a step and"
        " then processes an earlier one; a page holds 2 tokens; a block of a prompt 2 tokens; the"
        " window of window is 1 token; a state may be kept every 4 tokens; a step commits on a side"
        " stream; steps are captured graphs; a page has 2 layer groups"
    )


def test_a_relief_that_moves_nothing_is_told_from_one_that_may_not_say_yes() -> None:
    setup = msgspec.structs.replace(three_bands(2, 2, 3), total_bytes=144)
    operations = (
        Arrive(request="r0", prompt=1, output=0, blocks=()),
        Admit(request="r0", tokens=1),
        Relieve(pages=5, slots=0),
    )
    story = story_of("relief-rearranges-nothing", operations, setup)
    what = story.violation.what
    assert what.endswith("; once pages may move and transfers have been waited for, one does")


def test_a_yes_that_forgets_how_pages_lie_is_told_so() -> None:
    bands = three_bands(24, 2, 4).bands
    bands = tuple(
        msgspec.structs.replace(part, slots_per_page=1 if part.kind == "state" else 4, id_count=7)
        for part in bands
    )
    setup = msgspec.structs.replace(
        three_bands(24, 2, 4),
        bands=bands,
        page_slots=4,
        row_pages=7,
        sink_bytes=96,
        total_bytes=864,
    )
    operations = (
        Arrive(request="r0", prompt=25, output=0, blocks=()),
        Admit(request="r0", tokens=25),
    )
    what = story_of("remainders-ignored", operations, setup).violation.what
    assert "so fits was wrong: 768 bytes are asked and 768 are free, but a page lies at" in what


@pytest.mark.parametrize(
    ("told", "use"),
    [(under_a_peer, "network_receive"), (retired_ahead, "no use of it")],
)
def test_a_history_ends_with_what_the_ledger_has(told: Callable[[], Story], use: str) -> None:
    (follow,) = told().followed
    assert follow.entries[-1].facts[-1] == f"in the end the ledger has {use}"


def test_a_use_of_any_page_is_a_use_of_each() -> None:
    operations = (
        Arrive(request="r0", prompt=2, output=0, blocks=()),
        Admit(request="r0", tokens=1),
        Launch(requests=("r0",)),
        RecordUnknown(),
        Chunk(request="r0", tokens=1),
        Abort(request="r0"),
    )
    story = story_of("freed-page-offered", operations)
    assert {follow.entries[-1].facts[-1] for follow in story.followed} == {
        "in the end the ledger has unknown_write of step 1"
    }


def test_a_state_of_more_tokens_is_told_by_how_many() -> None:
    setup = msgspec.structs.replace(three_bands(2, 2, 2), total_bytes=80)
    operations = (
        Arrive(request="r0", prompt=2, output=0, blocks=(0,)),
        Admit(request="r0", tokens=2),
        Launch(requests=("r0",)),
        CachePrefix(request="r0"),
        Retract(request="r0"),
        Admit(request="r0", tokens=1),
    )
    assert story_of("state-of-more-tokens", operations, setup).violation.what == (
        "r0 resumes after 1 token of its prompt from id 1 of band 'state', which holds the state"
        " after 2 tokens"
    )


def test_what_the_scheduler_does_alone_is_told() -> None:
    recording = race().recording
    assert list(actor_facts(recording, 0)) == ["r0 is queued"]
    assert list(actor_facts(recording, 2)) == ["r0: queued -> running"]
    assert list(actor_facts(recording, 4)) == ["r0 is over"]
    assert list(actor_facts(recording, 7)) == []
    sent = one_rank_sent().recording
    assert list(actor_facts(sent, 3)) == ["transfer1 begins: send of r0 to peer0"]
    assert list(actor_facts(sent, 4)) == ["transfer1: 1 part queued, more may come"]
    assert list(actor_facts(sent, 6)) == ["transfer1: 1 part queued, closed"]
    assert list(actor_facts(sent, 8)) == ["transfer1 is over"]


def test_what_the_cache_keeps_is_told() -> None:
    operations = (
        Arrive(request="r0", prompt=1, output=0, blocks=(7,)),
        Admit(request="r0", tokens=1),
        Launch(requests=("r0",)),
        CachePrefix(request="r0"),
        Abort(request="r0"),
        EvictPrefix(),
        Flush(limit=1),
    )
    setup = msgspec.structs.replace(PLAIN, overlap=False)
    recording = story_of("frontier-never-retreats", operations, setup).recording
    assert list(actor_facts(recording, 3)) == ["the cache keeps block 7 of a prompt on ids 1"]
    assert list(actor_facts(recording, 5)) == ["the cache gives up block 7 of a prompt"]


def test_a_declared_end_of_table_reads_is_told() -> None:
    assert enqueued(race().recording, 7) == (
        "the table reads of step 1 are declared to end behind forward #1",
    )


def test_a_row_with_two_requests_names_them() -> None:
    operations = (
        Arrive(request="r0", prompt=1, output=0, blocks=()),
        Arrive(request="r1", prompt=1, output=0, blocks=()),
        Admit(request="r0", tokens=1),
        Admit(request="r1", tokens=1),
    )
    setup = msgspec.structs.replace(PLAIN, rows=3, overlap=False)
    what = story_of("row-shared-by-two", operations, setup).violation.what
    assert what.endswith("by what r0 holds; r1 has that row too")
