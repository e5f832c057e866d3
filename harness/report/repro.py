"""A failure as a test that stands alone: the case inside, the signature it must show again.

It passes while the failure is there, and says so when it is gone; whoever repairs the allocator
turns the last line round.  The case is data: it is read and checked like any other file.
"""

from __future__ import annotations

import msgspec

from harness.case import Case
from harness.unikv_subject import UnikvSubject
from harness.world import SubjectFactory

_TEST = '''\
"""{title}

Needs {needs} and pytest; run it with: python -m pytest {name}

It passes as long as the failure is there.  Once the allocator is repaired, assert instead that
nothing is found.
"""

from pathlib import Path

from harness.case import load_case
from harness.runner import run_trace
{imported}
SIGNATURE = {signature}

CASE = r\'\'\'
{case}
\'\'\'


def test_the_failure_is_there(tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    path.write_text(CASE, encoding="utf-8")
    case = load_case(path)
    result = run_trace(case.setup, case.operations, plant=case.plant{passed})
    assert SIGNATURE in [violation.signature for violation in result.violations]
'''


def can_be_imported(subject: SubjectFactory) -> bool:
    """Whether another file can name it; what is defined in a function or a script it cannot."""
    module, own = _name_of(subject)
    return own.isidentifier() and module not in ("", "__main__")


def repro(case: Case, name: str, subject: SubjectFactory = UnikvSubject) -> str:
    """The text of a test file, to be called `name`, about a subject that can be imported."""
    needs, imported, passed = "the installed `unikv`", "", ""
    if subject is not UnikvSubject:
        assert can_be_imported(subject)
        module, own = _name_of(subject)
        needs = f"{needs}, {module}"
        imported = f"from {module} import {own}\n"
        passed = f", subject={own}"
    text = msgspec.json.format(msgspec.json.encode(case), indent=1).decode()
    # Inside a string of JSON this is the same text, and it cannot end the literal around it.
    text = text.replace("'''", "\\u0027" * 3)
    title = f"{case.violation.check}: {case.violation.detail}"
    plain = "".join(letter if letter.isprintable() else " " for letter in title)
    return _TEST.format(
        title=plain.replace("\\", " ").replace('"', "'"),
        name=name,
        needs=needs,
        imported=imported,
        passed=passed,
        signature=ascii(case.violation.signature),
        case=text,
    )


def _name_of(subject: SubjectFactory) -> tuple[str, str]:
    return getattr(subject, "__module__", ""), getattr(subject, "__qualname__", "")
