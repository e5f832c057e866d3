"""How a case's seed was drawn: written down, absent in older cases, and used for more seeds."""

from pathlib import Path

import msgspec
import pytest

from harness.case import Case, Drawn, load_case, save_case
from harness.errors import InputError
from harness.report.edge import EdgeRule
from harness.report.explain import drawn_text
from harness.runner import run_seed
from harness.sweep.explaining import EdgeWork
from harness.sweep.jobs import Job
from tests.cli.test_commands import record_of, run_of
from tests.harness.lived_in import scenario
from tests.report.stories import race, table_race

NEVER = EdgeRule("schedule", "nothing", "schedule", "nothing")
"""An edge that no launch meets."""


def drawn(strategy: str, ranks: int | None, traffic: str) -> Case:
    """A case whose seed was drawn so."""
    how = Drawn(strategy=strategy, ranks=ranks, traffic=traffic)
    return msgspec.structs.replace(table_race().case, drawn=how)


@pytest.mark.parametrize(
    ("name", "said"), [("trace.jsonl", "trace.jsonl"), ("bad\udcff.jsonl", "bad\\udcff.jsonl")]
)
def test_a_run_writes_down_how_it_draws(name: str, said: str, tmp_path: Path) -> None:
    requests = tmp_path / name
    requests.write_text(
        '{"timestamp":0,"input_length":600,"output_length":9,"hash_ids":[1,2]}\n' * 9
    )
    options = ["--ranks", "1", "--strategy", "random", "--traffic", str(requests)]
    result = run_of(
        tmp_path, "--seeds", "1..9", "--plant", "barrier-dropped", "--jobs", "1", "--json", *options
    )
    case = load_case(Path(record_of(result)["violations"][0]["case"]))
    assert case.drawn == Drawn(strategy="random", ranks=1, traffic=said)


def test_a_case_without_it_reads_as_ever(tmp_path: Path) -> None:
    case = race().case
    save_case(tmp_path / "case.json", case)
    assert b"drawn" not in (tmp_path / "case.json").read_bytes()
    assert load_case(tmp_path / "case.json") == case


@pytest.mark.parametrize(("strategy", "ranks"), [("chance", 1), ("random", 0), ("random", 9)])
def test_a_case_that_was_drawn_in_no_way_is_refused(
    strategy: str, ranks: int, tmp_path: Path
) -> None:
    save_case(tmp_path / "case.json", drawn(strategy, ranks, ""))
    with pytest.raises(InputError, match=r"not a case: .*drawn"):
        load_case(tmp_path / "case.json")


@pytest.mark.parametrize(("strategy", "ranks"), [("random", 1), ("swarm", None)])
def test_more_seeds_are_drawn_alike(strategy: str, ranks: int | None) -> None:
    work = EdgeWork(drawn(strategy, ranks, ""), NEVER, 40)
    alike = run_seed(
        scenario("smoke"),
        "smoke",
        3,
        40,
        plant="barrier-dropped",
        ranks=ranks,
        strategy=strategy,
    )
    assert work.run(Job(0, 0, 3)).digest == alike.digest


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (drawn("random", 1, ""), "drawn as the case's own: strategy random, 1 rank"),
        (drawn("swarm", None, ""), "drawn as the case's own: strategy swarm, 2 ranks"),
        (drawn("swarm", None, "t.jsonl"), "its requests were those recorded in t.jsonl, which a"),
        (race().case, "strategy swarm, 2 ranks; the case does not say how its own seed was drawn"),
    ],
)
def test_who_explains_says_how_it_draws(case: Case, said: str) -> None:
    assert said in drawn_text(case)
