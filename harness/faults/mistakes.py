"""An engine's mistakes, as operations: each is refused and changes nothing.

A wrong type or index that happens to work is the worst kind: `True` frees id 1, band -1 is the
owner, and a token without a page is written to the sink.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from harness.faults.kept import KeepingWorld
from harness.ops.base import Op, Outcome
from harness.requests import Phase
from harness.world import World
from unikv.errors import UnikvError
from unikv.storage import KVStorage

NAN = float("nan")

MISTAKES: tuple[tuple[str, Callable[[KVStorage, int], object]], ...] = (
    ("free of True", lambda storage, _: _call(storage.chain, "free", [True])),
    ("retire in band -1", lambda storage, unit: storage.chain.retire(-1, [unit])),
    ("translation of id -1", lambda storage, _: storage.chain.translate(0, [-1])),
    ("launch of step NaN", lambda storage, _: _call(storage.chain, "launch_step", NAN)),
    ("take of half a page", lambda storage, _: _call(storage.chain, "take", 0.5, 0)),
    ("reservation of -1 pages", lambda storage, _: storage.chain.reserve(0, -1)),
    ("late prewarm", lambda storage, _: storage.chain.prewarm()),
    ("write without a page", lambda storage, unit: _write_unbound(storage, unit)),
)
"""What each is called, and the wrong call; it is given an id that some request holds."""


class Mistake(Op, frozen=True, tag="mistake"):
    """One wrong call on every rank."""

    number: Annotated[int, Meta(ge=0, lt=len(MISTAKES))]

    def apply(self, world: World) -> Outcome:
        """Make it, and note what was not refused or left a trace."""
        held = [r.pages[0] for r in world.requests.values() if r.phase is Phase.RUNNING and r.pages]
        if not isinstance(world, KeepingWorld) or not held:
            return Outcome.SKIPPED
        name, call = MISTAKES[self.number]
        for storage, port in zip(world.storages(), world.ports, strict=True):
            submitted, before = len(port.log), storage.statistics()
            try:
                call(storage, held[0])
            except UnikvError:
                if len(port.log) > submitted or storage.statistics() != before:
                    world.truth.note("effects", "mistake left a trace", f"{name} changed something")
            else:
                world.truth.note("effects", "mistake accepted", f"{name} was not refused")
        return Outcome.DONE


def _call(part: object, method: str, *arguments: object) -> object:
    return getattr(part, method)(*arguments)


def _write_unbound(storage: KVStorage, unit: int) -> object:
    """Write a token whose row a window has retired, or one of an id that nobody has."""
    maps = [band.ids.forward for band in storage.chain.token_bands]
    size = storage.layout.slots_per_page
    named = range(1, min(map(len, maps)))
    lost = next((i for i in named if not all(page_of[i] for page_of in maps)), unit)
    return storage.ids.writes([lost * size] if lost != unit else [-1], [])
