"""Sums over seeds."""

from harness.check import PROMISES
from harness.sweep.tally import PER_10K, Tally, never_ran
from tests.cli.seeds import a_result


def tally_of(*seeds: int) -> Tally:
    """Sums over these seeds, each of which took half a second."""
    tally = Tally()
    for seed in seeds:
        tally.add(a_result(seed), 0.5)
    return tally


def test_figures_add_up() -> None:
    tally = tally_of(1, 2, 3)
    assert (tally.seeds, tally.operations, tally.applied) == (3, 30, 24)
    assert (tally.refused, tally.skipped, tally.checks["ordering"]) == (3, 3, 30)


def test_rates_are_per_ten_thousand_applied() -> None:
    assert tally_of(1, 2).per_10k() == dict.fromkeys(PER_10K, 0.0) | {
        "moves": 2500.0,
        "settles": 1250.0,
    }


def test_the_pace_is_applied_operations_per_busy_second() -> None:
    assert tally_of(1, 2).operations_per_second() == 16.0


def test_an_empty_tally_has_rates() -> None:
    tally = Tally()
    assert (tally.operations_per_second(), set(tally.per_10k().values())) == (0.0, {0.0})


def test_a_check_with_a_count_of_zero_never_ran() -> None:
    assert "capacity" in never_ran(tally_of(1))


def test_a_check_that_is_not_counted_never_ran() -> None:
    assert set(never_ran(tally_of(1))) == set(PROMISES) - {"ordering"}


def test_equal_seeds_have_equal_digests() -> None:
    assert tally_of(1, 2).digest == tally_of(1, 2).digest


def test_the_digest_depends_on_the_order() -> None:
    assert tally_of(1, 2).digest != tally_of(2, 1).digest


def test_the_digest_depends_on_every_seed() -> None:
    assert tally_of(1, 2).digest != tally_of(1, 3).digest
