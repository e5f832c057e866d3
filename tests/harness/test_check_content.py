"""Content: bytes that are not what was last written are reported, on every rank and at rest."""

import re

from harness.check import content, noted
from harness.ops import Complete, Launch
from harness.requests import Request
from harness.runner import Run, run_seed
from harness.world import World
from tests.harness.lived_in import may_launch, reports, run_when, running, scenario, world_when

REVERSED = "layer-groups-in-reverse"


def is_resumed(request: Request) -> bool:
    """It has tokens behind it and slots for more."""
    return bool(request.length and request.prepared)


def has_resumed(world: World) -> bool:
    """Some request may be launched again."""
    return may_launch(world) and any(map(is_resumed, running(world)))


def drained() -> tuple[Run, Request]:
    """A run in which nothing is in flight on the device, and a request to launch next."""
    run = run_when("smoke", has_resumed)
    run.world.order_tables()
    run.world.device.drain()
    return run, next(filter(is_resumed, running(run.world)))


def spoil(world: World, rank: int, unit: int) -> None:
    """Flip the first byte of a page of full attention on one rank."""
    band = world.owner_band
    (page,) = world.subjects[0].translate(band, [unit])
    world.device.ranks[rank].image.arena[page * world.layout.bands[band].page_bytes] ^= 255


def kinds(run: Run) -> list[tuple[str, str]]:
    """What a run has reported."""
    return [(violation.check, violation.detail) for violation in run.violations]


def end_one(run: Run) -> None:
    """The launch at the head of rank 1's forwards ends: first the metadata, then the body."""
    run.execute(Complete(1, run.world.forward_stream, 1))


def test_other_bytes_on_one_rank_are_reported_when_the_body_starts() -> None:
    run, request = drained()
    spoil(run.world, 1, request.pages[0])
    run.execute(Launch((request.name,)))
    assert run.violations == []
    end_one(run)
    assert kinds(run) == [("content", "wrong bytes on a rank in arena")]
    assert {read.rank for read in run.world.device.bad_reads} == {1}


def test_bytes_that_change_while_the_body_runs_are_reported_when_it_ends() -> None:
    run, request = drained()
    run.execute(Launch((request.name,)))
    end_one(run)
    spoil(run.world, 1, request.pages[0])
    assert run.violations == []
    end_one(run)
    assert kinds(run) == [("content", "wrong bytes on a rank in arena")]


def test_the_same_work_on_right_bytes_is_not_reported() -> None:
    run, request = drained()
    run.execute(Launch((request.name,)))
    end_one(run)
    end_one(run)
    assert run.violations == []


def test_images_that_differ_at_rest_are_reported() -> None:
    run, request = drained()
    run.world.come_to_rest()
    spoil(run.world, 1, request.pages[0])
    assert reports(run.world) == [("content", "images differ at rest in arena")]


def test_tables_that_differ_at_rest_are_reported() -> None:
    run, _ = drained()
    run.world.come_to_rest()
    run.world.device.ranks[0].image.rows[0][0] ^= 1
    run.world.device.ranks[1].image.maps[0][1] ^= 1
    assert reports(run.world) == [
        ("content", "images differ at rest in rows"),
        ("content", "images differ at rest in maps"),
    ]


def test_bytes_lost_on_every_rank_are_reported_at_the_launch_that_reads_them() -> None:
    run = run_when("smoke", has_resumed)
    world, band = run.world, run.world.owner_band
    request = next(filter(is_resumed, running(world)))
    (page,) = world.subjects[0].translate(band, [request.pages[0]])
    at = page * world.layout.bands[band].page_bytes
    for image in (world.device.program, *(rank.image for rank in world.device.ranks)):
        image.arena[at] ^= 255
    world.order_tables()
    run.execute(Launch((request.name,)))
    assert kinds(run) == [("content", "wrong bytes in program order")]
    said = run.violations[0].what
    assert f"slot 0 of id {request.pages[0]} on page {page} does not hold" in said
    assert said.endswith(", but what no slot of this band must hold now")


def test_wrong_bytes_are_said_to_be_those_of_another_layer_group() -> None:
    seeds = (
        run_seed(scenario("host_tier"), "host_tier", seed, 400, plant=REVERSED)
        for seed in range(1, 30)
    )
    said = next(result.violations[0].what for result in seeds if result.violations)
    found = re.search(
        r"slot (\d+) of id (\d+) in layer group (\d) on page \d+ does not hold what was last"
        r" written to it, but what slot \1 of id \2 in layer group (\d) must hold",
        said,
    )
    assert found is not None
    assert found[3] != found[4]


def test_a_page_is_compared_slot_by_slot() -> None:
    world = world_when("smoke", has_resumed)
    band = world.owner_band
    request = next(filter(is_resumed, running(world)))
    unit = request.pages[0]
    expected = world.truth.content[band][unit]
    assert expected is not None
    setup = world.setup.bands[band]
    data = bytearray(expected)
    data[setup.page_bytes // setup.slots_per_page] ^= 255
    blank = not any(expected[setup.page_bytes // setup.slots_per_page :])
    content.compare_page(world, band, unit, 9, data)
    (violation,) = noted.examine(world)
    assert violation.check == ("initialised" if blank else "content")
    assert f"slot 1 of id {unit} on page 9" in violation.what
