"""The missing edge, put to the test."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness.case import load_case, save_case
from harness.cli import main
from harness.device.clock import HOST, Access
from harness.device.memory import WritePages
from harness.faults.catalog import FAULTS
from harness.report.edge import EdgeBetween, EdgedDevice, EdgeRule, edges_of, with_edge
from harness.report.explain import (
    became,
    no_edge_lines,
    rule_text,
    seed_lines,
    story_lines,
    verdict,
)
from harness.report.recorder import stand_below
from harness.report.story import Story, tell
from harness.report.touched import touched_text
from harness.runner import Run, run_seed, run_trace
from harness.sweep.explaining import Count, EdgeProof, EdgeWork, explaining
from harness.sweep.jobs import Job
from harness.violation import Violation
from tests.cli.test_commands import record_of
from tests.harness.lived_in import scenario
from tests.report.stories import (
    COMMAND,
    PLAIN,
    case_of,
    no_room,
    race,
    ranks_apart,
    table_race,
    under_a_copy,
    wrong_page,
    wrong_read,
)
from unikv.device.port import Stream


def signatures(story: Story, edge: EdgeBetween | EdgeRule) -> list[str]:
    """What the operations of a story show with an edge."""
    case = story.case
    result = run_trace(case.setup, case.operations, plant=case.plant, build=with_edge(edge))
    return [violation.signature for violation in result.violations]


@pytest.mark.parametrize("told", [race, table_race])
def test_with_its_edge_a_race_is_gone(told: Callable[[], Story]) -> None:
    edges = edges_of(told())
    assert edges is not None
    for edge in edges:
        assert signatures(told(), edge) == []


def test_another_edge_does_not_help() -> None:
    edges = edges_of(race())
    assert edges is not None
    one, rule = edges
    # The move waits for a launch that it is behind already; the body waits for the move.
    for wrong in (
        EdgeBetween(frozenset(number - 1 for number in one.earlier), one.later),
        EdgeBetween(one.later, one.earlier),
        EdgeRule(rule.awaited_role, rule.awaited_kind, rule.role, rule.kind),
        EdgeRule(rule.role, rule.kind, rule.awaited_role, "metadata"),
    ):
        assert race().violation.signature in signatures(race(), wrong)


def test_the_rule_names_kinds_and_streams() -> None:
    edges = edges_of(race())
    assert edges is not None
    assert edges[1] == EdgeRule("schedule", "move", "forward", "body")


def test_a_failure_that_is_no_race_has_no_edge() -> None:
    assert edges_of(no_room()) is None
    assert explaining(ranks_apart()) is None


def test_an_edge_leaves_a_run_without_faults_as_it_is() -> None:
    edges = edges_of(race())
    assert edges is not None
    plain = run_seed(scenario("smoke"), "smoke", 3, 60)
    edged = run_seed(scenario("smoke"), "smoke", 3, 60, build=with_edge(edges[1]))
    assert (plain.violations, plain.applied) == (edged.violations, edged.applied)


def story_of_seed(plant: str, seed: int) -> Story | None:
    """What a seed of the fault's scenario shows; None if it shows no race."""
    name = FAULTS[plant].scenario
    result = run_seed(scenario(name), name, seed, 200, plant=plant)
    if not result.violations or result.violations[0].check != "ordering":
        return None
    case = msgspec.structs.replace(
        race().case,
        scenario=name,
        scenario_data=scenario(name),
        setup=result.setup,
        seed=seed,
        plant=plant,
        operations=result.trace,
        violation=result.violations[0],
    )
    story = tell(case, COMMAND)
    assert story is not None
    return story


def first_race(plant: str) -> Story:
    """The first seed of the fault's scenario that collides, as it was found."""
    found = filter(None, (story_of_seed(plant, seed) for seed in range(1, 40)))
    story = next(found, None)
    assert story is not None, f"{plant} shows no race"
    return story


def test_a_rule_of_one_peer_holds_for_every_peer() -> None:
    plant = "send-behind-its-first-gate"
    one, other = story_of_seed(plant, 17), story_of_seed(plant, 49)
    assert one is not None
    assert other is not None
    assert [story.sides[1].launch.role for story in (one, other)] == ["peer 0", "peer 1"]
    edges = edges_of(one)
    assert edges is not None
    assert signatures(other, edges[1]) == []


def test_what_waits_for_peers_waits_for_each_of_them() -> None:
    device = Run(PLAIN, None).world.device
    edged = stand_below(device, EdgedDevice)
    edged.edge, edged.marks, edged.count = EdgeRule("schedule", "move", "peer", "send"), {}, 0
    touched = (Access(device.arena, (1,), False),)
    for lane in (HOST + 1, HOST + 2):
        edged.submit(lane, "send", 0, WritePages(()), touched)
    edged.submit(Stream.SCHEDULE, "move", 0, WritePages(()), touched)
    assert edged.clocks.clocks[Stream.SCHEDULE][HOST + 1 :] == [1, 1]


def test_a_rule_says_of_which_streams_it_is() -> None:
    assert rule_text(EdgeRule("peer", "send", "schedule", "move")) == (
        "before every send of any peer stream, it waits for the last move of the schedule stream"
    )
    assert rule_text(EdgeRule("schedule", "zero", "peer", "send")).endswith(
        "waits for the last send of each peer stream"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant",
    [
        "launch-without-schedule",
        "staging-refilled-early",
        "settle-without-wait",
        "hand-out-over-a-backup",
        "load-ahead-of-the-take",
        "moves-unordered",
        "side-stream-not-joined",
    ],
)
def test_the_edge_that_a_report_names_is_the_one_that_is_missing(plant: str) -> None:
    story = first_race(plant)
    edges = edges_of(story)
    assert edges is not None
    one, rule = edges
    case = story.case
    result = run_trace(case.setup, case.operations, plant=plant, build=with_edge(one))
    assert story.violation not in result.violations
    assert story.violation.signature not in signatures(story, rule)


def test_a_seed_is_run_without_and_with_the_edge() -> None:
    edges = edges_of(table_race())
    assert edges is not None
    work = EdgeWork(table_race().case, edges[1], 40)
    tried = [work.run(Job(0, 0, seed)) for seed in range(1, 5)]
    signature = table_race().violation.signature
    assert any(signature in one.before for one in tried)
    assert not any(signature == one.signature for ran in tried for one in ran.violations)


def proof_of(count: Count, asked: int = 10, *, by_rule: tuple[Violation, ...] = ()) -> EdgeProof:
    """What came of the edge of the small race, with such figures."""
    edges = edges_of(race())
    assert edges is not None
    return EdgeProof((), by_rule, edges[1], range(8, 8 + asked), 60, count)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        (proof_of(Count(10, 0, 0, Counter(), 0)), "they prove nothing"),
        (proof_of(Count(10, 3, 1, Counter(), 0)), "the edge is not all of it: some seeds"),
        (proof_of(Count(10, 3, 0, Counter(), 0)), "the edge is the cause"),
        (proof_of(Count(0, 0, 0, Counter(), 0), 0), "no seed was tried"),
        (proof_of(Count(4, 3, 1, Counter(), 0)), "the edge is not all of it: some seeds"),
        (
            proof_of(Count(4, 3, 0, Counter(), 0)),
            "of 3 seeds that failed in this way without the edge, none does with it; of 10, 6 did"
            " not run to the end and prove nothing",
        ),
        (proof_of(Count(9, 3, 0, Counter(), 1)), "of 10, 1 did not run to the end"),
        (
            proof_of(Count(10, 3, 0, Counter(), 0), by_rule=(race().violation,)),
            "the edge is not all of it: with it, the same operations still fail",
        ),
    ],
)
def test_figures_come_to_no_more_than_they_prove(what: EdgeProof, said: str) -> None:
    assert said in verdict(race(), what)


def test_other_failures_are_counted_by_their_kind() -> None:
    count = Count(9, 3, 0, Counter({"ordering | a": 2, "ledger | b": 1}), 1)
    text = "\n".join(seed_lines(race(), proof_of(count)))
    assert "seeds        9 of scenario smoke from 8 on, 60 operations each" in text
    assert "3 fail in another way" in text
    assert "- 2 x ordering | a" in text
    assert "1 ended their process" in text


def test_who_ends_it_early_is_told_how_far_it_came(tmp_path: Path) -> None:
    test = explaining(table_race())
    assert test is not None
    asked = EdgeProof((), (), test.rule, range(1, 9), 40, test.count)
    for ended in test.seeds(asked, 1, tmp_path):
        test.interrupts.seen = ended == 2
    assert test.count.tried == 2
    text = " ".join(" ".join(seed_lines(table_race(), asked)).split())
    assert "cut short: 2 of 8 of scenario smoke" in text
    assert "the edge is the cause" not in verdict(table_race(), asked)


def test_an_explanation_tells_cause_accesses_and_history() -> None:
    text = "\n".join(story_lines(race()))
    for part in ("cause  ", "earlier  ", "later  ", "missing edge ", "history of page 1 of band"):
        assert part in text


def test_an_access_is_told_with_its_step_and_its_ids() -> None:
    text = "\n".join(story_lines(race()))
    assert (
        "earlier      body write, step 1, launch #2 of the forward stream; not started\n"
        "             page 1 (id 2) of band 'full'\n"
        "             op 5  Launch"
    ) in text
    assert (
        "later        move read, no step, launch #8 of the schedule stream; not started\n"
        "             page 1 (id 2) of band 'full'\n"
        "             op 8  Flush"
    ) in text


def test_what_is_read_is_of_the_owner_before_and_what_is_written_of_the_one_behind() -> None:
    story, frames = race(), race().recording.frames
    # Page 1 is id 2's until the last operation, and id 1's behind it.
    (band,) = frames[-1].ranks[0]
    after = frames[-1]._replace(ranks=((band._replace(owners=(0, 1, 2)),),))
    story = replace(story, recording=replace(story.recording, frames=(*frames[:-1], after)))
    read = story.sides[1]
    write = read._replace(note=msgspec.structs.replace(read.note, kind="move write"))
    assert touched_text(story, read) == "page 1 (id 2) of band 'full'"
    assert touched_text(story, write) == "page 1 (id 1) of band 'full'"


def test_an_id_is_looked_for_on_both_sides_of_an_operation() -> None:
    story = under_a_copy()
    page_1 = [frame.ranks[0][0].owners[1] for frame in story.recording.frames[4:]]
    assert page_1 == [1, 0, 1]
    texts = [touched_text(story, side) for side in story.sides]
    assert texts == ["page 1 (id 1) of band 'full'"] * 2


def test_a_wrong_read_of_a_page_is_at_that_page() -> None:
    (read,) = wrong_page().sides
    assert touched_text(wrong_page(), read) == "page 1 (id 1) of band 'full'"
    assert wrong_page().followed[0].place.title == "page 1 of band 'full'"
    assert " finds something else in page 1 of band 'full' (id 1) " in wrong_page().violation.what


def test_what_should_have_held_is_said_where_no_edge_says_it() -> None:
    lines = " ".join(" ".join(story_lines(no_room())).split())
    assert "here a relief says yes exactly where some arrangement of all bands holds" in lines
    assert not race().rule
    assert "here " not in " ".join(line[:13] for line in story_lines(race()))


def test_without_an_edge_it_says_what_else_there_is_to_look_at() -> None:
    placed = " ".join(" ".join(no_edge_lines(wrong_read())).split())
    assert placed.endswith("look at what the sentence compares, and at the history")
    apart = " ".join(" ".join(no_edge_lines(ranks_apart())).split())
    assert apart.endswith("and at the history and where the ranks differ")
    nowhere = " ".join(" ".join(no_edge_lines(no_room())).split())
    assert nowhere.endswith("and at what its operation did and the bands behind it")


def test_a_failure_that_is_nowhere_has_its_operation_and_the_bands() -> None:
    assert [follow for follow in no_room().followed if follow.entries] == []
    lines = story_lines(no_room())
    at = lines.index("what its operation did")
    assert lines[at + 1] == "  !    5 Relieve(pages=1, slots=0)"
    assert "         - the allocator is asked relieve(1, 0): False" in lines
    assert lines[-2:] == [
        "bands behind it",
        "         - full: pages 1..3: 0 live, 0 holes, 2 pending, 0 fixed; 0 bytes free behind it",
    ]
    assert "bands behind it" not in story_lines(race())


def test_what_is_no_page_is_told_by_its_place() -> None:
    for story, title in (
        (table_race(), "page map entry 1 of band 'full'"),
        (wrong_read(), "request row 0"),
    ):
        assert {touched_text(story, side) for side in story.sides} == {title}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ((), "no longer fail"),
        (("as it was",), "still fail: the edge is not the cause"),
        (("like it",), "get past these two accesses, and fail alike at the next: like it"),
        (("other",), "no longer fail in this way, but in another: other"),
    ],
)
def test_what_operations_do_with_the_edge_is_said(found: tuple[str, ...], said: str) -> None:
    violation = race().violation
    seen = {
        "as it was": violation,
        "like it": msgspec.structs.replace(violation, what="like it"),
        "other": msgspec.structs.replace(violation, what="other", detail="other"),
    }
    assert became(race(), [seen[name] for name in found]) == said


def explained(folder: Path, case: Path, *options: str) -> Result:
    """What the program says of a case."""
    words = ["explain", str(case), "--artifacts", str(folder), "--jobs", "1", *options]
    return CliRunner().invoke(main, words)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """The case of a fault that most seeds find."""
    path = tmp_path / "min.json"
    save_case(path, table_race().case)
    return path


@pytest.mark.slow
def test_the_program_explains_a_race(stored: Path, tmp_path: Path) -> None:
    result = explained(tmp_path, stored, "--seeds", "6", "--ops", "60", "--json")
    assert result.exit_code == 1, result.output
    text = " ".join(result.stdout.split())
    assert "a wait for the earlier access: the same operations no longer fail" in text
    record: dict[str, Any] = record_of(result)
    assert record["gone_with_the_edge"] is record["gone_with_the_rule"] is record["fails"] is True
    assert record["verdict"] == "the edge is the cause: with it, no seed fails in this way"
    assert record["seeds"]["tried"] == 6
    assert record["seeds"]["failing_without_the_edge"] > 0
    assert record["seeds"]["failing_with_the_edge"] == record["seeds"]["deaths"] == 0
    assert record["accesses"][0] == {
        "when": "earlier",
        "kind": "metadata read",
        "stream": "forward",
        "operation": 2,
        "step": 1,
        "holder": "map",
        "touched": "page map entry 1 of band 'full'",
    }


def test_without_seeds_no_folder_is_made(stored: Path, tmp_path: Path) -> None:
    result = explained(tmp_path, stored, "--seeds", "0")
    assert result.exit_code == 1
    assert "no seed was tried" in result.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["min.json"]


def test_what_is_no_race_gets_no_edge(tmp_path: Path) -> None:
    path = tmp_path / "min.json"
    save_case(path, no_room().case)
    result = explained(tmp_path, path)
    assert result.exit_code == 1
    assert "no edge is missing" in result.stdout


def test_a_case_that_no_longer_fails_is_missed(stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "repaired.json"
    save_case(path, msgspec.structs.replace(load_case(stored), plant=None))
    result = explained(tmp_path, path, "--json")
    assert result.exit_code == 7
    assert "no longer fails as it was stored: ordering" in result.stdout
    signature = load_case(stored).violation.signature
    assert record_of(result) == {"command": "explain", "fails": False, "signature": signature}


def test_a_case_of_an_unknown_fault_is_refused(stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "renamed.json"
    save_case(path, msgspec.structs.replace(load_case(stored), plant="renamed"))
    assert explained(tmp_path, path).exit_code == 4


def test_a_case_with_another_sentence_is_still_the_same_failure() -> None:
    case = case_of("move-over-writer", race().case.operations)
    assert tell(case, COMMAND) is not None
