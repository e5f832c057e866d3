"""The report of a finding, as a person reads it."""

from harness.case import Case
from harness.ops import Flush
from harness.report.text import OPERATIONS_MAX, WIDTH, render, render_crash
from harness.sweep.jobs import Job
from harness.violation import AccessNote, Violation
from tests.cli.seeds import a_result, failing

RACE = Violation(
    check="ordering",
    what="page 3 of band 'full' is overwritten while step 6 may still read it",
    detail="arena race",
    operation=2,
    accesses=(
        AccessNote(kind="body read", stream="forward", operation=0, step=6, holder="live"),
        AccessNote(kind="zero write", stream="schedule", operation=2, step=0, holder="hole"),
    ),
    missing_edge="schedule <- forward: nothing makes the zero wait for step 6",
)


def case_of(violation: Violation, count: int) -> Case:
    """A case of `count` operations."""
    operations = tuple(Flush(limit=at) for at in range(count))
    result = a_result(7, violation)
    case = failing().case(Job(0, 0, 7), result, violation)
    return Case(
        version=case.version,
        unikv="0.1.0",
        scenario="smoke",
        scenario_data=case.scenario_data,
        setup=case.setup,
        seed=7,
        plant=None,
        operations=operations,
        violation=violation,
    )


def test_a_race_shows_both_accesses_over_their_operations() -> None:
    case = case_of(RACE, 3)
    assert render(case, RACE, "python -m harness replay a/min.json").splitlines() == [
        "ordering: page 3 of band 'full' is overwritten while step 6 may still read it",
        "  earlier        body read   forward  stream  step 6    live",
        "                 op 0  Flush(limit=0)",
        "  later          zero write  schedule stream  no step   hole",
        "                 op 2  Flush(limit=2)",
        "  missing edge   schedule <- forward: nothing makes the zero wait for step 6",
        "  kind           arena race",
        "",
        f"3 operations, scenario smoke, seed 7, {case.setup.ranks} ranks, planted fault none,"
        " unikv 0.1.0",
        "  >     0  Flush(limit=0)",
        "        1  Flush(limit=1)",
        "  >     2  Flush(limit=2)",
        "",
        "replay",
        "  python -m harness replay a/min.json",
    ]


def test_a_break_that_is_no_race_marks_where_it_was_seen() -> None:
    broken = Violation(check="ledger", what="books differ", detail="books differ", operation=1)
    lines = render(case_of(broken, 2), broken, "again").splitlines()
    assert "  !     1  Flush(limit=1)" in lines
    assert not any("missing edge" in line for line in lines)


def test_a_long_trace_shows_its_end_and_the_marked_operations() -> None:
    lines = render(case_of(RACE, OPERATIONS_MAX + 50), RACE, "again").splitlines()
    assert "  >     2  Flush(limit=2)" in lines
    assert "        ... 47 operations left out ..." in lines
    assert not any(line.endswith("Flush(limit=49)") for line in lines)
    assert lines[-4].endswith(f"Flush(limit={OPERATIONS_MAX + 49})")


def test_long_lines_are_wrapped() -> None:
    long = Violation(check="content", what="word " * 60, detail="d", operation=0)
    assert max(map(len, render(case_of(long, 1), long, "again").splitlines())) <= WIDTH


def test_a_crash_shows_the_last_words() -> None:
    assert render_crash("seed 3 ended its process: signal 9", "one\ntwo", "again").splitlines() == [
        "crash: seed 3 ended its process: signal 9",
        "",
        "last words",
        "  one",
        "  two",
        "",
        "replay",
        "  again",
    ]
