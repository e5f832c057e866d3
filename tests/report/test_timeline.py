"""The timeline that a trace viewer opens."""

from itertools import pairwise
from typing import Any

import msgspec

from harness.report.story import Story
from harness.report.timeline import OPERATIONS_THREAD, timeline
from tests.report.stories import race, ranks_apart, under_a_copy, under_a_peer


def events(story: Story, phase: str) -> list[dict[str, Any]]:
    """Events of one phase."""
    trace = msgspec.json.decode(timeline(story), type=dict[str, Any])
    return [event for event in trace["traceEvents"] if event["ph"] == phase]


def test_every_rank_is_a_process() -> None:
    names = [event for event in events(ranks_apart(), "M") if event["name"] == "process_name"]
    assert [(event["pid"], event["args"]["name"]) for event in names] == [
        (0, "rank 0"),
        (1, "rank 1"),
    ]


def test_every_lane_that_is_used_is_a_thread() -> None:
    names = [event for event in events(under_a_peer(), "M") if event["name"] == "thread_name"]
    assert [event["args"]["name"] for event in names] == ["operations", "schedule", "peer 0"]


def test_every_operation_is_an_instant_on_every_rank() -> None:
    instants = [event for event in events(ranks_apart(), "i") if event["cat"] == "operation"]
    count = len(ranks_apart().case.operations)
    assert [event["pid"] for event in instants] == [0] * count + [1] * count
    assert {event["tid"] for event in instants} == {OPERATIONS_THREAD}
    assert instants[1]["name"] == "1 Admit(request='r0', tokens=2)"


def test_launches_are_slices_that_do_not_overlap_on_a_thread() -> None:
    threads: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for event in events(ranks_apart(), "X"):
        threads.setdefault((event["pid"], event["tid"]), []).append(event)
    assert threads
    for slices in threads.values():
        slices.sort(key=lambda event: event["ts"])
        for one, next_one in pairwise(slices):
            assert one["ts"] + one["dur"] <= next_one["ts"]


def test_a_launch_that_never_started_is_said_to_be_queued() -> None:
    queued = [event["name"] for event in events(race(), "i") if event["cat"] == "queued"]
    assert "queued: body of step 1 [earlier]" in queued
    assert "queued: move [later]" in queued


def test_arrows_begin_and_end_within_slices() -> None:
    slices, arrows = events(under_a_copy(), "X"), []
    for phase in ("s", "f"):
        arrows += events(under_a_copy(), phase)
    assert arrows
    for event in arrows:
        assert any(
            (one["pid"], one["tid"]) == (event["pid"], event["tid"])
            and one["ts"] <= event["ts"] < one["ts"] + one["dur"]
            for one in slices
        )


def test_every_arrow_that_leaves_arrives() -> None:
    story = under_a_copy()
    leave, arrive = events(story, "s"), events(story, "f")
    assert [event["id"] for event in leave] == [event["id"] for event in arrive]


def test_the_failure_is_marked() -> None:
    (mark,) = [event for event in events(race(), "i") if event["cat"] == "failure"]
    assert mark["args"]["signature"] == race().violation.signature
