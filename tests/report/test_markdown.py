"""The report that a person opens first."""

import re
from collections.abc import Callable

import pytest

from harness.ops import Complete
from harness.report import markdown
from harness.report.markdown import escaped, operation_lines, report_markdown, table
from harness.report.story import Story
from tests.report.stories import (
    COMMAND,
    RACE,
    crossing,
    hostile,
    no_room,
    race,
    ranks_apart,
    story_of,
    table_race,
    under_a_peer,
    wrong_read,
)

STORIES = [race, table_race, wrong_read, ranks_apart, under_a_peer, no_room]


def sections(text: str) -> list[str]:
    """Titles in order."""
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def test_a_race_is_told_from_its_cause_to_its_surroundings() -> None:
    text = report_markdown(race())
    assert text.startswith(
        "# ordering: arena race\n\n**Cause.** page 1 of band 'full' (id 2) is read"
    )
    assert sections(text) == [
        "The two accesses",
        "The 9 operations",
        "What operation 5 did",
        "What operation 7 did",
        "What operation 8 did",
        "History of page 1 of band 'full'",
        "The steps",
        "The requests before operation 8",
        "The arena when it was seen",
        "Beside this file",
    ]


def test_a_race_shows_why_nothing_orders_it() -> None:
    assert (
        "Why nothing orders them: of the forward stream the move is ordered behind launch #1 and"
        " whatever came before it, and the body of step 1 is launch #2."
    ) in report_markdown(race())


@pytest.mark.parametrize("told", STORIES)
def test_every_report_says_the_cause_and_how_to_see_it_again(told: Callable[[], Story]) -> None:
    text = report_markdown(told())
    assert escaped(told().violation.what) in text
    where = "**See it again**, from the folder in which the program was started:"
    assert f"\n{where}\n\n```text\n{COMMAND}\n```" in text


def test_ranks_that_part_are_told_by_what_they_did_first() -> None:
    assert ranks_apart().violation.what == (
        "submission 1 of rank 1 is zero: stream schedule, band full, pages [1]; of rank 0 it is"
        " zero: stream schedule, band full, pages [2]"
    )


def test_both_accesses_stand_side_by_side() -> None:
    lines = report_markdown(race()).splitlines()
    assert "|  | earlier | later |" in lines
    assert "| what | body write | move read |" in lines
    assert (
        "| in its stream | launch #2 of the forward stream | launch #8 of the schedule stream |"
        in lines
    )


def test_ranks_stand_side_by_side_where_they_differ() -> None:
    lines = report_markdown(ranks_apart()).splitlines()
    assert "|  | rank 0 | rank 1 |" in lines
    assert "| page 1 of band 'full' | unclaimed | live |" in lines
    assert "| page 2 of band 'full' | live | hole |" in lines
    assert any("zero: stream schedule, band full, pages [2]" in line for line in lines)


def test_ranks_that_agree_are_not_compared() -> None:
    assert "Where the ranks differ" not in report_markdown(race())


def test_a_refusal_shows_what_there_was_room_for() -> None:
    assert "| full | 8 | 1..3 | 0 | 0 | 2 | 0 | 0 |" in report_markdown(no_room()).splitlines()


def test_an_operation_that_did_nothing_is_said_to() -> None:
    assert (
        operation_lines(no_room())[-1]
        == "!     5  Relieve(pages=1, slots=0)   (refused: relieve(1, 0): False)"
    )


def test_the_operations_of_both_accesses_are_marked() -> None:
    marked = [line.split()[1] for line in operation_lines(race()) if line.startswith(">")]
    assert marked == ["5", "8"]


def test_a_cell_with_several_lines_stays_one_cell() -> None:
    assert table(("a",), [("one\ntwo | <b>",)])[-1] == "| one<br>two \\| &lt;b> |"


HOSTILE = "</script><img src=x onerror=alert(1)>\n```\n# title | `code` **bold** [a](b)"


def outside_of_code(text: str) -> list[str]:
    """Lines that are no code."""
    lines, is_code = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code:
            lines.append(line)
    assert not is_code
    return lines


def test_names_of_strangers_are_no_markup() -> None:
    text = "\n".join(outside_of_code(report_markdown(hostile(race(), HOSTILE))))
    assert sections(text) == sections(report_markdown(race()))
    marks = ("<img", "</script", "*bold", "`code", "[a]")
    assert not any(re.search(rf"(?<!\\){re.escape(mark)}", text) for mark in marks)


@pytest.mark.parametrize(
    "text",
    [
        "schedule <- forward",
        "page 1 -> page 2",
        "host_tier",
        "pages [1, 2]",
        "'r1' & \"r2\"",
        "1 < 2",
    ],
)
def test_what_is_no_markup_is_read_as_it_is_written(text: str) -> None:
    assert escaped(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("<b>", "&lt;b>"),
        ("<!-- x", "&lt;!-- x"),
        ("&lt;", "&amp;lt;"),
        ("_x_", "\\_x\\_"),
        ("a.__init__()", "a.\\_\\_init\\_\\_()"),
        ("[a](b)", "\\[a](b)"),
        ("[a][b]", "\\[a][b]"),
        ("![a](b)", "!\\[a](b)"),
        ("a|b", "a\\|b"),
    ],
)
def test_what_would_be_markup_is_not(text: str, safe: str) -> None:
    assert escaped(text) == safe


def test_a_step_is_told_from_its_launch_to_its_end() -> None:
    assert "| 1 | r1 | 5 | 6 |  |  |" in report_markdown(race()).splitlines()


def test_the_schedule_is_told_where_it_departs_from_the_default() -> None:
    assert race().timing.endswith("; no operation here lets any end sooner")
    early = (*RACE[:7], Complete(rank=0, stream=0, count=1), *RACE[7:])
    story = story_of("move-over-writer", early)
    assert story.timing.endswith("; only operation 7 lets some end sooner")


def test_bytes_that_nobody_claims_are_counted() -> None:
    assert race().unclaimed_bytes == 0
    assert "the first 8 are the sink and 0 are claimed by no band" in report_markdown(race())


def test_bytes_that_two_bands_claim_are_counted_once() -> None:
    # State pages are bytes 32..56, and the float, below their end, is 48..64.
    state, window, full = crossing().bands
    assert (state.span, window.span, full.span) == ((4, 7), (3, 4), (5, 6))
    assert (state.gap_bytes, window.gap_bytes, full.gap_bytes) == (0, 96, 0)
    assert crossing().unclaimed_bytes == 96


def test_both_owners_of_the_bytes_are_followed() -> None:
    titles = [follow.place.title for follow in crossing().followed]
    assert titles == ["page 6 of band 'state'", "page 3 of band 'window128'"]


def test_what_was_not_touched_in_the_end_is_said_to_be() -> None:
    text = report_markdown(crossing())
    ledger = "in the end the ledger has no use of it"
    row = f"| ! | 4 | CachePrefix(request='r0') | nothing<br>{ledger} |"
    assert row in text[text.index("page 3 of band 'window128'") :].splitlines()


def test_the_operation_that_failed_is_told_whole() -> None:
    lines = report_markdown(crossing()).splitlines()
    at = lines.index("## What operation 4 did")
    assert lines[at + 2 : at + 7] == [
        "- the allocator is asked fits(0, 1): True",
        "- the allocator is asked take(0, 1): Answer(ids=[], slots=[3])",
        "- schedule: map is enqueued, writes map of 'state' 3",
        "- id 3 of state names page 6",
        "- state page 6: unclaimed -> live",
    ]


def test_a_long_operation_is_told_by_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(markdown, "DEEDS_MAX", 2)
    lines = report_markdown(crossing()).splitlines()
    at = lines.index("## What operation 4 did")
    assert lines[at + 4 : at + 6] == ["- ... and 4 more", ""]


def test_what_should_have_held_is_said_where_no_edge_says_it() -> None:
    told = "What that means here: no byte is part of the pages of two ids."
    assert told in report_markdown(crossing()).splitlines()
    assert "What that means here" not in report_markdown(race())


def test_bytes_are_held_in_the_arena_alone() -> None:
    assert "| the bytes were | live | live |" in report_markdown(race()).splitlines()
    assert "the bytes were" not in report_markdown(table_race())
