"""The rules that the allocator's state obeys between calls, and what a broken one does.

A rule has a name, so that a log line, an error and a row of the documentation mean the same thing.
How a rule is checked is in `unikv.alloc.audit` and `unikv.alloc.checked`; this module knows no
allocator.  It is the one module of the package that reads the environment.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from unikv.errors import LISTED, InvariantError, SettingError

VARIABLE = "UNIKV_INVARIANT_CHECK"
_LOG = logging.getLogger("unikv.invariants")


class InvariantLevel(IntEnum):
    """What a broken rule does."""

    OFF = 0  # nothing is checked, and nothing is spent on it
    WARN = 1  # fatal rules raise, the others are logged once each
    STRICT = 2  # every broken rule raises


def level_from_environment(environment: Mapping[str, str] = os.environ) -> InvariantLevel:
    """The level that `UNIKV_INVARIANT_CHECK` asks for; off where it is not set.

    Raises:
        SettingError: if it is set to anything but 0, 1 or 2.
    """
    text = environment.get(VARIABLE)
    if text is None:
        return InvariantLevel.OFF
    for level in InvariantLevel:
        if text == str(level.value):
            return level
    allowed = ", ".join(f"{level.value} ({level.name.lower()})" for level in InvariantLevel)
    raise SettingError(f"{VARIABLE} is {text!r}; allowed: {allowed}; set one of them or unset it")


@dataclass(frozen=True, slots=True)
class Invariant:
    """One rule.

    Attributes:
        name: the part it is about and the rule, `part.rule`.
        meaning: the rule in one line.
        fatal: whether going on could give bytes to two owners, or carry the wrong bytes; such a
            rule raises also at the level that only warns.
    """

    name: str
    meaning: str
    fatal: bool


MAP_BIJECTIVE = Invariant(
    "ids.map_bijective",
    "An id names one page and that page names the id; an id is free or bound, never both.",
    fatal=True,
)
FREE_OF_BOUND_PAGE = Invariant(
    "band.free_of_bound_page",
    "A page is live exactly while an id names it, so no bound page is free or pending.",
    fatal=True,
)
HANDOUT_OF_USED_PAGE = Invariant(
    "band.handout_of_used_page",
    "No page is handed out or moved onto while a step, copy, hold or transfer may touch its bytes.",
    fatal=True,
)
MOVE_OF_WRITTEN_PAGE = Invariant(
    "band.move_of_written_page",
    "No page is copied away while a step, a load or a peer may still write it.",
    fatal=True,
)
COUNT_CONSERVATION = Invariant(
    "band.count_conservation",
    "live + holes + pending + fixed is the length of the span, state by state, and a page is"
    " pending exactly while one batch, vacated use or transfer keeps it.",
    fatal=False,
)
BANDS_DISJOINT = Invariant(
    "chain.bands_disjoint",
    "Spans lie in chain order between sink and arena end, share no byte, and ends touch their"
    " walls.",
    fatal=True,
)
BYTE_CONSERVATION = Invariant(
    "chain.byte_conservation",
    "The sink, the claimed pages and the gaps add up to the arena, and copies stay inside it.",
    fatal=False,
)
CAPACITY_EPOCH = Invariant(
    "chain.capacity_epoch",
    "The snapshot kept for capacity questions equals one made afresh.",
    fatal=False,
)
TAKE_AFTER_YES = Invariant(
    "chain.take_after_yes",
    "A take succeeds exactly if the capacity question about it says yes.",
    fatal=False,
)
STEPS_ORDER = Invariant(
    "steps.order",
    "Steps are recorded and processed in launch order, and one counts as settled only after the"
    " schedule stream waited for it.",
    fatal=True,
)
IDLE_HAS_NO_PENDING_BATCH = Invariant(
    "steps.idle_has_no_pending_batch",
    "With no recorded step in flight, nothing waits for one.",
    fatal=False,
)
READ_AFTER_WAIT = Invariant(
    "operation.read_after_wait",
    "Within one call the host reads the device only before the first stream wait.",
    fatal=False,
)
ROW_STATE = Invariant(
    "requests.row_state",
    "A request row is free or held, never both and never neither, and a row marked for a reset is"
    " held.",
    fatal=True,
)
LENGTH_BOUNDS = Invariant(
    "requests.length_bounds",
    "Of every request, committed <= allocated <= what its row names <= what a row can name.",
    fatal=False,
)
SLOT_UNIQUE = Invariant(
    "host.slot_unique",
    "A host slot is free, being filled by one backup, or full and read by loads alone, and no byte"
    " of host memory belongs to two slots in use.",
    fatal=True,
)

REGISTRY: Mapping[str, Invariant] = {
    invariant.name: invariant
    for invariant in (
        FREE_OF_BOUND_PAGE,
        HANDOUT_OF_USED_PAGE,
        MOVE_OF_WRITTEN_PAGE,
        COUNT_CONSERVATION,
        BANDS_DISJOINT,
        BYTE_CONSERVATION,
        CAPACITY_EPOCH,
        TAKE_AFTER_YES,
        MAP_BIJECTIVE,
        STEPS_ORDER,
        IDLE_HAS_NO_PENDING_BATCH,
        READ_AFTER_WAIT,
        ROW_STATE,
        LENGTH_BOUNDS,
        SLOT_UNIQUE,
    )
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where one rule is broken.

    Attributes:
        invariant: the rule.
        place: what it is broken in: a band, the chain, the steps, a request row.
        what: the values found and the values allowed, in words.
        pages: physical pages of the band that it is about.
        ids: virtual ids, or rows of the request table, that it is about.
    """

    invariant: Invariant
    place: str
    what: str
    pages: tuple[int, ...] = ()
    ids: tuple[int, ...] = ()

    def __str__(self) -> str:
        listed = "".join(
            f"; {name} {_listed(numbers)}"
            for name, numbers in (("pages", self.pages), ("ids", self.ids))
            if numbers
        )
        return f"{self.invariant.name}: {self.place}: {self.what}{listed}"


class Invariants:
    """What becomes of findings: nothing, a log line or an error.

    Law: at the level that warns, each name is logged at most once.

    Attributes:
        level: how much is checked.
        seen: names that were logged.
    """

    __slots__ = ("level", "seen")

    def __init__(self, level: InvariantLevel) -> None:
        self.level = level
        self.seen: set[str] = set()

    def report(self, findings: Sequence[Finding]) -> None:
        """Log what may be survived, then raise for what may not.

        Raises:
            InvariantError: for any finding at the strict level, and for one of a fatal rule at the
                level that warns; it carries the text of all findings.
        """
        if not findings or self.level is InvariantLevel.OFF:
            return
        strict = self.level is InvariantLevel.STRICT
        raising = [found for found in findings if strict or found.invariant.fatal]
        for found in findings:
            name = found.invariant.name
            if not raising and name not in self.seen:
                self.seen.add(name)
                _LOG.warning("%s (logged once; %s=2 raises)", found, VARIABLE)
        if raising:
            # A fatal rule names the cause better than what it has brought out of balance.
            first = min(raising, key=lambda found: not found.invariant.fatal)
            others = [str(found) for found in findings if found is not first]
            raise InvariantError(first.invariant.name, str(first), others)


def invariant_table() -> str:
    """The registry as rows of a Markdown table, one line each."""
    lines = ["| name | what holds | at 1 | at 2 |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{rule.name}` | {rule.meaning} | {'raises' if rule.fatal else 'logs once'} | raises |"
        for rule in REGISTRY.values()
    ]
    return "\n".join(lines) + "\n"


def _listed(numbers: Sequence[int]) -> str:
    text = ", ".join(map(str, numbers[:LISTED]))
    more = len(numbers) - LISTED
    return f"{text} and {more} more" if more > 0 else text
