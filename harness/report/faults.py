"""The table of planted faults: a row for each, the missed ones first."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.catalog import FAULTS
from harness.faults.hunt import OPERATIONS
from harness.report.summary import DEVICE
from harness.sweep.hunts import Hunted, HuntWork
from harness.sweep.workload import PROGRAM
from unikv import __version__


def hunt_header(work: HuntWork) -> str:
    """The first line: what is hunted, where, and how to see one fault again."""
    names = ",".join(named.name for named in work.scenarios)
    return (
        f"faults {len(work.faults)}  scenario {names}  strategy swarm  device {DEVICE}"
        f"  unikv {__version__}  replay: {PROGRAM} replay --scenario SCENARIO --seed SEED"
        f" --ops {OPERATIONS} --plant FAULT"
    )


def hunt_lines(hunts: Sequence[Hunted]) -> list[str]:
    """The table and a line that sums it up."""
    widest = max((len(hunted.fault) for hunted in hunts), default=0)
    lines = [
        f"{'':6}  {'fault':{widest}}  {'by':13}  {'operations':>10}  {'cpu s':>7}"
        "  seen in: what was planted"
    ]
    for hunted in hunts:
        seen = f"{hunted.scenario} seed {hunted.seed}" if hunted.violations else "nowhere"
        lines.append(
            f"{'caught' if hunted.caught else 'MISSED'}  {hunted.fault:{widest}}"
            f"  {hunted.check or 'nothing':13}  {hunted.operations:10}  {hunted.cpu_seconds:7.2f}"
            f"  {seen}: {FAULTS[hunted.fault].planted}"
        )
    caught = sum(hunted.caught for hunted in hunts)
    return [*lines, f"caught      {caught} of {len(hunts)}"]


def hunt_records(hunts: Sequence[Hunted]) -> list[dict[str, object]]:
    """The rows for programs."""
    return [
        {
            "id": hunted.fault,
            "rows": list(FAULTS[hunted.fault].rows),
            "planted": FAULTS[hunted.fault].planted,
            "caught": hunted.caught,
            "check": hunted.check,
            "scenario": hunted.scenario,
            "seed": hunted.seed,
            "operations": hunted.operations,
            "cpu_seconds": hunted.cpu_seconds,
        }
        for hunted in hunts
    ]
