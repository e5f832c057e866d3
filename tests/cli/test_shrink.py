"""A stored case made small: what is written, what is never touched, and what goes on later."""

import itertools
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness.canonical import Item
from harness.case import Case, load_case, save_case
from harness.cli import main
from harness.ops import Abort, Admit, Arrive, Chunk, Complete, Launch, Operation, Process, Record
from harness.report.faults import shrunk_lines
from harness.runner import run_trace
from harness.scenario import BandSetup, Setup
from harness.shrinking import Means, shrink_run
from harness.sweep import patience, shrunk_hunts
from harness.sweep.candidates import Candidates
from harness.sweep.hunts import Hunted, Shrunken
from harness.sweep.jobs import Job
from harness.sweep.loading import default_scenarios, load_named
from harness.sweep.patience import Measured, alarmed
from harness.sweep.shrinks import Shrinking, Shrunk
from harness.sweep.shrunk_hunts import MadeSmall, ShrinkWork, summed
from harness.sweep.verdicts import Verdicts
from shrink import SILENT, Budget, Reduction

FAULT = "freed-page-offered"
SETUP = Setup(
    ranks=2,
    sink_bytes=32,
    total_bytes=160,
    bands=(
        BandSetup(name="full", kind="full", window=0, entry_cells=2, slots_per_page=4, id_count=4),
    ),
    page_slots=4,
    block_pages=1,
    rows=2,
    row_pages=4,
    steps_in_flight=2,
    read_end=True,
    overlap=True,
)
OPERATIONS: tuple[Operation, ...] = (
    Arrive("r3", 6, 2),
    Arrive("r5", 3, 0),
    Admit("r3", 4),
    Launch(("r3",)),
    Complete(0, 0, 2),
    Record(),
    Chunk("r3", 2),
    Admit("r5", 3),
    Process(),
    Launch(("r5", "r3")),
    Record(),
    Abort("r5"),
)
TOLD = ("report.md", "report.html", "timeline.json", "repro.py", "env.json")
SMALLEST = (Arrive("r0", 1, 0), Admit("r0", 1), Launch(("r0",)), Record(), Abort("r0"))


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A failing case by hand, alone in its folder."""
    violation = run_trace(SETUP, OPERATIONS, plant=FAULT).violations[0]
    stored = Case(
        version=1,
        unikv="0",
        scenario="smoke",
        scenario_data=next(
            n.scenario for n in load_named(default_scenarios()) if n.name == "smoke"
        ),
        setup=SETUP,
        seed=1,
        plant=FAULT,
        operations=OPERATIONS,
        violation=violation,
    )
    folder = tmp_path / "found"
    folder.mkdir()
    path = folder / "case.json"
    save_case(path, stored)
    return path


def shrunk(path: Path, *options: str) -> Result:
    """The program's answer."""
    return CliRunner().invoke(main, ["shrink", str(path), "--json", *options])


def record_of(result: Result) -> dict[str, Any]:
    """The object in the last line."""
    decoded: dict[str, Any] = msgspec.json.decode(result.stdout.splitlines()[-1])
    return decoded


def files_beside(path: Path) -> set[str]:
    """Names of all files in the folder, others met on the way left out."""
    return {file.name for file in path.parent.iterdir() if not file.name.startswith("other-")}


def test_a_case_gets_a_smaller_one_beside_it(case: Path) -> None:
    before = case.read_bytes()
    result = shrunk(case)
    assert result.exit_code == 0
    assert load_case(case.with_name("min.json")).operations == SMALLEST
    assert files_beside(case) == {"case.json", "min.json", *TOLD}
    assert case.read_bytes() == before


def test_the_record_says_what_it_cost(case: Path) -> None:
    record = record_of(shrunk(case))
    assert (record["operations"], record["shrunk_operations"]) == (12, 5)
    assert record["complete"] is True
    assert record["executions"] > 20
    assert record["smaller"].endswith("min.json")


def test_what_is_there_is_never_overwritten(case: Path) -> None:
    case.with_name("min.json").write_text("mine")
    record = record_of(shrunk(case))
    assert case.with_name("min.json").read_text() == "mine"
    assert record["smaller"].endswith("min-2.json")


def test_shrinking_twice_writes_once(case: Path) -> None:
    assert record_of(shrunk(case))["smaller"] == record_of(shrunk(case))["smaller"]
    assert files_beside(case) == {"case.json", "min.json", *TOLD}


def test_the_report_beside_a_case_shows_the_smaller_one(case: Path) -> None:
    shrunk(case)
    text = case.with_name("report.md").read_text()
    assert "The 5 operations" in text
    assert f"replay {case.with_name('min.json')}" in text


def test_a_report_that_is_there_is_kept(case: Path) -> None:
    case.with_name("report.md").write_text("mine")
    shrunk(case)
    assert case.with_name("report.md").read_text() == "mine"
    assert "The 5 operations" in case.with_name("report-2.md").read_text()


@pytest.mark.parametrize("name", ["min.json", "report.md"])
def test_a_link_to_nothing_is_left_alone(case: Path, name: str) -> None:
    link = case.with_name(name)
    link.symlink_to("nowhere")
    assert shrunk(case).exit_code == 0
    assert link.is_symlink()
    assert link.with_stem(f"{link.stem}-2").exists()


def test_other_failures_are_kept_as_cases_that_fail(case: Path) -> None:
    met = record_of(shrunk(case))["met"]
    for signature, path in met.items():
        other = load_case(Path(path))
        found = run_trace(other.setup, other.operations, plant=other.plant).violations
        assert signature in [violation.signature for violation in found]
    assert load_case(case).violation.signature not in met


def test_a_case_that_was_repaired_is_reported(case: Path) -> None:
    repaired = msgspec.structs.replace(load_case(case), plant=None)
    path = case.with_name("repaired.json")
    save_case(path, repaired)
    result = shrunk(path)
    assert result.exit_code == 7
    assert files_beside(case) == {"case.json", "repaired.json"}
    record = record_of(result)
    assert (record["command"], record["fails"]) == ("shrink", False)
    assert record["signature"] == repaired.violation.signature


def test_a_case_that_runs_longer_than_most_candidates_may_is_made_small(
    case: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "CANDIDATE_SECONDS_MAX", 1e-3)
    assert shrunk(case).exit_code == 0
    assert case.with_name("min.json").exists()


@pytest.mark.parametrize("options", [["--budget", "1"], ["--jobs", "0"]])
def test_a_wrong_option_is_refused_before_anything_is_written(
    case: Path, options: list[str]
) -> None:
    assert shrunk(case, *options).exit_code == 4
    assert files_beside(case) == {"case.json"}


def cut_short(path: Path, executions: int) -> Shrunk:
    """A reduction that ends after so many judged candidates."""
    shrinking = Shrinking(path, 600, 1)
    judged = itertools.count()

    class Ending:
        def started(self, pass_name: str) -> None: ...

        def tried(self, progress: object) -> None:
            shrinking.interrupts.seen = next(judged) >= executions

    return shrinking.run(Ending())


def test_a_reduction_that_was_ended_goes_on_where_it_was(case: Path) -> None:
    whole = Shrinking(case, 600, 1)
    expected = whole.run(SILENT)
    other = case.parent / "again"
    other.mkdir()
    again = other / "case.json"
    save_case(again, load_case(case))
    first = cut_short(again, 40)
    assert not first.smaller.complete
    verdicts = Verdicts(again, load_case(again))
    assert len(verdicts) >= 40
    verdicts.close()
    second = Shrinking(again, 600, 1).run(SILENT)
    assert (second.smaller.case, second.executions) == (expected.smaller.case, expected.executions)
    assert not verdicts.path.exists()


def test_a_torn_line_costs_one_verdict(case: Path) -> None:
    cut_short(case, 30)
    verdicts = Verdicts(case, load_case(case))
    known = len(verdicts)
    verdicts.close()
    verdicts.path.write_bytes(verdicts.path.read_bytes()[:-5])
    again = Verdicts(case, load_case(case))
    assert len(again) == known - 1
    again.remember((SETUP, SETUP), fails=True)
    again.close()
    whole = Verdicts(case, load_case(case))
    assert len(whole) == known
    assert whole.recall((SETUP, SETUP)) is True
    whole.close()


def test_verdicts_of_another_case_are_dropped(case: Path) -> None:
    cut_short(case, 30)
    other = msgspec.structs.replace(load_case(case), seed=2)
    verdicts = Verdicts(case, other)
    assert len(verdicts) == 0
    verdicts.close()


@pytest.mark.parametrize("verdict", [True, False])
def test_verdicts_of_another_program_are_dropped(case: Path, tmp_path: Path, verdict: bool) -> None:
    module = tmp_path / "program" / "unikv" / "alloc.py"
    module.parent.mkdir(parents=True)
    module.write_text("PAGES = 1\n")
    root = module.parents[1]
    first = Verdicts(case, load_case(case), root)
    first.remember((SETUP,), fails=verdict)
    first.close()
    same = Verdicts(case, load_case(case), root)
    assert same.recall((SETUP,)) is verdict
    same.close()
    module.write_text("PAGES = 2\n")
    changed = Verdicts(case, load_case(case), root)
    assert changed.recall((SETUP,)) is None
    changed.close()


def test_wrong_verdicts_are_found_out(case: Path) -> None:
    """The smallest candidate that is remembered does not fail."""
    stored = load_case(case)
    verdicts = Verdicts(case, stored)
    verdicts.remember((stored.setup, *stored.operations), fails=True)
    verdicts.remember((stored.setup, *stored.operations[:-1]), fails=True)
    verdicts.close()
    assert Shrinking(case, 600, 1).run(SILENT).smaller.case.operations == SMALLEST


def test_a_foreign_file_in_the_place_of_verdicts_is_left_alone(case: Path) -> None:
    foreign = case.with_name(".case.json.shrinking")
    foreign.write_text("a diary\n")
    assert shrunk(case).exit_code == 4
    assert foreign.read_text() == "a diary\n"


def test_a_pipe_in_the_place_of_verdicts_is_refused(case: Path) -> None:
    os.mkfifo(case.with_name(".case.json.shrinking"))
    with alarmed(1.0):
        result = shrunk(case)
    assert result.exit_code == 4
    assert "not a regular file; want a file of verdicts" in result.stderr


@pytest.mark.slow
def test_several_processes_find_the_same(case: Path) -> None:
    stored = load_case(case)
    signature = stored.violation.signature
    alone = Shrinking(case, 600, 1).run(SILENT)
    with Candidates(stored, 2, Measured(10.0)) as candidates:
        together = shrink_run(
            stored.setup,
            stored.operations,
            candidates.run,
            signature,
            Budget(),
            means=Means(ahead=candidates),
        )
    assert together.result == (alone.smaller.case.setup, *alone.smaller.case.operations)
    assert together.executions == alone.executions


def test_medians_of_reductions_leave_the_setup_out() -> None:
    def reduction(*operations: Operation) -> Reduction[Any]:
        return Reduction((SETUP, *operations), 7, 0, (), True)

    shrunken = summed(
        [
            MadeSmall("torn", reduction(*SMALLEST), 1, True),
            MadeSmall("late", reduction(*SMALLEST), 2, True),
            MadeSmall("torn", reduction(Record()), 6, False),
        ]
    )
    assert shrunken == Shrunken(
        seeds=3,
        confirmed=2,
        operations=5,
        longest=5,
        distinct_results=2,
        same_result=2,
        signatures=2,
        same_result_each=2,
        seconds=2,
        seconds_longest=6,
        executions=7,
    )


def of_length(length: int, executions: int) -> MadeSmall:
    """A failing run that came down to so many operations in so many runs."""
    items: tuple[Item, ...] = (SETUP, *[Record()] * length)
    reduction = Reduction(items, executions, 0, (), True)
    return MadeSmall("torn", reduction, 1, True)


@pytest.mark.parametrize(
    ("second", "stored", "printed"),
    [(9, b'"operations":8.5', "  8.5  "), (8, b'"operations":8,', "  8  ")],
)
def test_a_median_between_two_lengths_keeps_its_half(
    second: int, stored: bytes, printed: str
) -> None:
    shrunken = summed([of_length(8, 100), of_length(second, 100)])
    assert shrunken.operations == (8 + second) / 2
    hunted = Hunted(fault=FAULT, caught=True, check="ordering", shrunk=shrunken)
    assert stored in msgspec.json.encode(hunted)
    (_, row) = shrunk_lines([hunted])
    assert printed in row
    assert row.endswith("  100")
    assert msgspec.json.decode(msgspec.json.encode(hunted), type=Hunted) == hunted


@pytest.mark.slow
def test_faults_are_shrunk_when_asked(tmp_path: Path) -> None:
    options = ["--only", FAULT, "--shrink", "--seeds", "2", "--jobs", "1", "--json"]
    result = CliRunner().invoke(main, ["faults", *options, "--artifacts", str(tmp_path)])
    (row,) = record_of(result)["faults"]
    assert result.exit_code == 0
    assert (row["shrunk_operations"], row["distinct_results"]) == (5, 1)
    assert row["shrunk_seeds"] == row["confirmed"] == 2
    assert {"shrink_seconds", "executions"} <= row.keys()


@pytest.mark.slow
def test_what_earlier_reductions_know_changes_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = load_named(default_scenarios())
    work = ShrinkWork(scenarios, ("finished-row-still-writes",), 4)

    def texts(alone: int) -> dict[str, Any]:
        monkeypatch.setattr(shrunk_hunts, "ALONE", alone)
        shrunk = msgspec.to_builtins(work.run(Job(0, 0, 0)).shrunk)
        timed = ("seconds", "seconds_longest", "executions")
        return {name: shrunk[name] for name in shrunk if name not in timed}

    assert texts(1) == texts(4)


def test_a_result_that_has_lost_its_failure_is_a_miss() -> None:
    made = [
        MadeSmall("torn", Reduction((SETUP, *SMALLEST), 7, 0, (), True), 1, sure)
        for sure in (True, False)
    ]
    caught = Hunted(fault="a", caught=True, check="ordering")
    assert caught.holds
    assert msgspec.structs.replace(caught, shrunk=summed(made[:1])).holds
    assert not msgspec.structs.replace(caught, shrunk=summed(made)).holds


def test_a_long_hunt_is_not_taken_for_one_that_hangs() -> None:
    work = ShrinkWork((), ("a",), 100)
    assert work.silence_seconds > 100 * 20
    assert Hunted(fault="a", caught=False, check="").shrunk is None
