"""Results in order, whatever the processes do."""

from pathlib import Path

import pytest

from harness.sweep.campaign import After, Campaign
from harness.sweep.interrupts import Interrupts
from harness.sweep.undertaking import Undertaking
from harness.sweep.verdict import Exit
from tests.cli.seeds import Deadly, Failing, failing, plan_of, queue_of


def run_of(
    folder: Path, after: After, seeds: range, *, size: int = 1, work: Failing | None = None
) -> Campaign:
    """A campaign over these seeds, run to its end."""
    chosen = work or failing()
    campaign = Campaign(chosen, folder)
    plan = plan_of(chosen, folder, size=size, chunk=3)
    with Interrupts() as interrupts:
        for _ in campaign.run(plan, queue_of(seeds), after, interrupts):
            assert campaign.total.seeds
    return campaign


def test_it_stops_at_the_first_failure(tmp_path: Path) -> None:
    campaign = run_of(tmp_path, After.STOP, range(1, 20))
    assert campaign.total.seeds == 5
    assert [finding.seed for finding in campaign.findings.all()] == [5]


def test_it_goes_on_when_asked(tmp_path: Path) -> None:
    campaign = run_of(tmp_path, After.GO_ON, range(1, 20))
    assert campaign.total.seeds == 19


def test_failures_are_folded_by_signature(tmp_path: Path) -> None:
    findings = run_of(tmp_path, After.GO_ON, range(1, 20)).findings
    assert [(finding.seed, findings.count(finding)) for finding in findings.all()] == [
        (5, 8),
        (6, 7),
    ]


def test_several_processes_stop_where_one_does(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "three").mkdir()
    one = run_of(tmp_path / "one", After.STOP, range(1, 40))
    three = run_of(tmp_path / "three", After.STOP, range(1, 40), size=3)
    assert one.total.digest == three.total.digest
    assert one.total.seeds == three.total.seeds
    assert [finding.seed for finding in three.findings.all()] == [5]


@pytest.mark.slow
def test_a_death_is_a_finding_of_its_own(tmp_path: Path) -> None:
    work = failing()
    campaign = Campaign(work, tmp_path)
    plan = plan_of(Deadly(kills=3), tmp_path, chunk=1)
    with Interrupts() as interrupts:
        list(campaign.run(plan, queue_of(range(1, 9)), After.GO_ON, interrupts))
    (finding,) = campaign.findings.all()
    assert (finding.signature, finding.seed, finding.case) == ("crash | signal 9", 3, None)
    assert (campaign.deaths, campaign.raised, campaign.total.seeds) == (1, False, 7)


def test_figures_are_kept_for_each_scenario(tmp_path: Path) -> None:
    campaign = run_of(tmp_path, After.GO_ON, range(1, 4))
    assert [tally.seeds for tally in campaign.by_scenario] == [3]


def test_a_failure_that_does_not_show_again_is_kept_and_said(tmp_path: Path) -> None:
    undertaking = Undertaking("run", failing(), tmp_path)
    assert list(undertaking.events(queue_of(range(5, 6)), 1, After.STOP))
    (finding,) = undertaking.campaign.findings.all()
    report = undertaking.campaign.findings.report(finding)
    assert report.startswith("ledger: odd in page 3")
    assert report.rstrip().rpartition("\n")[2].startswith("not made small: ")
    assert undertaking.status() is Exit.VIOLATION
