"""Running: apply, let time pass, check.  It knows no operation by name and no check by content.

A run is a function of its setup and trace, and the trace is a function of scenario and seed.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b

import msgspec

from harness.check import (
    Examiner,
    capacity,
    conservation,
    content,
    divergence,
    host_reads,
    idle,
    ledger,
    mapping,
    noted,
    ordering,
    ownership,
)
from harness.choices import SeedChoices
from harness.faults.catalog import FAULTS
from harness.generate import Generator
from harness.ops import (
    Abort,
    AbortTransfer,
    CancelCopy,
    DropSaved,
    EvictPrefix,
    IdleCheck,
    Operation,
    Outcome,
)
from harness.problem import BrokenSubject
from harness.scenario import Scenario, Setup
from harness.setup import draw_setup
from harness.subject import Book
from harness.traffic import Traffic
from harness.unikv_subject import UnikvSubject
from harness.violation import Violation
from harness.world import SubjectFactory, World

PAGES_COMPARED_ALWAYS = 512
"""Arenas up to this many pages have their whole books compared after every operation."""

_ENCODE_INTO = msgspec.json.Encoder().encode_into
_SKIPPED, _REFUSED, _DONE = Outcome.SKIPPED, Outcome.REFUSED, Outcome.DONE
_BROKEN = Outcome.BROKEN

DIGEST_BYTES = 1 << 14
"""Encoded operations are hashed in pieces of this size, for a call costs as much as a kilobyte."""

_ON_DEVICE: tuple[tuple[str, Examiner], ...] = (
    ("assertion", noted.examine),
    ("ordering", ordering.examine),
    ("content", content.examine),
)
# Ports forget an operation when the next one begins, so these never wait for a stride.
_OF_THE_OPERATION: tuple[tuple[str, Examiner], ...] = (
    ("divergence", divergence.examine_submissions),
    ("host_reads", host_reads.examine),
)
_AFTER_ANSWERS: tuple[tuple[str, Examiner], ...] = (
    ("ownership", ownership.examine),
    ("mapping", mapping.examine),
    ("divergence", divergence.examine),
)
_AFTER_CHANGES: tuple[tuple[str, Examiner], ...] = (
    ("conservation", conservation.examine),
    ("ledger", ledger.examine),
)


class SeedResult(msgspec.Struct, frozen=True):
    """What one run did and found.

    Attributes:
        scenario, seed: what was run; seed -1 for a stored trace.
        operations: operations tried, without completions, host syncs and idle checks.
        applied, refused, skipped: how they ended; `applied` is what figures count.
        checks: times each check ran; for those that look at what a device or an answer left behind,
            times it was asked whether anything was.
        probes: times each probe was reached.
        counters: moves, settles, reliefs, relocations, refusals, page_accesses.
        violations: what was found; the run stopped there.
        digest: of operations, answers and violations, in hexadecimal.
        trace: the operations, when something was found.
        setup: the concrete storage and engine.
    """

    scenario: str
    seed: int
    operations: int
    applied: int
    refused: int
    skipped: int
    checks: dict[str, int]
    probes: dict[str, int]
    counters: dict[str, int]
    violations: tuple[Violation, ...]
    digest: str
    trace: tuple[Operation, ...]
    setup: Setup


class Run:
    """One world from its first operation to its last."""

    def __init__(
        self, setup: Setup, plant: str | None, subject: SubjectFactory = UnikvSubject
    ) -> None:
        self.world = World(setup, subject)
        if plant is not None:
            FAULTS[plant].plant(self.world)
        self.violations: list[Violation] = []
        self.trace: list[Operation] = []
        self.applied = self.refused = self.skipped = 0
        self._passes = [0, 0, 0, 0]
        # What is submitted is checked at once whatever the size; comparing whole books is cheap in
        # small arenas and done every few operations in large ones.
        pages = max(len(book.states) for book in self.world.subjects[0].books())
        self._stride = -(-pages // PAGES_COMPARED_ALWAYS)
        self._compared: tuple[list[Book], tuple[object, ...]] = ([], ())
        self._digest = blake2b(msgspec.json.encode(setup), digest_size=16)
        self._undigested = bytearray()

    def execute(self, operation: Operation) -> Outcome:
        """Apply one operation and check everything; the violations are kept."""
        world = self.world
        trace = self.trace
        world.device.operation = len(trace)
        trace.append(operation)
        if world.asked:
            world.asked = False
            for port in world.ports:
                port.begin_operation()
        outcome = _SKIPPED
        if world.open_step is None or not operation.between_steps:
            try:
                outcome = operation.apply(world)
            except BrokenSubject:
                outcome = _BROKEN
        if operation.counted:
            if outcome is _DONE:
                self.applied += 1
            elif outcome is _REFUSED or outcome is _BROKEN:
                self.refused += 1
            else:
                self.skipped += 1
        found = self._check()
        undigested = self._undigested
        _ENCODE_INTO((operation, outcome, world.answers, found), undigested, -1)
        if len(undigested) >= DIGEST_BYTES:
            self._hash()
        if world.answers:
            world.answers.clear()
        world.at_rest = False
        return outcome

    def _hash(self) -> None:
        self._digest.update(self._undigested)
        self._undigested.clear()

    def _check(self) -> list[Violation]:
        world, passes = self.world, self._passes
        truth, device, at_rest = world.truth, world.device, world.at_rest
        found: list[Violation] = []
        passes[0] += 1
        # Nothing noted, no race, no bad read, not at rest: then none of them has anything to say.
        if truth.problems or device.races or device.bad_reads or at_rest:
            for _, examine in _ON_DEVICE:
                found += examine(world)
            truth.problems.clear()
        if world.asked:
            world.books = world.subjects[0].books()
            if not found:
                passes[3] += 1
                for _, examine in _OF_THE_OPERATION:
                    found += examine(world)
            if not found and (at_rest or len(self.trace) % self._stride == 0):
                passes[1] += 1
                for _, examine in _AFTER_ANSWERS:
                    found += examine(world)
                # Equal accounts have been compared before.
                compared = (world.books, ledger.accounts(world))
                if compared != self._compared:
                    self._compared = compared
                    passes[2] += 1
                    for _, examine in _AFTER_CHANGES:
                        found += examine(world)
        if not found and world.capacity_answers:
            found += capacity.examine(world)
        if not found and at_rest:
            found += idle.examine(world)
        self.violations += found
        return found

    def finish(self) -> Iterator[Operation]:
        """The operations that bring the world to an empty rest."""
        world = self.world
        yield IdleCheck()
        transfers = world.transfers.names()
        for name in transfers:
            yield AbortTransfer(name)
        if transfers:
            # A cached prefix that a peer waits for is locked until a round has heard of the abort.
            yield IdleCheck()
        for name in list(world.requests):
            yield Abort(name)
        for name in [*world.host.backups, *world.host.loads]:
            yield CancelCopy(name)
        for _ in list(world.prefixes):
            yield EvictPrefix()
        for blocks in list(world.host.saved):
            yield DropSaved(blocks)
        yield IdleCheck()

    def result(self, scenario: str, seed: int) -> SeedResult:
        """What the run did and found."""
        world = self.world
        self._hash()
        checks = Counter(world.check_runs)
        for times, group in zip(
            self._passes,
            (_ON_DEVICE, _AFTER_ANSWERS, _AFTER_CHANGES, _OF_THE_OPERATION),
            strict=True,
        ):
            for name, _ in group:
                checks[name] = max(checks[name], times)
        statistics = world.subjects[0].statistics()
        counters = {
            name: statistics.get(name, 0) for name in ("moves", "settles", "reliefs", "relocations")
        }
        counters["refusals"] = self.refused
        counters["page_accesses"] = world.device.page_accesses
        probes = dict(world.probes)
        for probe, counter in (
            ("pending_settled", "settles"),
            ("relieved", "reliefs"),
            ("float_relocated", "relocations"),
        ):
            if counters[counter]:
                probes[probe] = counters[counter]
        for probe, times in (
            ("fence_waited", world.truth.copies.waits),
            ("two_floats_relocated", world.truth.two_floats_moved),
        ):
            if times:
                probes[probe] = times
        return SeedResult(
            scenario=scenario,
            seed=seed,
            operations=self.applied + self.refused + self.skipped,
            applied=self.applied,
            refused=self.refused,
            skipped=self.skipped,
            checks=dict(checks),
            probes=probes,
            counters=counters,
            violations=tuple(self.violations),
            digest=self._digest.hexdigest(),
            trace=tuple(self.trace) if self.violations else (),
            setup=world.setup,
        )


RunFactory = Callable[[Setup, str | None, SubjectFactory], Run]
"""Builds a run: `Run` itself, or somebody who wants to see more of one."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection within one run.

    A run keeps every launch until its end, so a collection in the middle visits them all and frees
    nothing: an eighth of the time.  What a run leaves behind is collected after it.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@collector_paused()
def run_seed(
    scenario: Scenario,
    name: str,
    seed: int,
    operations: int,
    *,
    plant: str | None = None,
    ranks: int | None = None,
    strategy: str = "swarm",
    traffic: Traffic | None = None,
    subject: SubjectFactory = UnikvSubject,
    build: RunFactory = Run,
) -> SeedResult:
    """Generate and run one seed, up to its first violation or an empty rest.

    Args:
        scenario: the workload family; `name` is what reports call it.
        seed: the only source of chance.
        operations: operations to generate, time included.
        plant: id of a fault to plant, from `harness.faults.catalog`.
        ranks: overrides the scenario's.
        strategy: `random` or `swarm`.
        traffic: real requests to arrive instead of drawn ones.
        subject: the allocator under test: builds one for a layout and a rank's device.
        build: makes the run.
    """
    choices = SeedChoices(seed)
    setup = draw_setup(scenario, choices)
    if ranks is not None:
        setup = msgspec.structs.replace(setup, ranks=ranks)
    run = build(setup, plant, subject)
    world = run.world
    generator = Generator(scenario, choices, strategy, traffic, world.subjects[0].families)
    for _ in range(operations):
        generator.heard(run.execute(generator.next(world)))
        if run.violations:
            return run.result(name, seed)
    for operation in run.finish():
        run.execute(operation)
        if run.violations:
            break
    return run.result(name, seed)


@collector_paused()
def run_trace(
    setup: Setup,
    trace: Sequence[Operation],
    *,
    plant: str | None = None,
    until: int | None = None,
    subject: SubjectFactory = UnikvSubject,
    build: RunFactory = Run,
) -> SeedResult:
    """Run a stored trace, up to its first violation or operation `until` (inclusive)."""
    run = build(setup, plant, subject)
    for operation in trace[: None if until is None else until + 1]:
        run.execute(operation)
        if run.violations:
            break
    return run.result("", -1)
