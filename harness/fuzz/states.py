"""What an input reached, in words: page state x holder x stream x order, and the engine's phase.

The insight: lines of the allocator are soon all covered, but a race needs a *situation*: this page,
held so, touched by that stream, while this other one is not behind it.  A fuzzer that is told of
every new situation keeps the inputs that lead there.

Words name kinds, never pages, ids or names, so there are some thousands of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from weakref import proxy

from harness.device.clock import LANES, Access
from harness.device.launches import role_of
from harness.device.memory import Effect
from harness.device.modeled import ModeledDevice
from harness.faults.parts import become
from harness.ops import Operation, Outcome
from harness.world import World

_ROLES = [role_of(lane) for lane in range(LANES)]
_PAGE_STATES = ("unclaimed", "live", "hole", "pending", "fixed")


class StateRecorder:
    """Collects the situations of one input.

    Attributes:
        reached: each once.
    """

    def __init__(self) -> None:
        self.reached: set[str] = set()
        self._world: World | None = None

    def __call__(self, world: World, operation: Operation, outcome: Outcome) -> None:
        """Note where an operation left the engine and its bands."""
        if self._world is None:
            self._follow(world)
        phase = _phase(world)
        name = type(operation).__name__
        self.reached.add(f"{name} {outcome.value}: {phase}")
        for band, book in zip(world.setup.bands, world.books, strict=True):
            states = " ".join(_PAGE_STATES[state] for state in sorted(set(book.states)))
            self.reached.add(f"band {band.kind} [{states}]: {phase}")

    def _follow(self, world: World) -> None:
        """Hear of every launch of this world from now on."""
        self._world = world
        # The parts of a world hold on to its device, so it has to stay the same object.
        become(world.device, _watched(type(world.device)))
        assert isinstance(world.device, WatchedDevice)
        world.device.launches = _Launches(proxy(world), self.reached)


class _Launches:
    """Notes launches of one world."""

    def __init__(self, world: World, reached: set[str]) -> None:
        self._world = world
        self._reached = reached

    def submitted(self, stream: int, kind: str, touched: Sequence[Access]) -> None:
        """Note who touches what, and which other streams it is not behind."""
        order = self._order(stream)
        for access in touched:
            if len(access.units):
                verb = "writes" if access.wrote else "reads"
                held = self._held(access)
                self._reached.add(f"{kind} of {_ROLES[stream]} {verb} {held}: {order}")

    def _order(self, stream: int) -> str:
        """Every other lane with launches: over, or this one is behind it, or abreast of it."""
        device = self._world.device
        clocks = device.clocks.clocks
        words = []
        for lane in range(LANES):
            newest = clocks[lane][lane]
            if lane == stream or not newest:
                continue
            if clocks[stream][lane] < newest:
                words.append(f"abreast of {_ROLES[lane]}")
            elif any(rank.started[lane] for rank in device.ranks):
                words.append(f"behind {_ROLES[lane]}")
        return ", ".join(words) or "alone"

    def _held(self, access: Access) -> str:
        """State and holder of the first unit."""
        world = self._world
        space, _, _ = access.space.name.partition(":")
        if space != "arena":
            return space
        truth = world.truth
        low = access.units[0] * world.device.granule
        for band, size in enumerate(world.device.page_bytes):
            page = low // size
            if truth.owner[band][page]:
                return f"{world.setup.bands[band].kind} page {_holder(world, band, page)}"
            if page in truth.pending[band]:
                return f"{world.setup.bands[band].kind} page pending"
        return "free page"


def _holder(world: World, band: int, page: int) -> str:
    """Who holds a live page."""
    truth = world.truth
    if page in truth.reserved[band]:
        return "reserved"
    if band == world.state_band:
        return "of a request"
    holds = world.page_holds.counts
    count = holds[truth.owner[band][page]]
    return ("of nobody", "of one", "shared")[min(count, 2)]


def _phase(world: World) -> str:
    """Where the engine stands, in a few bits."""
    host, transfers = world.host, world.transfers
    words = [f"{min(len(world.steps), 2)} steps"]
    for name, holds in (
        ("open", world.open_step is not None),
        ("unordered", world.unordered_step is not None),
        ("backup", host.backups),
        ("load", host.loads),
        ("send", transfers.sends),
        ("receive", transfers.receives),
        ("isolated", transfers.isolated),
    ):
        if holds:
            words.append(name)
    return " ".join(words)


class WatchedDevice(ModeledDevice):
    """A device that tells of every launch before it is checked.

    Attributes:
        launches: hears of them.
    """

    launches: _Launches

    def submit(
        self, stream: int, kind: str, step: int, effect: Effect, touched: Sequence[Access]
    ) -> None:
        """Tell of it, then enqueue it."""
        self.launches.submitted(stream, kind, touched)
        super().submit(stream, kind, step, effect, touched)


def _watched(kind: type[ModeledDevice]) -> type[ModeledDevice]:
    """`kind`, which may be a planted one, telling of its launches."""
    if kind is ModeledDevice:
        return WatchedDevice
    watched: type[ModeledDevice] = type("Watched", (WatchedDevice, kind), {})
    return watched
