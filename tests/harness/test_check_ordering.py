"""Ordering: an access that overtakes another is reported, also where the bytes come out right."""

from functools import partial

from harness.check import ordering
from harness.world import World
from tests.harness.lived_in import reports, world_when
from unikv.device.port import Stream


def is_launched(world: World) -> bool:
    """A step has just been launched and nothing of the schedule stream is behind it."""
    return world.open_step is not None and world.unordered_step is world.open_step


def is_launched_after(steps: int, world: World) -> bool:
    """The same, and not one of the first steps."""
    return is_launched(world) and world.step_count > steps


def write_a_row_that_is_read(world: World) -> None:
    """The schedule stream writes what a row of the newest step names already."""
    step = world.unordered_step or world.open_step
    assert step is not None
    request = world.requests[step.requests[0]]
    world.device.write_row(Stream.SCHEDULE, request.row, 0, request.pages)


def test_a_write_that_overtakes_a_read_is_reported_though_it_changes_nothing() -> None:
    world = world_when("smoke", is_launched)
    write_a_row_that_is_read(world)
    assert reports(world) == [("ordering", "rows race")]


def test_the_same_write_behind_the_barrier_is_not_reported() -> None:
    world = world_when("smoke", is_launched)
    world.order_tables()
    write_a_row_that_is_read(world)
    assert reports(world) == []


def test_a_report_names_both_accesses_and_the_edge_between_them() -> None:
    world = world_when("smoke", is_launched)
    launched, step = world.device.operation, world.open_step
    assert step is not None
    world.device.operation = 99
    write_a_row_that_is_read(world)
    (violation,) = ordering.examine(world)
    earlier, later = violation.accesses
    assert (earlier.kind, earlier.stream, earlier.operation) == (
        "metadata read",
        "forward",
        launched,
    )
    assert (earlier.step, earlier.holder) == (step.number, "rows")
    assert (later.kind, later.stream, later.operation, later.step) == (
        "row write",
        "schedule",
        99,
        0,
    )
    assert violation.missing_edge.startswith("schedule <- forward")
    assert f"step {step.number}" in violation.missing_edge


def test_a_write_to_a_page_that_is_read_is_reported_as_held_by_its_id() -> None:
    world = world_when("smoke", is_launched)
    step, band = world.open_step, world.owner_band
    assert step is not None
    unit = world.requests[step.requests[0]].pages[0]
    (page,) = world.subjects[0].translate(band, [unit])
    world.device.zero_pages(Stream.SCHEDULE, band, [page])
    (violation,) = ordering.examine(world)
    assert violation.detail == "arena race"
    assert {access.holder for access in violation.accesses} == {"live"}
    assert f"page {page} of band" in violation.what
    assert f"(id {unit})" in violation.what


def test_a_write_to_a_page_map_that_is_read_is_reported() -> None:
    world = world_when("smoke", is_launched)
    step, band = world.open_step, world.owner_band
    assert step is not None
    unit = world.requests[step.requests[0]].pages[0]
    (page,) = world.subjects[0].translate(band, [unit])
    world.device.write_map(Stream.SCHEDULE, band, [unit], [page])
    assert reports(world) == [("ordering", "map race")]


def test_a_staging_buffer_that_is_still_read_may_not_be_filled() -> None:
    world = world_when("smoke", is_launched)
    step = world.open_step
    assert step is not None
    tables = world.device.program.staging[step.staging]
    world.device.stage(step.staging, tables, step.number + 1)
    (violation,) = ordering.examine(world)
    assert violation.detail == "staging race"
    assert [access.stream for access in violation.accesses] == ["forward", "host"]


def test_two_breaks_of_one_kind_have_one_signature() -> None:
    signatures = set()
    for number in (1, 2):
        world = world_when("smoke", partial(is_launched_after, number))
        write_a_row_that_is_read(world)
        signatures.add(ordering.examine(world)[0].signature)
    assert len(signatures) == 1
