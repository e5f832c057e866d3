"""Findings made small: each once, with what is met on the way, and none lost."""

from pathlib import Path

import pytest

from harness.case import Case, load_case
from harness.shrinking import Met, Smaller
from harness.sweep.findings import Finding, Findings
from harness.sweep.interrupts import Interrupts
from harness.sweep.smaller import Shorten, make_small, make_small_in_time
from harness.violation import Violation
from shrink import DoesNotFail
from tests.cli.seeds import a_violation
from tests.cli.test_findings import a_case
from tests.cli.test_full_disk import failed


def shortening(*, met: Violation | None = None, fails: bool = True) -> Shorten:
    """Makes nothing small; meets a violation on the way; finds nothing that fails."""

    def shorten(finding: Finding, case: Case, tell: Met) -> Smaller:
        if met is not None:
            tell(case.setup, case.operations[:1], met)
        if not fails:
            raise DoesNotFail
        return Smaller(case, complete=True)

    return shorten


def names_in(folder: Path) -> set[str]:
    """Which cases a finding has."""
    return {path.name for path in folder.glob("*.json")} & {"case.json", "min.json"}


@pytest.mark.slow
def test_a_finding_that_comes_later_leaves_the_first_alone(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(failed())
    make_small_in_time(findings, Interrupts())
    (first,) = findings.all()
    before = (first.folder / "min.json").stat()
    findings.add_case(failed("row-leaked"))
    make_small_in_time(findings, Interrupts())
    assert [names_in(finding.folder) for finding in findings.all()] == [
        {"case.json", "min.json"},
        {"case.json", "min.json"},
    ]
    assert (first.folder / "min.json").stat() == before
    assert not any("not written" in findings.report(finding) for finding in findings.all())


def test_what_is_met_on_the_way_is_a_finding_that_no_seed_counts_for(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    met = a_violation("a page is lost", operation=0)
    make_small(findings, shortening(met=met), Interrupts(), 1)
    first, second = findings.all()
    assert (findings.count(first), findings.count(second)) == (1, 0)
    assert load_case(second.folder / "case.json").violation == met
    assert load_case(second.folder / "case.json").operations == a_case(7).operations[:1]
    assert [names_in(finding.folder) for finding in (first, second)] == [
        {"case.json", "min.json"},
        {"case.json"},
    ]


def test_what_is_met_is_made_small_too(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    make_small(findings, shortening(met=a_violation("a page is lost")), Interrupts())
    assert [names_in(finding.folder) for finding in findings.all()] == [
        {"case.json", "min.json"},
        {"case.json", "min.json"},
    ]


def test_a_case_that_does_not_fail_again_is_kept_as_found(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    make_small(findings, shortening(fails=False), Interrupts())
    (finding,) = findings.all()
    assert names_in(finding.folder) == {"case.json"}
    assert "not made small: run once more, it does not fail" in findings.report(finding)


def test_somebody_who_interrupts_keeps_the_case_as_found(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))
    interrupts = Interrupts()

    def shorten(finding: Finding, case: Case, met: Met) -> Smaller:
        interrupts.seen = True
        raise KeyboardInterrupt

    make_small(findings, shorten, interrupts)
    assert [names_in(finding.folder) for finding in findings.all()] == [{"case.json"}]


def test_an_interrupt_that_nobody_watches_for_is_passed_on(tmp_path: Path) -> None:
    findings = Findings(tmp_path)
    findings.add_case(a_case(7))

    def shorten(finding: Finding, case: Case, met: Met) -> Smaller:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_small(findings, shorten, Interrupts())
