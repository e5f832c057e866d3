"""The timeline that a trace viewer opens."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from harness.report.story import Story, tell
from harness.report.timeline import ACCESSES_THREAD, OPERATIONS_THREAD, timeline
from tests.report.stories import (
    COMMAND,
    no_room,
    race,
    ranks_apart,
    under_a_copy,
    under_a_peer,
    wrong_read,
)
from tests.report.trace_format import Event, broken_rules


def every_event(story: Story) -> list[Event]:
    """All events, in the order of the file."""
    trace = msgspec.json.decode(timeline(story), type=dict[str, Any])
    found: list[Event] = trace["traceEvents"]
    return found


def events(story: Story, phase: str) -> list[Event]:
    """Events of one phase."""
    return [event for event in every_event(story) if event["ph"] == phase]


def test_every_rank_is_a_process() -> None:
    names = [event for event in events(ranks_apart(), "M") if event["name"] == "process_name"]
    assert [(event["pid"], event["args"]["name"]) for event in names] == [
        (1, "rank 0"),
        (2, "rank 1"),
    ]


def test_every_lane_that_is_used_is_a_thread() -> None:
    names = [event for event in events(under_a_peer(), "M") if event["name"] == "thread_name"]
    titles = [event["args"]["name"] for event in names if event["tid"] != ACCESSES_THREAD]
    assert titles == ["operations", "schedule", "peer 0"]


def test_accesses_that_never_started_are_slices_with_the_missing_edge_between_them() -> None:
    mine = [event for event in every_event(race()) if event["tid"] == ACCESSES_THREAD]
    earlier, later = (event for event in mine if event["ph"] == "X")
    assert earlier["name"] == "earlier: body write, launch #2 of the forward stream"
    assert later["name"] == "later: move read, launch #8 of the schedule stream"
    leave, arrive = (event for event in mine if event["name"] == "missing edge")
    assert (leave["ts"], arrive["ts"]) == (earlier["ts"], later["ts"])


def test_a_read_that_went_wrong_has_no_missing_edge() -> None:
    mine = [event for event in every_event(wrong_read()) if event["tid"] == ACCESSES_THREAD]
    assert [event["ph"] for event in mine] == ["M", "X"]


def test_every_operation_is_an_instant_on_every_rank() -> None:
    instants = [event for event in events(ranks_apart(), "i") if event["cat"] == "operation"]
    count = len(ranks_apart().case.operations)
    assert [event["pid"] for event in instants] == [1] * count + [2] * count
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
    instants = [event for event in events(race(), "i") if event["cat"] == "queued"]
    queued = [event["name"] for event in instants]
    assert {event["tid"] for event in instants} == {OPERATIONS_THREAD}
    assert "queued on forward: body of step 1 [earlier]" in queued
    assert "queued on schedule: move [later]" in queued


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


@pytest.mark.parametrize("told", [race, ranks_apart, under_a_copy, under_a_peer, no_room])
def test_every_event_is_one_that_a_viewer_keeps(told: Callable[[], Story]) -> None:
    assert broken_rules(every_event(told())) == []


@pytest.mark.parametrize(
    ("phase", "change", "rule"),
    [
        ("s", {"id": "0.1"}, "id is no whole number"),
        ("s", {"id": 77}, "arrows that do not pair"),
        ("s", {"ts": 10**6}, "arrives before it leaves"),
        ("f", {"bp": "n"}, "an arrow ends at the next slice"),
        ("f", {"tid": 1}, "is tied to no slice"),
        ("X", {"dur": None}, "dur is no whole number"),
        ("X", {"pid": 0}, "pid 0 is kept"),
        ("X", {"tid": 99}, "has no name"),
        ("i", {"s": "x"}, "scope of an instant"),
        ("i", {"cat": ""}, "cat is no text"),
        ("M", {"args": {"name": ""}}, "metadata without a name"),
        ("M", {"ph": "Z"}, "phase that is not read"),
    ],
)
def test_an_event_that_a_viewer_drops_is_seen(phase: str, change: Event, rule: str) -> None:
    trace = every_event(under_a_copy())
    next(event for event in trace if event["ph"] == phase).update(change)
    assert any(rule in text for text in broken_rules(trace))


def test_an_arrow_is_tied_to_what_began_last_even_if_it_has_ended() -> None:
    trace = every_event(under_a_copy())
    leaves = next(event for event in trace if event["ph"] == "s")
    instant = {"ph": "i", "s": "t", "name": "one", "cat": "one", "ts": leaves["ts"]}
    trace.append(instant | {"pid": leaves["pid"], "tid": leaves["tid"]})
    assert any("is tied to no slice" in text for text in broken_rules(trace))


def test_no_two_ranks_share_an_arrow() -> None:
    case = under_a_copy().case
    setup = msgspec.structs.replace(case.setup, ranks=2)
    story = tell(msgspec.structs.replace(case, setup=setup), COMMAND)
    assert story is not None
    trace = every_event(story)
    assert {event["pid"] for event in trace if event["ph"] == "s"} == {1, 2}
    assert broken_rules(trace) == []


def test_slices_that_cross_on_a_thread_are_seen() -> None:
    trace = every_event(under_a_copy())
    first = next(event for event in trace if event["ph"] == "X")
    trace.append(first | {"ts": first["ts"] + 100_000, "dur": 5})
    assert broken_rules(trace) == []
    trace.append(first | {"ts": first["ts"] + 100_003, "dur": 5})
    assert any("slices cross" in text for text in broken_rules(trace))
