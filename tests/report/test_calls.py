"""What the allocator was asked and answered, as a report tells it."""

from typing import NamedTuple

import pytest

from harness.device.launches import ModeledEvent
from harness.ops import Abort, Admit, Arrive
from harness.report.calls import ASKED
from harness.report.recording import Recording
from harness.values import ITEMS_MAX, value_text
from tests.report.stories import race, story_of, under_a_copy
from unikv.device.port import Stream
from unikv.errors import Shortage


class Pair(NamedTuple):
    left: list[int]
    right: object


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("r0", "'r0'"),
        ([1, [2, 3]], "[1, [2, 3]]"),
        ((), "[]"),
        (Stream.LOAD, "load"),
        (ModeledEvent(1, 9, 4, ()), "event behind forward #4"),
        (Pair([1], {0: [7]}), "Pair(left=[1], right={0: [7]})"),
        (Shortage("ids", "full", 2, 1), "Shortage: short of ids: 2 ids asked of full, 1 free"),
    ],
)
def test_what_has_no_name_is_told_by_what_it_is(value: object, text: str) -> None:
    assert value_text(value) == text


def test_a_long_list_is_told_by_its_beginning() -> None:
    text = value_text(list(range(ITEMS_MAX + 3)))
    assert text.startswith("[0, 1, ")
    assert text.endswith(f", {ITEMS_MAX - 1}, ... and 3 more]")


def asked(recording: Recording, operation: int) -> list[str]:
    """The calls of one operation."""
    texts = [call.text for call in recording.calls_of(operation)]
    assert all(text.startswith(ASKED) for text in texts)
    return [text.removeprefix(ASKED) for text in texts]


def test_every_call_is_told_with_its_answer_in_its_order() -> None:
    recording = race().recording
    assert asked(recording, 3) == [
        "fits(1, 0): True",
        "take(1, 0): Answer(ids=[2], slots=[])",
        "take_row(): 1",
        "append_row(1, [2])",
    ]
    assert asked(recording, 4) == ["free([1])", "free_row(0)"]


def test_an_event_is_told_by_what_it_is_behind() -> None:
    assert asked(race().recording, 6) == ["record_step(1, event behind forward #2, [[2]])"]


def test_calls_come_before_what_they_have_led_to() -> None:
    deeds = under_a_copy().deeds
    take = next(at for at, deed in enumerate(deeds) if "asked take(" in deed)
    assert "schedule: zero is enqueued" in deeds[take + 1]


def test_a_call_without_a_legal_answer_is_told_too() -> None:
    trace = (Arrive("r0", 2, 0), Admit("r0", 2), Abort("r0"))
    story = story_of("page-freed-twice-in-one-call", trace)
    assert asked(story.recording, 2)[-1] == "free([1, 2, 1]), and the run ends there"
