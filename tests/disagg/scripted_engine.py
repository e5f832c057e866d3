"""A transfer engine that does what a test says, and holds whoever uses it to the rules.

It may be told of pages only when the ledger holds them for it, the host has seen the last work on
them, and no step still writes what is sent.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum

from tests.disagg.watched_device import WatchedDevice
from unikv.alloc.chain import ChainAllocator
from unikv.alloc.use import Use
from unikv.disagg.engine import EpochProof, FenceProof, Judgement, Pages, Proof
from unikv.errors import TransferError


class BrokenRule(BaseException):
    """The library broke a rule.  No `Exception`: it would take that for the engine's refusal."""


@contextmanager
def rules() -> Iterator[None]:
    """What is asserted within is a rule for whoever uses the engine."""
    try:
        yield
    except AssertionError as error:
        raise BrokenRule(str(error)) from error


class Proves(Enum):
    """What an engine offers as proof."""

    BY_FENCE = "fence"
    BY_EPOCH = "epoch"


class ScriptedEngine:
    """One rank's engine.

    Attributes:
        judgements: of each transfer that it knows.
        told: pages of every part, by transfer.
        aborted: transfers that it was told to stop, in order.
        refuses: calls that it answers with an error: `send`, `receive`, `judge`, `abort`, `fence`,
            `forget`.
        error: the kind of that error.
    """

    def __init__(self, device: WatchedDevice, proves: Proves) -> None:
        self.device = device
        self.chain: ChainAllocator
        self.judgements: dict[str, Judgement] = {}
        self.told: dict[str, list[Pages]] = {}
        self.aborted: list[str] = []
        self.refuses: set[str] = set()
        self.error: type[BaseException] = TransferError
        self._proves = proves
        self._numbers: dict[str, int] = {}
        self._passed: set[int] = set()

    # What the library asks ------------------------------------------------------------------

    def send(self, name: str, peer: str, run: int, pages: Pages) -> None:
        """Lend the pages to a peer that reads them."""
        with rules():
            assert run == len(self.told.get(name, []))
            for band, own in enumerate(pages):
                for page in own:
                    self.device.check_written(band, page)
            self._learn(name, pages, Use.NETWORK_SEND)
        self._refuse("send")

    def receive(self, name: str, peer: str, pages: Pages) -> None:
        """Lend the pages to a peer that writes them."""
        with rules():
            assert name not in self.told
            self._learn(name, pages, Use.NETWORK_RECEIVE)
        self._refuse("receive")

    def judge(self, name: str) -> Judgement:
        """What the test said last."""
        self._refuse("judge")
        return self.judgements[name]

    def abort(self, name: str) -> Proof:
        """A number that the test passes later."""
        self._refuse("abort")
        with rules():
            assert name not in self.aborted
        self.aborted.append(name)
        self._numbers[name] = len(self.aborted)
        number = self._numbers[name]
        return FenceProof(number) if self._proves is Proves.BY_FENCE else EpochProof(number)

    def fence_passed(self, fence: int) -> bool:
        """Whether the test has passed it."""
        self._refuse("fence")
        return fence in self._passed

    def quiet_epoch(self) -> int:
        """The newest epoch with nothing open up to it."""
        epoch = 0
        while epoch + 1 in self._passed:
            epoch += 1
        return epoch

    def forget(self, name: str) -> None:
        """Whoever says that it is over has waited until it was."""
        with rules():
            assert name in self.told, f"{name} is forgotten twice"
            assert name not in self.device.lent, f"{name} is forgotten while its pages are in use"
        self._refuse("forget")
        del self.told[name]

    # What the test says ---------------------------------------------------------------------

    def finish(self, name: str) -> None:
        """Everything that was handed over is there."""
        self.judgements[name] = Judgement.DONE
        self.device.lent.pop(name, None)

    def fail(self, name: str) -> None:
        """It will not end well, and the pages may still be touched."""
        self.judgements[name] = Judgement.FAILED

    def prove(self, name: str) -> None:
        """An aborted transfer is quiet."""
        self._passed.add(self._numbers[name])
        self.device.lent.pop(name, None)

    def write_late(self, name: str, word: bytes) -> None:
        """The peer writes once more into every page that it was told of."""
        for part in self.told[name]:
            for band, own in enumerate(part):
                for page in own:
                    if page:
                        self.device.arena[self.device.bytes_of(band, page)] = word

    def open_transfers(self) -> list[str]:
        """What is neither finished, failed nor aborted, oldest first."""
        return [
            name
            for name in self.told
            if self.judgements[name] is Judgement.IN_PROGRESS and name not in self.aborted
        ]

    def unproved(self) -> list[str]:
        """What was aborted and is not quiet, oldest first."""
        return [name for name in self.aborted if self._numbers[name] not in self._passed]

    def _refuse(self, call: str) -> None:
        if call in self.refuses:
            raise self.error(f"the engine does not {call}")

    def _learn(self, name: str, pages: Pages, use: Use) -> None:
        self.told.setdefault(name, []).append(pages)
        self.judgements[name] = Judgement.IN_PROGRESS
        for band, own in enumerate(pages):
            named = [page for page in own if page]
            held = self.chain.ledger.held.pages(band, {use})
            assert held.issuperset(named), f"{name} leaves with pages that the ledger does not hold"
            for page in named:
                assert self.chain.bands[band].ids.inverse[page], f"page {page} is nobody's"
                self.device.check_observed(band, page)
            lent = self.device.lent.get(name, 0)
            self.device.lent[name] = lent | self.device.mask(band, named)
