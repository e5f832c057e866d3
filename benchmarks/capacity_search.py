"""Random capacity questions against an exhaustive search, as many as there is time for.

    python -m benchmarks.capacity_search --snapshots N [--seed S]
    python -m benchmarks.capacity_search --reliefs N [--seed S]

`--snapshots` asks the rule alone about drawn snapshots, in both views of each: who may not move
while transfers run, and who may not in any case.  `--reliefs` plays chains of a real allocator
whose pages are in many hands, until N takes were served by a rearrangement; a yes must be kept with
every word in place, a no must have changed nothing.

A snapshot, and a chain, is a function of its number and of nothing else.  So a search goes on where
another one ended, and what was found comes back with `--seed` and the number that was printed.
How a layout is judged is not known here.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from time import process_time

from benchmarks.search.concrete_chains import careful, full, random_chain, random_demand
from benchmarks.search.lending_player import play_chain
from benchmarks.search.pricing_judge import OURS, Rule, Verdict, judge
from harness.errors import InputError
from harness.mistakes import NO_ANSWERS
from harness.sweep.verdict import Exit
from harness.ways_out import WaysOut
from unikv.alloc.snapshot import ChainView

VIEWS = {"full": full, "careful": careful}


@dataclass(slots=True)
class Snapshots:
    """What a rule said of many snapshots.

    Law: of every question, the yeses and the noes of the search add up to the snapshots asked.

    Attributes:
        asked, served, mistaken: how often per question; `served` and `mistaken` are the search's
            yeses and the rule's wrong answers.
        kinds: snapshots with so many bands, with pages of several sizes, fixed, under transfers.
        first: the first wrong answer in words; empty if there is none.
    """

    asked: Counter[str] = field(default_factory=Counter)
    served: Counter[str] = field(default_factory=Counter)
    mistaken: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    first: str = ""

    def add(self, rule: Rule, number: int) -> None:
        """Draw one snapshot and judge the rule's answers about it."""
        rng = Random(number)
        chain = random_chain(rng)
        demand = random_demand(rng, chain)
        letters = "".join(band.pages for band in chain.bands)
        self.kinds[f"bands {len(chain.bands)}"] += 1
        self.kinds["pages of several sizes"] += len({band.page_bytes for band in chain.bands}) > 1
        self.kinds["with fixed pages"] += "F" in letters
        self.kinds["with pages under transfers"] += "H" in letters or "q" in letters
        for name, view in VIEWS.items():
            for verdict in _verdicts(rule, view(chain), demand):
                question = f"{name} view, {verdict.question}"
                self.asked[question] += 1
                self.served[question] += verdict.is_served
                if verdict.mistake:
                    self.mistaken[question] += 1
                    self.first = self.first or (
                        f"snapshot {number}: {question}: {verdict.mistake}\n"
                        f"  {chain}\n  demand {demand}"
                    )


def _verdicts(rule: Rule, view: ChainView, demand: Sequence[int]) -> Iterator[Verdict]:
    try:
        yield from judge(rule, view, demand)
    except NO_ANSWERS as error:
        yield Verdict("answered without raising", True, repr(error))


def search_snapshots(rule: Rule, numbers: range) -> Snapshots:
    """Judge a rule's answers about every snapshot of a range."""
    found = Snapshots()
    for number in numbers:
        found.add(rule, number)
    return found


def print_snapshots(found: Snapshots) -> None:
    """A row per question, and what the snapshots were like."""
    print("| question | asked | yes | no | differences |\n|---|---|---|---|---|")
    for question, asked in found.asked.items():
        yes, wrong = found.served[question], found.mistaken[question]
        print(f"| {question} | {asked:,} | {yes:,} | {asked - yes:,} | {wrong:,} |")
    print("\n" + ", ".join(f"{kind}: {count:,}" for kind, count in sorted(found.kinds.items())))


@dataclass(frozen=True, slots=True)
class Reliefs:
    """What chains of a real allocator met.

    Attributes:
        reached: chains, questions, refusals, reliefs, relocations, disturbed.
        next: the first number that was not played.
        first: the first wrong chain in words; empty if there is none.
    """

    reached: Counter[str]
    next: int
    first: str


def search_reliefs(start: int, wanted: int) -> Reliefs:
    """Play chains from number `start` on until one is wrong or `wanted` reliefs were seen."""
    reached: Counter[str] = Counter()
    number = start
    while reached["reliefs"] < wanted:
        try:
            reached += play_chain(number)
        except NO_ANSWERS as error:
            text = "".join(traceback.format_exception(error)).rstrip()
            return Reliefs(reached, number + 1, f"chain {number}:\n{text}")
        number += 1
    return Reliefs(reached, number, "")


def print_reliefs(found: Reliefs) -> None:
    """One row."""
    names = ("chains", "questions", "refusals", "reliefs", "relocations", "disturbed")
    cells = [f"{found.reached[name]:,}" for name in names]
    print(f"| {' | '.join((*names, 'differences'))} |\n|{'---|' * (len(names) + 1)}")
    print(f"| {' | '.join((*cells, str(int(bool(found.first)))))} |")


def main(arguments: Sequence[str] | None = None) -> Exit:
    """Search, print what there was to compare, and end with an `Exit`.

    Raises:
        InputError: if a number is too small, or if Python was told to leave out assertions.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capacity_search")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--snapshots", type=int, metavar="N", help="judge the rule alone")
    what.add_argument("--reliefs", type=int, metavar="N", help="play chains of a real allocator")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="first number; default 1")
    given = parser.parse_args(arguments)
    wanted = given.snapshots if given.reliefs is None else given.reliefs
    if wanted < 1:
        raise InputError(f"--snapshots, --reliefs: {wanted}: want 1 or more")
    if given.seed < 0:
        raise InputError(f"--seed: {given.seed}: want 0 or more")
    if not __debug__:
        raise InputError("python -O: leaves out the assertions that judge; run it without")
    begin = process_time()
    if given.reliefs is None:
        numbers = range(given.seed, given.seed + wanted)
        snapshots = search_snapshots(OURS, numbers)
        print_snapshots(snapshots)
        first, following = snapshots.first, numbers.stop
    else:
        reliefs = search_reliefs(given.seed, wanted)
        print_reliefs(reliefs)
        first, following = reliefs.first, reliefs.next
    print(f"\n{process_time() - begin:.0f} s of one core; go on with --seed {following}")
    if first:
        print(f"\nfirst difference: {first}")
    return Exit.VIOLATION if first else Exit.CLEAN


if __name__ == "__main__":
    with WaysOut():
        sys.exit(main())
