"""The table of planted faults, the public reports they are modeled on, and the ablated edges."""

from __future__ import annotations

from collections.abc import Sequence

from harness.faults.ablation import EDGES
from harness.faults.catalog import FAULTS
from harness.faults.fault import Ground
from harness.faults.hunt import OPERATIONS
from harness.faults.incidents import INCIDENTS, WAITING
from harness.report.summary import DEVICE
from harness.sweep.hunts import Hunted, HuntWork
from harness.sweep.workload import PROGRAM
from unikv import __version__


def missed_text(fault: str) -> str:
    """That a planted fault was not caught, and where it is."""
    if FAULTS[fault].ground is Ground.CALLS:
        where = "calls show it that no operation makes"
    else:
        where = f"the scenario to look in is {FAULTS[fault].scenario}"
    return f"planted fault {fault} was not caught; {where}; faults --only {fault} hunts it"


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


def catalog_lines(faults: Sequence[str]) -> list[str]:
    """What each fault breaks and which promises may report it, then how many there are."""
    widest = max((len(fault) for fault in faults), default=0)
    lines = []
    for fault in map(FAULTS.__getitem__, faults):
        rows = f"  [{', '.join(fault.rows)}]" if fault.rows else ""
        lines.append(f"{fault.id:{widest}}  {', '.join(fault.checks)}: {fault.planted}{rows}")
    modeled = sum(bool(FAULTS[fault].rows) for fault in faults)
    return [*lines, f"faults      {len(faults)}, {modeled} of them modeled on public reports"]


def shrunk_lines(hunts: Sequence[Hunted]) -> list[str]:
    """How small the failing runs of each fault get, the longest results first."""
    rows = [(hunted.fault, hunted.shrunk) for hunted in hunts if hunted.shrunk is not None]
    rows.sort(key=lambda row: (-row[1].operations, -row[1].distinct_results, row[0]))
    widest = max((len(fault) for fault, _ in rows), default=0)
    lines = [
        f"{'shrunk':{widest}}  {'seeds':>5}  {'confirmed':>9}  {'operations':>10}  {'longest':>7}"
        f"  {'texts':>5}  {'same':>4}  {'signatures':>10}  {'same each':>9}  {'cpu s':>6}"
        f"  {'longest':>7}  {'runs':>6}"
    ]
    lines += [
        f"{fault:{widest}}  {row.seeds:5}  {row.confirmed:9}  {row.operations:10}  {row.longest:7}"
        f"  {row.distinct_results:5}  {row.same_result:4}  {row.signatures:10}"
        f"  {row.same_result_each:9}  {row.seconds:6.2f}  {row.seconds_longest:7.2f}"
        f"  {row.executions:6}"
        for fault, row in rows
    ]
    return lines


def row_lines() -> list[str]:
    """Every public report that faults are modeled on with their ids, then those that wait."""
    lines = []
    for row in sorted(INCIDENTS, key=_number):
        faults = [fault.id for fault in FAULTS.values() if row in fault.rows]
        lines.append(f"{row:5} {', '.join(faults)}")
    lines += [f"{row:5} waits for {what}" for row, what in sorted(WAITING.items(), key=_in_order)]
    return lines


def edge_lines(hunts: Sequence[Hunted]) -> list[str]:
    """Every edge with the smallest trace that collides without it."""
    by_fault = {hunted.fault: hunted for hunted in hunts}
    lines = [f"{'edge':44}  {'made by':32}  {'operations':>10}  collide: without"]
    for edge in EDGES:
        for fault in edge.faults:
            if fault in by_fault:
                lines.append(f"{edge.name:44}  {edge.made_by:32}  {_witness(by_fault[fault])}")
    return lines


def trace_lines(hunts: Sequence[Hunted]) -> list[str]:
    """The operations that collide without each edge, and what collides."""
    lines = []
    for hunted in hunts:
        lines.append(f"{hunted.fault}: {'' if hunted.trace else 'nothing collides'}".rstrip())
        lines += [f"  {place:3}  {operation}" for place, operation in enumerate(hunted.trace)]
        lines += [f"  {violation.what}" for violation in hunted.violations]
    return lines


def _witness(hunted: Hunted) -> str:
    if not hunted.violations:
        return f"{'NOT SEEN':>10}  {hunted.fault}"
    earlier, later = (access.kind for access in hunted.violations[0].accesses)
    return f"{hunted.operations:10}  {earlier}, {later}: {hunted.fault}"


def _number(row: str) -> int:
    return int(row.removeprefix("B"))


def _in_order(row: tuple[str, str]) -> int:
    return _number(row[0])


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
            **_shrunk_record(hunted),
        }
        for hunted in hunts
    ]


def catalog_records(faults: Sequence[str]) -> list[dict[str, object]]:
    """Faults that nobody has hunted, for programs."""
    return [
        {
            "id": fault.id,
            "rows": list(fault.rows),
            "reports": list(fault.reports),
            "planted": fault.planted,
            "checks": list(fault.checks),
            "ablates": fault.ablates,
        }
        for fault in map(FAULTS.__getitem__, faults)
    ]


def _shrunk_record(hunted: Hunted) -> dict[str, object]:
    shrunk = hunted.shrunk
    if shrunk is None:
        return {}
    return {
        "shrunk_seeds": shrunk.seeds,
        "confirmed": shrunk.confirmed,
        "shrunk_operations": shrunk.operations,
        "shrunk_longest": shrunk.longest,
        "distinct_results": shrunk.distinct_results,
        "same_result": shrunk.same_result,
        "signatures": shrunk.signatures,
        "same_result_each": shrunk.same_result_each,
        "shrink_seconds": shrunk.seconds,
        "shrink_seconds_longest": shrunk.seconds_longest,
        "executions": shrunk.executions,
    }
