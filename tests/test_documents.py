"""What the documents say of the code is so: every name, every table, every module."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.check import PROMISES
from harness.faults.ablation import EDGES
from harness.faults.catalog import FAULTS
from harness.ops import Operation
from unikv.alloc.clearance import CLEARANCE, Clearance, InFlight, Toucher
from unikv.alloc.use import Use

ROOT = Path(__file__).parents[1]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
README = (ROOT / "README.md").read_text()
LIFECYCLE = (ROOT / "docs" / "notes" / "page-lifecycle.md").read_text()
READING = (ROOT / "docs" / "reading-a-report.md").read_text()

FAMILIES = {"harness/check/", "harness/faults/", "harness/ops/"}
"""Folders of which the code map names only those files that are no member of the family."""


def part_of(text: str, name: str) -> str:
    """What stands between the two marks of that name."""
    start = text.index(f"<!-- {name} -->") + len(f"<!-- {name} -->")
    return text[start : text.index(f"<!-- end of {name} -->")]


def timelines() -> list[str]:
    """One section for each hazard, its number and title first."""
    return re.split(r"^### ", LIFECYCLE, flags=re.MULTILINE)[1:]


def clearance_rows() -> str:
    """The clearance table as the document shows it."""
    lines = [
        f"| next toucher, over | {' | '.join(use.value for use in InFlight)} |",
        "|---" * (len(InFlight) + 1) + "|",
    ]
    for toucher in Toucher:
        cells = " | ".join(CLEARANCE[toucher, use].value for use in InFlight)
        lines.append(f"| {toucher.value} | {cells} |")
    return "\n".join(lines)


# ARCHITECTURE.md ----------------------------------------------------------------------------


def mapped_files() -> Iterator[str]:
    """Every file of the code map, from the root; `*.py` stands for a family."""
    start = ARCHITECTURE.index("## Code map")
    for line in ARCHITECTURE[start : ARCHITECTURE.index("A newcomer", start)].splitlines():
        if line.startswith("| `"):
            first, *others = re.findall(r"`([^`]+)`", line.split("|")[1])
            folder = first.rpartition("/")[0]
            yield first
            yield from (f"{folder}/{name}" for name in others)


def existing_files() -> list[str]:
    """Every module of the two packages but those that only say what a folder is."""
    return [
        path.relative_to(ROOT).as_posix()
        for package in ("unikv", "harness")
        for path in sorted((ROOT / package).rglob("*.py"))
        if path.name not in {"__init__.py", "__main__.py"}
    ]


def test_the_code_map_names_every_module() -> None:
    named = set(mapped_files())
    missing = [
        path
        for path in existing_files()
        if path not in named and f"{path.rpartition('/')[0]}/*.py" not in named
    ]
    assert missing == [], "give each a place in the code map of ARCHITECTURE.md"


def test_the_code_map_names_nothing_that_is_not_there() -> None:
    named = [name for name in mapped_files() if not name.endswith("*.py")]
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_code_map_names_nothing_twice() -> None:
    named = list(mapped_files())
    assert sorted(set(named)) == sorted(named)


def test_only_families_are_named_by_their_folder() -> None:
    assert {name.removesuffix("*.py") for name in mapped_files() if "*" in name} == FAMILIES


# docs/notes/page-lifecycle.md ---------------------------------------------------------------


def test_the_clearance_table_is_that_of_the_code() -> None:
    assert part_of(LIFECYCLE, "clearance").strip() == clearance_rows()


@pytest.mark.parametrize("clearance", Clearance)
def test_every_clearance_is_explained(clearance: Clearance) -> None:
    explained = [
        name.strip()
        for line in part_of(LIFECYCLE, "clearances").splitlines()
        if line.startswith("|")
        for name in line.split("|")[1].split(",")
    ]
    assert explained.count(clearance.value) == 1


def test_the_ledger_has_a_row_for_every_use() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", part_of(LIFECYCLE, "uses"), flags=re.MULTILINE)
    assert sorted(rows) == sorted(use.name for use in Use)


@pytest.mark.parametrize("section", timelines(), ids=lambda section: section.partition("\n")[0])
def test_every_timeline_names_faults_that_are_planted(section: str) -> None:
    planted = re.findall(r"`([a-z]+(?:-[a-z]+)+)`", section)
    assert planted
    assert [fault for fault in planted if fault not in FAULTS] == []


@pytest.mark.parametrize("section", timelines(), ids=lambda section: section.partition("\n")[0])
def test_every_timeline_shows_two_accesses_and_their_edge(section: str) -> None:
    assert re.search(r"\[? ?A: ", section)
    assert re.search(r"\[? ?B: ", section)
    assert "\nEdge: " in section


def test_timelines_are_numbered() -> None:
    numbers = [int(section.partition(".")[0]) for section in timelines()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_ordering_edge_is_drawn() -> None:
    drawn = "\n".join(timelines())
    missing = [
        edge.name
        for edge in EDGES
        if edge.faults and not any(f"`{fault}`" in drawn for fault in edge.faults)
    ]
    assert missing == [], "no timeline names a fault that takes out this edge"


# README.md and docs/reading-a-report.md -----------------------------------------------------


def test_the_readme_names_every_promise() -> None:
    table = README[README.index("## What it finds") : README.index("## Commands")]
    named = [
        name
        for line in table.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]
    assert sorted(named) == sorted(PROMISES)


def test_the_readme_does_not_count_more_faults_than_there_are() -> None:
    text = " ".join(README.split())
    found = re.search(r"more than (\d+), over (\d+) of them modeled on public reports", text)
    assert found
    modeled = sum(bool(fault.rows) for fault in FAULTS.values())
    assert int(found[1]) < len(FAULTS) <= int(found[1]) + 50
    assert int(found[2]) < modeled <= int(found[2]) + 30


def test_every_operation_is_explained() -> None:
    table = READING[READING.index("## The operations") : READING.index("## What to do")]
    explained = re.findall(r"`(\w+)", table)
    assert sorted(explained) == sorted(kind.__name__ for kind in Operation.__args__)


# pyproject.toml -----------------------------------------------------------------------------


def test_the_code_alone_states_the_version() -> None:
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in stated["project"]
    assert stated["project"]["dynamic"] == ["version"]
    assert stated["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "unikv.__version__"}
