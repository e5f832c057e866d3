"""Sends: when a part may start, what the engine is told, and what an abort leaves behind."""

from collections.abc import Callable

import pytest

from tests.disagg.ranks import Rank, Ranks, per_band
from unikv.alloc.chain import Taken
from unikv.alloc.use import Use
from unikv.device.port import Stream
from unikv.disagg.life import Outcome, Phase
from unikv.disagg.prefill import Sends
from unikv.disagg.rounds import Ended
from unikv.errors import ArgumentError, OwnershipError, StepOrderError, TransferError


def written(ranks: Ranks, pages: int, step: int) -> Taken:
    """Pages that a step in flight writes."""
    taken = ranks.take(pages, 0)
    ranks.all(lambda rank: rank.run_step(step, per_band(taken)))
    return taken


def opened(ranks: Ranks, *parts: Taken) -> None:
    """A send of these parts, which may get more."""
    ranks.all(lambda rank: rank.transfers.sends.open("a", "decode"))
    for part in parts:
        add(ranks, part, 0)


def add(ranks: Ranks, part: Taken, written_through: int) -> None:
    """One more part of the send."""
    ranks.all(lambda rank: rank.transfers.sends.add("a", per_band(part), written_through))


def queue(ranks: Ranks, part: Taken, written_through: int) -> None:
    """A send of one part."""
    ranks.all(
        lambda rank: rank.transfers.sends.queue("a", "decode", per_band(part), written_through)
    )


def settle(rank: Rank) -> None:
    """Let the schedule stream wait past every step in flight."""
    assert rank.chain.steps.wait(rank.chain.steps.newest)
    rank.chain.reclaim.writes_retired()


def held(ranks: Ranks) -> set[str]:
    """Names in the ledger."""
    return {hold.name for rank in ranks.each for hold in rank.chain.ledger.held.holds()}


# When it starts -----------------------------------------------------------------------------


def test_a_send_starts_once_the_step_that_writes_it_is_processed() -> None:
    ranks = Ranks(2)
    queue(ranks, written(ranks, 3, 1), 1)
    assert ranks.round().began == ()
    ranks.all(lambda rank: rank.process(1))
    assert ranks.round().began == ("send a part 0",)


def test_a_send_does_not_start_because_its_step_is_settled() -> None:
    ranks = Ranks(2)
    queue(ranks, written(ranks, 3, 1), 1)
    ranks.all(settle)
    assert ranks.each[0].chain.steps.retired_through == 1
    assert ranks.round().began == ()


def test_a_send_waits_for_no_later_step() -> None:
    ranks = Ranks(2)
    queue(ranks, written(ranks, 3, 1), 1)
    written(ranks, 1, 2)
    ranks.all(lambda rank: rank.process(1))
    assert ranks.round().began == ("send a part 0",)


def test_the_host_waits_what_was_enqueued_when_the_send_was_queued() -> None:
    ranks = Ranks(1)
    ranks.sent("a", 3)
    (rank,) = ranks.each
    queued_at = rank.device.position
    ranks.take(2, 0)
    ranks.round()
    assert [event.position for event in rank.device.host_waits] == [queued_at]


def moved_while_queued(ranks: Ranks) -> Taken:
    """A send is queued, and then its pages move down."""
    gone = ranks.take(2, 0)
    taken = ranks.sent("a", 3)
    ranks.all(lambda rank: rank.chain.free(gone.ids))
    assert ranks.all(lambda rank: rank.chain.flush(8)) > 0
    return taken


def loaded(ranks: Ranks, pages: int) -> tuple[Taken, int]:
    """Pages that a submitted load fills, and its number."""
    taken = ranks.take(pages, 0)
    number = ranks.all(
        lambda rank: rank.chain.users.begin_load(
            per_band(taken), rank.device.record_event(Stream.LOAD)
        )
    )
    return taken, number


def test_a_send_starts_once_the_load_that_fills_it_is_over() -> None:
    ranks = Ranks(2)
    taken, number = loaded(ranks, 3)
    queue(ranks, taken, 0)
    assert ranks.round().began == ()
    ranks.all(lambda rank: rank.chain.users.end_copy(number))
    assert ranks.round().began == ("send a part 0",)


def test_a_send_waits_for_no_load_of_other_pages() -> None:
    ranks = Ranks(2)
    taken = ranks.take(3, 0)
    loaded(ranks, 3)
    queue(ranks, taken, 0)
    assert ranks.round().began == ("send a part 0",)


def test_a_send_waits_for_no_backup_of_its_pages() -> None:
    ranks = Ranks(2)
    taken = ranks.take(3, 0)
    ranks.all(
        lambda rank: rank.chain.users.begin_backup(
            per_band(taken), rank.device.record_event(Stream.BACKUP)
        )
    )
    queue(ranks, taken, 0)
    assert ranks.round().began == ("send a part 0",)


def test_the_host_waits_a_load_that_the_schedule_stream_waited() -> None:
    ranks = Ranks(2)
    taken, number = loaded(ranks, 3)
    queue(ranks, taken, 0)
    for rank in ranks.each:
        (use,) = rank.chain.ledger.fences.uses()
        rank.device.wait_event(Stream.SCHEDULE, use.event)
        rank.chain.ledger.fences.end(number)
    waited = [rank.device.position for rank in ranks.each]
    assert ranks.round().began == ("send a part 0",)
    assert [rank.device.seen for rank in ranks.each] == waited


def test_the_host_waits_a_move_that_came_after_the_send_was_queued() -> None:
    ranks = Ranks(1)
    moved_while_queued(ranks)
    (rank,) = ranks.each
    moved_at = rank.device.position
    ranks.round()
    assert [event.position for event in rank.device.host_waits] == [moved_at]


def test_a_held_send_leaves_with_the_pages_of_now() -> None:
    ranks = Ranks(2)
    taken = moved_while_queued(ranks)
    ranks.round()
    for rank in ranks.each:
        own = [tuple(rank.chain.translate(band, ids)) for band, ids in enumerate(per_band(taken))]
        assert rank.engine.told["a"] == [tuple(own)]


def test_pages_of_a_queued_send_may_move() -> None:
    ranks = Ranks(1)
    moved_while_queued(ranks)
    assert held(ranks) == set()


def test_pages_of_a_send_that_started_stay() -> None:
    ranks = Ranks(2)
    gone = ranks.take(2, 0)
    ranks.sent("a", 3)
    ranks.round()
    ranks.all(lambda rank: rank.chain.free(gone.ids))
    assert ranks.all(lambda rank: rank.chain.flush(8)) == 0


def test_the_ledger_has_a_send_as_one_that_reads() -> None:
    ranks = Ranks(1)
    ranks.sent("a", 3)
    ranks.round()
    assert {hold.use for hold in ranks.each[0].chain.ledger.held.holds()} == {Use.NETWORK_SEND}


# Parts --------------------------------------------------------------------------------------


def test_parts_start_as_they_become_final() -> None:
    ranks = Ranks(2)
    first, second = written(ranks, 2, 1), written(ranks, 2, 2)
    opened(ranks)
    add(ranks, first, 1)
    add(ranks, second, 2)
    ranks.all(lambda rank: rank.process(1))
    assert ranks.round().began == ("send a part 0",)
    ranks.all(lambda rank: rank.process(2))
    assert ranks.round().began == ("send a part 1",)


def test_parts_that_are_final_together_start_together() -> None:
    ranks = Ranks(2)
    opened(ranks, ranks.take(1, 0), ranks.take(1, 0))
    assert ranks.round().began == ("send a part 0", "send a part 1")


def test_a_send_ends_only_after_its_last_part() -> None:
    ranks = Ranks(2)
    opened(ranks, ranks.take(1, 0))
    ranks.round()
    for rank in ranks.each:
        rank.engine.finish("a")
    assert ranks.round().ended == ()
    add(ranks, ranks.take(1, 0), 0)
    ranks.all(lambda rank: rank.transfers.sends.close("a"))
    ranks.round()
    assert ranks.round().ended == ()
    for rank in ranks.each:
        rank.engine.finish("a")
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)
    assert held(ranks) == set()


def test_closing_after_the_last_part_is_there_ends_the_send() -> None:
    ranks = Ranks(1)
    opened(ranks, ranks.take(1, 0))
    ranks.round()
    ranks.each[0].engine.finish("a")
    ranks.all(lambda rank: rank.transfers.sends.close("a"))
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)


# Ends ---------------------------------------------------------------------------------------


def test_a_send_is_released_when_the_last_rank_is_done() -> None:
    ranks = Ranks(3)
    ranks.sent("a", 3)
    ranks.round()
    for rank in ranks.each:
        assert ranks.round().ended == ()
        assert held(ranks) == {"send a part 0"}
        rank.engine.finish("a")
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)
    assert held(ranks) == set()


def test_a_queued_send_that_is_aborted_leaves_nothing_behind() -> None:
    ranks = Ranks(2)
    taken = ranks.sent("a", 3)
    ranks.all(lambda rank: rank.transfers.abort("a"))
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    report = ranks.round()
    assert report.ended == (Ended("a", Outcome.ABORTED),)
    assert report.began == ()
    assert [rank.engine.told for rank in ranks.each] == [{}, {}]


def test_an_abort_while_a_part_is_outstanding_keeps_its_pages() -> None:
    ranks = Ranks(2)
    first, second = written(ranks, 2, 1), written(ranks, 2, 2)
    opened(ranks)
    add(ranks, first, 1)
    add(ranks, second, 2)
    ranks.all(lambda rank: rank.process(1))
    ranks.round()
    ranks.all(lambda rank: rank.transfers.abort("a"))
    assert ranks.round().isolated == ("a",)
    ranks.all(lambda rank: rank.process(2))
    assert ranks.round().began == ()
    assert held(ranks) == {"send a part 0"}
    for rank in ranks.each:
        rank.engine.prove("a")
    assert ranks.round().ended == (Ended("a", Outcome.ABORTED),)
    assert held(ranks) == set()


def test_an_abort_of_a_send_that_is_done_everywhere_comes_too_late() -> None:
    ranks = Ranks(2)
    ranks.sent("a", 3)
    ranks.round()
    for rank in ranks.each:
        rank.engine.finish("a")
    ranks.all(lambda rank: rank.transfers.abort("a"))
    assert ranks.round().ended == (Ended("a", Outcome.SENT),)


def test_an_engine_that_refuses_a_part_on_one_rank_fails_the_send_on_all() -> None:
    ranks = Ranks(3)
    ranks.each[1].engine.refuses.add("send")
    ranks.sent("a", 3)
    assert ranks.round().began == ("send a part 0",)
    assert ranks.round().isolated == ("a",)
    assert held(ranks) == {"send a part 0"}


def test_pages_freed_under_a_send_are_nobodys_until_it_is_released() -> None:
    ranks = Ranks(2)
    taken = ranks.sent("a", 3)
    ranks.round()
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    assert ranks.each[0].chain.owner.pending == 3
    for rank in ranks.each:
        rank.engine.finish("a")
    ranks.round()
    assert ranks.each[0].chain.owner.pending == 0


# Refusals -----------------------------------------------------------------------------------


def assert_refused(ranks: Ranks, act: Callable[[Sends], object], text: str) -> None:
    """Every rank refuses the call, and nothing has changed."""
    before = ranks.books()
    with pytest.raises(TransferError, match=text):
        ranks.all(lambda rank: act(rank.transfers.sends))
    assert ranks.books() == before


@pytest.mark.parametrize(
    ("through", "text"),
    [(0, r"through step 0; allowed: 1, the"), (2, r"to 1, the newest launched")],
)
def test_a_step_that_cannot_be_the_last_writer_is_refused(through: int, text: str) -> None:
    ranks = Ranks(1)
    taken = written(ranks, 2, 1)
    assert_refused(ranks, lambda s: s.queue("a", "decode", per_band(taken), through), text)


def test_ids_that_name_no_page_are_refused() -> None:
    ranks = Ranks(1)
    with pytest.raises(OwnershipError, match="name no page"):
        ranks.all(lambda rank: rank.transfers.sends.queue("a", "decode", [[], [], [5]], 0))
    assert ranks.each[0].board.transfers() == ()


@pytest.mark.parametrize(
    ("ids", "through"), [([[], []], 0), ([[], [], [True]], 0), ([[], [], [1]], 1.0)]
)
def test_what_is_no_id_and_no_step_is_refused(ids: list[list[int]], through: int) -> None:
    ranks = Ranks(1)
    ranks.take(1, 0)
    with pytest.raises(ArgumentError):
        ranks.all(lambda rank: rank.transfers.sends.queue("a", "decode", ids, through))
    assert ranks.each[0].board.transfers() == ()


def test_a_part_of_nothing_is_refused() -> None:
    ranks = Ranks(1)
    assert_refused(ranks, lambda s: s.queue("a", "decode", [[], [], []], 0), "1 or more ids")


def test_a_closed_send_takes_no_part() -> None:
    ranks = Ranks(1)
    taken = ranks.sent("a", 2)
    assert_refused(ranks, lambda s: s.add("a", per_band(taken), 0), "0 parts to come")


def test_a_send_that_was_given_up_takes_no_part() -> None:
    ranks = Ranks(1)
    taken = ranks.take(2, 0)
    opened(ranks, taken)
    ranks.round()
    ranks.each[0].engine.fail("a")
    ranks.round()
    assert_refused(ranks, lambda s: s.add("a", per_band(taken), 0), "quarantined with 1 parts")


def test_a_receive_takes_no_part() -> None:
    ranks = Ranks(1)
    taken = ranks.received("a", 2)
    assert_refused(ranks, lambda s: s.add("a", per_band(taken), 0), "a receive that is held")


def test_a_send_without_parts_is_not_closed() -> None:
    ranks = Ranks(1)
    opened(ranks)
    assert_refused(ranks, lambda s: s.close("a"), "with 0 parts; allowed: 1 or more")


def test_a_send_without_parts_stays_queued() -> None:
    ranks = Ranks(2)
    opened(ranks)
    ranks.round()
    assert ranks.each[0].board.find("a").phase is Phase.QUEUED


def test_a_name_in_use_is_refused() -> None:
    ranks = Ranks(1)
    taken = ranks.sent("a", 2)
    text = "one of that name is queued; allowed: a name that was never used"
    assert_refused(ranks, lambda s: s.queue("a", "decode", per_band(taken), 0), text)


def test_a_full_board_is_refused() -> None:
    ranks = Ranks(1, transfers_max=1)
    taken = ranks.sent("a", 2)
    text = "'b' begins beside 1 others; allowed: 1 at a time"
    assert_refused(ranks, lambda s: s.queue("b", "decode", per_band(taken), 0), text)


def test_ids_freed_before_their_send_started_stop_the_round_of_every_rank() -> None:
    ranks = Ranks(2)
    taken = ranks.sent("a", 2)
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    errors = ranks.answers(lambda rank: rank.transfers.round())
    assert all(isinstance(error, OwnershipError) for error in errors)
    assert "abort the send before its ids are freed" in str(errors[0])
    ranks.all(lambda rank: rank.transfers.abort("a"))
    assert ranks.round().ended == (Ended("a", Outcome.ABORTED),)


def test_ids_that_are_somebody_elses_by_then_stop_it_too() -> None:
    ranks = Ranks(2)
    taken = ranks.sent("a", 2)
    ranks.all(lambda rank: rank.chain.free(taken.ids))
    again = ranks.all(lambda rank: rank.chain.take(2, 0))
    assert set(again.ids) & set(taken.ids)
    errors = ranks.answers(lambda rank: rank.transfers.round())
    assert all(isinstance(error, OwnershipError) for error in errors)
    assert "were freed since it began, and may be somebody else's" in str(errors[0])


def test_no_round_begins_between_launch_and_record() -> None:
    ranks = Ranks(2)
    ranks.sent("a", 2)
    ranks.each[1].chain.launch_step(1)
    first, second = ranks.answers(lambda rank: rank.transfers.round())
    assert isinstance(first, TransferError)
    assert isinstance(second, StepOrderError)
