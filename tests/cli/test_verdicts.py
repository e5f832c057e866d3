"""Which exit status a result amounts to."""

from pathlib import Path

from harness.sweep.campaign import After
from harness.sweep.jobs import JobQueue
from harness.sweep.replay import judge
from harness.sweep.undertaking import Undertaking
from harness.sweep.verdict import Exit
from harness.violation import seen
from tests.cli.seeds import a_result, a_violation, always_open, failing, queue_of

STORED = a_violation("books differ")
OTHER = a_violation("a page is lost")


def status_of(folder: Path, queue: JobQueue) -> Exit:
    """What an undertaking over a queue of failing seeds amounts to."""
    undertaking = Undertaking("run", failing(), folder)
    for _ in undertaking.events(queue, 1, After.GO_ON):
        if undertaking.campaign.total.seeds == 3:
            undertaking.interrupts.seen = True
    return undertaking.status()


def test_an_undertaking_without_seeds_ran_nothing(tmp_path: Path) -> None:
    assert status_of(tmp_path, JobQueue(iter(()), always_open)) is Exit.NOTHING_RAN


def test_an_undertaking_without_findings_is_clean(tmp_path: Path) -> None:
    assert status_of(tmp_path, queue_of(range(1, 3))) is Exit.CLEAN


def test_an_interrupted_undertaking_says_so(tmp_path: Path) -> None:
    assert status_of(tmp_path, queue_of(range(1, 9))) is Exit.INTERRUPTED


def test_a_stored_failure_that_is_seen_again_is_a_violation() -> None:
    result = a_result(7, STORED)
    assert judge(result, result.digest, STORED) == (Exit.VIOLATION, "fails: ledger | books differ")


def test_a_stored_failure_is_found_among_others() -> None:
    assert seen((OTHER, STORED), STORED.signature) == STORED


def test_a_failure_in_another_way_is_told_apart() -> None:
    result = a_result(7, OTHER)
    status, said = judge(result, result.digest, STORED)
    assert status is Exit.VIOLATION
    assert said.startswith("fails in another way: ledger | a page is lost; stored: ")


def test_a_stored_failure_that_is_gone_is_missed() -> None:
    result = a_result(7)
    status, said = judge(result, result.digest, STORED)
    assert status is Exit.MISSED
    assert said.startswith("no longer fails")


def test_digests_that_differ_outweigh_everything() -> None:
    assert judge(a_result(7, STORED), "00", STORED)[0] is Exit.NOT_DETERMINISTIC


def test_a_seed_that_promised_nothing_may_be_clean() -> None:
    result = a_result(7)
    assert judge(result, result.digest, None)[0] is Exit.CLEAN


def test_a_planted_fault_that_is_not_caught_is_missed() -> None:
    result = a_result(7)
    status, said = judge(result, result.digest, None, "row-leaked")
    assert status is Exit.MISSED
    assert said.endswith("planted fault row-leaked was not caught")


def test_a_planted_fault_that_is_caught_is_a_violation() -> None:
    result = a_result(7, STORED)
    assert judge(result, result.digest, None, "row-leaked")[0] is Exit.VIOLATION
