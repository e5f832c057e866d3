"""The commands that make failures small: what they do and what they say.

Where it is said is somebody else's: a terminal, a file, a test.  How options are written is not
known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.case import Case
from harness.commands import Screen, Show, hunt_in_words
from harness.faults.catalog import FAULTS
from harness.printed import json_line
from harness.report.faults import hunt_lines, shrunk_lines
from harness.report.length import Length
from harness.report.text import render
from harness.shrinking import Smaller
from harness.sweep.artifacts import command_folder
from harness.sweep.findings import replay_command
from harness.sweep.hunts import FORGOTTEN, Hunts
from harness.sweep.kept_hunts import KeptHunts
from harness.sweep.loading import check_fault, default_scenarios, load_named
from harness.sweep.shrinks import Shrinking, Shrunk, Unwritten
from harness.sweep.shrunk_hunts import ShrinkWork
from harness.sweep.verdict import Exit
from harness.words import counted
from shrink import DoesNotFail, Progress


@dataclass(slots=True)
class Watch:
    """Shows how far a reduction is; `pass_name` is what is being tried."""

    shrinking: Shrinking
    show: Show
    pass_name: str = ""

    def started(self, pass_name: str) -> None:
        """Remember the pass."""
        self.pass_name = pass_name

    def tried(self, progress: Progress) -> None:
        """Show the time that is spent, and what is left of the trace."""
        seconds = self.shrinking.seconds()
        share = min(1.0, seconds / self.shrinking.budget_seconds)
        left, runs = progress.length - 1, progress.executions
        self.show(share, f"{counted(left, 'operation')}, {runs} runs, {self.pass_name}", seconds)


def shrink(screen: Screen, path: Path, *, budget_seconds: int, jobs: int, as_json: bool) -> Exit:
    """Make a stored case small and write the smaller one beside it.

    Raises:
        InputError: if it cannot be read, or what becomes of it cannot be written; that is said.
    """
    shrinking = Shrinking(path, budget_seconds, jobs)
    case = shrinking.case
    if case.plant is not None:
        check_fault(f"{path}: plant", case.plant)
    screen.say(
        f"shrink {path}  {counted(len(case.operations), 'operation')}  scenario {case.scenario}"
        f"  seed {case.seed}  budget {budget_seconds} s  jobs {jobs}"
    )
    try:
        with screen.progress() as show:
            shrunk = shrinking.run(Watch(shrinking, show))
    except DoesNotFail:
        screen.say(f"{path}: does not fail with its signature any more; nothing was written")
        if as_json:
            screen.say(json_line(_begin(path, case) | {"fails": False}))
        return Exit.MISSED
    except Unwritten as error:
        for line in _report(error.smaller, error.path):
            screen.say(line)
        raise
    for line in _lines(shrunk):
        screen.say(line)
    if as_json:
        screen.say(json_line(_record(path, shrunk)))
    return Exit.INTERRUPTED if shrinking.interrupts.seen else Exit.CLEAN


def shrink_faults(
    screen: Screen,
    only: Sequence[str],
    seeds: int,
    *,
    workers: int,
    artifacts: Path,
    out: Path | None,
    as_json: bool,
) -> Exit:
    """Hunt planted faults and make some failing seeds of each small.

    Rows go to the folder `out` as they come, and what it holds already is not done again.

    Raises:
        InputError: if there is no such fault, or no folder can be made.
    """
    for fault in only:
        check_fault("--only", fault)
    faults = tuple(dict.fromkeys(only)) or tuple(FAULTS)
    work = ShrinkWork(load_named(default_scenarios()), faults, seeds)
    kept = FORGOTTEN if out is None else KeptHunts(out, work.scenarios, seeds)
    return hunt_in_words(
        screen,
        "faults",
        Hunts(work, command_folder(artifacts, "faults"), kept),
        lambda rows: [*hunt_lines(rows), *shrunk_lines(rows)],
        workers=min(workers, len(faults)),
        as_json=as_json,
    )


def _lines(shrunk: Shrunk) -> list[str]:
    case, complete = shrunk.smaller
    state = "nothing smaller found" if complete else "cut short: shrink again to go on"
    lines = _report(shrunk.smaller, shrunk.path)
    for signature, path in shrunk.met.items():
        lines.append(f"another failure met on the way is in {path}: {signature}")
    lines += shrunk.troubles
    return [
        *lines,
        "",
        f"shrunk {counted(shrunk.operations, 'operation')} to {len(case.operations)} in"
        f" {counted(shrunk.executions, 'run')} and {shrunk.seconds:.1f} s ({state}): {shrunk.path}",
    ]


def _report(smaller: Smaller, path: Path) -> list[str]:
    case, length = smaller.case, Length.of(complete=smaller.complete)
    return render(case, case.violation, replay_command(path), length).splitlines()


def _begin(path: Path, case: Case) -> dict[str, object]:
    """What the last line says of every case."""
    return {
        "command": "shrink",
        "case": str(path),
        "signature": case.violation.signature,
    }


def _record(path: Path, shrunk: Shrunk) -> dict[str, object]:
    return _begin(path, shrunk.smaller.case) | {
        "fails": True,
        "smaller": str(shrunk.path),
        "operations": shrunk.operations,
        "shrunk_operations": len(shrunk.smaller.case.operations),
        "executions": shrunk.executions,
        "seconds": round(shrunk.seconds, 3),
        "complete": shrunk.smaller.complete,
        "met": {signature: str(other) for signature, other in shrunk.met.items()},
    }
