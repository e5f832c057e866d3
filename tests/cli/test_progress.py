"""Whoever waits is told which finding is made small, and how far it is."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness.commands import Show, run
from harness.fuzz.command import load_asked, replay_input
from harness.sweep.campaign import After
from harness.sweep.loading import seed_work
from harness.sweep.verdict import Exit
from tests.cli.seeds import SMOKE
from tests.fuzz.test_fuzz_command import a_failing_input

PLANT = "freed-page-offered"

OF_A_FINDING = re.compile(r"finding 1 of 1, ledger-[0-9a-f]{8}: (\d+) operations, (\d+) runs?")


@dataclass
class Listener:
    """A screen that keeps what it shows."""

    shares: list[float] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    executions: list[int] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Nobody reads it."""

    @contextmanager
    def progress(self) -> Iterator[Show]:
        """Keep what is said of findings."""
        yield self.show

    def show(self, share: float, text: str, seconds: float) -> None:
        """Keep the figures."""
        found = OF_A_FINDING.fullmatch(text)
        if found is not None:
            self.shares.append(share)
            self.lengths.append(int(found[1]))
            self.executions.append(int(found[2]))


def assert_told(screen: Listener) -> None:
    """Every run was shown, and the trace got shorter."""
    assert screen.executions == list(range(1, len(screen.executions) + 1))
    assert screen.lengths == sorted(screen.lengths, reverse=True)
    assert screen.lengths[0] > screen.lengths[-1] > 0
    assert all(0 <= share <= 1 for share in screen.shares)
    assert screen.shares == sorted(screen.shares)


@pytest.mark.slow
def test_a_run_shows_how_findings_get_small(tmp_path: Path) -> None:
    screen = Listener()
    work = seed_work([str(SMOKE)], 200, plant=PLANT)
    status = run(
        screen, work, range(1, 2), workers=1, after=After.STOP, artifacts=tmp_path, as_json=False
    )
    assert status is Exit.VIOLATION
    assert_told(screen)


@pytest.mark.slow
def test_a_failing_input_shows_how_it_gets_small(tmp_path: Path) -> None:
    screen = Listener()
    path = tmp_path / "input"
    path.write_bytes(a_failing_input(PLANT))
    replay_input(screen, load_asked(str(SMOKE), PLANT, 400), str(path), tmp_path, as_json=False)
    assert_told(screen)
