"""Smaller cases: `shrink` applied to traces, with "the same signature" as the predicate.

The insight: a trace that begins with its setup is one sequence, so a storage is made simpler by the
same passes as an operation, and whatever is tried is tried as a whole.  A candidate that breaks
another promise is another finding and does not count as failing.

Not known here: what simpler is (`harness.simpler`, `harness.simpler_setup`), which of two traces is
smaller (`harness.canonical`), and what time it is.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, Protocol, cast

import msgspec

from harness.canonical import Item, Size
from harness.case import Case
from harness.known_runs import KnownRuns
from harness.ops import Operation
from harness.ops.base import Op
from harness.runner import collector_paused
from harness.scenario import Setup
from harness.short_traces import short_traces
from harness.simpler import (
    canonically_named,
    fewer_blocks,
    merged,
    names_of,
    other_names,
    plain_operations,
    plainer_kinds,
    rested,
    smaller_numbers,
    without,
)
from harness.simpler_lives import fewer_names, longer_prompts, without_cache
from harness.simpler_setup import fewer_slots, lower, simpler_setups
from harness.small_setups import small_setups
from harness.violation import Violation
from shrink import (
    ALONE,
    SILENT,
    Ahead,
    Budget,
    DoesNotFail,
    Ends,
    Observer,
    Pass,
    Reduction,
    behind,
    by_name,
    delete_pairs,
    delete_runs,
    exchange_items,
    merge_items,
    move_items,
    reduce,
    replace_items,
    replace_pairs,
    rewrite,
    truncate,
)

RUNS_BETWEEN_COLLECTIONS = 64
"""Worlds that lie about before those of them are freed that refer to themselves."""

Run = Callable[[Setup, Sequence[Op]], Sequence[Violation]]
"""Runs operations on a new world and gives back what was found first."""

Met = Callable[[Setup, Sequence[Op], Violation], None]
"""Keeps a failure of another signature that a candidate showed."""


class Memory(Protocol):
    """Verdicts that outlive the process, for a reduction that goes on where it was ended."""

    def recall(self, items: Sequence[Item]) -> bool | None:
        """Whether a candidate fails; None where it was not run."""
        ...

    def remember(self, items: Sequence[Item], *, fails: bool) -> None:
        """Keep whether a candidate fails."""
        ...


class Forgetful:
    """No memory: every reduction begins anew."""

    def recall(self, items: Sequence[Item]) -> bool | None:
        """Nothing was kept."""
        return None

    def remember(self, items: Sequence[Item], *, fails: bool) -> None:
        """Nothing is kept."""


def dropped(setup: Setup, operations: Sequence[Op], violation: Violation) -> None:
    """What becomes of a failure of another signature where nobody wants it."""


FORGETFUL = Forgetful()


@dataclass(frozen=True, slots=True)
class Means:
    """What a reduction works with besides its case; none of it changes the result.

    Attributes:
        observer: told of each pass and each run.
        ahead: where candidates can run before they are asked for.
        memory: verdicts of an earlier reduction of the same case.
        met: keeps failures of other signatures; they are never followed.
        ends: of earlier reductions of the same program and signature.
    """

    observer: Observer = SILENT
    ahead: Ahead[Item] = ALONE
    memory: Memory = FORGETFUL
    met: Met = dropped
    ends: Ends[Item] | None = None


MEANS = Means()

DELETIONS: tuple[Pass[Item], ...] = (
    truncate,
    by_name(names_of, without, delete_runs, name="delete_names"),
    delete_runs,
)
REWRITES: tuple[Pass[Item], ...] = (
    rewrite(fewer_names, name="fewer_names"),
    rewrite(longer_prompts, name="longer_prompts"),
)
REPLACEMENTS: tuple[Pass[Item], ...] = (
    replace_items(smaller_numbers, name="smaller_numbers"),
    merge_items(merged),
    delete_pairs,
    rewrite(rested, name="rested"),
    replace_items(plainer_kinds, name="plainer_kinds"),
    rewrite(without_cache, name="without_cache"),
    rewrite(other_names, name="other_names"),
    move_items,
    rewrite(canonically_named, name="canonical_names"),
)
PASSES: tuple[Pass[Item], ...] = (
    *(behind(1, run) for run in DELETIONS),
    replace_items(simpler_setups, name="simpler_setup"),
    rewrite(fewer_slots, name="fewer_slots"),
    rewrite(fewer_blocks, name="fewer_blocks"),
    *REWRITES,
    *(behind(1, run) for run in REPLACEMENTS),
    rewrite(small_setups, name="small_setups"),
    replace_pairs(lower, name="lower_numbers"),
    rewrite(short_traces, name="short_traces"),
    behind(1, exchange_items(plain_operations)),
)
"""What is tried on a trace behind its setup, cheapest first."""


class Smaller(NamedTuple):
    """What a reduction left of a case.

    Attributes:
        case: its last operation breaks the promise; the given one if nothing smaller fails.
        complete: whether no pass can make it smaller, so that no operation can be left out; False
            where the budget ended first.
    """

    case: Case
    complete: bool


def shrink_case(
    case: Case, budget: Budget, *, means: Means = MEANS, run: Run | None = None
) -> Smaller:
    """The smallest case found that fails with the same signature.

    Args:
        case: a case that fails when it is replayed.
        budget: when to stop with the best so far.
        means: who watches, helps and remembers.
        run: runs candidates instead of this process.

    Raises:
        DoesNotFail: if the case does not fail with its signature.
    """
    here = runner_of(case)
    signature = case.violation.signature
    reduction = shrink_run(case.setup, case.operations, run or here, signature, budget, means=means)
    return smaller_case(case, reduction)


def smaller_case(case: Case, reduction: Reduction[Item], run: Run | None = None) -> Smaller:
    """The case with what a reduction left of it.

    Args:
        case: what was reduced.
        reduction: how far it got.
        run: runs the result once more, instead of this process on unikv.

    Raises:
        DoesNotFail: if that does not fail, as where verdicts were remembered of another program.
    """
    setup, operations = parted(reduction.result)
    for violation in (run or runner_of(case))(setup, operations):
        if violation.signature == case.violation.signature:
            smaller = msgspec.structs.replace(
                case,
                setup=setup,
                operations=cast(tuple[Operation, ...], operations),
                violation=violation,
            )
            return Smaller(smaller, reduction.complete)
    raise DoesNotFail(
        f"shrink: the smallest of {reduction.executions} candidates does not fail when it is run"
        f" again; remembered verdicts must be of this program, so forget them and begin anew"
    )


def runner_of(case: Case) -> Run:
    """Runs what a case is about, with its planted fault, in this process."""

    return KnownRuns(case.plant)


def shrink_run(
    setup: Setup,
    operations: Sequence[Op],
    run: Run,
    signature: str,
    budget: Budget,
    *,
    means: Means = MEANS,
) -> Reduction[Item]:
    """The smallest setup and operations found that fail with the same signature.

    Raises:
        DoesNotFail: if the operations do not fail with it.
    """
    memory = means.memory
    runs = count(1)

    def fails(items: Sequence[Item]) -> bool:
        known = memory.recall(items)
        if known is not None:
            return known
        candidate = parted(items)
        found = run(*candidate)
        if next(runs) % RUNS_BETWEEN_COLLECTIONS == 0:
            gc.collect(0)
        failed = any(violation.signature == signature for violation in found)
        if found and not failed:
            means.met(*candidate, found[0])
        memory.remember(items, fails=failed)
        return failed

    # What candidates leave behind is collected now and then, without a look at all that stays.
    with collector_paused():
        return reduce(
            (setup, *operations),
            fails,
            order=Size,
            key=lambda item: item,
            passes=PASSES,
            budget=budget,
            observer=means.observer,
            ahead=means.ahead,
            ends=means.ends,
        )


def parted(items: Sequence[Item]) -> tuple[Setup, tuple[Op, ...]]:
    """The setup that a trace begins with, and its operations."""
    setup, *operations = items
    assert isinstance(setup, Setup)
    return setup, tuple(cast(list[Op], operations))


def shrink_trace(
    trace: Sequence[Op], fails: Callable[[Sequence[Op]], bool], budget: Budget
) -> tuple[Op, ...]:
    """The smallest trace found that still fails, where the setup has to stay as it is.

    Args:
        trace: operations that fail.
        fails: whether a trace does.
        budget: when to stop with the best so far.
    """
    reduction = reduce(
        tuple[Item, ...](trace),
        lambda items: fails(cast(Sequence[Op], items)),
        order=Size,
        key=lambda item: item,
        passes=(*DELETIONS, *REWRITES, *REPLACEMENTS),
        budget=budget,
    )
    return cast(tuple[Op, ...], reduction.result)
