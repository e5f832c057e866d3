"""Ownership: two owners, none, or one too many are reported."""

from harness.world import World
from tests.harness.lived_in import is_busy, reported, reports, running, world_when


def held_page(world: World) -> tuple[int, int]:
    """An id that a request holds and its page of full attention."""
    unit = running(world)[0].pages[0]
    return unit, world.subjects[0].translate(world.owner_band, [unit])[0]


def test_a_bound_id_that_nobody_holds_is_reported() -> None:
    world = world_when("smoke", is_busy)
    unit, _ = held_page(world)
    world.truth.given_back(world.owner_band, [unit])
    assert reported(world) == (
        "ownership",
        "held and bound ids differ",
        f"band 'full': ids [{unit}] name pages and are handed out to nobody",
    )


def test_a_held_id_that_names_no_page_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and 0 in world.truth.held[-1][1:])
    unit = world.truth.held[world.owner_band].index(0, 1)
    world.truth.handed_out(world.owner_band, [unit])
    assert reported(world) == (
        "ownership",
        "held and bound ids differ",
        f"band 'full': ids [{unit}] are handed out and name no page",
    )


def test_window_rows_that_nobody_holds_are_reported() -> None:
    world = world_when("smoke", is_busy)
    (band,) = world.window_bands
    held = world.row_holds[band].counts.index(1)
    world.row_holds[band].drop([held])
    assert reported(world) == (
        "ownership",
        "held and bound rows differ",
        f"band 'window128': ids [{held}] have a row that nobody wants",
    )


def test_an_id_that_is_handed_out_while_it_is_held_is_reported() -> None:
    world = world_when("smoke", is_busy)
    world.truth.handed_out(world.owner_band, [held_page(world)[0]])
    assert reports(world) == [("ownership", "id handed out twice")]


def test_an_id_outside_the_space_is_reported() -> None:
    world = world_when("smoke", is_busy)
    world.truth.handed_out(world.owner_band, [world.layout.bands[-1].id_count + 1])
    assert reports(world) == [("ownership", "id handed out twice")]


def test_bytes_with_two_owners_are_reported() -> None:
    world = world_when("smoke", is_busy)
    _, page = held_page(world)
    (band,) = world.window_bands
    unit = next(u for u, page_of in enumerate(world.device.program.maps[band]) if u and not page_of)
    # Both bands of this scenario have pages of one size, so equal pages are equal bytes.
    assert len({part.page_bytes for part in world.layout.bands}) == 1
    world.truth.map_written(band, [unit], [page])
    assert ("ownership", "page with two owners") in reports(world)


def test_a_page_in_the_sink_or_past_the_end_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and 0 in world.truth.held[-1][1:])
    unit = world.truth.held[world.owner_band].index(0, 1)
    world.truth.map_written(world.owner_band, [unit], [world.truth.end_page[-1]])
    assert reports(world) == [("ownership", "page outside the arena")]
    world.device.program.maps[world.owner_band][unit] = 0


def test_an_id_that_is_held_in_place_of_the_bound_one_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and 0 in world.truth.held[-1][1:])
    unit = world.truth.held[world.owner_band].index(0, 1)
    world.truth.given_back(world.owner_band, [held_page(world)[0]])
    world.truth.handed_out(world.owner_band, [unit])
    assert reports(world) == [("ownership", "held and bound ids differ")]


def test_a_row_that_is_held_in_place_of_the_bound_one_is_reported() -> None:
    world = world_when("smoke", lambda world: is_busy(world) and 0 in world.truth.held[-1][1:])
    (band,) = world.window_bands
    holds = world.row_holds[band]
    holds.add([world.truth.held[world.owner_band].index(0, 1)])
    holds.drop([next(u for u in running(world)[0].pages[::-1] if holds.counts[u] == 1)])
    assert reports(world) == [("ownership", "held and bound rows differ")]
