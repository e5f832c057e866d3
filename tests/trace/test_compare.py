"""Two builds on one trace: none differs from itself, and another policy is found at once."""

from pathlib import Path

import pytest

from tests.trace.high_holes import build_high
from tests.trace.stories import STORED, STORIES
from unikv.device.port import StorageLayout
from unikv.storage import KVStorage
from unikv.trace.calls import Outcome
from unikv.trace.compare import DRAWN_PAGES, Book, compare, state_of
from unikv.trace.record import record
from unikv.trace.still_device import StillDevice, build_still

SLOTS = STORED / "state_slots_exhausted.jsonl"
FLOAT = STORED / "float_relocated.jsonl"


@pytest.mark.parametrize("name", STORIES)
def test_a_build_does_not_differ_from_itself(name: str) -> None:
    assert compare(STORED / name, build_still, build_still) is None


@pytest.mark.parametrize("name", STORIES)
def test_two_builds_may_agree_on_what_the_trace_does_not_say(name: str) -> None:
    assert compare(STORED / name, build_high, build_high) is None


def test_the_first_divergence_is_the_first_place_of_a_page() -> None:
    found = compare(FLOAT, build_still, build_high)
    assert found is not None
    assert (found.number, str(found.call)) == (9, "chain.translate(1, [2, 3])")
    assert found.recorded == found.first == Outcome([7, 8])
    assert found.second == Outcome([7, 6])


def test_the_states_before_it_show_why() -> None:
    found = compare(FLOAT, build_still, build_high)
    assert found is not None
    one, other = found.first_before, found.second_before
    assert [book.letters for book in one.books] == [
        "LhLL........",
        "......LL....",
        ".........LLL",
    ]
    assert one.books[1].bound == ((2, 7), (3, 8))
    assert other.books[1].bound == ((2, 7), (3, 6))
    assert one.statistics.totals["taken_pages"] == other.statistics.totals["taken_pages"] == 10


def test_a_divergence_prints_both_answers_with_the_states() -> None:
    found = compare(FLOAT, build_still, build_high)
    text = str(found).splitlines()
    assert text[:3] == [
        "call 9, chain.translate(1, [2, 3])",
        "  the trace answers [7, 8]",
        "  the first build answers [7, 8], the second answers [7, 6]",
    ]
    assert text[3].startswith("  the first before it: taken_pages 10, freed_pages 2, ")
    assert text[4] == "    state from page 1: LhLL........"
    assert text[7].startswith("  the second before it: ")
    assert len(text) == 11


def test_a_refusal_in_place_of_an_answer_diverges() -> None:
    def build_small(layout: StorageLayout) -> KVStorage:
        return KVStorage(layout._replace(total_bytes=layout.total_bytes - 40), StillDevice())

    found = compare(SLOTS, build_still, build_small)
    assert found is not None
    assert found.call.kind.name == "chain.take"
    assert found.second == Outcome(None, "Shortage:bytes")
    assert found.second_before.statistics.bands[0].live == 2


def test_where_answers_agree_the_rest_may_differ(tmp_path: Path) -> None:
    path = tmp_path / "no_places.jsonl"
    with record(build_still(STORIES["float_relocated.jsonl"].layout), path) as recorder:
        ids = recorder.chain.take(4, 0).ids
        recorder.chain.free(ids[1:2])
        recorder.chain.take(2, 0)
    assert compare(path, build_still, build_high) is None


def test_a_state_does_not_change_with_its_storage() -> None:
    storage = build_still(STORIES["float_relocated.jsonl"].layout)
    before = state_of(storage)
    text = str(before)
    storage.chain.take(1, 1)
    assert str(before) == text
    assert state_of(storage) != before


def test_a_long_book_is_printed_in_part() -> None:
    book = Book("full", 1, "L" * (DRAWN_PAGES + 7), ())
    assert str(book).endswith("LL and 7 pages more")
