"""Retraction with a backup: a request comes back as it was, and no abort leaves anything."""

from collections.abc import Callable, Sequence

import pytest

from harness.faults.parts import in_host
from harness.ops import (
    Abort,
    Acknowledge,
    BeginResume,
    BeginSave,
    CancelCopy,
    IdleCheck,
    Launch,
    NameRows,
    Operation,
    Outcome,
    RestoreRow,
    SubmitCopy,
)
from harness.parked import saved_ids
from harness.requests import Phase, Request
from harness.runner import Run
from harness.world import World
from tests.harness.lived_in import allocators, run_when
from unikv.cache.host_tier import HostCopy, HostTier, LoadTake

SCENARIOS = ("host_tier", "everything")


def whole(world: World) -> list[Request]:
    """Requests that can be saved and hold rows of every window."""
    return [
        request
        for request in world.running.values()
        if request.length > world.setup.page_slots
        and not request.source
        and all(saved_ids(world, request))
        and not world.host.waits_for_submission(request.pages, world.states.slot_of(world, request))
    ]


def may_save(world: World) -> bool:
    """One of them can be saved now."""
    if world.open_step is not None or world.unsynced_step is not None or not whole(world):
        return False
    tier = allocators(world)[0].storage.host
    assert tier is not None
    wanted = [len(ids) for ids in saved_ids(world, whole(world)[0])]
    pools = tier.memory.pools
    return all(pool.free_count >= count for pool, count in zip(pools, wanted, strict=True))


def apply(run: Run, *operations: Operation) -> None:
    """All of them are done, and nothing is reported."""
    for operation in operations:
        assert run.execute(operation) is Outcome.DONE, operation
        assert run.violations == []


def saved(name: str) -> tuple[Run, Request]:
    """A run whose request `whole` has host slots for its pages."""
    run = run_when(name, may_save)
    request = whole(run.world)[0]
    apply(run, BeginSave("save", request.name))
    return run, request


def parked(name: str) -> tuple[Run, Request]:
    """The same, with the copy submitted."""
    run, request = saved(name)
    apply(run, SubmitCopy("save"))
    return run, request


def loading(name: str) -> tuple[Run, Request]:
    """The same, on its way back; its window rows have no name yet."""
    run, request = parked(name)
    run.execute(IdleCheck())
    apply(run, BeginResume("back", request.name))
    return run, request


def free_slots(world: World) -> list[int]:
    """Host slots that nobody has, per band."""
    tier = allocators(world)[0].storage.host
    assert tier is not None
    return [pool.free_count for pool in tier.memory.pools]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_parked_request_holds_nothing_on_the_device(name: str) -> None:
    run, request = parked(name)
    assert (request.phase, request.pages, request.row) == (Phase.PARKED, [], -1)
    assert run.world.states.held(run.world, request) == ()
    assert request.name not in run.world.queued


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_request_comes_back_with_its_length_and_runs_on(name: str) -> None:
    run, request = saved(name)
    length, first = request.length, list(request.window_first)
    apply(run, SubmitCopy("save"))
    run.execute(IdleCheck())
    apply(run, BeginResume("back", request.name), SubmitCopy("back"))
    assert (request.phase, request.length, request.window_first) == (Phase.RUNNING, length, first)
    slots = run.world.states.held(run.world, request)
    assert len(slots) == (run.world.state_band >= 0)  # of a checkpoint's slot nothing comes back


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_request_that_goes_and_comes_twice_holds_what_it_held(name: str) -> None:
    run, request = loading(name)
    apply(run, SubmitCopy("back"), IdleCheck())
    apply(run, BeginSave("again", request.name), SubmitCopy("again"), IdleCheck())
    apply(run, BeginResume("back again", request.name), SubmitCopy("back again"))
    assert run.world.probes["resumed_again"] > 0


def may_save_a_row(world: World) -> bool:
    """The same, where forwards keep memory of rows."""
    return world.rows.is_kept and may_save(world)


def away_and_back() -> tuple[Run, Request, int]:
    """A request has its pages back, and what its row held before; others may have its row."""
    run = run_when("host_tier", may_save_a_row)
    request = whole(run.world)[0]
    held = run.world.rows.expected[request.row]
    apply(run, BeginSave("save", request.name), SubmitCopy("save"), IdleCheck())
    apply(run, BeginResume("back", request.name))
    return run, request, held


def test_a_request_gets_the_memory_of_its_row_back_before_it_runs() -> None:
    run, request, held = away_and_back()
    apply(run, SubmitCopy("back"))
    assert run.world.rows.expected[request.row] == held
    assert run.execute(Launch((request.name,))) is Outcome.SKIPPED
    apply(run, RestoreRow(request.name))
    assert run.world.device.program.row_memory[request.row] == held
    assert request.saved is None


def test_the_memory_of_a_row_outlives_a_way_back_that_is_called_off() -> None:
    run, request, held = away_and_back()
    apply(run, CancelCopy("back"))
    assert request.saved is None
    apply(run, BeginResume("once more", request.name), SubmitCopy("once more"))
    apply(run, RestoreRow(request.name))
    assert run.world.device.program.row_memory[request.row] == held


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_save_that_is_called_off_changes_nothing(name: str) -> None:
    run = run_when(name, may_save)
    request = whole(run.world)[0]
    pages, before = list(request.pages), free_slots(run.world)
    apply(run, BeginSave("save", request.name), CancelCopy("save"))
    assert (request.phase, request.pages) == (Phase.RUNNING, pages)
    assert free_slots(run.world) == before


@pytest.mark.parametrize("named", [[], [NameRows("back")]])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_way_back_that_is_called_off_can_be_tried_again(
    name: str, named: Sequence[Operation]
) -> None:
    run, request = loading(name)
    apply(run, *named, CancelCopy("back"))
    assert (request.phase, request.pages, request.row) == (Phase.PARKED, [], -1)
    apply(run, BeginResume("once more", request.name), SubmitCopy("once more"))


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("reach", [saved, parked, loading])
def test_an_abort_at_any_point_gives_everything_back(
    name: str, reach: Callable[[str], tuple[Run, Request]]
) -> None:
    run, request = reach(name)
    apply(run, Abort(request.name))
    assert request.name not in run.world.requests
    for operation in run.finish():
        run.execute(operation)
    assert run.violations == []
    assert run.world.host.parked == {}
    assert run.world.truth.copies.holders == [{} for _ in run.world.band_range]


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_abort_over_the_running_load_leaves_the_slots_to_it(name: str) -> None:
    run, request = loading(name)
    apply(run, SubmitCopy("back"), Abort(request.name))
    assert "save" in run.world.host.parked
    run.execute(IdleCheck())
    assert run.violations == []
    assert "save" not in run.world.host.parked


def test_only_an_ended_backup_is_loaded() -> None:
    run, request = parked("host_tier")
    assert run.execute(BeginResume("back", request.name)) is Outcome.SKIPPED
    assert run.execute(Acknowledge("back")) is Outcome.SKIPPED


class Reversed(HostTier):
    """A tier that brings the pages of every band back in the wrong order."""

    def begin_load(self, name: str, source: HostCopy) -> LoadTake:
        """The last page first."""
        return super().begin_load(name, HostCopy(tuple(slots[::-1] for slots in source.slots)))


def test_pages_that_come_back_in_another_order_are_reported() -> None:
    run, request = parked("host_tier")
    run.execute(IdleCheck())
    in_host(Reversed)(run.world)
    apply(run, BeginResume("back", request.name))
    run.execute(SubmitCopy("back"))
    found = [(violation.check, violation.detail) for violation in run.violations]
    assert ("content", "request resumed with other bytes") in found
