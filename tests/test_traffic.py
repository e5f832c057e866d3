"""Traffic files: what is read from them, and what a wrong line is told."""

from pathlib import Path

import pytest

import harness.traffic
from harness.errors import InputError
from harness.traffic import BLOCK_TOKENS, Traffic, TrafficRequest, load_traffic

# The public trace is not part of the project, but may lie in a folder beside it.
PUBLIC_TRACES = sorted(Path(__file__).parents[2].glob("*/traces/mooncake-conversation.jsonl"))
GOOD = '{"timestamp": 5, "input_length": 513, "output_length": 3, "hash_ids": [0, 7]}\n'


def written(folder: Path, text: str) -> Path:
    """A trace file with this text."""
    path = folder / "trace.jsonl"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    """What a file with this text is told."""
    with pytest.raises(InputError) as caught:
        load_traffic(written(folder, text))
    return str(caught.value)


def test_a_request_keeps_every_figure(tmp_path: Path) -> None:
    assert load_traffic(written(tmp_path, GOOD)) == Traffic(
        (TrafficRequest(5, 513, 3, (0, 7)),), "trace.jsonl"
    )


def test_a_limit_reads_no_further(tmp_path: Path) -> None:
    assert len(load_traffic(written(tmp_path, GOOD * 2 + "nonsense"), limit=2).requests) == 2


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    assert len(load_traffic(written(tmp_path, f"\n{GOOD}\n\n{GOOD}")).requests) == 2


def test_a_file_without_requests_is_refused(tmp_path: Path) -> None:
    assert "no requests" in refusal(tmp_path, "\n")


def test_a_truncated_line_is_named_by_number(tmp_path: Path) -> None:
    assert ":2: " in refusal(tmp_path, GOOD + GOOD[:30])


def test_bytes_that_are_no_text_are_named_by_number(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(GOOD.encode() + b'{"\xff": 1}')
    with pytest.raises(InputError, match=":2: "):
        load_traffic(path)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"hash_ids"', '"hash_id"', "hash_id"),
        ("513", '"513"', "$.input_length"),
        ("513", "0", "$.input_length"),
        ("513", "5.5", "$.input_length"),
        ("[0, 7]", "[0, -7]", "$.hash_ids"),
        ("5,", "-5,", "$.timestamp"),
        (', "output_length": 3', "", "output_length"),
    ],
)
def test_a_wrong_value_is_named_by_key(tmp_path: Path, old: str, new: str, named: str) -> None:
    assert named in refusal(tmp_path, GOOD.replace(old, new, 1))


def test_blocks_of_another_length_are_refused(tmp_path: Path) -> None:
    told = refusal(tmp_path, GOOD.replace("[0, 7]", "[0, 7, 9]"))
    assert told.endswith(f"3 hash_ids for 513 input tokens; want 2, one per {BLOCK_TOKENS} tokens")


def test_time_does_not_go_back(tmp_path: Path) -> None:
    assert "before 5" in refusal(tmp_path, GOOD + GOOD.replace("5,", "4,", 1))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        load_traffic(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_traffic(tmp_path / "absent.jsonl")


def test_a_large_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.traffic, "FILE_BYTES_MAX", len(GOOD) - 1)
    assert "split the file" in refusal(tmp_path, GOOD)


def test_a_long_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness.traffic, "LINES_MAX", 1)
    assert "at most 1 are read" in refusal(tmp_path, GOOD * 2)


@pytest.mark.skipif(not PUBLIC_TRACES, reason="put a */traces/mooncake-conversation.jsonl beside")
def test_the_published_format_is_read_whole() -> None:
    assert len(load_traffic(PUBLIC_TRACES[0]).requests) == 12_031
