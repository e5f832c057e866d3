"""Runs of chosen operations on a roomy storage whose engine does what a test asks for beside."""

import msgspec

from harness.choices import SeedChoices
from harness.ops import Admit, Arrive, Launch, Operation, Outcome, Record
from harness.runner import Run
from harness.scenario import BackendSetup, CheckpointSetup, Commit, Setup
from harness.setup import check_setup, draw_setup
from harness.states import Tracked
from tests.harness.lived_in import scenario
from unikv.cache.checkpoint_policy import CheckpointStrategy

ROWS = 3
BLOCK_TOKENS = 4
"""Tokens of one block of a prompt: one page of four slots."""


def setup_of(
    *,
    row_memory: bool = False,
    commit: Commit = Commit.BODY,
    captured: bool = False,
    strategy: CheckpointStrategy = CheckpointStrategy.NO_BUFFER,
    pipeline: bool = False,
) -> Setup:
    """A storage with room for everything; keywords as in the setup, with no grid if left out."""
    drawn = draw_setup(scenario("rows"), SeedChoices(1))
    sizes = [band.page_bytes for band in drawn.bands]
    total = max(sizes) * 120
    bands = [msgspec.structs.replace(band, id_count=80) for band in drawn.bands]
    interval = 0 if strategy is CheckpointStrategy.NO_BUFFER else 2 * BLOCK_TOKENS
    setup = msgspec.structs.replace(
        drawn,
        ranks=2,
        total_bytes=total,
        bands=tuple(bands),
        rows=ROWS,
        row_pages=80,
        steps_in_flight=2,
        read_end=True,
        overlap=True,
        pipeline=pipeline,
        backend=BackendSetup(row_memory=row_memory, commit=commit, captured=captured),
        checkpoints=CheckpointSetup(strategy=strategy, interval=interval),
    )
    check_setup(setup, "a test")
    return setup


def run_of(setup: Setup, *operations: Operation) -> Run:
    """A run after these operations, all of which were applied and found nothing."""
    run = Run(setup, None)
    apply(run, *operations)
    return run


def apply(run: Run, *operations: Operation) -> None:
    """More operations, likewise."""
    for operation in operations:
        outcome = run.execute(operation)
        assert run.violations == []
        assert outcome is Outcome.DONE, operation


def start(name: str, prompt: int = 8, output: int = 8) -> tuple[Operation, ...]:
    """A request arrives, gets all its pages, and its whole prompt is launched and recorded."""
    blocks = tuple(range(prompt // BLOCK_TOKENS))
    arrives = Arrive(name, prompt, output, blocks)
    return (arrives, Admit(name, prompt), Launch((name,)), Record())


def tracked(run: Run) -> Tracked:
    """The state slots of a run with a strategy."""
    states = run.world.states
    assert isinstance(states, Tracked)
    return states


def slot_of(run: Run, name: str) -> int:
    """The state slot that a request runs on."""
    return tracked(run).slots.held(name).slot


def ends_empty(run: Run) -> bool:
    """Whether the run comes to an empty rest without a report."""
    for operation in run.finish():
        run.execute(operation)
    return run.violations == [] and not run.world.requests and not run.world.prefixes
