"""Happens-before from submission order: one rule a test, then a search over random submissions."""

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.device.clock import HOST, Clocks, Conflict, SpaceClock
from unikv.device.port import Stream

S, F, LOAD, BACKUP = Stream.SCHEDULE, Stream.FORWARD, Stream.LOAD, Stream.BACKUP
UNITS = 4


class Story:
    """Launches, marks and waits around one memory space of four units."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.space = SpaceClock("space", UNITS)

    def read(self, lane: int, *units: int) -> Conflict | None:
        """A launch that reads; the race, if there is one."""
        return self.space.read(lane, self._tick(lane), self.clocks.clocks[lane], units)

    def write(self, lane: int, *units: int) -> Conflict | None:
        """A launch that writes; the race, if there is one."""
        return self.space.write(lane, self._tick(lane), self.clocks.clocks[lane], units)

    def mark(self, lane: int) -> tuple[int, ...]:
        """What a mark in a lane is behind."""
        return tuple(self.clocks.clocks[lane])

    def wait(self, lane: int, mark: tuple[int, ...]) -> None:
        """Later work of a lane waits for a mark."""
        self.clocks.join(lane, mark)

    def _tick(self, lane: int) -> int:
        return self.clocks.tick_host() if lane == HOST else self.clocks.tick(lane)


def assert_ordered(conflict: Conflict | None) -> None:
    """Nothing races."""
    assert conflict is None


def assert_race(conflict: Conflict | None, lane: int, unit: int = 0) -> None:
    """The access races with one of this lane, at this unit."""
    assert conflict is not None
    assert (conflict.lane, conflict.unit) == (lane, unit)


def test_one_stream_is_ordered_by_itself() -> None:
    story = Story()
    story.write(S, 0)
    assert_ordered(story.write(S, 0))


def test_two_streams_are_not_ordered_by_the_order_of_submission() -> None:
    story = Story()
    story.write(S, 0)
    assert_race(story.write(F, 0), S)


def test_a_wait_orders_what_follows_behind_the_mark() -> None:
    story = Story()
    story.write(S, 0)
    story.wait(F, story.mark(S))
    assert_ordered(story.read(F, 0))


def test_work_behind_the_mark_is_not_waited() -> None:
    story = Story()
    mark = story.mark(S)
    story.write(S, 0)
    story.wait(F, mark)
    assert_race(story.read(F, 0), S)


def test_work_in_front_of_the_wait_is_not_ordered_by_it() -> None:
    story = Story()
    story.read(F, 0)
    story.wait(F, story.mark(S))
    assert_race(story.write(S, 0), F)


def test_a_wait_orders_one_way_only() -> None:
    story = Story()
    story.wait(F, story.mark(S))
    story.write(F, 0)
    assert_race(story.write(S, 0), F)


def test_order_passes_through_a_third_stream() -> None:
    story = Story()
    story.write(S, 0)
    story.wait(LOAD, story.mark(S))
    story.wait(F, story.mark(LOAD))
    assert_ordered(story.write(F, 0))


def test_a_mark_taken_before_the_third_stream_waited_passes_nothing_on() -> None:
    story = Story()
    story.write(S, 0)
    early = story.mark(LOAD)
    story.wait(LOAD, story.mark(S))
    story.wait(F, early)
    assert_race(story.write(F, 0), S)


def test_two_waits_add_up() -> None:
    story = Story()
    story.write(S, 0)
    story.write(LOAD, 1)
    story.wait(F, story.mark(S))
    story.wait(F, story.mark(LOAD))
    assert_ordered(story.write(F, 0, 1))


def test_a_later_wait_for_an_older_mark_takes_nothing_back() -> None:
    story = Story()
    old = story.mark(S)
    story.write(S, 0)
    story.wait(F, story.mark(S))
    story.wait(F, old)
    assert_ordered(story.read(F, 0))


def test_what_the_host_saw_end_is_over_for_everything_it_submits_later() -> None:
    story = Story()
    story.write(F, 0)
    story.wait(HOST, story.mark(F))
    assert_ordered(story.write(S, 0))
    assert_ordered(story.read(S, 0))


def test_what_was_submitted_before_the_host_waited_is_not_ordered_by_it() -> None:
    story = Story()
    story.write(S, 0)
    story.write(F, 1)
    story.wait(HOST, story.mark(F))
    assert_race(story.write(F, 0), S)


def test_a_launch_comes_after_what_the_host_did_itself() -> None:
    story = Story()
    story.write(HOST, 0)
    assert_ordered(story.read(F, 0))


def test_the_host_does_not_wait_for_what_it_submits() -> None:
    story = Story()
    story.read(F, 0)
    assert_race(story.write(HOST, 0), F)


def test_two_reads_do_not_conflict() -> None:
    story = Story()
    story.read(S, 0)
    assert_ordered(story.read(F, 0))


def test_a_write_conflicts_with_an_earlier_read() -> None:
    story = Story()
    story.read(F, 0)
    conflict = story.write(S, 0)
    assert_race(conflict, F)
    assert conflict is not None
    assert not conflict.wrote


def test_a_read_conflicts_with_an_earlier_write() -> None:
    story = Story()
    story.write(F, 0)
    conflict = story.read(S, 0)
    assert_race(conflict, F)
    assert conflict is not None
    assert conflict.wrote


def test_other_units_do_not_conflict() -> None:
    story = Story()
    story.write(S, 0, 2)
    assert_ordered(story.write(F, 1, 3))


def test_a_race_is_at_the_first_unit_that_both_touch() -> None:
    story = Story()
    story.write(S, 3, 1)
    assert_race(story.write(F, 2, 1, 3), S, unit=1)


def test_a_newer_ordered_access_does_not_hide_an_older_one_of_another_stream() -> None:
    story = Story()
    story.read(LOAD, 0)
    story.read(F, 0)
    story.wait(S, story.mark(F))
    assert_race(story.write(S, 0), LOAD)


def test_a_wait_that_adds_nothing_is_covered() -> None:
    story = Story()
    story.write(S, 0)
    mark = story.mark(S)
    assert not story.clocks.covers(F, mark)
    story.wait(F, mark)
    assert story.clocks.covers(F, mark)


# Against a search --------------------------------------------------------------------------


class Graph:
    """Submissions as nodes, and an edge to each from whatever must end before it."""

    def __init__(self) -> None:
        self.before: list[list[int]] = []
        self.last: dict[int, int] = {}
        self.accesses: list[tuple[int, int, int, bool, int]] = []  # node, lane, unit, wrote, epoch
        self.launches: dict[int, int] = {}

    def add(self, lane: int, *behind: int) -> int:
        """A node at the end of a lane, behind these nodes too."""
        node = len(self.before)
        self.before.append([*behind, *([self.last[lane]] if lane in self.last else [])])
        self.last[lane] = node
        return node

    def launch(self, lane: int) -> int:
        """A launch is also behind everything that the host did before it submitted it."""
        self.launches[lane] = self.launches.get(lane, 0) + 1
        return self.add(lane, *([self.last[HOST]] if HOST in self.last else []))

    def reaches(self, early: int, late: int) -> bool:
        """Whether a path leads from one node to another."""
        seen, todo = set[int](), [late]
        while todo:
            node = todo.pop()
            if node == early:
                return True
            if node not in seen:
                seen.add(node)
                todo += self.before[node]
        return False

    def races(self, node: int, lane: int, unit: int, *, wrote: bool) -> set[Conflict]:
        """Earlier conflicting accesses from which no path leads to a node."""
        return {
            Conflict(other, epoch, unit, earlier_wrote)
            for early, other, touched, earlier_wrote, epoch in self.accesses
            if touched == unit and other != lane and (wrote or earlier_wrote)
            if not self.reaches(early, node)
        }


LANES = (S, F, LOAD, BACKUP, HOST)
acts = st.tuples(
    st.sampled_from(("read", "write", "read", "write", "mark", "wait", "wait")),
    st.sampled_from(LANES),
    st.integers(0, 7),
)


def retell(script: Iterable[tuple[str, int, int]]) -> None:
    """Tell a script to the clocks and to the graph, and compare every access."""
    story, graph = Story(), Graph()
    marks: list[tuple[tuple[int, ...], int]] = []
    for act, lane, number in script:
        if act == "mark" and lane != HOST:
            marks.append((story.mark(lane), graph.add(lane)))
        elif act == "wait" and marks:
            mark, node = marks[-1 - number % len(marks)]
            story.wait(lane, mark)
            graph.add(lane, node)
        elif act in ("read", "write"):
            unit, wrote = number % UNITS, act == "write"
            node = graph.launch(lane)
            races = graph.races(node, lane, unit, wrote=wrote)
            conflict = (story.write if wrote else story.read)(lane, unit)
            assert conflict in races if races else conflict is None
            graph.accesses.append((node, lane, unit, wrote, graph.launches[lane]))


@settings(max_examples=60)
@given(st.lists(acts, min_size=15, max_size=40))
def test_a_race_is_reported_exactly_where_no_path_leads(script: list[tuple[str, int, int]]) -> None:
    retell(script)
