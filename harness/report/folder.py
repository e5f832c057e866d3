"""Everything that is written down for one failure, as file names and what is in them.

A folder is passed on as it is: to a colleague, into an issue, to somebody who has only the
installed library.  Where it lies, and what is replaced there, is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.case import Case
from harness.report.environment import environment
from harness.report.html import report_html
from harness.report.length import Length
from harness.report.markdown import report_markdown
from harness.report.repro import can_be_imported, repro
from harness.report.story import tell
from harness.report.timeline import timeline
from harness.unikv_subject import UnikvSubject
from harness.world import SubjectFactory

REPORT = "report.md"
"""The file that a person reads first."""

PAGE = "report.html"
REPRO = "repro.py"


def files_of(
    case: Case,
    replay: str,
    subject: SubjectFactory = UnikvSubject,
    length: Length | None = None,
) -> Mapping[str, bytes]:
    """The files of a failing case, beside the case itself.

    Args:
        case: what is told.
        replay: the command that shows it.
        subject: the allocator under test.
        length: how far the case has been made small; None where that is not known.

    Returns:
        Nothing where one more run of the subject does not fail as the case was stored: then there
        is nothing to tell, and whatever was written before says more.  There is no test where the
        subject is none that another module can import.
    """
    story = tell(case, replay, subject, length)
    if story is None:
        return {}
    tests = {REPRO: repro(case, REPRO, subject).encode()} if can_be_imported(subject) else {}
    return {
        REPORT: report_markdown(story).encode(),
        PAGE: report_html(story).encode(),
        "timeline.json": timeline(story),
        **tests,
        "env.json": environment(),
    }


def plain_report(text: str) -> str:
    """A report in plain text, as the file that a person reads first."""
    # No line of a report begins with a fence.
    return f"```text\n{text}```\n"
