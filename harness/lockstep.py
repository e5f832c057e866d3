"""Collectives between ranks that one process steps one after the other.

A call is made on the first rank, then on the second, and so on.  A call that joins a collective
cannot end before every rank has joined, so from there on the other ranks run the same call on
threads of their own, and a baton lets exactly one of them go at a time: first rank first.  What a
run does is therefore the same whatever the threads do, and a call without a collective needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Condition
from typing import TypeVar

T = TypeVar("T")


class LeftAlone(Exception):
    """A rank waits in a collective that another rank has not joined: a real one would hang."""


class Lockstep:
    """The ranks of one run, and whose turn it is."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._changed = Condition()
        self._turn = 0
        self._joined: dict[int, list[int]] = {}
        self._least: list[int] = []
        self._rounds = 0
        self._ended: set[int] = set()
        self._start_others: Callable[[], None] = lambda: None
        self._pool: ThreadPoolExecutor | None = None

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
            self._turn = 1
            if not others:
                for rank in range(1, self._ranks):
                    others.append(self._pool.submit(self._run_other, call, rank))

        self._joined.clear()
        self._ended.clear()
        self._start_others = start_others
        try:
            answers = [call(0)]
        finally:
            self._end(0)
            wait(others)
        if others:
            return answers + [other.result() for other in others]
        for rank in range(1, self._ranks):
            answers.append(call(rank))
            self._end(rank)
        return answers

    def min_reduce(self, rank: int, values: list[int]) -> list[int]:
        """The least of every rank's value, place by place; called from within `run`.

        Raises:
            LeftAlone: if another rank's call has ended without joining, or ends so.
        """
        if self._ranks == 1:
            return list(values)
        with self._changed:
            if self._ended:
                raise LeftAlone(f"rank {rank} joins a collective that another rank has passed by")
            self._joined[rank] = values
            number = self._rounds
            if len(self._joined) == self._ranks:
                self._least = [min(column) for column in zip(*self._joined.values(), strict=True)]
                self._joined.clear()
                self._rounds += 1
                self._turn = 0
            else:
                self._start_others() if rank == 0 else self._pass_on(rank)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._may_go_on(rank, number))
            if self._rounds == number:
                raise LeftAlone(f"rank {rank} waits in a collective that another has not joined")
            return self._least

    def _may_go_on(self, rank: int, number: int) -> bool:
        if self._rounds == number:
            return bool(self._ended)
        return self._turn == rank

    def _end(self, rank: int) -> None:
        with self._changed:
            self._ended.add(rank)
            self._pass_on(rank)
            self._changed.notify_all()

    def _pass_on(self, rank: int) -> None:
        """The next rank goes on."""
        self._turn = rank + 1

    def _run_other(self, call: Callable[[int], T], rank: int) -> T:
        with self._changed:
            self._changed.wait_for(lambda: self._turn == rank)
        try:
            return call(rank)
        finally:
            self._end(rank)
