"""The pipeline loop: several micro-batches in flight, each with a barrier of its own.

An iteration launches a micro-batch, then hands out the results of an earlier one, and only then
lets the schedule stream wait for the table reads of the one it launched.  Results free what their
requests held, which no request of another micro-batch names; whatever else writes tables comes
after the barrier, as in the overlap loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.requests import Request

if TYPE_CHECKING:
    from harness.world import World


def awaits_result(world: World, request: Request) -> bool:
    """Whether the next token of a request depends on a micro-batch that is not processed."""
    if not world.setup.pipeline or request.length < request.prompt:
        return False
    return any(request.name in step.requests for step in world.steps)


def is_full(world: World) -> bool:
    """Whether as many forwards are unprocessed as may be; commits of their own do not count."""
    steps, most = world.steps, world.setup.steps_in_flight
    return len(steps) >= most and sum(step.staging >= 0 for step in steps) >= most


@contextmanager
def results_first(world: World, request: Request) -> Iterator[None]:
    """What is freed here for a request comes before the barrier, if the newest batch lacks it."""
    world.relay.before(world, (request,))
    newest = world.unordered_step
    if not world.setup.pipeline or newest is None or request.name in newest.requests:
        yield
        return
    world.unordered_step = None
    world.probes["freed_before_the_barrier"] += 1
    yield
    world.unordered_step = newest
