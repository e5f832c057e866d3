"""What a command says first and last: the lines for people and the object for programs.

Silence is no evidence, so what never ran and was never reached is said as loudly as what did.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from harness.check import PROMISES
from harness.probes import PROBES
from harness.sweep.findings import Findings
from harness.sweep.tally import Tally, never_ran
from harness.sweep.workload import About, SeedWork
from harness.words import counted
from unikv import __version__

DEVICE = "modeled"


def header(work: SeedWork, seeds: str) -> str:
    """The first line: what is run, on what, and how to run one seed of it again."""
    about = work.about()
    return (
        f"seeds {seeds}  scenario {about.scenario}  strategy {about.strategy}  device {DEVICE}"
        f"  unikv {__version__}  replay: {work.command_form()}"
    )


def seeds_text(seeds: range) -> str:
    """A range of seeds as it is written on the command line."""
    return f"{seeds[0]}..{seeds[-1]}" if len(seeds) > 1 else str(seeds[0])


def summary_lines(tally: Tally, probes: Collection[str]) -> list[str]:
    """Operations by outcome, pages, waits, checks and probes; `probes` are those expected."""
    rates = tally.per_10k()
    ran = ", ".join(f"{name} {count}" for name, count in sorted(tally.checks.items()) if count)
    never = ", ".join(never_ran(tally))
    reached = sum(1 for count in tally.probes.values() if count)
    wanted = sum(1 for name in probes if tally.probes[name])
    missing = ", ".join(name for name in probes if not tally.probes[name])
    return [
        f"operations  {tally.operations} tried in {counted(tally.seeds, 'seed')}:"
        f" {tally.applied} applied, {tally.refused} refused, {tally.skipped} skipped;"
        f" {tally.operations_per_second()} applied per second of one core",
        f"pages       {rates['moves']} moves, {rates['reliefs']} reliefs,"
        f" {rates['relocations']} relocations, {rates['page_accesses']} page accesses"
        " per 10,000 applied",
        f"waits       {rates['settles']} settles, {rates['refusals']} refusals per 10,000 applied",
        f"checks      {ran or 'none'}{'; NEVER RAN: ' + never if never else ''}",
        f"probes      {reached} reached, {wanted} of the {len(probes)} that have to be"
        f"{'; NOT REACHED: ' + missing if missing else ''}",
    ]


def finding_lines(findings: Findings, reports_max: int) -> list[str]:
    """The reports of the first findings, and one line for each of the others."""
    lines: list[str] = []
    for number, finding in enumerate(findings.all()):
        lines.append("")
        if number < reports_max:
            lines += findings.report(finding).splitlines()
        else:
            lines.append(f"{finding.signature}: see {finding.report}")
        count = findings.count(finding)
        seen = (
            f"seen in {counted(count, 'seed')}, first in"
            if count
            else "met while shrinking what was seen in"
        )
        lines.append(f"  {seen} seed {finding.seed}")
    return [*lines, ""] if lines else lines


def violation_records(findings: Findings) -> list[dict[str, object]]:
    """Findings for programs."""
    return [
        {
            "signature": finding.signature,
            "check": finding.check,
            "scenario": finding.scenario,
            "seed": finding.seed,
            "operation": finding.operation,
            "count": findings.count(finding),
            "case": None if finding.smallest_case is None else str(finding.smallest_case),
        }
        for finding in findings.all()
    ]


def summary_record(
    command: str,
    about: About,
    tally: Tally,
    violations: Sequence[dict[str, object]],
    seconds: float,
    digest: str | None,
) -> dict[str, object]:
    """The last line for programs; `seconds` of wall time, `digest` None where none is promised."""
    return {
        "command": command,
        "scenario": about.scenario,
        "device": DEVICE,
        "ranks": about.ranks,
        "strategy": about.strategy,
        "seeds": tally.seeds,
        "operations": tally.operations,
        "applied": tally.applied,
        "refused": tally.refused,
        "skipped": tally.skipped,
        "seconds": round(seconds, 3),
        "operations_per_second": tally.operations_per_second(),
        # Zeros are stated: what never ran or was never reached has to be seen.
        "checks": dict.fromkeys(PROMISES, 0) | dict(sorted(tally.checks.items())),
        "probes": dict.fromkeys(PROBES, 0) | dict(sorted(tally.probes.items())),
        "per_10k": tally.per_10k(),
        "violations": list(violations),
        "digest": digest,
    }
