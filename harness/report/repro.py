"""A failure as a test that stands alone: the case inside, the signature it must show again.

It passes while the failure is there, and says so when it is gone; whoever repairs the allocator
turns the last line round.  The case is data: it is read and checked like any other file.
"""

from __future__ import annotations

import msgspec

from harness.case import Case

_TEST = '''\
"""{title}

Needs the installed `unikv` and pytest; run it with: python -m pytest {name}

It passes as long as the failure is there.  Once the allocator is repaired, assert instead that
nothing is found.
"""

from pathlib import Path

from harness.case import load_case
from harness.runner import run_trace

SIGNATURE = {signature}

CASE = r\'\'\'
{case}
\'\'\'


def test_the_failure_is_there(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(CASE, encoding="utf-8")
    case = load_case(path)
    result = run_trace(case.setup, case.operations, plant=case.plant)
    assert SIGNATURE in [violation.signature for violation in result.violations]
'''


def repro(case: Case, name: str) -> str:
    """The text of a test file, to be called `name`."""
    text = msgspec.json.format(msgspec.json.encode(case), indent=1).decode()
    # Inside a string of JSON this is the same text, and it cannot end the literal around it.
    text = text.replace("'''", "\\u0027" * 3)
    title = f"{case.violation.check}: {case.violation.detail}"
    plain = "".join(letter if letter.isprintable() else " " for letter in title)
    return _TEST.format(
        title=plain.replace("\\", " ").replace('"', "'"),
        name=name,
        signature=ascii(case.violation.signature),
        case=text,
    )
