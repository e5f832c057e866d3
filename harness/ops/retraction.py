"""Retraction with a backup: a running request goes to host memory and comes back where it was.

The other parts of both copies (submission, naming of rows, end, cancellation) are those of any
copy, in `harness.ops.host_tier`.  Between any two parts everything else may happen.
"""

from __future__ import annotations

from harness.check import capacity
from harness.host import Backup
from harness.ops.base import Name, Op, Outcome
from harness.ops.host_tier import begin_load
from harness.parked import Parked, parked_copy, saved_ids, set_aside, take_back
from harness.requests import Phase, Request
from harness.world import World
from unikv.errors import Shortage


class BeginSave(Op, frozen=True, tag="begin_save"):
    """A running request gets host slots for all that it has computed, and is scheduled no more."""

    copy: Name
    request: Name

    def apply(self, world: World) -> Outcome:
        """Take the slots, or change nothing."""
        request = world.requests.get(self.request)
        if world.host_subject is None or world.host.is_known(self.copy):
            return Outcome.SKIPPED
        if request is None or request.phase is not Phase.RUNNING or not _is_whole(world, request):
            return Outcome.SKIPPED
        ids = saved_ids(world, request)
        answer = world.ask("begin_backup", self.copy, ids)
        if isinstance(answer, Shortage):
            world.answers.append(str(answer))
            counts = tuple(map(len, ids))
            capacity.after_a_shortage(world, answer, counts)
            world.capacity_answers.append((answer, counts))
            world.probes["host_slots_refused"] += 1
            return Outcome.REFUSED
        world.answers.append(answer)
        for problem in world.truth.copies.slots_handed_out(self.copy, answer):
            world.truth.note("ownership", "host slot with two owners", problem)
        world.truth.copies.pairs.backup_asked(ids, answer)
        tails = [len(ids[band]) for band in world.window_bands]
        world.host.backups[self.copy] = Backup(())
        world.host.parked[self.copy] = Parked(request.name, answer, tails, request.length)
        set_aside(world, request)
        return Outcome.DONE


class BeginResume(Op, frozen=True, tag="begin_resume"):
    """A parked request gets a row, pages, ids and a slot; its window rows have no name yet."""

    copy: Name
    request: Name

    def apply(self, world: World) -> Outcome:
        """Take everything in one demand, or change nothing."""
        host, request = world.host, world.requests.get(self.request)
        if request is None or request.phase is not Phase.PARKED or host.is_known(self.copy):
            return Outcome.SKIPPED
        saved = parked_copy(world, self.request)
        parked = host.parked[saved]
        if not parked.is_filled:
            return Outcome.SKIPPED
        if world.subjects[0].free_rows() == 0:
            return Outcome.REFUSED
        load = begin_load(world, self.copy, (), parked.slots, parked.tails)
        if load is None:
            return Outcome.REFUSED
        load.parked, parked.load = saved, self.copy
        take_back(world, saved, load.prefix)
        return Outcome.DONE


def _is_whole(world: World, request: Request) -> bool:
    """Whether a request has run anything, all of which its own pages and slot hold."""
    if not request.length or request.source:
        return False
    slot = world.states.slot_of(world, request)
    return not world.host.waits_for_submission(request.pages, slot)
