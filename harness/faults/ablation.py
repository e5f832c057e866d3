"""Edge ablation: what happens without one wait, one event or one rule that offers no page.

An edge that nobody would miss is either redundant or untested, so each one that the code has is
taken out alone, and the fewest operations are shown whose accesses collide without it.  Only order
is looked at: that another check sees the damage first says nothing about the edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.faults.fault import Fault
from harness.faults.hunt import OPERATIONS, SEEDS_MAX
from harness.faults.trials import ORDER, Trial, try_seed, try_trace
from harness.ops.base import Op
from harness.scenario import Scenario
from harness.shrinking import shrink_trace
from harness.violation import Violation
from shrink import Budget

CATCHES = 2
"""Failing runs of one fault that are made small; the smallest is kept."""

EXECUTIONS_MAX = 1000
"""Runs that making one of them small may cost."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One reason why an access comes after another.

    Attributes:
        name: who waits for whom.
        made_by: what creates it.
        faults: ids of the faults that take out exactly it.
    """

    name: str
    made_by: str
    faults: tuple[str, ...]


EDGES: tuple[Edge, ...] = (
    Edge("F <- S", "launch", ("launch-without-schedule", "launch-after-old-mark")),
    Edge(
        "S <- shared-read end",
        "first table write after a launch",
        ("barrier-dropped", "barrier-one-step-behind"),
    ),
    Edge(
        "S <- all of F, where no read end is declared",
        "first table write after a launch",
        ("barrier-only-where-declared", "barrier-behind-the-metadata"),
    ),
    Edge("no table read behind the read end", "forward", ("row-read-behind-the-read-end",)),
    Edge("F <- X", "record", ("side-stream-joined-late", "side-stream-not-joined")),
    Edge("step event behind the last kernel", "record", ("event-before-the-body",)),
    Edge("host <- step", "process", ("process-without-wait", "process-after-metadata")),
    Edge("staging refilled after its step", "upload", ("staging-refilled-early",)),
    Edge("S <- step", "settle", ("settle-without-wait", "settle-behind-the-oldest")),
    Edge("page pending until its step", "free", ("freed-page-offered", "free-under-the-oldest")),
    Edge("vacated page pending until its step", "move", ("vacated-source-offered",)),
    Edge(
        "S <- newest writer of a source", "move", ("move-over-writer", "move-behind-oldest-writer")
    ),
    Edge("no move under unknown writes", "flush", ("move-under-unknown-writes",)),
    Edge("S <- newest step", "relief that copies", ("relief-copies-without-wait",)),
    Edge("one batch for each band", "relief that copies", ("one-batch-for-two-bands",)),
    Edge("F <- load", "launch", ("launch-over-a-load",)),
    Edge("F <- load, group by group", "launch", ("launch-one-layer-group-ahead",)),
    Edge("S <- load", "move", ("move-of-a-page-being-loaded",)),
    Edge(
        "S <- backup or load",
        "hand-out, move target",
        ("hand-out-over-a-backup", "hand-out-over-a-load"),
    ),
    Edge(
        "S <- backup or load, by bytes",
        "growth",
        ("backup-fence-by-page", "growth-over-a-load"),
    ),
    Edge("B <- F", "backup submission", ("backup-ahead-of-its-writer",)),
    Edge("B <- S", "backup submission", ("backup-ahead-of-a-move",)),
    Edge("B <- load", "backup submission", ("backup-ahead-of-a-load",)),
    Edge("L <- S", "load submission", ("load-ahead-of-the-take",)),
    Edge(
        "S <- step, backup or transfer",
        "hand-out to a load",
        (
            "load-into-pages-of-a-running-step",
            "load-into-pages-of-a-backup",
            "load-into-pages-of-a-transfer",
        ),
    ),
    Edge(
        "page in the ledger until its copy ends",
        "copy submission",
        ("backup-in-no-ledger", "load-in-no-ledger"),
    ),
    Edge("L <- backup of the source slots", "load submission", ("host-slot-read-at-submission",)),
    Edge("host slot locked until acknowledged", "host tier", ("host-slot-dropped-under-a-load",)),
    Edge("host <- transfer", "relief that moves it", ("relief-moves-a-transfer",)),
    Edge(
        "page pending until release",
        "free under a transfer",
        ("page-offered-under-a-transfer", "slot-offered-under-a-transfer"),
    ),
    Edge("page pending until every release", "release", ("release-forgets-other-transfers",)),
    Edge(
        "page kept until a proof",
        "quarantine",
        ("released-on-failure", "quarantine-lifted-without-proof", "quarantine-lifted-by-rounds"),
    ),
    Edge(
        "page held still", "flush, relief", ("flush-moves-held-pages", "float-moves-without-asking")
    ),
    Edge("host <- allocation", "publication", ("ids-leave-before-the-take",)),
    Edge("receive recorded before ids leave", "publication", ("hold-ends-before-its-receive",)),
    Edge(
        "host <- receive",
        "first use",
        ("receive-used-before-its-release", "receive-cached-before-its-release"),
    ),
    Edge(
        "host <- writing steps",
        "send start",
        ("send-before-its-writer-ended", "send-of-what-is-settled"),
    ),
    Edge("host <- load", "send start", ("send-under-a-load",)),
    Edge(
        "host <- last move of the pages",
        "send start",
        ("send-behind-no-move", "send-behind-its-first-gate"),
    ),
    Edge("own step for late work on F", "relayed commit", ("relayed-commit-without-a-step",)),
    Edge("F <- S", "relayed commit", ("relayed-commit-ahead-of-the-schedule",)),
    Edge(
        "S <- look-ups of a relayed commit",
        "first table write after it",
        ("relayed-commit-without-a-barrier",),
    ),
    Edge("S <- all of F", "row restore, row save", ("row-restored-behind-the-read-end",)),
    Edge("S <- restore before", "row restore", ("row-restored-on-another-stream",)),
    Edge("F <- S before the reset", "launch", ("row-reset-before-the-wait",)),
    Edge("row reset by the next forward", "launch", ("row-reset-at-hand-out",)),
    Edge("X <- F", "commit on a side stream", ("side-stream-commit-not-forked",)),
    Edge("F <- X", "record of such a commit", ("side-stream-commit-not-joined",)),
    Edge(
        "no look-up behind the metadata phase",
        "commit",
        ("row-looked-up-late", "state-map-looked-up-late"),
    ),
    Edge("static buffer refilled after its step", "upload", ("static-buffer-refilled-early",)),
    Edge(
        "S <- read end of the launched micro-batch",
        "pipeline iteration",
        ("pipeline-barrier-of-another-batch",),
    ),
)
"""Every edge, in the order in which a page meets them."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Operations that collide without an edge.

    Attributes:
        fault: what took the edge out.
        operations: the smallest trace found; the last one is where order was lost.
        violation: the two accesses and the edge that is missing between them.
    """

    fault: str
    operations: tuple[Op, ...]
    violation: Violation

    @property
    def length(self) -> int:
        """Operations without the passing of time."""
        return sum(operation.counted for operation in self.operations)


def witness(fault: Fault, scenarios: Mapping[str, Scenario]) -> Witness | None:
    """The fewest operations found in which `fault` makes two accesses collide.

    Args:
        fault: an ordering fault.
        scenarios: by name.

    Returns:
        None if order alone never shows the fault.
    """
    found = [_smallest(fault, trial) for trial in _collisions(fault, scenarios)]
    return min(found, key=lambda candidate: candidate.length, default=None)


def first_collision(fault: Fault, scenarios: Mapping[str, Scenario]) -> Violation | None:
    """What `ordering` says where it alone looks; None if it never says anything."""
    for trial in _trials(fault, scenarios):
        if trial.violations:
            return trial.violations[0]
    return None


def ablated() -> tuple[str, ...]:
    """Ids of the faults that take out an edge, in the order of the edges."""
    return tuple(fault for edge in EDGES for fault in edge.faults)


def _trials(fault: Fault, scenarios: Mapping[str, Scenario]) -> Iterator[Trial]:
    order = sorted(scenarios, key=lambda name: (name != fault.scenario, name))
    for name in order:
        for seed in range(1, SEEDS_MAX + 1):
            yield try_seed(fault, fault.ground, scenarios[name], seed, OPERATIONS, ORDER)


def _collisions(fault: Fault, scenarios: Mapping[str, Scenario]) -> Iterator[Trial]:
    """A few runs that show the fault; the search ends twice as far as the first one was."""
    found = limit = 0
    for tried, trial in enumerate(_trials(fault, scenarios), start=1):
        if any(map(fault.explains, trial.violations)):
            found += 1
            limit = limit or 2 * tried
            yield trial
        if found == CATCHES or (limit and tried >= limit):
            return


def _smallest(fault: Fault, trial: Trial) -> Witness:
    def fails(trace: Sequence[Op]) -> bool:
        found = try_trace(fault, trial.setup, trace, ORDER).violations
        return any(map(fault.explains, found))

    operations = shrink_trace(trial.trace, fails, Budget(EXECUTIONS_MAX))
    last = try_trace(fault, trial.setup, operations, ORDER)
    violation = next(filter(fault.explains, last.violations))
    return Witness(fault.id, operations, violation)
