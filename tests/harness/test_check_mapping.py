"""Mapping: a host map, an inverse or a row that the device does not have is reported."""

from harness.world import World
from tests.harness.lived_in import allocators, bands, is_busy, reports, running, world_when


def spare_id(world: World) -> int:
    """An id of full attention that names no page; 0 if there is none."""
    return next((u for u, page in enumerate(world.device.program.maps[-1]) if u and not page), 0)


def test_a_host_map_that_the_device_does_not_have_is_reported() -> None:
    world = world_when("smoke", is_busy)
    unit = running(world)[0].pages[0]
    for band in bands(world, world.owner_band):
        band.ids.forward[unit] += 1
    assert reports(world) == [("mapping", "host and device differ in a map")]


def test_an_entry_that_only_the_device_has_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and spare_id(world))
    world.device.program.maps[world.owner_band][spare_id(world)] = 1
    assert reports(world) == [("mapping", "host and device differ in a map")]


def test_an_inverse_that_does_not_agree_is_reported() -> None:
    world = world_when("smoke", is_busy)
    unit = running(world)[0].pages[0]
    for band in bands(world, world.owner_band):
        band.ids.inverse[band.ids.forward[unit]] = 0
    assert reports(world) == [("mapping", "host and device differ in an inverse")]


def test_a_row_that_the_host_does_not_have_is_reported() -> None:
    world = world_when("smoke", is_busy)
    request = running(world)[0]
    for subject in allocators(world):
        subject.storage.requests.rows[request.row][0] += 1
    assert reports(world) == [("mapping", "host and device differ in a row")]


def test_a_row_that_names_other_pages_than_its_request_holds_is_reported() -> None:
    world = world_when("smoke", is_busy)
    request = running(world)[0]
    for row in [world.device.program.rows[request.row]] + [
        subject.storage.requests.rows[request.row] for subject in allocators(world)
    ]:
        row[0] += 1
    assert reports(world) == [("mapping", "host and device differ in a row")]


def test_a_row_that_the_device_does_not_have_is_reported() -> None:
    world = world_when("smoke", is_busy)
    request = running(world)[0]
    world.device.program.rows[request.row][0] += 1
    assert reports(world) == [("mapping", "host and device differ in a row")]
