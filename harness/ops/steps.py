"""Forward steps in the parts where the bugs live: launch, read end, record, barrier, process."""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import Meta

from harness.forward import launch_step
from harness.ops.base import Name, Op, Outcome
from harness.ops.requests import REQUESTS_MAX
from harness.pipeline import awaits_result, is_full
from harness.requests import Phase
from harness.world import World


class Launch(Op, frozen=True, tag="launch"):
    """One forward over the requests that have prepared tokens: prefill, decode or both."""

    requests: Annotated[tuple[Name, ...], Meta(max_length=REQUESTS_MAX)]
    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Enqueue metadata and body; a lost record of the step before is made up first."""
        if world.open_step is not None:
            world.record_open_step()
            world.probes["recorded_implicitly"] += 1
        if is_full(world):
            return Outcome.SKIPPED
        batch = []
        for name in dict.fromkeys(self.requests):
            request = world.requests.get(name)
            if request is None or request.phase is not Phase.RUNNING or not request.prepared:
                continue
            if request.saved is not None or awaits_result(world, request):
                continue
            if not world.host.waits_for_submission(request.pages, request.source):
                batch.append(request)
        if not batch:
            return Outcome.SKIPPED
        world.relay.before(world, batch)
        if world.steps:
            world.probes["launched_over_a_running_step"] += 1
        if world.unsynced_step is not None:
            world.synchronize_step()
        if world.setup.pipeline:
            world.order_tables()  # the iteration before has ended, with its barrier or without
        step = launch_step(world, batch)
        if world.setup.overlap:
            world.open_step = step
            world.unordered_step = step
        else:
            step.event = world.engine.end_of(step)
            world.unsynced_step = step
        return Outcome.DONE


class SharedReadEnd(Op, frozen=True, tag="shared_read_end"):
    """The backend declares that the newest step's table reads end with its metadata phase."""

    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Make the read end known to the barrier."""
        step = world.unordered_step
        if step is None or step.declares_read_end or not world.setup.read_end:
            return Outcome.SKIPPED  # such a backend reads tables until the step ends
        step.declares_read_end = True
        return Outcome.DONE


class Record(Op, frozen=True, tag="record"):
    """The open step gets its event, after its last kernel."""

    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Record it."""
        if world.open_step is None:
            return Outcome.SKIPPED
        world.record_open_step()
        return Outcome.DONE


class RecordUnknown(Op, frozen=True, tag="record_unknown"):
    """The open step gets its event, and decides on the device what it writes: verify and draft."""

    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Record it without its writes."""
        if world.open_step is None:
            return Outcome.SKIPPED
        world.record_open_step(known=False)
        return Outcome.DONE


class Barrier(Op, frozen=True, tag="barrier"):
    """The schedule stream waits for the newest step's table reads.

    A trace that lost it is still a correct engine: the next table write applies it first.
    """

    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Apply the write-after-read barrier."""
        if world.unordered_step is None:
            return Outcome.SKIPPED
        if world.unordered_step.declares_read_end:
            world.probes["barrier_on_a_declared_read_end"] += 1
        else:
            world.probes["barrier_on_the_whole_forward"] += 1
        world.order_tables()
        return Outcome.DONE


class Process(Op, frozen=True, tag="process"):
    """The host waits for the oldest recorded step and hands its result to the scheduler."""

    between_steps: ClassVar[bool] = False

    def apply(self, world: World) -> Outcome:
        """Synchronize and process it; pages that waited for it return."""
        if world.open_step is not None:
            world.record_open_step()
            world.probes["recorded_implicitly"] += 1
        if world.unsynced_step is not None:
            world.synchronize_step()
            return Outcome.DONE
        if not world.steps:
            return Outcome.SKIPPED
        world.relay.through(world, world.steps[0].number)
        world.process_oldest_step()
        return Outcome.DONE


class RelayCommit(Op, frozen=True, tag="relay_commit"):
    """Another stage relays what it accepted of the oldest step that left that to it.

    A trace that lost it is still a correct engine: the commit is made up before its step is
    processed, and before a request of it runs again or loses its row.
    """

    def apply(self, world: World) -> Outcome:
        """Enqueue the commit, which looks up where rows and slots are now."""
        if not world.relay.left:
            return Outcome.SKIPPED
        world.relay.commit(world)
        return Outcome.DONE
