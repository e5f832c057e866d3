"""Several ranks in one process, each with its own chain, device, engine and board.

All ranks do the same call at the same time and meet in collectives.  A rank that waits in one while
another has ended its call without joining it would wait for ever: here that is an error at once.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import TypeVar

from tests.alloc.small_chain import layout_of, states, tokens, window
from tests.disagg.scripted_engine import Proves, ScriptedEngine
from tests.disagg.watched_device import Place, WatchedDevice
from unikv.alloc.audit import violations
from unikv.alloc.chain import ChainAllocator, Taken
from unikv.device.port import StorageLayout, Stream
from unikv.disagg.agreement import Patience
from unikv.disagg.board import Board
from unikv.disagg.quarantine import QuarantineLimits
from unikv.disagg.rounds import RoundReport, TransferRounds
from unikv.disagg.transfer_waiter import NetworkTransferWaiter, Pace, RoundLimit

Answer = TypeVar("Answer")

ROOMY = layout_of(200, 4, states("state"), window("window"), tokens("full"))
TIGHT = layout_of(68, 4, states("state"), window("window"), tokens("full"))
LIMITS = QuarantineLimits(4, 64)
PROOFS = (Proves.BY_FENCE, Proves.BY_EPOCH, Proves.BY_FENCE, Proves.BY_EPOCH)

# One for all tests: a thread for every rank of a call, made once.
POOL = ThreadPoolExecutor(len(PROOFS))


class Meeting:
    """The collectives of all ranks."""

    def __init__(self, ranks: int) -> None:
        self.rounds = 0
        self._ranks = ranks
        self._absent = 0
        self._values: list[list[int]] = []
        self._least: list[int] = []
        self._changed = Condition()

    def begin(self) -> None:
        """All ranks begin a call."""
        self._absent = 0
        self._values = []

    def join(self, values: list[int]) -> list[int]:
        """The least of all ranks."""
        with self._changed:
            number = self.rounds
            self._values.append(values)
            if len(self._values) == self._ranks:
                assert len({len(own) for own in self._values}) == 1
                self._least = [min(column) for column in zip(*self._values, strict=True)]
                self._values = []
                self.rounds += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.rounds > number or self._absent, timeout=30)
            assert self.rounds > number, "a rank was left alone in a collective"
            return self._least

    def leave(self) -> None:
        """A rank has ended its call."""
        with self._changed:
            # A rank that is early is no trouble until another one waits for it.
            self._absent += 1
            self._changed.notify_all()


class Link:
    """One rank's end of the meeting, which counts what it joins."""

    def __init__(self, meeting: Meeting) -> None:
        self._meeting = meeting
        self.joined = 0

    def min_reduce(self, values: list[int]) -> list[int]:
        """The least of all ranks."""
        self.joined += 1
        return self._meeting.join(values)


class HelpfulPace:
    """A wait in which the engine gets on.

    Attributes:
        hurry: transfers that end, and as many that are proved, in each round.
        stalled: rounds for which its peer stands still before that.
        limit: the deadline.
    """

    def __init__(self, engine: ScriptedEngine, rounds: int) -> None:
        self.hurry = self.stalled = 0
        self._engine = engine
        self.limit = RoundLimit(rounds)

    def next_round(self, asked: int) -> Patience:
        """Let the engine get on."""
        hurry = self.hurry if asked > self.stalled else 0
        for name in self._engine.open_transfers()[:hurry]:
            self._engine.finish(name)
        for name in self._engine.unproved()[:hurry]:
            self._engine.prove(name)
        return self.limit.next_round(asked)


class Rank:
    """Everything that one rank owns."""

    def __init__(
        self,
        link: Link,
        layout: StorageLayout,
        proves: Proves,
        transfers_max: int,
        limits: QuarantineLimits,
    ) -> None:
        self.link = link
        self.device = WatchedDevice(layout)
        self.engine = ScriptedEngine(self.device, proves)
        self.board = Board(self.engine, link, transfers_max, limits)
        self.pace = HelpfulPace(self.engine, 4)
        pace: Pace = self.pace
        self.waiter = NetworkTransferWaiter(self.board, pace)
        self.chain = ChainAllocator(layout, self.device, waiter=self.waiter)
        self.engine.chain = self.chain
        self.transfers = TransferRounds(self.chain, self.board)

    def run_step(self, number: int, ids: Sequence[Sequence[int]]) -> None:
        """Launch and record a step that writes the pages of `ids`, per band."""
        self.chain.launch_step(number)
        self.device.writing[number] = {
            Place(band, page)
            for band, units in enumerate(ids)
            for page in self.chain.translate(band, units)
        }
        self.chain.record_step(number, self.device.record_event(Stream.FORWARD), ids)

    def process(self, number: int) -> None:
        """The host has seen the end of a step."""
        self.chain.process_step(number)
        del self.device.writing[number]


class Ranks:
    """Ranks that are asked the same."""

    def __init__(
        self,
        count: int,
        layout: StorageLayout = ROOMY,
        transfers_max: int = 8,
        limits: QuarantineLimits = LIMITS,
    ) -> None:
        self.meeting = Meeting(count)
        self.each = [
            Rank(Link(self.meeting), layout, proves, transfers_max, limits)
            for proves in PROOFS[:count]
        ]
        self.ended: list[str] = []

    def answers(self, act: Callable[[Rank], Answer]) -> list[Answer | BaseException]:
        """What every rank answers or raises, all at the same time."""

        def ask(rank: Rank) -> Answer:
            try:
                return act(rank)
            finally:
                self.meeting.leave()

        self.meeting.begin()
        asked = [POOL.submit(ask, rank) for rank in self.each]
        raised = [future.exception() for future in asked]
        answers: list[Answer | BaseException] = []
        for future, error in zip(asked, raised, strict=True):
            answers.append(future.result() if error is None else error)
        joined = [rank.link.joined for rank in self.each]
        assert joined == [self.meeting.rounds] * len(self.each)
        return answers

    def all(self, act: Callable[[Rank], Answer]) -> Answer:
        """What all ranks answer; they answer alike."""
        answers = self.answers(act)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            assert answer == answers[0]
        first = answers[0]
        assert not isinstance(first, BaseException)
        return first

    def round(self) -> RoundReport:
        """One round of all ranks, after which every rank's books are in order."""
        report = self.all(lambda rank: rank.transfers.round())
        for rank in self.each:
            assert violations(rank.chain) == []
        assert self.books() == [self.books()[0]] * len(self.each)
        self.ended += [ended.name for ended in report.ended]
        assert len(set(self.ended)) == len(self.ended)
        return report

    def books(self) -> list[object]:
        """What must be equal on every rank, per rank."""
        return [
            (
                rank.chain.ledger.held.holds(),
                [bytes(band.states) for band in rank.chain.bands],
                [(t.name, t.place, t.phase, t.parts_left) for t in rank.board.transfers()],
                [(q.name, q.cause, q.pages) for q in rank.board.quarantine.report()],
            )
            for rank in self.each
        ]

    def take(self, pages: int, slots: int) -> Taken:
        """Pages of an own request."""
        return self.all(lambda rank: rank.chain.take(pages, slots))

    def sent(self, name: str, pages: int) -> Taken:
        """A send of fresh pages that is queued on every rank and starts in the next round."""
        taken = self.take(pages, 0)
        self.all(lambda rank: rank.transfers.sends.queue(name, "decode", per_band(taken), 0))
        return taken

    def received(self, name: str, pages: int) -> Taken:
        """A receive that is held on every rank and published in the next round."""
        return self.all(lambda rank: rank.transfers.receives.take(name, "prefill", pages, 1))


def per_band(taken: Taken) -> list[list[int]]:
    """The ids that a take gave, per band of the layouts here."""
    return [taken.slots, taken.ids, taken.ids]
