"""What `explain` does: tell a stored failure, put its missing edge in, and count what is left.

The parts are others': the story is told in `harness.report`, the seeds run in `harness.sweep`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.commands import Screen
from harness.options import SEED_MAX
from harness.report.explain import (
    edge_lines,
    explain_record,
    no_edge_lines,
    seed_lines,
    story_lines,
)
from harness.report.replay import replay_header
from harness.report.story import Story, tell
from harness.sweep.artifacts import command_folder
from harness.sweep.explaining import Explaining, explaining
from harness.sweep.replay import CaseReplay
from harness.sweep.verdict import Exit
from harness.violation import Violation


def explain(
    screen: Screen,
    subject: CaseReplay,
    seeds: int,
    operations: int,
    *,
    workers: int,
    artifacts: Path,
    as_json: bool,
) -> Exit:
    """Explain a case; with `seeds` further seeds of `operations` each, none for 0.

    Raises:
        InputError: if no folder can be made for the seeds.
    """
    screen.say(replay_header(subject))
    story = tell(subject.stored, subject.command())
    if story is None:
        screen.say(f"no longer fails as it was stored: {subject.stored.violation.signature}")
        return Exit.MISSED
    for line in ["", *story_lines(story)]:
        screen.say(line)
    test = explaining(story)
    once: tuple[Violation, ...] = ()
    status = Exit.VIOLATION
    if test is None:
        lines = no_edge_lines(story)
    else:
        once = test.again(test.edge)
        lines = edge_lines(test, once, test.again(test.rule))
    for line in lines:
        screen.say(line)
    if test is not None and seeds:
        status = _try_seeds(screen, story, test, seeds, operations, workers, artifacts)
    if as_json:
        screen.say(msgspec.json.encode(explain_record(story, test, once, seeds)).decode())
    return status


def _try_seeds(
    screen: Screen,
    story: Story,
    test: Explaining,
    seeds: int,
    operations: int,
    workers: int,
    artifacts: Path,
) -> Exit:
    first = min(story.case.seed + 1, SEED_MAX - seeds)
    numbers = range(first, first + seeds)
    folder = command_folder(artifacts, "explain")
    with screen.progress() as show:
        for ended in test.seeds(numbers, operations, min(workers, seeds), folder):
            show(ended / seeds, f"{ended} seeds", test.seconds())
    for line in seed_lines(story, numbers, operations, test.count):
        screen.say(line)
    return Exit.INTERRUPTED if test.interrupts.seen else Exit.VIOLATION
