"""Totals of many seeds, added up in their fixed order.

The insight: because seeds are added in order, the digest of a range is one fold over the digests
of its seeds, and it is the same for every number of processes.
"""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

from harness.check import PROMISES
from harness.runner import SeedResult

PER_10K = ("moves", "settles", "reliefs", "relocations", "refusals", "page_accesses")
"""Counters that are stated per 10,000 counted operations, in this order."""


class Tally:
    """Sums over seeds.

    Invariant: every figure is over the same `seeds` results.  Changed by `add` alone.

    Attributes:
        seeds: results added.
        operations, applied, refused, skipped: operations by outcome; `applied` is what counts.
        checks, probes, counters: how often each ran, was reached, or was counted.
        busy_seconds: processor time of the workers while they ran these seeds.
    """

    def __init__(self) -> None:
        self.seeds = 0
        self.operations = 0
        self.applied = 0
        self.refused = 0
        self.skipped = 0
        self.checks: Counter[str] = Counter()
        self.probes: Counter[str] = Counter()
        self.counters: Counter[str] = Counter()
        self.busy_seconds = 0.0
        self._digest = blake2b(digest_size=16)

    def add(self, result: SeedResult, busy_seconds: float) -> None:
        """Count one more seed, the next in order."""
        self.seeds += 1
        self.operations += result.operations
        self.applied += result.applied
        self.refused += result.refused
        self.skipped += result.skipped
        # Counter.update keeps names whose count is zero: never run is a result too.
        self.checks.update(result.checks)
        self.probes.update(result.probes)
        self.counters.update(result.counters)
        self.busy_seconds += busy_seconds
        self._digest.update(bytes.fromhex(result.digest))

    @property
    def digest(self) -> str:
        """Fold of the seeds' digests, as hexadecimal digits."""
        return self._digest.hexdigest()

    def per_10k(self) -> dict[str, float]:
        """The counters per 10,000 counted operations; zeros where nothing counted."""
        scale = 10_000 / self.applied if self.applied else 0.0
        return {name: round(self.counters[name] * scale, 2) for name in PER_10K}

    def operations_per_second(self) -> float:
        """Counted operations per second of processor time: the pace of one core."""
        return round(self.applied / self.busy_seconds, 1) if self.busy_seconds else 0.0


def never_ran(tally: Tally) -> list[str]:
    """Promises that no check looked at."""
    return [name for name in PROMISES if not tally.checks[name]]
