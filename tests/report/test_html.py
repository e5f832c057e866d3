"""The page: whole, escaped, without a network, and right about what it draws."""

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from harness.report.arena import arena_picture
from harness.report.columns import columns_of, places_of
from harness.report.html import report_html
from harness.report.lanes import BOX_HEIGHT, LANE_HEIGHT, lanes_picture
from harness.report.story import Story
from tests.report.stories import (
    hostile,
    no_room,
    race,
    ranks_apart,
    table_race,
    under_a_copy,
    under_a_peer,
    wrong_read,
)

STORIES = [race, table_race, wrong_read, ranks_apart, under_a_copy, under_a_peer, no_room]
VOID = {"meta", "br", "img", "hr", "input", "link"}
HOSTILE = """</script></title><script>alert(1)</script>"' onload=alert(2) <svg onload=alert(3)>"""


class Reader(HTMLParser):
    """What a browser finds: open elements, scripts, attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """An element ends: the one that began last."""
        assert self.open.pop() == tag


def read(page: str) -> Reader:
    """A page as it is parsed."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


@pytest.mark.parametrize("told", STORIES)
def test_every_page_is_whole(told: Callable[[], Story]) -> None:
    reader = read(report_html(told()))
    assert reader.open == []
    assert reader.seen.count("script") == 2


@pytest.mark.parametrize("told", STORIES)
def test_no_page_asks_a_network(told: Callable[[], Story]) -> None:
    reader = read(report_html(told()))
    assert not {"src", "href", "xlink:href", "action", "background"} & {
        name for name, _ in reader.attributes
    }
    assert "//" not in re.sub(r"//.*?\n", "", report_html(told()).split("<body>")[0])


def test_names_of_strangers_stay_text() -> None:
    plain, spoiled = read(report_html(race())), read(report_html(hostile(race(), HOSTILE)))
    assert spoiled.seen == plain.seen
    assert {name for name, _ in spoiled.attributes} == {name for name, _ in plain.attributes}
    assert "onload" not in {name for name, _ in spoiled.attributes}


def test_a_page_says_cause_edge_and_command() -> None:
    page = report_html(race())
    for text in (
        "page 1 of band &#39;full&#39; (id 2) is read by a move",
        "schedule \N{LEFTWARDS ARROW} forward: nothing makes the move read wait",
        "python -m harness replay found/min.json",
    ):
        assert text in page


def test_the_ranks_are_drawn_apart_only_where_they_differ() -> None:
    assert report_html(race()).count('aria-label="arena of rank') == 1
    assert report_html(ranks_apart()).count('aria-label="arena of rank') == 2


def test_columns_lie_side_by_side() -> None:
    columns = columns_of(race().recording)
    ends = [left + width for left, width in zip(columns.lefts, columns.widths, strict=True)]
    assert [0, *ends[:-1]] == list(columns.lefts)
    assert ends[-1] == columns.total


def test_later_launches_stand_further_right() -> None:
    recording = race().recording
    places = places_of(recording, columns_of(recording))
    stands = {launch.submitted: places.launches[launch.number] for launch in recording.launches}
    stands |= places.waits
    order = [stands[tick] for tick in sorted(stands)]
    assert order == sorted(set(order))
    assert places.waits


def test_a_long_trace_shows_its_last_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.report.columns.OPERATIONS_MAX", 3)
    recording = race().recording
    columns = columns_of(recording)
    assert (columns.first, len(columns.lefts)) == (6, 3)
    assert columns.at_tick(recording, 0) == 0
    assert set(places_of(recording, columns).launches) == {10, 11}
    page = report_html(race())
    assert "the first 6 are left out" in page
    assert read(page).open == []


def test_a_cell_lasts_as_long_as_its_page_stays_the_same() -> None:
    columns = columns_of(race().recording)
    picture = arena_picture(race(), 0, columns)
    assert [cell.title for cell in picture.cells] == [
        "full page 1, id 2: live, after op 3 to 7",
        "full page 1: pending, after op 8",
        "full page 2, id 1: live, after op 2 to 3",
        "full page 2: hole, after op 4 to 7",
        "full page 2, id 2: live, after op 8",
    ]
    first = picture.cells[0]
    assert (first.x, first.x + first.width) == (columns.left_of(3), columns.left_of(8))
    assert first.y == picture.sink_height == picture.height // 3


def test_each_rank_is_drawn_by_its_own_account() -> None:
    columns = columns_of(ranks_apart().recording)
    last = [
        {
            cell.title
            for cell in arena_picture(ranks_apart(), rank, columns).cells
            if cell.title.endswith("after op 5")
        }
        for rank in (0, 1)
    ]
    assert last == [
        {"full page 2, id 2: live, after op 5"},
        {"full page 1, id 2: live, after op 5", "full page 2: hole, after op 5"},
    ]


def test_the_pages_of_the_failure_are_framed() -> None:
    picture = arena_picture(race(), 0, columns_of(race().recording))
    (row,) = picture.rows
    assert (row.y, row.y + row.height) == (picture.height // 3, 2 * picture.height // 3)


def test_the_missing_edge_leads_from_the_earlier_to_the_later_access() -> None:
    columns = columns_of(race().recording)
    picture = lanes_picture(race(), columns)
    (missing,) = picture.missing
    boxes = {box.kind.split()[1]: box for box in picture.boxes if " " in box.kind}
    earlier, later = boxes["earlier"], boxes["later"]
    assert earlier.x < missing.x1 < earlier.x + earlier.width
    assert missing.y1 == earlier.y
    assert later.x < missing.x2 < later.x + later.width
    assert missing.y2 == later.y + BOX_HEIGHT


@pytest.mark.parametrize("told", STORIES)
def test_no_arrow_crosses_a_launch(told: Callable[[], Story]) -> None:
    picture = lanes_picture(told(), columns_of(told().recording))
    for arrow in (*picture.waits, *picture.missing):
        low, high = sorted((arrow.between, arrow.y2))
        for box in picture.boxes:
            bottom = box.y + BOX_HEIGHT
            assert not box.y < arrow.between < bottom, "it runs between the lanes"
            is_met = box.x <= arrow.x2 <= box.x + box.width and low < bottom and box.y < high
            assert not is_met, "it comes down beside every launch"


def test_a_wait_stands_on_the_lane_that_waits_behind_what_it_waits_for() -> None:
    picture = lanes_picture(race(), columns_of(race().recording))
    lanes = {name.text: name.y for name in picture.names}
    titles = {arrow.title: arrow for arrow in picture.waits}
    assert list(titles) == [
        "op 5: forward waits for schedule #7",
        "op 8: schedule waits for forward #1",
    ]
    for arrow, lane in zip(picture.waits, ("forward", "schedule"), strict=True):
        assert abs(arrow.y2 + 4 - lanes[lane]) < LANE_HEIGHT / 2
        assert arrow.x1 < arrow.x2


def test_waits_of_the_host_are_drawn() -> None:
    picture = lanes_picture(under_a_peer(), columns_of(under_a_peer().recording))
    assert any(": host waits for schedule" in arrow.title for arrow in picture.waits)


def test_every_rank_has_its_own_lanes() -> None:
    picture = lanes_picture(ranks_apart(), columns_of(ranks_apart().recording))
    names = [name.text for name in picture.names]
    assert names == [
        "rank 0",
        "schedule",
        "forward",
        "host",
        "rank 1",
        "schedule",
        "forward",
        "host",
    ]


def test_a_failure_that_is_no_race_has_no_missing_edge() -> None:
    assert lanes_picture(no_room(), columns_of(no_room().recording)).missing == ()
    assert "missing edge" not in report_html(no_room())
