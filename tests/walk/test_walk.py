"""Walking along a case: forward, back, to the failure, and what is shown on the way."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from harness.case import CASE_VERSION, Case, save_case
from harness.choices import SeedChoices
from harness.cli import main
from harness.errors import InputError
from harness.generate import Generator
from harness.ops import IdleCheck
from harness.runner import Run, SeedResult, run_seed, run_trace
from harness.setup import draw_setup
from harness.walk import tables
from harness.walk.walk import Walk
from harness.world import World
from tests.harness.lived_in import scenario
from unikv import __version__


def a_failing_case(name: str, plant: str, seeds: range = range(1, 40)) -> Case:
    """The first seed that a planted fault fails."""
    found = (run_seed(scenario(name), name, seed, 300, plant=plant) for seed in seeds)
    return case_of(name, plant, next(result for result in found if result.violations))


def case_of(name: str, plant: str | None, result: SeedResult) -> Case:
    """A failed seed as a case."""
    return Case(
        version=CASE_VERSION,
        unikv=__version__,
        scenario=name,
        scenario_data=scenario(name),
        setup=result.setup,
        seed=result.seed,
        plant=plant,
        operations=result.trace,
        violation=result.violations[0],
    )


@pytest.fixture(scope="module")
def case() -> Case:
    """A case of the smoke scenario."""
    return a_failing_case("smoke", "move-over-writer")


@pytest.fixture
def path(case: Case, tmp_path: Path) -> Path:
    """The case as a file."""
    save_case(tmp_path / "case.json", case)
    return tmp_path / "case.json"


def walked(path: Path, *lines: str) -> Result:
    """The conversation with these lines."""
    script = "".join(f"{line}\n" for line in lines)
    return CliRunner().invoke(main, ["replay", str(path), "--step"], input=script)


def told(table: tables.Table) -> dict[str, str]:
    """What a table about one thing says."""
    return {row[0]: row[1] for row in table.rows}


def whole_state(world: World) -> tuple[object, ...]:
    """Everything that operations leave behind in the books and maps of a world."""
    subject = world.subjects[0]
    maps = [subject.page_map(band) for band in world.band_range]
    return (world.books, maps, list(world.requests), [step.number for step in world.steps])


def test_the_failure_is_where_the_replay_finds_it(case: Case) -> None:
    walk = Walk(case)
    walk.go_to_failure()
    replayed = run_trace(case.setup, case.operations, plant=case.plant)
    assert walk.at == len(replayed.trace)
    assert tuple(walk.violations) == replayed.violations


def test_one_step_back_is_a_run_that_stops_one_operation_earlier(case: Case) -> None:
    walk = Walk(case)
    walk.go_to_failure()
    walk.go(walk.at - 1)
    shorter = Run(case.setup, case.plant)
    for operation in case.operations[: walk.at]:
        shorter.execute(operation)
    assert walk.violations == []
    assert whole_state(walk.world) == whole_state(shorter.world)


def test_back_and_forth_ends_in_the_same_place(case: Case) -> None:
    walk = Walk(case)
    walk.go(12)
    before = whole_state(walk.world)
    walk.go(3)
    assert walk.at == 3
    walk.go(12)
    assert whole_state(walk.world) == before


def test_nothing_is_applied_behind_a_failure(case: Case) -> None:
    longer = (*case.operations, IdleCheck(), IdleCheck())
    walk = Walk(msgspec.structs.replace(case, operations=longer))
    walk.go(10**9)
    walk.go(10**9)
    assert (walk.at, len(walk.outcomes)) == (len(case.operations), len(case.operations))


def test_another_fault_can_be_planted_instead(case: Case) -> None:
    walk = Walk(case, "row-write-lost")
    walk.go_to_failure()
    assert walk.violations[0].check == "mapping"


def test_every_list_can_be_shown_before_anything_happened(case: Case) -> None:
    world = Walk(case).world
    assert all(list_(world).rows == [] for list_ in (tables.requests, tables.steps, tables.copies))
    assert len(tables.bands(world).rows) == len(case.setup.bands)


def test_looking_changes_nothing(case: Case) -> None:
    walk = Walk(case)
    walk.go(len(case.operations) - 1)
    before = whole_state(walk.world)
    for show in tables.LISTS.values():
        assert show(walk.world).title
    tables.page(walk.world, "full", 1)
    assert whole_state(walk.world) == before
    walk.go_to_failure()
    assert walk.violations[0].signature == case.violation.signature


def test_a_script_walks_to_the_failure(path: Path, case: Case) -> None:
    result = walked(path, "next 2", "requests", "failure", "report", "back", "bands", "quit")
    assert result.exit_code == 1
    assert f"BROKEN      {case.violation.check}: " in result.stdout
    assert "missing edge" in result.stdout
    last = len(case.operations) - 1
    assert f"[op {last - 1} of {last}] quit" in result.stdout


def test_a_walk_that_saw_no_failure_is_clean(path: Path) -> None:
    assert walked(path, "next", "quit").exit_code == 0


@pytest.fixture
def repaired(case: Case, tmp_path: Path) -> Path:
    """The case without its fault, as a file."""
    save_case(tmp_path / "repaired.json", msgspec.structs.replace(case, plant=None))
    return tmp_path / "repaired.json"


@pytest.mark.parametrize("line", ["failure", "next 999", "go 999", "failure\nback 2"])
def test_a_walk_to_the_end_of_what_no_longer_fails_says_so(
    line: str, repaired: Path, case: Case
) -> None:
    result = walked(repaired, line, "quit")
    assert result.exit_code == 7
    assert f"  no longer fails; stored: {case.violation.signature}\n" in result.stdout


def test_who_stops_before_the_end_has_seen_nothing(repaired: Path) -> None:
    result = walked(repaired, "next 3", "quit")
    assert result.exit_code == 0
    assert "no longer fails" not in result.stdout


def test_operations_have_the_numbers_of_the_reports(path: Path, case: Case) -> None:
    last = len(case.operations) - 1
    result = walked(path, f"go {last}", "back 999", "go 0", "list", "quit")
    first, final = case.operations[0], case.operations[-1]
    assert f"at op {last} of {last}\n  done  {last:4}  {final!r}" in result.stdout
    assert f"[before op 0 of {last}] go 0" in result.stdout
    assert f"at op 0 of {last}\n  done     0  {first!r}" in result.stdout
    assert f">     0  {first!r}" in result.stdout


def test_a_question_mark_asks_for_help(path: Path) -> None:
    assert "go to where operation N is applied" in walked(path, "?").stdout


def test_a_walk_that_went_nowhere_ran_nothing(path: Path) -> None:
    assert walked(path).exit_code == 5


def test_letters_stand_for_words(path: Path) -> None:
    words = walked(path, "next", "list", "back", "", "failure", "quit").stdout
    letters = walked(path, "n", "l", "b", "", "f", "q").stdout
    assert [line.partition("] ")[0] for line in words.splitlines()] == [
        line.partition("] ")[0] for line in letters.splitlines()
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("walk", "'walk': want one of next, back"),
        ("next x", "next: 'x': want a whole number"),
        ("go", "go: no number"),
        ("page full", "page: 'full': want a band and a number"),
        ("page full 999", "page: 999: band 'full' has pages 0 to"),
        ("page empty 1", "band: 'empty': no such band; there are window128, full"),
        ("request r999", "request: 'r999': no such request here"),
        ("step", "step: '': want one name"),
        ("copy copy9", "copy: 'copy9': no such copy here; there are none now"),
    ],
)
def test_a_line_that_makes_no_sense_is_answered(path: Path, line: str, said: str) -> None:
    result = walked(path, line, "next", "quit")
    assert f"error: {said}" in result.stdout
    assert result.exit_code == 0


def test_show_may_stand_before_what_is_shown(path: Path) -> None:
    shown, plain = walked(path, "f", "show bands"), walked(path, "f", "bands")
    assert "live" in plain.stdout
    assert shown.stdout.replace("show bands", "bands") == plain.stdout


def test_until_is_where_a_walk_begins(path: Path) -> None:
    result = CliRunner().invoke(main, ["replay", str(path), "--step", "--until", "4"], input="q\n")
    assert "[op 4 of " in result.stdout


def test_a_seed_cannot_be_walked() -> None:
    options = ["replay", "--step", "--scenario", "scenarios/smoke.yaml", "--seed", "1"]
    result = CliRunner().invoke(main, options)
    assert result.exit_code == 4
    assert "--step: no CASE" in result.stderr


def a_world_where(comes_true: Callable[[World], object]) -> World:
    """A world of the scenario that has everything, stopped where something is under way."""
    for seed in range(1, 20):
        choices = SeedChoices(seed)
        run = Run(draw_setup(scenario("everything"), choices), None)
        families = run.world.subjects[0].families
        generator = Generator(scenario("everything"), choices, "random", None, families)
        for _ in range(400):
            generator.heard(run.execute(generator.next(run.world)))
            if comes_true(run.world):
                return run.world
    raise AssertionError("no seed got there; try more of them")


def test_a_copy_is_shown_with_its_end() -> None:
    world = a_world_where(lambda world: world.host.loads)
    name = next(iter(world.host.loads))
    assert tables.copy(world, name).title == f"load {name}"
    assert {row[0] for row in tables.copies(world).rows} == {*world.host.loads, *world.host.backups}


def test_a_page_names_the_copy_that_touches_it() -> None:
    world = a_world_where(lambda world: world.host_subject and world.host_subject.copies())
    assert world.host_subject is not None
    ranges = [part for copy in world.host_subject.copies() for part in copy.ranges]
    size = world.layout.bands[-1].page_bytes
    pages = range(len(world.books[-1].states))
    named = [
        page
        for page in pages
        if "copy in its ledger" in told(tables.page(world, world.setup.bands[-1].name, page))
    ]
    touched = [
        page
        for page in pages
        if any(
            {*range(low, high)} & {*range(page * size, page * size + size)} for low, high in ranges
        )
    ]
    assert 0 < len(touched) < len(pages)
    assert named == touched


def test_a_transfer_is_shown_with_its_request() -> None:
    world = a_world_where(lambda world: world.transfers.sends)
    name = next(iter(world.transfers.sends))
    rows = told(tables.transfer(world, name))
    assert rows["request"] == world.transfers.sends[name].request


def test_a_page_names_who_holds_it(case: Case) -> None:
    walk = Walk(case)
    walk.go_to_failure()
    walk.go(walk.at - 1)
    world = walk.world
    name, request = next((n, r) for n, r in world.requests.items() if r.pages)
    number = world.subjects[0].page_map(world.owner_band)[request.pages[0]]
    rows = told(tables.page(world, "full", number))
    assert rows["id"] == str(request.pages[0])
    assert name in rows["holders"].split(", ")


def test_an_unknown_page_is_refused(case: Case) -> None:
    with pytest.raises(InputError, match="has pages 0 to"):
        tables.page(Walk(case).world, "full", 10**6)


def test_a_walk_says_nothing_to_programs(path: Path) -> None:
    result = CliRunner().invoke(main, ["replay", str(path), "--step", "--json"])
    assert result.exit_code == 4
    assert "want only one of --step and --json" in result.stderr
