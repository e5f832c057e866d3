"""Loans as operations: what an engine with a host tier and with peers would do, in separate parts.

They are operations like those in `harness.ops`, total and frozen, but no scenario and no case file
knows them: whoever wants a loan builds a `LendingWorld`.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from harness.faults.lending import PEER, LendingWorld, Loan
from harness.ops.base import Name, Op, Outcome
from harness.requests import Phase
from harness.world import World
from unikv.device.port import Stream


class _Lend(Op, frozen=True, tag_field="op"):
    """Base: the operation acts on a lending world only, and names its loan."""

    loan: Name

    def apply(self, world: World) -> Outcome:
        """Act, where there is anything to lend with."""
        return self.lend(world) if isinstance(world, LendingWorld) else Outcome.SKIPPED

    def lend(self, world: LendingWorld) -> Outcome:
        """Act on a lending world."""
        raise NotImplementedError


class Backup(_Lend, frozen=True, tag="backup"):
    """A copy to the host of the whole pages of a request or, without a name, of a cached prefix."""

    request: Name

    def lend(self, world: LendingWorld) -> Outcome:
        """Submit it."""
        ids = world.lendable(self.request)
        if ids is None or self.loan in world.loans:
            return Outcome.SKIPPED
        world.courier.before_backup()
        event = world.access(Stream.BACKUP, "backup", ids, wrote=False)
        world.loans[self.loan] = Loan(ids, event, world.ask("lend_backup", ids, event))
        return Outcome.DONE


class Load(_Lend, frozen=True, tag="load"):
    """A copy from the host fills pages that a request has just been given."""

    request: Name

    def lend(self, world: LendingWorld) -> Outcome:
        """Submit it."""
        request = world.requests.get(self.request)
        if request is None or request.phase is not Phase.RUNNING or self.loan in world.loans:
            return Outcome.SKIPPED
        fresh = request.pages[-(-request.length // world.setup.page_slots) :]
        if not fresh:
            return Outcome.SKIPPED
        slot = 0 if request.stateful else request.slot
        ids = world.per_band(fresh, [fresh for _ in world.window_bands], slot)
        world.courier.before_load()
        event = world.access(Stream.LOAD, "load", ids, wrote=True)
        loan = Loan(ids, event, world.ask("lend_load", ids, event))
        world.loans[self.loan] = world.lending_engine.loads[self.loan] = loan
        return Outcome.DONE


class Hold(_Lend, frozen=True, tag="hold"):
    """Rows are taken for a receive and stay where they are until they are published."""

    pages: Annotated[int, Meta(ge=1, le=64)]

    def lend(self, world: LendingWorld) -> Outcome:
        """Take and hold them."""
        if self.loan in world.loans:
            return Outcome.SKIPPED
        answer = world.take(self.pages, 0)
        if answer is None:
            return Outcome.REFUSED
        tails = [answer.ids for _ in world.window_bands]
        world.hold(answer.ids, tails)
        ids = world.per_band(answer.ids, tails, 0)
        world.ask("lend_hold", self.loan, ids)
        world.loans[self.loan] = Loan(ids, None, owned=True)
        return Outcome.DONE


class Publish(_Lend, frozen=True, tag="publish"):
    """The pages of a hold leave, and a peer writes them."""

    def lend(self, world: LendingWorld) -> Outcome:
        """Publish it."""
        loan = world.loans.get(self.loan)
        if loan is None or loan.number or loan.event is not None or not loan.owned:
            return Outcome.SKIPPED
        world.courier.before_ids_leave()
        leaving = world.ask("lend_publish", self.loan)
        loan.event = world.touch(PEER, "receive", leaving, wrote=True)
        return Outcome.DONE


class Send(_Lend, frozen=True, tag="send"):
    """A transfer engine reads what a backup would read, once its writers are processed."""

    request: Name

    def lend(self, world: LendingWorld) -> Outcome:
        """Start it."""
        ids = world.lendable(self.request)
        if ids is None or self.loan in world.loans or not world.courier.may_send(world.steps, ids):
            return Outcome.SKIPPED
        world.courier.before_send()
        world.ask("lend_send", self.loan, ids)
        world.loans[self.loan] = Loan(ids, world.access(PEER, "send", ids, wrote=False))
        return Outcome.DONE


class Drop(_Lend, frozen=True, tag="drop"):
    """Rows taken for a receive are freed, also while the peer writes them."""

    def lend(self, world: LendingWorld) -> Outcome:
        """Free them."""
        loan = world.loans.get(self.loan)
        if loan is None or not loan.owned:
            return Outcome.SKIPPED
        _give_back(world, loan)
        return Outcome.DONE


class Return(_Lend, frozen=True, tag="return"):
    """A copy is acknowledged; a hold or a transfer is released."""

    def lend(self, world: LendingWorld) -> Outcome:
        """End the loan; what only it held is freed."""
        loan = world.loans.pop(self.loan, None)
        if loan is None:
            return Outcome.SKIPPED
        if loan.event is not None:
            world.device.host_wait(loan.event)
        world.lending_engine.loads.pop(self.loan, None)
        if loan.number:
            world.ask("lend_ended", loan.number)
        else:
            world.ask("lend_release", self.loan)
        if loan.owned:
            _give_back(world, loan)
        return Outcome.DONE


def _give_back(world: LendingWorld, loan: Loan) -> None:
    loan.owned = False
    world.let_go(loan.ids[world.owner_band], [loan.ids[band] for band in world.window_bands])
