"""Recorded requests through the harness: each comes once and ends, and trouble is reported."""

from pathlib import Path

import pytest

import benchmarks.traffic
from benchmarks.traffic import Service, Stretch, main, stretches
from harness.case import load_case
from harness.errors import InputError
from harness.ops import Arrive
from harness.runner import run_trace
from harness.sweep.loading import load_named
from harness.sweep.verdict import Exit
from harness.traffic import load_traffic

SMOKE = Path(__file__).parents[2] / "scenarios" / "smoke.yaml"
REQUESTS = 12


def recording(folder: Path) -> Path:
    """Requests of two, three and four blocks; all begin alike, and two in a row share one more."""
    lines = [
        f'{{"timestamp": {number}, "input_length": {600 + 700 * (number % 3)},'
        f' "output_length": {100 + number},'
        f' "hash_ids": {[0, number // 2 + 1, number + 20, number + 40][: 2 + number % 3]}}}'
        for number in range(REQUESTS)
    ]
    path = folder / "recording.jsonl"
    path.write_text("\n".join(lines))
    return path


def pieces(folder: Path, length: int) -> list[Stretch]:
    """The recording cut for the smallest scenario."""
    return stretches(load_named([str(SMOKE)])[0], load_traffic(recording(folder)), length, 1, None)


def arguments(folder: Path, *more: str) -> list[str]:
    """A run of the recording on the smallest scenario."""
    files = ["--traffic", str(recording(folder)), "--scenario", str(SMOKE)]
    return [*files, "--artifacts", str(folder / "found"), *more]


def test_stretches_are_the_recording_in_order(tmp_path: Path) -> None:
    cut = pieces(tmp_path, 5)
    assert [len(stretch.traffic.requests) for stretch in cut] == [5, 5, 2]
    assert [stretch.seed for stretch in cut] == [1, 2, 3]
    together = [request for stretch in cut for request in stretch.traffic.requests]
    assert together == list(load_traffic(recording(tmp_path)).requests)


@pytest.mark.parametrize("length", [3, REQUESTS])
def test_every_request_of_a_stretch_comes_once(tmp_path: Path, length: int) -> None:
    for stretch in pieces(tmp_path, length):
        service = Service(stretch)
        service.serve()
        blocks = [operation.blocks for operation in service.run.trace if type(operation) is Arrive]
        recorded = [request.hash_ids for request in stretch.traffic.requests]
        assert len(blocks) == len(recorded) == length
        # From anywhere on, then from the beginning; a prompt may be shorter than recorded.
        assert any(
            all(
                real[: len(came)] == came
                for came, real in zip(blocks, recorded[at:] + recorded[:at], strict=True)
            )
            for at in range(length)
        )


def test_every_request_ends(tmp_path: Path) -> None:
    service = Service(pieces(tmp_path, REQUESTS)[0])
    service.serve()
    assert not service.run.world.requests
    assert not service.run.world.prefixes
    assert not service.run.violations


def test_a_request_that_cannot_end_gives_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.traffic, "PATIENCE", 2)
    service = Service(pieces(tmp_path, REQUESTS)[0])
    service.serve()
    assert service.gave_up
    assert not service.run.world.requests


def test_a_row_counts_the_requests_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, "--requests", "7", "--stretch", "3")) is Exit.CLEAN
    said = capsys.readouterr().out
    assert "| smoke | 7 | 3 |" in said
    assert "cut into runs of 3 requests each" in said
    assert not (tmp_path / "found").exists()


@pytest.mark.slow
def test_several_processes_say_what_one_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for jobs in ("1", "2"):
        assert main(arguments(tmp_path, "--stretch", "4", "--jobs", jobs)) is Exit.CLEAN
        row = next(line for line in capsys.readouterr().out.splitlines() if "smoke" in line)
        cells = row.split(" | ")
        # Seconds and pace are the machine's.
        rows.append(cells[:7] + cells[9:])
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_a_planted_fault_is_reported_with_a_case_that_fails_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, "--plant", "freed-page-offered")) is Exit.VIOLATION
    said = capsys.readouterr().out
    assert "planted fault freed-page-offered" in said
    stored = next(tmp_path.glob("found/*/*/min.json"))
    assert f"replay {stored}" in said
    case = load_case(stored)
    assert run_trace(case.setup, case.operations, plant=case.plant).violations


@pytest.mark.parametrize("option", ["--stretch=0", "--jobs=0", "--seed=-1"])
def test_a_number_out_of_range_is_refused(tmp_path: Path, option: str) -> None:
    with pytest.raises(InputError, match=f"^{option.split('=')[0]}: "):
        main(arguments(tmp_path, option))


@pytest.mark.parametrize("count", ["0", "-1", "1.5", "many", ""])
def test_a_wrong_number_of_requests_is_refused(tmp_path: Path, count: str) -> None:
    with pytest.raises(InputError, match="want a number of 1 or more, or all"):
        main(arguments(tmp_path, f"--requests={count}"))
