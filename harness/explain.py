"""What `explain` does: tell a stored failure, put its missing edge in, and count what is left.

The parts are others': the story is told in `harness.report`, the seeds run in `harness.sweep`.
"""

from __future__ import annotations

from pathlib import Path

from harness.commands import Screen
from harness.options import SEED_MAX
from harness.printed import json_line
from harness.report.explain import (
    edge_lines,
    explain_record,
    missed_record,
    no_edge_lines,
    seed_lines,
    story_lines,
    verdict_lines,
)
from harness.report.replay import replay_header
from harness.report.story import Story, tell
from harness.sweep.artifacts import command_folder
from harness.sweep.explaining import EdgeProof, Explaining, explaining
from harness.sweep.replay import CaseReplay
from harness.sweep.verdict import Exit


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

    Returns:
        VIOLATION for a case that fails, whatever the edge changes; INTERRUPTED if somebody did not
        want to wait for all seeds, MISSED if the case no longer fails.

    Raises:
        InputError: if no folder can be made for the seeds.
    """
    screen.say(replay_header(subject))
    story = tell(subject.stored, subject.command())
    if story is None:
        screen.say(f"no longer fails as it was stored: {subject.stored.violation.signature}")
        if as_json:
            screen.say(json_line(missed_record(subject.stored)))
        return Exit.MISSED
    for line in ["", *story_lines(story)]:
        screen.say(line)
    test = explaining(story)
    status = Exit.VIOLATION
    proof = None
    if test is None:
        lines = no_edge_lines(story)
    else:
        proof = _proof(story, test, seeds, operations)
        lines = edge_lines(story, proof)
    for line in lines:
        screen.say(line)
    if test is not None and proof is not None:
        status = _try_seeds(screen, test, proof, workers, artifacts)
    if as_json:
        screen.say(json_line(explain_record(story, proof)))
    return status


def _proof(story: Story, test: Explaining, seeds: int, operations: int) -> EdgeProof:
    """What the same operations show with the edge, and which seeds are to come."""
    first = min(story.case.seed + 1, SEED_MAX - seeds)
    return EdgeProof(
        once=test.again(test.edge),
        by_rule=test.again(test.rule),
        rule=test.rule,
        seeds=range(first, first + seeds),
        operations=operations,
        count=test.count,
    )


def _try_seeds(
    screen: Screen, test: Explaining, proof: EdgeProof, workers: int, artifacts: Path
) -> Exit:
    """Run the seeds, if there are any, and say what all of it comes to."""
    asked = len(proof.seeds)
    lines = []
    if asked:
        folder = command_folder(artifacts, "explain")
        with screen.progress() as show:
            for ended in test.seeds(proof, min(workers, asked), folder):
                show(ended / asked, f"{ended} seeds", test.seconds())
        lines = seed_lines(test.story, proof)
    for line in [*lines, *verdict_lines(test.story, proof)]:
        screen.say(line)
    return Exit.INTERRUPTED if test.interrupts.seen else Exit.VIOLATION
