"""Processes of one reduction: whatever becomes of them, it goes on, and they end with it."""

import os
import signal
import subprocess
import sys
from multiprocessing import active_children
from pathlib import Path

import msgspec
import pytest

from harness.case import Case
from harness.runner import run_trace
from harness.sweep.candidates import Candidates
from harness.sweep.patience import Measured
from tests.cli.test_findings import a_case
from tests.cli.test_shrink import FAULT, OPERATIONS, SETUP

ROOT = Path(__file__).parents[2]
FOUND = run_trace(SETUP, OPERATIONS, plant=FAULT).violations
OWNER = """
import signal
from harness.sweep.candidates import Candidates
from harness.sweep.patience import Measured
from tests.cli.test_candidates import stored
from tests.cli.test_shrink import OPERATIONS, SETUP

if __name__ == "__main__":
    candidates = Candidates(stored(), 1, Measured(10.0))
    candidates.run(SETUP, OPERATIONS)
    print("busy", flush=True)
    signal.pause()
"""


def stored() -> Case:
    """The case of these tests; only its fault counts."""
    return msgspec.structs.replace(a_case(7), plant=FAULT)


@pytest.mark.slow
def test_a_reduction_goes_on_alone_when_its_processes_are_killed() -> None:
    with Candidates(stored(), 1, Measured(10.0)) as candidates:
        assert tuple(candidates.run(SETUP, OPERATIONS)) == FOUND
        for process in active_children():
            process.kill()
            process.join()
        assert tuple(candidates.run(SETUP, OPERATIONS)) == FOUND
        candidates.expect([(SETUP, *OPERATIONS[1:])])
        assert candidates.room() == 0
        assert tuple(candidates.run(SETUP, OPERATIONS)) == FOUND


@pytest.mark.slow
def test_ctrl_c_does_not_reach_a_process_that_only_starts() -> None:
    with Candidates(stored(), 1, Measured(10.0)) as candidates:
        candidates.expect([(SETUP, *OPERATIONS)])
        for process in active_children():
            assert process.pid is not None
            os.kill(process.pid, signal.SIGINT)
        assert tuple(candidates.run(SETUP, OPERATIONS)) == FOUND
        assert candidates.room() > 0


@pytest.mark.slow
def test_processes_end_with_the_one_that_started_them() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "busy\n"
        owner.kill()
        # Its processes write to the same pipe, which so ends with the last of them.
        assert owner.communicate(timeout=30)[0] == ""
