"""Faults of commits that another stage relays: old look-ups, no step of their own, too late."""

from __future__ import annotations

from collections.abc import Sequence

from harness.engine import Step
from harness.faults.fault import Fault, Plant
from harness.faults.parts import become
from harness.relay import Accepted, Left, Relay
from harness.requests import Request
from harness.world import World


def in_relay(broken: type[Relay]) -> Plant:
    """Plant a relay that enqueues commits wrongly."""

    def plant(world: World) -> None:
        become(world.relay, broken)

    return plant


class _KnowsWhereTheyWere(Relay):
    """Commits write where the metadata phase found their slots."""

    def targets(self, accepted: Sequence[Accepted], pages: Sequence[int]) -> Sequence[int]:
        return [part.page for part in accepted]


class _HasNoStep(Relay):
    """The allocator never hears of a commit."""

    def enter(self, world: World, step: Step) -> None:
        """It runs behind the step that left it, whose end has an event already."""


class _UsesTheRowsThatWere(Relay):
    """Commits use the rows and slots of their batch, whoever has those by now."""

    def requests(self, world: World, left: Left) -> list[Request]:
        return [Request(name, 0, 0, row=row) for name, row in zip(*left[:2], strict=True)]


class _GivesUpBeforeTheCommit(World):
    """Requests end while what they were left with is still on its way."""

    def release(self, request: Request) -> None:
        relay = self.relay
        left, relay.left = relay.left, {}
        super().release(request)
        relay.left = left


def _release_early(world: World) -> None:
    become(world, _GivesUpBeforeTheCommit)
    become(world.relay, _UsesTheRowsThatWere)


class _RunsAhead(Relay):
    """Requests run again, rest and hand their states on before those are written."""

    def before(self, world: World, requests: Sequence[Request]) -> None:
        """Nothing has to come first."""


class _EndsInOrder(World):
    """Requests that end lose their rows behind their commits, as they should."""

    def release(self, request: Request) -> None:
        Relay.before(self.relay, self, (request,))
        super().release(request)


def _run_ahead(world: World) -> None:
    become(world, _EndsInOrder)
    become(world.relay, _RunsAhead)


class _OvertakesTheSchedule(Relay):
    def order(self, world: World) -> None:
        """The look-ups wait for no table write."""


class _NobodyWaits(Relay):
    def bar(self, world: World, step: Step) -> None:
        """The next table write waits for the step before, or for none."""


FAULTS: tuple[Fault, ...] = (
    Fault(
        id="relayed-commit-to-old-pages",
        planted="a relayed commit writes states where the metadata phase found their slots, which"
        " may have moved since",
        plant=in_relay(_KnowsWhereTheyWere),
        checks=("content",),
        scenario="rows",
        rows=("B143",),
    ),
    Fault(
        id="relayed-commit-without-a-step",
        planted="a relayed commit is enqueued behind the end of its step and is no step itself",
        plant=in_relay(_HasNoStep),
        checks=("ordering",),
        scenario="rows",
        ablates="edge own step for late work on F",
        edge="schedule <- forward|host <- forward",
        pair=("commit", "zero write|move|map write|row write|save read|restore write"),
    ),
    Fault(
        id="row-given-back-before-its-commit",
        planted="requests end before their relayed commit, which goes by the rows and slots that"
        " they had",
        plant=_release_early,
        checks=("content", "initialised", "translation", "ledger"),
        scenario="rows",
        rows=("B143",),
    ),
    Fault(
        id="run-ahead-of-a-relayed-commit",
        planted="requests run again and hand states on before those have been written",
        plant=_run_ahead,
        checks=("content",),
        scenario="rows",
    ),
    Fault(
        id="relayed-commit-ahead-of-the-schedule",
        planted="a relayed commit looks tables up without waiting for those who write them",
        plant=in_relay(_OvertakesTheSchedule),
        checks=("ordering",),
        scenario="rows",
        ablates="edge F <- S (relayed commit)",
        edge="forward <- schedule",
        pair=("row write|map write|move|restore write|save read", "metadata read|commit"),
    ),
    Fault(
        id="relayed-commit-without-a-barrier",
        planted="the next table write does not wait for the look-ups of a relayed commit",
        plant=in_relay(_NobodyWaits),
        checks=("ordering",),
        scenario="rows",
        ablates="edge S <- relayed commit",
        edge="schedule <- forward",
        pair=("metadata read|commit read", "row write|map write"),
    ),
)
