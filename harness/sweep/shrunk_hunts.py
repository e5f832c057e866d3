"""Hunts whose catches are made small: how short the failing runs of each fault get, and how alike.

The insight: one bug that ends in a hundred texts is a hundred findings to read.  So the figure
beside the length is how many different texts the failing seeds of one fault came down to, and how
many signatures they had, since no text can stand for two of those.

How a candidate is tried is not known here, except that time is bounded.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import NamedTuple

import msgspec

from harness.canonical import Item
from harness.faults.catalog import FAULTS
from harness.faults.failing import Failing, failing_runs, runner_for
from harness.faults.fault import Fault
from harness.faults.hunt import SEEDS_MAX
from harness.scenario import Scenario
from harness.shrinking import Means, Run, parted, shrink_run
from harness.sweep.hunts import HUNT_SECONDS_MAX, SILENCE_SECONDS_MAX, Hunted, HuntWork, Shrunken
from harness.sweep.jobs import Job
from harness.sweep.patience import alarmed
from shrink import Budget, Ends, Reduction

SHRINK_SECONDS_MAX = 20.0
"""Processor time that one failing run may take to be made small."""

SEARCH_SECONDS_MAX = 10.0
"""Processor time that it may take to meet one of them, on average; never less than a hunt's."""

SEEDS_OF_EACH = 200
"""Seeds of the fault's own scenario that are run for each failing one that is wanted, at most."""

ALONE = 10
"""How many failing runs of a fault are timed, each as if there were no other.  Those behind them go
by the worlds that candidates of earlier ones went through, and end where one of those did that came
to the same sequence; both save time and change nothing."""


class MadeSmall(NamedTuple):
    """One failing run: its kind of failure, what became of it, and processor time.

    `confirmed` says whether that fails likewise when it is run from its beginning.
    """

    signature: str
    reduction: Reduction[Item]
    seconds: float
    confirmed: bool


@dataclass(frozen=True, slots=True)
class ShrinkWork(HuntWork):
    """Hunts for faults, then makes the first failing runs of each as small as they get.

    Attributes:
        seeds: how many failing runs of each fault.
    """

    seeds: int

    @property
    def silence_seconds(self) -> float:
        """Wall time after which a hunt hangs: twice what it may take."""
        each = SHRINK_SECONDS_MAX + SEARCH_SECONDS_MAX
        return SILENCE_SECONDS_MAX + 2 * (HUNT_SECONDS_MAX + self.seeds * each)

    def run(self, job: Job) -> Hunted:
        """Hunt for one fault, and shrink it where it was caught."""
        hunted = HuntWork.run(self, job)
        if not hunted.caught:
            return hunted
        fault = FAULTS[self.faults[job.seed]]
        scenarios = {named.name: named.scenario for named in self.scenarios}
        made: list[MadeSmall] = []
        shared = runner_for(fault, alarmed)
        ends: defaultdict[str, Ends[Item]] = defaultdict(dict)  # by signature
        for failing in _some(fault, scenarios, self.seeds):
            signature = failing.violation.signature
            begin = time.process_time()
            if len(made) < ALONE:
                alone: Ends[Item] = {}
                reduction = _shrunk(failing, runner_for(fault, alarmed), alone)
                ends[signature].update(alone)
            else:
                reduction = _shrunk(failing, shared, ends[signature])
            seconds = time.process_time() - begin
            again = runner_for(fault, alarmed)(*parted(reduction.result))
            confirmed = any(violation.signature == signature for violation in again)
            made.append(MadeSmall(signature, reduction, seconds, confirmed))
        return msgspec.structs.replace(hunted, shrunk=summed(made))


def summed(made: Sequence[MadeSmall]) -> Shrunken:
    """What all the failing runs of one fault came to; the setup is no operation."""
    seconds = [one.seconds for one in made[:ALONE]]
    lengths = [len(one.reduction.result) - 1 for one in made]
    texts = Counter(one.reduction.result for one in made)
    of_signature: dict[str, Counter[tuple[Item, ...]]] = {}
    for one in made:
        of_signature.setdefault(one.signature, Counter())[one.reduction.result] += 1
    return Shrunken(
        seeds=len(made),
        confirmed=sum(one.confirmed for one in made),
        operations=_middle(lengths),
        longest=max(lengths),
        distinct_results=len(texts),
        same_result=max(texts.values()),
        signatures=len(of_signature),
        same_result_each=sum(max(counts.values()) for counts in of_signature.values()),
        seconds=round(median(seconds), 3),
        seconds_longest=round(max(seconds), 3),
        executions=_middle([one.reduction.executions for one in made[:ALONE]]),
    )


def _middle(counts: Sequence[int]) -> int | float:
    """The median: a whole number, or a half where it lies between two."""
    middle = median(counts)
    return int(middle) if middle == int(middle) else middle


def _some(fault: Fault, scenarios: Mapping[str, Scenario], count: int) -> Iterator[Failing]:
    """The first failing runs, as many as are wanted or as time allows."""
    begin = time.process_time()
    found = 0
    seconds_max = max(HUNT_SECONDS_MAX, count * SEARCH_SECONDS_MAX)
    for failing in failing_runs(fault, scenarios, seeds=max(SEEDS_MAX, count * SEEDS_OF_EACH)):
        if failing is not None:
            found += 1
            spent = time.process_time()
            yield failing
            begin += time.process_time() - spent  # What the caller did with it is not the search.
        if found >= count or time.process_time() - begin > seconds_max:
            return


def _shrunk(failing: Failing, run: Run, ends: Ends[Item]) -> Reduction[Item]:
    end = time.process_time() + SHRINK_SECONDS_MAX
    return shrink_run(
        failing.setup,
        failing.operations,
        run,
        failing.violation.signature,
        Budget(deadline=partial(_is_over, end)),
        means=Means(ends=ends),
    )


def _is_over(end: float) -> bool:
    return time.process_time() > end
