"""Every edge that exists is needed: without it a few operations collide."""

from functools import cache
from pathlib import Path

import pytest
from msgspec import structs

from harness.faults.ablation import EDGES, Edge, ablated, witness
from harness.faults.catalog import FAULTS
from harness.faults.incidents import INCIDENTS, WAITING
from harness.loading import load_scenario
from harness.report.faults import edge_lines, row_lines, trace_lines
from harness.scenario import Scenario
from harness.sweep.hunts import Hunted
from harness.violation import AccessNote, Violation

SCENARIOS = Path(__file__).parents[2] / "scenarios"

TRANSLATION = ("B01", "B03", "B05", "B07", "B09", "B11", "B13")
IN_FLIGHT = ("B15", "B17", "B19", "B21", "B23", "B25", "B27")
STAGING = ("B29", "B31", "B33", "B35", "B37")
HOST_TIER = ("B39", "B41", "B43", "B45", "B47", "B49", "B51", "B53")
NETWORK = ("B55", "B57", "B59", "B61", "B63", "B65", "B67", "B69")
CAPACITY = ("B97", "B99", "B101", "B103", "B105", "B107", "B109")
"""Reports of which each has a fault, or waits for something."""

QUICK = {
    "launch-without-schedule": 3,
    "barrier-dropped": 5,
    "staging-refilled-early": 6,
    "ids-leave-before-the-take": 3,
}
"""Faults whose witness is found at once, and how many operations it may have."""


@cache
def scenarios() -> dict[str, Scenario]:
    return {path.stem: load_scenario(path) for path in sorted(SCENARIOS.glob("*.yaml"))}


def hunted(fault: str) -> Hunted:
    """The end of a hunt for a witness of three operations."""
    accesses = tuple(
        AccessNote(kind=kind, stream="", operation=0, step=0, holder="")
        for kind in ("row write", "metadata read")
    )
    found = Violation(check="ordering", what="", detail="", operation=0, accesses=accesses)
    return Hunted(fault=fault, caught=True, check="ordering", operations=3, violations=(found,))


@pytest.mark.parametrize("edge", EDGES, ids=lambda edge: f"{edge.name} at {edge.made_by}")
def test_edge_is_taken_out(edge: Edge) -> None:
    assert edge.faults
    assert all(FAULTS[fault].edge for fault in edge.faults)


def test_no_fault_takes_out_two_edges() -> None:
    assert len(set(ablated())) == len(ablated())


def test_edge_that_a_fault_ablates_has_a_witness() -> None:
    names = {fault.ablates for fault in FAULTS.values() if fault.ablates.startswith("edge ")}
    assert names == {FAULTS[fault].ablates for fault in ablated()} & names


@pytest.mark.parametrize("fault", QUICK)
def test_witness_is_small(fault: str) -> None:
    found = witness(FAULTS[fault], scenarios())
    assert found is not None
    assert FAULTS[fault].explains(found.violation)
    assert found.length <= QUICK[fault]


@pytest.mark.parametrize("row", TRANSLATION + IN_FLIGHT + STAGING + HOST_TIER + NETWORK + CAPACITY)
def test_report_has_a_fault_or_waits(row: str) -> None:
    planted = any(row in fault.rows for fault in FAULTS.values())
    assert planted != (row in WAITING)
    assert (row in INCIDENTS) == planted


def test_every_known_report_is_listed() -> None:
    listed = [line.split()[0] for line in row_lines()]
    assert sorted(listed) == sorted([*INCIDENTS, *WAITING])
    assert all(len(line.split()) > 1 for line in row_lines())


def test_table_of_edges_shows_what_was_hunted() -> None:
    lines = edge_lines([hunted("launch-without-schedule")])
    shown = "F <- S launch 3 row write, metadata read: launch-without-schedule"
    assert lines[1].split() == shown.split()
    assert len(lines) == 2


def test_trace_without_an_edge_is_shown_to_its_end() -> None:
    found = structs.replace(hunted("barrier-dropped"), trace=("Flush(limit=1)", "Record()"))
    assert trace_lines([found])[:3] == [
        "barrier-dropped:",
        "    0  Flush(limit=1)",
        "    1  Record()",
    ]


def test_table_of_edges_shows_what_nobody_saw() -> None:
    unseen = Hunted(fault="launch-without-schedule", caught=False, check="")
    assert "NOT SEEN" in edge_lines([unseen])[1]
