"""The missing edge, put in: a wait of the later access's stream for the earlier access.

A report claims that one wait is missing.  The claim is tested by adding exactly that wait to the
model, where no allocator and no engine knows of it: if the failure stays, the report is wrong.

Which seeds are run with it is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness.device.clock import HOST, Access
from harness.device.launches import ModeledEvent, role_of
from harness.device.memory import Effect
from harness.device.modeled import ModeledDevice
from harness.report.recorder import stand_below
from harness.report.story import Story
from harness.runner import Run
from harness.scenario import Setup
from harness.world import SubjectFactory


class Edge(Protocol):
    """Which launch comes behind which; one object for each run."""

    def is_earlier(self, number: int, lane: int, kind: str) -> bool:
        """Whether later ones wait for this launch, by its place among all launches."""
        ...

    def is_later(self, number: int, lane: int, kind: str) -> bool:
        """Whether this launch waits for the last earlier one of every lane."""
        ...


@dataclass(frozen=True, slots=True)
class EdgeBetween:
    """Between launches of one trace, by their numbers: one pair, or more that collide alike.

    An access may be several launches, as a load is for each layer group.
    """

    earlier: frozenset[int]
    later: frozenset[int]

    def is_earlier(self, number: int, lane: int, kind: str) -> bool:
        """Whether it is one of the earlier ones."""
        return number in self.earlier

    def is_later(self, number: int, lane: int, kind: str) -> bool:
        """Whether it is one of the later ones."""
        return number in self.later


@dataclass(frozen=True, slots=True)
class EdgeRule:
    """Between every launch of one kind and the last ones before it of another.

    Streams are named by their roles, as in a signature: what a peer misses, every peer misses.

    Attributes:
        role, kind: of the launches that wait.
        awaited_role, awaited_kind: of those that are waited for.
    """

    role: str
    kind: str
    awaited_role: str
    awaited_kind: str

    def is_earlier(self, number: int, lane: int, kind: str) -> bool:
        """Whether it is one of those that are waited for."""
        return kind == self.awaited_kind and role_of(lane) == self.awaited_role

    def is_later(self, number: int, lane: int, kind: str) -> bool:
        """Whether it is one of those that wait."""
        return kind == self.kind and role_of(lane) == self.role


class EdgedDevice(ModeledDevice):
    """Waits where an edge says so, before anything else is done with the launch.

    `marks` has, per lane, the end of the last earlier launch; `count` is how many launches there
    were.
    """

    edge: Edge
    marks: dict[int, ModeledEvent]
    count: int

    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        """Enqueue a launch, behind the edge."""
        number = self._count()
        if self.edge.is_later(number, stream, kind):
            for mark in self.marks.values():
                self.wait_event(stream, mark)
        super().submit(stream, kind, step, effect, touched)
        if self.edge.is_earlier(number, stream, kind):
            self.marks[stream] = self.record_event(stream)

    def stage(self, buffer: int, tables: list[int], step: int) -> None:
        """The host fills a staging buffer, behind the edge; whatever comes later is behind it."""
        number = self._count()
        if self.edge.is_later(number, HOST, "fill"):
            for mark in self.marks.values():
                self.host_wait(mark)
        super().stage(buffer, tables, step)

    def _count(self) -> int:
        self.count += 1
        return self.count - 1


def with_edge(edge: Edge) -> Callable[[Setup, str | None, SubjectFactory], Run]:
    """Builds runs in whose device the edge is, below whatever a planted fault has made of it."""

    def build(setup: Setup, plant: str | None, subject: SubjectFactory) -> Run:
        run = Run(setup, plant, subject)
        device = stand_below(run.world.device, EdgedDevice)
        device.edge, device.marks, device.count = edge, {}, 0
        return run

    return build


def edges_of(story: Story) -> tuple[EdgeBetween, EdgeRule] | None:
    """The edge that a story says is missing, between its own launches and as a rule.

    None where no edge is missing.
    """
    collisions = story.recording.collisions
    if not collisions:
        return None
    earlier = story.recording.launches[collisions[0].earlier]
    later = story.recording.launches[collisions[0].later]
    return (
        EdgeBetween(
            frozenset(collision.earlier for collision in collisions),
            frozenset(collision.later for collision in collisions),
        ),
        EdgeRule(role_of(later.lane), later.kind, role_of(earlier.lane), earlier.kind),
    )
