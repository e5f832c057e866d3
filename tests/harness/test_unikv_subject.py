"""The built-in subject shows its storage as it is now, whatever it has shown before."""

from tests.harness.lived_in import allocators, is_busy, world_when
from unikv.alloc.band import HOLE, LIVE


def test_books_show_states_that_changed_under_equal_counts() -> None:
    def has_both(states: bytearray) -> bool:
        return LIVE in states and HOLE in states

    world = world_when(
        "smoke",
        lambda world: (
            is_busy(world) and has_both(allocators(world)[0].storage.chain.bands[0].states)
        ),
    )
    subject = allocators(world)[0]
    states = subject.storage.chain.bands[0].states
    before = subject.books()[0]
    live, hole = states.index(LIVE), states.index(HOLE)
    states[live], states[hole] = HOLE, LIVE
    after = subject.books()[0]
    assert after.states != before.states
    assert after.counts == before.counts


def test_books_that_were_given_do_not_change() -> None:
    world = world_when("smoke", is_busy)
    subject = allocators(world)[0]
    given = subject.books()
    seen = list(given)
    subject.storage.chain.bands[0].states.reverse()
    assert subject.books() != given
    assert given == seen
