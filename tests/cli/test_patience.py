"""The alarm of a candidate: what it ends, what it lets be, and whose timers it leaves alone."""

import signal
import time
from collections.abc import Iterator

import pytest

from harness.known_runs import EndlessRun
from harness.sweep import patience
from harness.sweep.patience import RINGS_MAX, Measured, alarmed

LONG = 1e5
"""Seconds that never pass in a test, so every ring is one of its own."""


@pytest.fixture(autouse=True)
def no_timer_is_left() -> Iterator[None]:
    """Put back whatever timer there was."""
    before = signal.getitimer(signal.ITIMER_REAL)
    yield
    signal.setitimer(signal.ITIMER_REAL, *before)


def rung(times: int) -> None:
    """The alarm rings so often while nothing is done."""
    for _ in range(times):
        signal.raise_signal(signal.SIGALRM)


def spin_for_ever() -> None:
    """Keep the processor busy."""
    while True:
        continue


def spun() -> None:
    """Keep the processor busy for a while."""
    end = time.thread_time() + 0.002
    while time.thread_time() < end:
        continue


def test_a_run_that_spins_is_ended() -> None:
    with pytest.raises(EndlessRun), alarmed(0.01):
        spin_for_ever()


def test_a_run_that_was_stopped_goes_on() -> None:
    # However long a process is stopped, one ring is waiting for it afterwards.
    with alarmed(LONG):
        rung(1)


def test_a_run_that_only_waits_gets_longer() -> None:
    with alarmed(LONG):
        rung(RINGS_MAX)


def test_a_run_that_waits_for_ever_is_ended() -> None:
    with pytest.raises(EndlessRun), alarmed(LONG):
        rung(RINGS_MAX + 1)


def test_an_alarm_is_off_after_its_run() -> None:
    with alarmed(LONG):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_timer_of_somebody_else_goes_on() -> None:
    signal.setitimer(signal.ITIMER_REAL, LONG, 7)
    with alarmed(LONG):
        pass
    left, interval = signal.getitimer(signal.ITIMER_REAL)
    assert 0 < left <= LONG
    assert interval == 7


def test_the_first_run_takes_what_it_takes() -> None:
    with Measured().watch():
        assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_long_first_run_gives_the_others_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "CANDIDATE_SECONDS_MAX", 0.001)
    measured = Measured()
    with measured.watch():
        spun()
    assert measured.seconds_max is not None
    assert measured.seconds_max > 0.002
    limit = measured.seconds_max
    with measured.watch():
        spun()
    assert measured.seconds_max == limit


def test_a_short_first_run_leaves_the_others_their_time() -> None:
    measured = Measured()
    with measured.watch():
        pass
    assert measured.seconds_max == patience.CANDIDATE_SECONDS_MAX
