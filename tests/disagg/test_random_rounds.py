"""Any sequence of sends, receives, failures and rounds, on ranks that see different things.

The devices here refuse every touch of bytes that an engine may still use, the engines refuse every
page that leaves too early, and after each act all ranks have the same books.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.alloc.small_chain import layout_of, states, tokens, window
from tests.disagg.ranks import Rank, Ranks, per_band
from unikv.alloc.audit import violations
from unikv.alloc.chain import Taken
from unikv.disagg.board import Transfer
from unikv.disagg.life import Phase
from unikv.disagg.prefill import SENDABLE
from unikv.disagg.quarantine import QuarantineLimits
from unikv.errors import Shortage, TransferError

Answer = TypeVar("Answer")
Word = tuple[str, int, int]

LAYOUT = layout_of(90, 4, states("state", 6, 9), window("window", 4, 9), tokens("full", 5, 9))
LIMITS = QuarantineLimits(3, 16)
REFUSALS = ("send", "receive", "judge", "abort", "fence", "forget")
EARLY_CALLS = frozenset({"judge", "fence"})
EARLY = frozenset({Phase.QUEUED, Phase.HELD})


class Play:
    """Ranks, and what their scheduler and their peers remember.

    Attributes:
        owned: what was taken and not freed, by name.
        begun: every transfer that ever was.
        unclosed: sends that may get more parts.
        reached: how often what happened.
    """

    def __init__(self, count: int, reached: Counter[str]) -> None:
        self.ranks = Ranks(count, LAYOUT, transfers_max=5, limits=LIMITS)
        self.owned: dict[str, Taken] = {}
        self.begun: list[str] = []
        self.unclosed: set[str] = set()
        self.reached = reached
        self._steps: list[int] = []
        self._numbers = 0
        for rank in self.ranks.each:
            rank.pace.hurry = 1

    def act(self, word: Word) -> None:
        """One act of a script; what cannot be done is left out."""
        name, first, second = word
        acts: dict[str, Callable[[int, int], None]] = {
            "take": self.take,
            "open": self.open,
            "more": self.more,
            "receive": self.receive,
            "publish": self.publish,
            "free": self.free,
            "abort": self.abort,
            "cancel": self.cancel,
            "step": self.step,
            "flush": self.flush,
            "engine": self.engine,
            "engines": self.engines,
            "round": self.round,
        }
        acts[name](first, second)
        for rank in self.ranks.each:
            assert violations(rank.chain) == []
        books = self.ranks.books()
        assert books == [books[0]] * len(books)

    def ask(self, act: Callable[[Rank], Answer]) -> list[Answer]:
        """What the ranks answer, once; nothing if all refuse for the same kind of reason."""
        answers = self.ranks.answers(act)
        refusals = [a for a in answers if isinstance(a, (Shortage, TransferError))]
        if refusals:
            # The words may differ: each rank names the proof that its own engine owes.
            assert len({type(refusal) for refusal in refusals}) == 1
            assert len(refusals) == len(answers)
            self.reached[f"refused by {type(refusals[0]).__name__}"] += 1
            return []
        return [self.ranks.all(lambda rank: self._own(answers, rank))]

    def _own(self, answers: Sequence[Answer | BaseException], rank: Rank) -> Answer:
        answer = answers[self.ranks.each.index(rank)]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def fresh(self) -> str:
        """A name that was never used."""
        self._numbers += 1
        return f"t{self._numbers}"

    # The scheduler --------------------------------------------------------------------------

    def take(self, pages: int, slots: int) -> None:
        """Pages of an own request, for which a relief may have to wait."""
        waits = self.ranks.each[0].chain.counters.host_waits
        for taken in self.ask(lambda rank: rank.chain.take(pages % 4, slots)):
            self.owned[self.fresh()] = taken
        self.reached["waits"] += self.ranks.each[0].chain.counters.host_waits - waits

    def step(self, first: int, second: int) -> None:
        """Process the oldest step."""
        if self._steps:
            number = self._steps.pop(0)
            self.ranks.all(lambda rank: rank.process(number))

    def written(self, pages: int) -> list[tuple[Taken, int]]:
        """Fresh pages and the step that writes them; nothing if there is no room."""
        made = []
        for taken in self.ask(lambda rank: rank.chain.take(pages, 0)):
            made.append((taken, self.launch(taken)))
        return made

    def launch(self, taken: Taken) -> int:
        """A step that writes all of these pages; its number."""
        self._numbers += 1
        number = self._numbers
        self.ranks.all(lambda rank: rank.run_step(number, per_band(taken)))
        self._steps.append(number)
        return number

    def open(self, first: int, second: int) -> None:
        """A send with its first part, which may be its last."""
        name = self.fresh()
        for taken, number in self.written(1 + first % 3):
            self.owned[name] = taken
            for _ in self.ask(lambda rank: rank.transfers.sends.open(name, f"peer {second % 2}")):
                self.begun.append(name)
                self.unclosed.add(name)
                self.add(name, taken, number)
                if second < 4:
                    self.close(name)

    def more(self, first: int, second: int) -> None:
        """The last part of an open send."""
        takers = [t for t in self.board() if self.may_grow(t.name)]
        for transfer in takers[:1]:
            for taken, number in self.written(1):
                # The take may have waited, and what it waited for may have failed.
                if self.may_grow(transfer.name):
                    self.add(transfer.name, taken, number)
                    self.close(transfer.name)
                held = self.owned.get(transfer.name, Taken([], []))
                self.owned[transfer.name] = Taken(held.ids + taken.ids, held.slots)

    def may_grow(self, name: str) -> bool:
        """Whether a send takes another part."""
        phases = {t.name: t.phase for t in self.board()}
        return name in self.unclosed and phases.get(name) in SENDABLE

    def add(self, name: str, taken: Taken, number: int) -> None:
        """Queue a part."""
        self.ranks.all(lambda rank: rank.transfers.sends.add(name, per_band(taken), number))

    def close(self, name: str) -> None:
        """No part comes after those that were added."""
        self.ranks.all(lambda rank: rank.transfers.sends.close(name))
        self.unclosed.discard(name)

    def receive(self, first: int, second: int) -> None:
        """Rows of a receive."""
        name, peer = self.fresh(), f"peer {second % 2}"
        pages, slots = first % 4, second % 2
        for taken in self.ask(lambda r: r.transfers.receives.take(name, peer, pages, slots)):
            self.owned[name] = taken
            self.begun.append(name)

    def publish(self, first: int, second: int) -> None:
        """Publish a held receive at once."""
        held = [t.name for t in self.board() if t.phase is Phase.HELD and t.name in self.owned]
        if held:
            self.ranks.all(lambda rank: rank.transfers.receives.publish(held[0]))

    def free(self, first: int, second: int) -> None:
        """Free what a name owns; what no engine knows of is aborted first."""
        names = sorted(self.owned)[first:]
        if not names:
            return
        taken = self.owned.pop(names[0])
        for transfer in self.board():
            if transfer.name == names[0] and (transfer.phase in EARLY or transfer.parts_left):
                self.give_up(transfer.name)
        self.ranks.all(lambda rank: rank.chain.free(taken.ids))
        if taken.slots:
            self.ranks.all(lambda rank: rank.chain.free_slots(taken.slots))

    def flush(self, first: int, second: int) -> None:
        """Compact the ends."""
        self.reached["moves"] += self.ranks.all(lambda rank: rank.chain.flush(first))

    def abort(self, first: int, second: int) -> None:
        """The scheduler gives a transfer up."""
        for transfer in self.board()[first:][:1]:
            self.give_up(transfer.name)

    def give_up(self, name: str) -> None:
        """Abort on every rank."""
        self.ranks.all(lambda rank: rank.transfers.abort(name))

    # Peers and engines ----------------------------------------------------------------------

    def cancel(self, first: int, second: int) -> None:
        """A peer gives a transfer up, known or not, and tells one rank."""
        names = [*self.begun[-4:], f"t{self._numbers + 1}"]
        rank = self.ranks.each[second % len(self.ranks.each)]
        rank.transfers.abort_for(names[first % len(names)], "peer")

    def engine(self, first: int, second: int) -> None:
        """Something happens to one rank's engine."""
        rank = self.ranks.each[second % len(self.ranks.each)]
        engine = rank.engine
        for name in engine.open_transfers()[:1]:
            if first in {0, 1}:
                engine.finish(name)
            elif first in {2, 3}:
                engine.fail(name)
        for name in engine.unproved()[:1]:
            if first == 4:
                engine.prove(name)
        if first == 5:
            engine.refuses ^= {REFUSALS[second % len(REFUSALS)]}
            # What is asked ahead of the collective may stop a round with any other error.
            engine.error = TransferError if engine.refuses & EARLY_CALLS else ConnectionError
        if first > 5:
            rank.pace.hurry = first - 6

    def engines(self, first: int, second: int) -> None:
        """Every rank's engine gets on with what it began first, or but for one rank."""
        for rank in self.ranks.each[first == 0 :]:
            for name in rank.engine.open_transfers()[:1]:
                rank.engine.finish(name)
            for name in rank.engine.unproved()[:1]:
                rank.engine.prove(name)

    def round(self, first: int, second: int) -> None:
        """A round, in which all ranks report the same."""
        report = self.ranks.round()
        self.reached["isolated"] += len(report.isolated)
        self.reached["began"] += len(report.began)
        for ended in report.ended:
            self.reached[ended.outcome.value] += 1

    def board(self) -> list[Transfer]:
        """The transfers that are not over."""
        return list(self.ranks.each[0].board.transfers())

    # The end --------------------------------------------------------------------------------

    def drain(self) -> None:
        """Everything ends: first without the proofs, then with them."""
        for rank in self.ranks.each:
            rank.engine.refuses.clear()
        while self._steps:
            self.step(0, 0)
        while self.owned:
            self.free(0, 0)
        for _ in range(4):
            for rank in self.ranks.each:
                for name in rank.engine.open_transfers():
                    rank.engine.finish(name)
            for transfer in self.board():
                if transfer.parts_left:
                    self.give_up(transfer.name)
            self.round(0, 0)
        assert {t.phase for t in self.board()} <= {Phase.QUARANTINED}
        for rank in self.ranks.each:
            kept = rank.board.quarantine.unaccounted_pages(rank.chain.bands)
            assert kept == ((), (), ())
            assert {q.name for q in rank.board.quarantine.report()} == {
                t.name for t in rank.board.transfers()
            }
            for name in rank.engine.unproved():
                rank.engine.prove(name)
        self.round(0, 0)
        assert self.board() == []
        assert sorted(self.ranks.ended) == sorted(self.begun)
        for rank in self.ranks.each:
            assert rank.chain.ledger.held.holds() == ()
            assert rank.chain.ledger.held.ended_early() == frozenset()
            assert [band.live + band.pending + band.fixed for band in rank.chain.bands] == [0] * 3
            assert rank.device.lent == {}
            assert rank.board.unforgotten() == {}
            assert rank.engine.told == {}


ACTS = (
    *("take", "take", "take", "open", "open", "open", "more", "receive", "receive", "publish"),
    *("free", "free", "free", "flush", "flush", "step", "step", "step", "abort", "cancel"),
    *("engine", "engine", "engines", "engines", "engines", "round", "round", "round", "round"),
)
WORDS = st.tuples(st.sampled_from(ACTS), st.integers(0, 7), st.integers(0, 7))
FLOORS = {
    "began": 20,
    "isolated": 8,
    "sent": 4,
    "received": 4,
    "failed": 2,
    "aborted": 8,
    "moves": 2,
    "waits": 1,
    "refused by Shortage": 8,
    "refused by TransferError": 4,
}


def test_any_sequence_is_safe_and_equal_on_every_rank() -> None:
    reached: Counter[str] = Counter()

    @settings(max_examples=25)
    @given(count=st.integers(2, 3), script=st.lists(WORDS, min_size=50, max_size=80))
    def play(count: int, script: list[Word]) -> None:
        played = Play(count, reached)
        for word in script:
            played.act(word)
        played.drain()

    play()
    assert {name: reached[name] for name, floor in FLOORS.items() if reached[name] < floor} == {}
