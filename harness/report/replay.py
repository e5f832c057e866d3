"""What a replay says: the report of what failed, the figures, the sentence that sums it up."""

from __future__ import annotations

from harness.report.summary import DEVICE, summary_lines, summary_record
from harness.report.text import render
from harness.sweep.replay import Replayable, ReplayOutcome
from unikv import __version__


def replay_header(subject: Replayable) -> str:
    """The first line: what is run, on what, and the command that does it."""
    return f"{subject.title()}  device {DEVICE}  unikv {__version__}  replay: {subject.command()}"


def replay_lines(subject: Replayable, outcome: ReplayOutcome) -> list[str]:
    """The report if something failed, the summary, and the sentence."""
    lines: list[str] = []
    if outcome.violation is not None:
        case = subject.case(outcome.result, outcome.violation)
        report = render(case, outcome.violation, subject.command())
        lines = ["", *report.splitlines(), ""]
    return [*lines, *summary_lines(outcome.tally, ()), f"twice       {outcome.said}"]


def replay_record(subject: Replayable, outcome: ReplayOutcome) -> dict[str, object]:
    """The last line for programs."""
    about, result = subject.about(), outcome.result
    violations: list[dict[str, object]] = [
        {
            "signature": violation.signature,
            "check": violation.check,
            "scenario": about.scenario,
            "seed": subject.case(result, violation).seed,
            "operation": violation.operation,
            "count": 1,
            "case": subject.stored_at(),
        }
        for violation in ([] if outcome.violation is None else [outcome.violation])
    ]
    digest = outcome.tally.digest
    return summary_record("replay", about, outcome.tally, violations, outcome.seconds, digest)
