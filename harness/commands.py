"""What each command does, from checked options to its exit status.

It talks to a screen, which is somebody else's: a terminal, a file, a test.  How options are
written, and how a program ends, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from harness.faults.ablation import ablated
from harness.faults.catalog import FAULTS
from harness.printed import json_line
from harness.report.faults import (
    catalog_lines,
    catalog_records,
    edge_lines,
    hunt_header,
    hunt_lines,
    hunt_records,
    missed_text,
    row_lines,
    trace_lines,
)
from harness.report.replay import replay_header, replay_lines, replay_record
from harness.report.summary import (
    finding_lines,
    header,
    seeds_text,
    summary_lines,
    summary_record,
    violation_records,
)
from harness.sweep.artifacts import command_folder
from harness.sweep.campaign import After
from harness.sweep.hunts import AblationWork, Hunted, Hunts, HuntWork
from harness.sweep.jobs import JobQueue, endless_jobs, repeated_jobs, seed_jobs
from harness.sweep.loading import (
    check_ablated,
    check_fault,
    default_scenarios,
    load_named,
    seed_work,
)
from harness.sweep.replay import Replayable, replay_twice
from harness.sweep.smaller import Step, Watch
from harness.sweep.smoke import SMOKE_OPERATIONS, SMOKE_SEEDS
from harness.sweep.undertaking import Undertaking
from harness.sweep.verdict import Exit
from harness.sweep.workload import SeedWork
from harness.words import counted

REPORTS_MAX = 5
"""Reports that are shown whole; the others are named."""


class Show(Protocol):
    """Shows how far a command is."""

    def __call__(self, share: float, text: str, seconds: float) -> None:
        """`share` done of 1, a few words, and the wall time so far."""
        ...


class Screen(Protocol):
    """Where a command talks."""

    def say(self, line: str) -> None:
        """Print a line."""
        ...

    def progress(self) -> AbstractContextManager[Show]:
        """Show progress until it is left."""
        ...


def run(
    screen: Screen,
    work: SeedWork,
    seeds: range,
    *,
    workers: int,
    after: After,
    artifacts: Path,
    as_json: bool,
) -> Exit:
    """Run a range of seeds of the work's only scenario.

    Raises:
        InputError: if no folder can be made for what is found.
    """
    undertaking = Undertaking("run", work, artifacts)
    _follow(
        screen,
        undertaking,
        seeds_text(seeds),
        JobQueue(seed_jobs(seeds), closed=lambda: undertaking.interrupts.seen),
        workers=min(workers, len(seeds)),
        after=after,
        share=lambda: undertaking.campaign.total.seeds / len(seeds),
    )
    status = undertaking.status()
    if work.plant is not None and status is Exit.CLEAN:
        screen.say(missed_text(work.plant))
        status = Exit.MISSED
    _conclude(screen, "run", undertaking, undertaking.digest(), as_json=as_json)
    return status


def sweep(
    screen: Screen,
    work: SeedWork,
    budget_seconds: int,
    *,
    workers: int,
    artifacts: Path,
    as_json: bool,
) -> Exit:
    """Run seed after seed of all scenarios until the time is up.

    Raises:
        InputError: if no folder can be made for what is found.
    """
    undertaking = Undertaking("sweep", work, artifacts)
    _follow(
        screen,
        undertaking,
        "1..",
        JobQueue(
            endless_jobs(len(work.scenarios)),
            closed=lambda: undertaking.interrupts.seen or undertaking.seconds() >= budget_seconds,
        ),
        workers=workers,
        after=After.GO_ON,
        share=lambda: undertaking.seconds() / budget_seconds,
    )
    # How many seeds there is time for depends on the machine, so their digest says nothing.
    _conclude(screen, "sweep", undertaking, None, as_json=as_json)
    return undertaking.status()


def smoke(screen: Screen, *, workers: int, artifacts: Path, as_json: bool) -> Exit:
    """Run fixed seeds of every scenario; one that was not under pressure fails.

    Raises:
        InputError: if there are no scenarios, or no folder can be made for what is found.
    """
    work = seed_work(default_scenarios(), SMOKE_OPERATIONS)
    undertaking = Undertaking("smoke", work, artifacts)
    goal = len(SMOKE_SEEDS) * len(work.scenarios)
    _follow(
        screen,
        undertaking,
        seeds_text(SMOKE_SEEDS),
        JobQueue(
            repeated_jobs(len(work.scenarios), SMOKE_SEEDS),
            closed=lambda: undertaking.interrupts.seen,
        ),
        workers=workers,
        after=After.GO_ON,
        share=lambda: undertaking.campaign.total.seeds / goal,
    )
    status = undertaking.status()
    short = undertaking.shortfalls() if status is Exit.CLEAN else []
    for line in short:
        screen.say(f"short of pressure: {line}")
    more = {"shortfalls": short}
    _conclude(screen, "smoke", undertaking, undertaking.digest(), as_json=as_json, more=more)
    return Exit.VIOLATION if short else status


def replay(screen: Screen, subject: Replayable, *, as_json: bool) -> Exit:
    """Run a case or a seed again, twice."""
    screen.say(replay_header(subject))
    outcome = replay_twice(subject)
    for line in replay_lines(subject, outcome):
        screen.say(line)
    if as_json:
        screen.say(json_line(replay_record(subject, outcome)))
    return outcome.status


def faults(
    screen: Screen,
    only: Sequence[str],
    *,
    workers: int,
    artifacts: Path,
    as_json: bool,
) -> Exit:
    """Hunt planted faults, all of them or `only` some; one that is missed is a hole in a check.

    Raises:
        InputError: if there is no such fault, or no folder can be made.
    """
    for fault in only:
        check_fault("--only", fault)
    work = HuntWork(load_named(default_scenarios()), tuple(dict.fromkeys(only)) or tuple(FAULTS))
    hunts = Hunts(work, command_folder(artifacts, "faults"))
    more = row_lines() if not only else []
    return hunt_in_words(
        screen,
        "faults",
        hunts,
        lambda rows: hunt_lines(rows) + more,
        workers=min(workers, len(work.faults)),
        as_json=as_json,
    )


def name_faults(screen: Screen, only: Sequence[str], *, as_json: bool) -> Exit:
    """Name planted faults, all of them or `only` some, and hunt none.

    Raises:
        InputError: if there is no such fault.
    """
    for fault in only:
        check_fault("--only", fault)
    return _name(screen, "faults", tuple(dict.fromkeys(only)) or tuple(FAULTS), as_json=as_json)


def name_edges(screen: Screen, only: Sequence[str], *, as_json: bool) -> Exit:
    """Name the faults that take out an edge, all of them or `only` some, and hunt none.

    Raises:
        InputError: if a fault takes out no edge.
    """
    for fault in only:
        check_ablated("--only", fault)
    return _name(screen, "edges", tuple(dict.fromkeys(only)) or ablated(), as_json=as_json)


def edges(
    screen: Screen,
    only: Sequence[str],
    *,
    workers: int,
    artifacts: Path,
    as_json: bool,
) -> Exit:
    """Take out every edge, or those of `only` some faults, and show what collides without it.

    Raises:
        InputError: if a fault takes out no edge, or no folder can be made.
    """
    for fault in only:
        check_ablated("--only", fault)
    work = AblationWork(load_named(default_scenarios()), tuple(dict.fromkeys(only)) or ablated())
    return hunt_in_words(
        screen,
        "edges",
        Hunts(work, command_folder(artifacts, "edges")),
        lambda rows: edge_lines(rows) + (trace_lines(rows) if only else []),
        workers=min(workers, len(work.faults)),
        as_json=as_json,
    )


def _name(screen: Screen, command: str, named: Sequence[str], *, as_json: bool) -> Exit:
    for line in catalog_lines(named):
        screen.say(line)
    if as_json:
        screen.say(json_line({"command": command, "faults": catalog_records(named)}))
    return Exit.CLEAN


def hunt_in_words(
    screen: Screen,
    command: str,
    hunts: Hunts,
    lines: Callable[[Sequence[Hunted]], list[str]],
    *,
    workers: int,
    as_json: bool,
) -> Exit:
    """Hunt to the end, showing how far it is, and say what came of it."""
    screen.say(hunt_header(hunts.work))
    with screen.progress() as show:
        for hunted in hunts.run(workers):
            text = f"{len(hunts.ended)} faults, the last one {hunted.fault}"
            show(len(hunts.ended) / len(hunts.work.faults), text, hunts.seconds())
    rows = hunts.missed_first()
    for line in lines(rows):
        screen.say(line)
    if as_json:
        seconds = round(hunts.seconds(), 3)
        screen.say(
            json_line({"command": command, "faults": hunt_records(rows), "seconds": seconds})
        )
    if hunts.interrupts.seen:
        return Exit.INTERRUPTED
    return Exit.CLEAN if all(hunted.holds for hunted in rows) else Exit.MISSED


def _follow(
    screen: Screen,
    undertaking: Undertaking,
    seeds: str,
    queue: JobQueue,
    *,
    workers: int,
    after: After,
    share: Callable[[], float],
) -> None:
    """Run an undertaking to its end, showing how far it is."""
    screen.say(header(undertaking.work, seeds))
    screen.say(f"artifacts {undertaking.folder}  workers {workers}")
    campaign = undertaking.campaign
    with screen.progress() as show:
        watch = watch_findings(show, undertaking.seconds)
        for _ in undertaking.events(queue, workers, after, watch):
            text = f"{campaign.total.seeds} seeds, {len(campaign.findings)} findings"
            show(min(1.0, share()), text, undertaking.seconds())


def watch_findings(show: Show, seconds: Callable[[], float]) -> Watch:
    """Shows which finding is made small, and what is left of it."""

    def watch(step: Step) -> None:
        left = counted(step.operations, "operation")
        text = (
            f"finding {step.place} of {step.total}, {step.finding.folder.name}: {left},"
            f" {counted(step.executions, 'run')}"
        )
        show(step.share, text, seconds())

    return watch


def _conclude(
    screen: Screen,
    command: str,
    undertaking: Undertaking,
    digest: str | None,
    *,
    as_json: bool,
    more: Mapping[str, object] = MappingProxyType({}),
) -> None:
    """Say the last lines: findings, summary, and the object for programs."""
    campaign, work = undertaking.campaign, undertaking.work
    for line in finding_lines(campaign.findings, REPORTS_MAX):
        screen.say(line)
    for line in summary_lines(campaign.total, work.probes()):
        screen.say(line)
    if campaign.trouble:
        screen.say(f"not kept    {campaign.trouble}")
    count = len(campaign.findings)
    screen.say(f"findings    {count or 'none'}{f' in {undertaking.folder}' if count else ''}")
    if as_json:
        records = violation_records(campaign.findings)
        seconds = undertaking.seconds()
        record = summary_record(command, work.about(), campaign.total, records, seconds, digest)
        screen.say(json_line(record | dict(more)))
