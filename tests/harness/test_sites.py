"""What a violation is about is told as data, beside the sentence."""

from harness.violation import SITES_MAX, Site, byte_sites, id_sites, page_sites
from harness.world import World
from tests.harness.lived_in import allocators, bands, examine, is_busy, running, world_when
from unikv.alloc.band import HOLE, PENDING
from unikv.alloc.use import Use


def sites(world: World) -> list[Site]:
    """Everything that any check reports now is about."""
    return [site for violation in examine(world) for site in violation.sites]


def test_sites_are_in_order_and_few() -> None:
    assert page_sites(1, {3, 2}) == (Site("page", 1, 2), Site("page", 1, 3))
    assert id_sites(0, range(99)) == tuple(Site("id", 0, unit) for unit in range(SITES_MAX))
    assert byte_sites([(8, 24), (0, 8), (8, 24)]) == (
        Site("byte", -1, 0, 8),
        Site("byte", -1, 8, 16),
    )


def test_a_map_differs_at_an_entry() -> None:
    world = world_when("smoke", is_busy)
    unit = running(world)[0].pages[0]
    for band in bands(world, world.owner_band):
        band.ids.forward[unit] += 1
    assert sites(world) == [Site("entry", world.owner_band, unit)]


def test_an_inverse_differs_at_a_page() -> None:
    world = world_when("smoke", is_busy)
    page = bands(world, world.owner_band)[0].ids.forward[running(world)[0].pages[0]]
    for band in bands(world, world.owner_band):
        band.ids.inverse[page] = 0
    assert sites(world) == [Site("page", world.owner_band, page)]


def test_a_map_of_another_length_differs_nowhere() -> None:
    world = world_when("smoke", is_busy)
    for band in bands(world, world.owner_band):
        band.ids.forward.append(0)
    (violation,) = examine(world)
    assert (violation.check, violation.sites) == ("mapping", ())


def test_many_writes_are_told_as_few_sites() -> None:
    world = world_when("smoke", is_busy)
    for subject in allocators(world):
        for page in range(1, SITES_MAX + 2):
            subject.storage.chain.ledger.add(Use.FORWARD_WRITE, 0, [page], 10**6)
    assert len(sites(world)) == SITES_MAX


def test_a_row_differs_as_a_whole() -> None:
    world = world_when("smoke", is_busy)
    row = running(world)[0].row
    for subject in allocators(world):
        subject.storage.requests.rows[row][0] += 1
    assert sites(world) == [Site("row", -1, row)]


def test_a_page_that_is_live_in_one_account_is_the_site() -> None:
    world = world_when("smoke", lambda w: is_busy(w) and HOLE in w.books[0].states)
    (page,) = {page for band in bands(world, 0) for page in band.take_holes(1)}
    assert sites(world) == [Site("page", 0, page)]


def test_a_page_that_is_pending_too_long_is_the_site() -> None:
    world = world_when("smoke", lambda w: is_busy(w) and PENDING in w.books[0].states)
    page = world.books[0].states.index(PENDING)
    del world.truth.pending[0][page]
    assert sites(world) == [Site("page", 0, page)]


def test_a_write_that_one_account_lacks_is_at_its_pages() -> None:
    world = world_when("smoke", is_busy)
    for subject in allocators(world):
        subject.storage.chain.ledger.add(Use.FORWARD_WRITE, 0, [2, 1], world.steps[-1].number + 1)
    assert sites(world) == [Site("page", 0, 1), Site("page", 0, 2)]


def test_an_id_that_nobody_holds_is_the_site() -> None:
    world = world_when("smoke", is_busy)
    unit = running(world)[0].pages[0]
    world.truth.given_back(world.owner_band, [unit])
    assert Site("id", world.owner_band, unit) in sites(world)


def test_a_problem_that_truth_notes_keeps_its_sites() -> None:
    world = world_when("smoke", is_busy)
    unit = running(world)[0].pages[0]
    world.truth.handed_out(world.owner_band, [unit])
    assert sites(world) == [Site("id", world.owner_band, unit)]
