"""Two builds on one trace: the first call that they answer differently.

Only answers are compared, since what is behind them may differ by design; the state before the
call is shown for both, because there the reason is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unikv.alloc.statistics import Statistics
from unikv.storage import KVStorage
from unikv.trace.calls import Call, Outcome, Performer
from unikv.trace.lines import Trace
from unikv.trace.replay import Build

STATE_LETTERS = b".Lhpf"
"""One letter per page state: unclaimed, live, hole, pending, fixed."""
DRAWN_PAGES = 200


@dataclass(frozen=True, slots=True)
class Book:
    """One band's pages at one moment.

    Attributes:
        name: the band's name.
        first_page: the page of the first letter.
        letters: one of `STATE_LETTERS` per page, ascending.
        bound: `(id, page)` of every bound id, ascending.
    """

    name: str
    first_page: int
    letters: str
    bound: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        drawn = self.letters[:DRAWN_PAGES]
        more = len(self.letters) - len(drawn)
        return f"{self.name} from page {self.first_page}: {drawn}" + (
            f" and {more} pages more" if more else ""
        )


@dataclass(frozen=True, slots=True)
class State:
    """A storage at one moment, as far as the books go."""

    statistics: Statistics
    books: tuple[Book, ...]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first call that two builds answer differently.

    Attributes:
        number: of the call in the trace, from 1.
        call: what was asked.
        recorded: what the trace says.
        first, second: what the builds say.
        first_before, second_before: their states before the call.
    """

    number: int
    call: Call
    recorded: Outcome
    first: Outcome
    second: Outcome
    first_before: State
    second_before: State

    def __str__(self) -> str:
        lines = [
            f"call {self.number}, {self.call}",
            f"  the trace {self.recorded}",
            f"  the first build {self.first}, the second {self.second}",
        ]
        for name, state in (("first", self.first_before), ("second", self.second_before)):
            totals = ", ".join(f"{key} {value}" for key, value in state.statistics.totals.items())
            lines.append(f"  the {name} before it: {totals}")
            lines += [f"    {book}" for book in state.books]
        return "\n".join(lines)


def compare(path: Path, first: Build, second: Build) -> Divergence | None:
    """Make the calls of a trace on two new storages until they answer differently.

    Args:
        path: the trace.
        first, second: make the storages.

    Returns:
        The first divergence; None if every answer is the same, be it the recorded one or not.

    Raises:
        TraceError: if the file is no trace, or stops being one before they diverge.
    """
    trace = Trace(path)
    one, other = Performer(first(trace.layout)), Performer(second(trace.layout))
    for number, call, recorded in trace.calls():
        before = state_of(one.storage), state_of(other.storage)
        answers = one.perform(call), other.perform(call)
        if answers[0] != answers[1]:
            return Divergence(number, call, recorded, *answers, *before)
    return None


def state_of(storage: KVStorage) -> State:
    """Statistics and books of a storage; they do not change with it."""
    letters = bytes.maketrans(bytes(range(len(STATE_LETTERS))), STATE_LETTERS)
    books = []
    for band in storage.chain.bands:
        first_page, _ = band.axis.pages_of_span(0, len(band.states))
        drawn = band.states[:: band.axis.step].translate(letters).decode("ascii")
        bound = tuple((unit, page) for unit, page in enumerate(band.ids.forward) if page)
        books.append(Book(band.layout.name, first_page, drawn, bound))
    return State(storage.statistics(), tuple(books))
