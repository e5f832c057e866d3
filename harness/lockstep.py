"""Collectives between ranks that one process steps one after the other.

A call is made on the first rank, then on the second, and so on.  A call that joins a collective
cannot end before every rank has joined, so from there on the other ranks run the same call on
threads of their own, and a baton lets exactly one of them go at a time: first rank first.  What a
run does is therefore the same whatever the threads do, and a call without a collective needs none.

Nor does a call that joins just one, which most are: the last rank begins, and where it would wait,
the rank before it is called, down to the first, which completes the collective and goes on first.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

T = TypeVar("T")

MEETS_ONCE = frozenset({"transfer_round", "publish_receive"})
"""Calls of a subject that join one collective each; a take joins none, or one for each wait."""


class LeftAlone(Exception):
    """A rank waits in a collective that another rank has not joined: a real one would hang."""


class Lockstep:
    """The ranks of one run, and whose turn it is.

    Law: exactly one thread holds the baton, and only that thread touches anything here.  A baton is
    a lock for each rank, and to pass it on is to release the lock that the next one waits for: one
    wake-up, where a condition would wake every rank that waits.
    """

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._batons = [Lock() for _ in range(ranks)]
        for baton in self._batons:
            baton.acquire()
        self._joined: list[list[int]] = []
        self._least: list[int] = []
        self._rounds = 0
        self._ended: set[int] = set()
        self._start_others: Callable[[], None] = lambda: None
        self._pool: ThreadPoolExecutor | None = None
        self._uncalled = 0
        self._call_next: Callable[[], None] | None = None

    def meet_once(self, call: Callable[[int], T]) -> list[T]:
        """As `run`, for a call that joins one collective at most; up to it the last rank is first.

        Raises:
            LeftAlone: as `run`, and if a rank joins another collective.
        """
        answers: dict[int, T] = {}

        def call_next() -> None:
            self._uncalled = rank = self._uncalled - 1
            answers[rank] = call(rank)
            self._ended.add(rank)

        self._joined.clear()
        self._ended.clear()
        self._uncalled, self._call_next = self._ranks, call_next
        try:
            while self._uncalled:
                call_next()
        finally:
            self._call_next = None
        return [answers[rank] for rank in range(self._ranks)]

    def run(self, call: Callable[[int], T]) -> list[T]:
        """`call(rank)` for every rank in order; their answers.

        Raises:
            LeftAlone: if one rank joins a collective and another ends its call without joining it;
                anything else that a call raises, the first rank's first.
        """
        others: list[Future[T]] = []

        def start_others() -> None:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._ranks - 1)
            if not others:
                for rank in range(1, self._ranks):
                    others.append(self._pool.submit(self._run_other, call, rank))

        self._joined.clear()
        self._ended.clear()
        self._start_others = start_others
        try:
            answers = [call(0)]
        finally:
            self._ended.add(0)
            if others and len(self._ended) < self._ranks:
                self._pass_on()
                self._batons[0].acquire()
        if others:
            return answers + [other.result() for other in others]
        for rank in range(1, self._ranks):
            answers.append(call(rank))
            self._ended.add(rank)
        return answers

    def min_reduce(self, rank: int, values: list[int]) -> list[int]:
        """The least of every rank's value, place by place; called from within `run`.

        Raises:
            LeftAlone: if another rank's call has ended without joining, or ends so.
        """
        if self._ranks == 1:
            return list(values)
        if self._ended:
            raise LeftAlone(f"rank {rank} joins a collective that another rank has passed by")
        number = self._rounds
        self._joined.append(values)
        if len(self._joined) == self._ranks:
            self._least = list(map(min, *self._joined))
            self._joined.clear()
            self._rounds += 1
        if self._call_next is None:
            self._let_others_go(rank, number)
        elif self._rounds == number and self._uncalled:
            self._call_next()
        if self._rounds == number:
            raise LeftAlone(f"rank {rank} waits in a collective that another has not joined")
        return self._least

    def _let_others_go(self, rank: int, number: int) -> None:
        """Wait until it is this rank's turn: the first one's once all have joined."""
        if self._rounds > number:
            self._hand_to(0)
        else:
            if rank == 0:
                self._start_others()
            # Ranks join in order, so the next one is on its way to this collective.
            self._hand_to(rank + 1)
        self._batons[rank].acquire()

    def _hand_to(self, rank: int) -> None:
        """That rank goes on; whoever called waits for its own baton, or has ended."""
        self._batons[rank].release()

    def _pass_on(self) -> None:
        """The first rank that has not ended goes on; without one, `run` does, on the first's."""
        left = [rank for rank in range(self._ranks) if rank not in self._ended]
        self._hand_to(left[0] if left else 0)

    def _run_other(self, call: Callable[[int], T], rank: int) -> T:
        self._batons[rank].acquire()
        try:
            return call(rank)
        finally:
            self._ended.add(rank)
            self._pass_on()
