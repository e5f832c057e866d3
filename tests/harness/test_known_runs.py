"""Candidates that are not run because others were, and those that never come back."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import cast

import pytest

from harness.choices import SeedChoices
from harness.known_runs import KnownRuns
from harness.ops import (
    Admit,
    Arrive,
    Barrier,
    Chunk,
    Flush,
    Launch,
    Operation,
    Outcome,
    Process,
    Record,
)
from harness.ops.base import Op
from harness.runner import Run, run_seed, run_trace
from harness.scenario import Setup
from harness.setup import draw_setup
from harness.shrinking import shrink_run
from harness.subject import Answer
from harness.sweep.loading import default_scenarios, load_named
from harness.sweep.patience import alarmed
from harness.unikv_subject import UnikvSubject
from harness.violation import Violation
from harness.world import SubjectFactory
from shrink import Budget
from unikv.device.port import CopyDevice, StorageLayout

SCENARIOS = {named.name: named.scenario for named in load_named(default_scenarios())}
SETUP = draw_setup(SCENARIOS["smoke"], SeedChoices(1))
LIFE: tuple[Operation, ...] = (
    Arrive("r0", 3, 1),
    Admit("r0", 2),
    Launch(("r0",)),
    Record(),
    Barrier(),
    Process(),
    Chunk("r0", 1),
)


def counting(built: list[StorageLayout]) -> SubjectFactory:
    """The plain subject, of which each is counted."""

    def build(layout: StorageLayout, device: CopyDevice) -> UnikvSubject:
        built.append(layout)
        return UnikvSubject(layout, device)

    return build


def drawn(name: str, seed: int, plant: str | None) -> Run:
    """A seed's run, whether it fails or not."""
    runs: list[Run] = []

    def build(setup: Setup, planted: str | None, subject: SubjectFactory) -> Run:
        runs.append(Run(setup, planted, subject))
        return runs[-1]

    run_seed(SCENARIOS[name], name, seed, 120, plant=plant, build=build)
    return runs[0]


def run_all(setup: Setup, trace: Sequence[Operation]) -> tuple[Run, list[tuple[Outcome, bool]]]:
    """A run, and for each operation how it ended and whether the subject was asked."""
    run = Run(setup, None)
    told = [(run.execute(operation), run.world.asked) for operation in trace]
    return run, told


@pytest.mark.parametrize(
    "candidate",
    [
        LIFE,
        LIFE[:4],
        (*LIFE[:2], Launch(("r9",)), *LIFE[2:], Process(), Admit("r0", 1)),
    ],
)
def test_a_candidate_that_stays_where_others_were_is_not_run(
    candidate: tuple[Operation, ...],
) -> None:
    built: list[StorageLayout] = []
    run = KnownRuns(None, counting(built))
    run(SETUP, (*LIFE, Process(), Admit("r0", 1), Launch(("r9",))))
    run(SETUP, (*LIFE[:2], Launch(("r9",))))
    before = len(built)
    assert run(SETUP, candidate) == ()
    assert len(built) == before


def test_what_is_skipped_after_the_subject_was_asked_leads_to_another_world() -> None:
    built: list[StorageLayout] = []
    run = KnownRuns(None, counting(built))
    # With no hole it moves nothing, but it has let the schedule stream wait for table reads.
    run(SETUP, (*LIFE[:4], Flush(1), Process()))
    before = len(built)
    run(SETUP, (*LIFE[:4], Process()))
    assert len(built) > before


def test_another_setup_is_another_world() -> None:
    built: list[StorageLayout] = []
    run = KnownRuns(None, counting(built))
    run(SETUP, LIFE)
    before = len(built)
    run(draw_setup(SCENARIOS["smoke"], SeedChoices(2)), LIFE)
    assert len(built) > before


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_what_is_skipped_without_asking_changes_nothing(name: str) -> None:
    run = drawn(name, 1, None)
    # What lacks something that came before it is skipped.
    setup, trace = run.world.setup, [one for place, one in enumerate(run.trace) if place % 4]
    whole, told = run_all(setup, trace)
    acting = [place for place, one in enumerate(told) if one != (Outcome.SKIPPED, False)]
    short, again = run_all(setup, [trace[place] for place in acting])
    assert len(acting) < len(trace)
    assert again == [told[place] for place in acting]
    assert short.world.books == whole.world.books
    assert short.world.device.program.arena == whole.world.device.program.arena


@pytest.mark.parametrize(
    "plant", ["settle-without-wait", "freed-page-offered", "counts-drift", "barrier-dropped"]
)
def test_every_candidate_shows_what_a_run_of_its_own_shows(plant: str) -> None:
    run = drawn("smoke", 1, plant)
    setup, trace = run.world.setup, run.trace
    known = KnownRuns(plant)
    shown = 0
    for place in range(len(trace) - 1, -1, -max(1, len(trace) // 12)):
        for candidate in (trace[:place], [*trace[:place], *trace[place + 1 :]]):
            alone = run_trace(setup, candidate, plant=plant).violations
            assert tuple(known(setup, candidate)) == alone
            shown += bool(alone)
    assert shown > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "seed", "plant"),
    [
        ("host_tier", 10, "backup-without-its-last-page"),
        ("rows", 1, "static-buffer-of-another-step"),
        ("peers", 1, "abort-forgets-queued-parts"),
    ],
)
def test_a_whole_reduction_shows_what_runs_of_their_own_show(
    name: str, seed: int, plant: str
) -> None:
    failed = run_seed(SCENARIOS[name], name, seed, 400, plant=plant)
    known = KnownRuns(plant)

    def both(setup: Setup, candidate: Sequence[Op]) -> Sequence[Violation]:
        found = known(setup, candidate)
        alone = run_trace(setup, cast(Sequence[Operation], candidate), plant=plant).violations
        assert tuple(found) == alone
        return found

    signature = failed.violations[0].signature
    reduction = shrink_run(failed.setup, failed.trace, both, signature, Budget(1500))
    assert len(reduction.result) < len(failed.trace)


class Looping(UnikvSubject):
    """Never comes back from a take of one page."""

    def take(self, pages: int, slots: int) -> Answer:
        """Take them, or go on for ever."""
        while pages == 1:
            time.monotonic()
        return super().take(pages, slots)


ENDLESS: tuple[Operation, ...] = (Arrive("r0", 1, 0), Admit("r0", 1))


def test_a_candidate_that_never_comes_back_shows_nothing() -> None:
    run = KnownRuns(None, Looping, partial(alarmed, 0.05))
    assert run(SETUP, ENDLESS) == ()


def test_where_a_subject_never_comes_back_is_remembered() -> None:
    run = KnownRuns(None, Looping, partial(alarmed, 0.05))
    run(SETUP, ENDLESS)
    begin = time.process_time()
    for prompt in range(20):
        run(SETUP, (*ENDLESS, Arrive("r1", prompt, 0)))
    assert time.process_time() - begin < 0.05


def test_nothing_is_too_long_where_nobody_watches() -> None:
    run = KnownRuns(None, UnikvSubject, nullcontext)
    assert run(SETUP, ENDLESS) == ()
