"""Where a failure is: what a reader is told to follow."""

import dataclasses
from typing import Literal

import msgspec
import pytest

from harness.report.history import deeds, history
from harness.report.place import PAGES_MAX, places
from harness.report.story import Story, tell
from harness.violation import Site, Violation, byte_sites, id_sites, page_sites
from tests.report.stories import (
    no_room,
    race,
    ranks_apart,
    table_race,
    under_a_copy,
    under_a_peer,
    wrong_read,
)


def titles(story: Story) -> list[str]:
    """What the places of a story are called."""
    return [follow.place.title for follow in story.followed]


def found_at(*sites: Site) -> list[str]:
    """Places of a violation of the small race that is about some sites."""
    recording = race().recording
    violation = Violation(check="ledger", what="w", detail="d", operation=8, sites=sites)
    shown = dataclasses.replace(recording, violation=violation, collisions=())
    return [place.title for place in places(shown)]


def test_a_race_in_the_arena_is_at_a_page() -> None:
    assert titles(race()) == ["page 1 of band 'full'"]


def test_a_race_in_a_table_is_at_an_entry() -> None:
    assert titles(table_race()) == ["page map entry 1 of band 'full'"]


def test_a_wrong_read_is_where_it_was_read() -> None:
    assert titles(wrong_read()) == ["request row 0"]


def test_ranks_that_differ_do_so_at_their_pages() -> None:
    assert titles(ranks_apart()) == ["page 1 of band 'full'", "page 2 of band 'full'"]


def test_a_sentence_says_which_page_it_is_about() -> None:
    (title,) = titles(under_a_peer())
    assert title in ("page 1 of band 'full'", "page 2 of band 'full'")


def test_a_count_of_pages_is_no_place() -> None:
    assert titles(no_room()) == []


def test_a_site_is_followed_to_its_pages() -> None:
    both = ["page 1 of band 'full'", "page 2 of band 'full'"]
    assert found_at(*page_sites(0, [2, 1])) == both
    assert found_at(Site("page", 0, 1, 2)) == both
    assert found_at(*byte_sites([(16, 24)])) == ["page 2 of band 'full'"]


def test_an_id_is_followed_to_the_page_that_it_named_last() -> None:
    assert found_at(*id_sites(0, [2])) == ["page 2 of band 'full'"]


def test_an_id_that_never_named_a_page_has_nothing_but_its_entry() -> None:
    assert found_at(*id_sites(0, [9])) == ["page map entry 9 of band 'full'"]


def test_an_entry_and_a_row_are_places() -> None:
    assert found_at(Site("entry", 0, 2)) == ["page map entry 2 of band 'full'"]
    assert found_at(Site("row", -1, 1)) == ["request row 1"]


def test_a_page_outside_the_arena_is_no_place() -> None:
    assert found_at(*page_sites(0, [99])) == []


@pytest.mark.parametrize("kind", ["page", "id", "entry"])
@pytest.mark.parametrize("band", [-1, 9])
def test_a_band_that_there_is_not_has_no_places(
    kind: Literal["page", "id", "entry"], band: int
) -> None:
    assert found_at(Site(kind, band, 1)) == []


def test_no_more_places_are_followed_than_a_reader_can() -> None:
    assert len(found_at(*(Site("row", -1, row) for row in range(9)))) == PAGES_MAX


def test_a_history_holds_every_touch_and_nothing_else() -> None:
    (follow,) = race().followed
    assert [(entry.operation, entry.facts) for entry in follow.entries] == [
        (
            3,
            (
                "written by zero (schedule #4): has not started",
                "id 2 of full names page 1",
                "full page 1: unclaimed -> live",
            ),
        ),
        (5, ("read and written by body of step 1 (forward #2): has not started",)),
        (6, ("the allocator's ledger has a use of it: forward_write of step 1",)),
        (
            8,
            (
                "read by move (schedule #8): has not started",
                "moved: page 1 is copied to page 2",
                "id 2 of full names page 2 instead of page 1",
                "full page 1: live -> pending; by truth step 1 may still touch it",
                "the allocator's ledger has a use of it: vacated of step 1",
            ),
        ),
    ]


def test_a_history_names_the_ranks_where_they_differ() -> None:
    facts = [fact for follow in ranks_apart().followed for fact in follow.entries[-1].facts]
    assert "full page 1 on rank 1: pending -> live" in facts


def test_deeds_are_told_in_the_order_of_the_model() -> None:
    assert deeds(race().recording, 8) == [
        (
            "schedule waits for forward #1",
            "the allocator is asked flush(1): 1",
            "schedule: move is enqueued, reads full page 1; writes full page 2",
            "schedule: map is enqueued, writes map of 'full' 2",
            "id 2 of full names page 2 instead of page 1",
            "full page 1: live -> pending; by truth step 1 may still touch it",
            "full page 2: hole -> live",
        )
    ]


def test_what_ran_is_told_where_it_ran() -> None:
    told = deeds(under_a_copy().recording, 0)
    assert "backup: backup starts" in told[5]
    assert told[0] == ("r0 is queued",)
    assert not any(deed.startswith("host: fill of step 1 starts") for deed in told[3])


def test_another_page_has_another_history() -> None:
    recording = race().recording
    (follow,) = race().followed
    place = follow.place
    other = type(place)("page 2", place.space, frozenset((2,)), 0, 2)
    assert [entry.operation for entry in history(recording, other)] == [2, 4, 8]


def test_a_story_that_is_no_longer_true_is_not_told() -> None:
    assert tell(msgspec.structs.replace(race().case, plant=None), "again") is None
