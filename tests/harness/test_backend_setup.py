"""What a scenario says of row memory, commits, checkpoints and the loop, and what a seed draws."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.choices import SeedChoices
from harness.errors import InputError
from harness.loading import check_scenario, load_scenario
from harness.scenario import (
    AT_THE_END,
    PLAIN,
    Backend,
    Checkpoints,
    CheckpointSetup,
    Commit,
    Scenario,
)
from harness.setup import check_setup, draw_setup
from tests.harness.backed import setup_of
from tests.harness.lived_in import SCENARIOS, scenario
from unikv.cache.checkpoint_policy import CheckpointStrategy

EXTRA, NO_BUFFER = CheckpointStrategy.EXTRA_BUFFER, CheckpointStrategy.NO_BUFFER


def changed(name: str, **changes: Any) -> Scenario:
    """A scenario of this repository with other sections."""
    return msgspec.structs.replace(scenario(name), **changes)


@pytest.mark.parametrize("name", ["smoke", "hybrid", "everything"])
def test_a_scenario_that_says_nothing_of_it_draws_a_plain_backend(name: str) -> None:
    setup = draw_setup(scenario(name), SeedChoices(3))
    assert setup.backend is PLAIN
    assert not setup.pipeline
    assert b"backend" not in msgspec.json.encode(setup)


def test_seeds_draw_every_backend_loop_and_strategy() -> None:
    setups = [draw_setup(scenario("rows"), SeedChoices(seed)) for seed in range(80)]
    assert {setup.backend.commit for setup in setups} == set(Commit)
    assert {setup.backend.row_memory for setup in setups} == {False, True}
    assert {setup.backend.captured for setup in setups} == {False, True}
    assert {setup.pipeline for setup in setups} == {False, True}
    drawn = [setup.checkpoints for setup in setups]
    assert {part.strategy for part in drawn} == set(CheckpointStrategy)
    assert all((part.interval == 0) == (part.strategy is NO_BUFFER) for part in drawn)


def test_a_setup_that_was_drawn_is_a_setup_that_is_read() -> None:
    for seed in range(40):
        setup = draw_setup(scenario("rows"), SeedChoices(seed))
        check_setup(setup, "a case")
        assert msgspec.json.decode(msgspec.json.encode(setup), type=type(setup)) == setup


def test_a_model_without_state_has_no_checkpoints() -> None:
    part = Checkpoints(strategies=(EXTRA,))
    setup = draw_setup(changed("smoke", checkpoints=part), SeedChoices(1))
    assert setup.checkpoints == AT_THE_END
    assert b"checkpoints" not in msgspec.json.encode(setup)


def test_a_state_lies_where_its_sequence_ends_unless_a_scenario_says_otherwise() -> None:
    scenario_of_state = changed("everything", checkpoints=Checkpoints())
    assert draw_setup(scenario_of_state, SeedChoices(1)).checkpoints == AT_THE_END


def test_a_pipeline_without_overlap_is_refused() -> None:
    setup = msgspec.structs.replace(setup_of(pipeline=True), overlap=False)
    with pytest.raises(InputError, match=r"a case: setup.pipeline is true .* want both"):
        check_setup(setup, "a case")


@pytest.mark.parametrize(("strategy", "interval"), [(NO_BUFFER, 8), (EXTRA, 0)])
def test_an_interval_that_does_not_go_with_its_strategy_is_refused(
    strategy: CheckpointStrategy, interval: int
) -> None:
    part = CheckpointSetup(strategy=strategy, interval=interval)
    setup = msgspec.structs.replace(setup_of(), checkpoints=part)
    with pytest.raises(InputError, match=f"interval {interval} of strategy {strategy.value}"):
        check_setup(setup, "a case")


def test_checkpoints_without_a_state_band_are_refused() -> None:
    setup = setup_of(strategy=EXTRA)
    with pytest.raises(InputError, match="want a state band"):
        check_setup(msgspec.structs.replace(setup, bands=setup.bands[1:]), "a case")


def test_an_empty_span_of_blocks_is_refused() -> None:
    part = Checkpoints(strategies=(EXTRA,), interval_blocks=(3, 1))
    with pytest.raises(InputError, match=r"interval_blocks is \[3, 1\]"):
        check_scenario(changed("rows", checkpoints=part), "f.yaml")


def test_a_relayed_commit_keeps_steps_in_flight() -> None:
    setups = [draw_setup(scenario("rows"), SeedChoices(seed)) for seed in range(80)]
    relayed = [setup for setup in setups if setup.backend.commit is Commit.RELAYED]
    assert relayed
    assert all(setup.overlap for setup in relayed)
    assert {setup.pipeline for setup in relayed} == {False, True}


def test_a_relayed_commit_without_overlap_is_refused() -> None:
    setup = msgspec.structs.replace(setup_of(commit=Commit.RELAYED), overlap=False)
    with pytest.raises(InputError, match=r"a case: setup.backend.commit is 'relayed' with overlap"):
        check_setup(setup, "a case")


@pytest.mark.parametrize("name", ["host_tier", "peers"])
def test_relayed_commits_beside_copies_of_states_are_refused(name: str) -> None:
    with pytest.raises(
        InputError, match=r"f.yaml: backend.relayed_percent 20 beside host or peers"
    ):
        check_scenario(changed(name, backend=Backend(relayed_percent=20)), "f.yaml")


def test_shares_of_more_than_all_seeds_are_refused() -> None:
    part = Backend(in_step_percent=60, side_stream_percent=21, relayed_percent=20)
    with pytest.raises(InputError, match="together at most 100"):
        check_scenario(changed("rows", backend=part), "f.yaml")


def test_a_strategy_that_there_is_not_is_refused(tmp_path: Path) -> None:
    text = (SCENARIOS / "rows.yaml").read_text()
    path = tmp_path / "f.yaml"
    path.write_text(text.replace("no_buffer, ", "three_buffers, "))
    with pytest.raises(InputError, match="three_buffers"):
        load_scenario(path)
