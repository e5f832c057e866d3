"""The ledger: which uses there are, and when each is over."""

from unikv.alloc.page_usage import PageLedger, PageUse, Use

WRITE, VACATED = Use.FORWARD_WRITE, Use.VACATED


def ledger_of(*uses: tuple[Use, int, list[int], int]) -> PageLedger:
    """A ledger with these `(use, band, pages, step)`."""
    ledger = PageLedger()
    for use in uses:
        ledger.add(*use)
    return ledger


def test_uses_are_kept_in_the_order_they_began() -> None:
    ledger = ledger_of((WRITE, 0, [3, 4], 1), (VACATED, 1, [9], 1))
    assert ledger.uses() == (
        PageUse(WRITE, 0, frozenset({3, 4}), 1),
        PageUse(VACATED, 1, frozenset({9}), 1),
    )


def test_a_use_of_no_page_is_none() -> None:
    assert ledger_of((WRITE, 0, [], 1)).uses() == ()


def test_the_newest_writer_of_any_of_the_pages_counts() -> None:
    ledger = ledger_of((WRITE, 0, [3], 1), (WRITE, 0, [4], 2), (WRITE, 0, [5], 3))
    assert ledger.newest_writer(0, [3, 4]) == 2


def test_a_page_that_nobody_writes_has_no_writer() -> None:
    assert ledger_of((WRITE, 0, [3], 1)).newest_writer(0, [4]) == 0


def test_a_page_of_another_band_is_another_page() -> None:
    assert ledger_of((WRITE, 0, [3], 1)).newest_writer(1, [3]) == 0


def test_a_vacated_page_has_no_writer() -> None:
    assert ledger_of((VACATED, 0, [3], 1)).newest_writer(0, [3]) == 0


def test_writes_end_with_the_steps_that_retire() -> None:
    ledger = ledger_of((WRITE, 0, [3], 1), (WRITE, 0, [3], 2))
    ledger.end_writes(1)
    assert [use.step for use in ledger.uses()] == [2]


def test_the_end_of_writes_leaves_vacated_pages() -> None:
    ledger = ledger_of((VACATED, 0, [3], 1))
    ledger.end_writes(1)
    assert [use.use for use in ledger.uses()] == [VACATED]


def test_vacated_pages_return_when_their_step_retires() -> None:
    ledger = ledger_of((VACATED, 0, [9, 3], 1), (VACATED, 0, [5], 2), (VACATED, 0, [7], 3))
    assert ledger.take_ready_vacated(0, 2) == [3, 5, 9]
    assert [use.step for use in ledger.uses()] == [3]


def test_vacated_pages_return_once() -> None:
    ledger = ledger_of((VACATED, 0, [9], 1))
    ledger.take_ready_vacated(0, 1)
    assert ledger.take_ready_vacated(0, 1) == []


def test_another_band_keeps_its_vacated_pages() -> None:
    ledger = ledger_of((VACATED, 1, [9], 1))
    assert ledger.take_ready_vacated(0, 1) == []
    assert len(ledger.uses()) == 1


def test_vacated_pages_return_without_the_writes_of_their_step() -> None:
    ledger = ledger_of((WRITE, 0, [9], 1), (VACATED, 0, [9], 1))
    assert ledger.take_ready_vacated(0, 1) == [9]
    assert [use.use for use in ledger.uses()] == [WRITE]


def test_the_newest_vacated_step_is_that_of_the_band() -> None:
    ledger = ledger_of((VACATED, 0, [9], 2), (VACATED, 0, [8], 1), (VACATED, 1, [7], 5))
    assert ledger.newest_vacated(0) == 2
    assert ledger.newest_vacated(2) == 0


def test_a_write_is_no_vacated_page() -> None:
    assert ledger_of((WRITE, 0, [9], 2)).newest_vacated(0) == 0


def test_a_step_may_write_any_page_of_a_band() -> None:
    ledger = PageLedger()
    ledger.add_unknown_write(0, 2)
    assert ledger.uses() == (PageUse(Use.UNKNOWN_WRITE, 0, frozenset(), 2),)
    assert ledger.has_unknown_write(0)
    assert not ledger.has_unknown_write(1)


def test_an_unknown_write_ends_with_its_step() -> None:
    ledger = PageLedger()
    ledger.add_unknown_write(0, 1)
    ledger.add_unknown_write(0, 2)
    ledger.end_writes(1)
    assert ledger.has_unknown_write(0)
    ledger.end_writes(2)
    assert not ledger.has_unknown_write(0)


def test_a_known_write_is_no_unknown_one() -> None:
    assert not ledger_of((WRITE, 0, [3], 1)).has_unknown_write(0)
