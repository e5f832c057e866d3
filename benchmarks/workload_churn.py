"""Requests that come and go in a full pool, and capacity questions asked of what they leave.

The stream of operations depends on the allocator only through what it refuses, so another
allocator that is run on it sees the same requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from time import thread_time_ns

from benchmarks.workload_pool import Measured, PoolSize, median_us, pool_of, timed
from unikv.advance import first_needed_page
from unikv.alloc.chain import ChainAllocator
from unikv.device.port import Stream
from unikv.errors import Shortage

WINDOW_TOKENS = 128
SHORTEST, LONGEST = 64, 4096
LARGEST_SHARE = 8  # of the nominal pages, one over this is the most that a request has
ADMITTED_MAX = 4
FLUSH_EVERY, FLUSH_MOVES = 8, 64
WRITERS = 64
ITERATIONS, ITERATIONS_DROPPED = 256, 16
QUESTIONS = 200
JOINT_FULL_TOKENS, JOINT_WINDOW_TOKENS = 1024, 256


class Churn:
    """A pool filled until it refuses, and what one iteration does to it.

    Attributes:
        chain: the pool.
        compacting_ns: spent in flushes, and in takes that had to rearrange first.
    """

    def __init__(self, size: PoolSize, seed: int) -> None:
        self.chain = pool_of(size)
        self.compacting_ns = 0
        self._size = size
        self._rng = Random(seed)
        self._held: list[list[int]] = []
        self._iteration = 0
        self._next_tokens = self._draw()
        while self._admit():
            pass

    def iterate(self) -> None:
        """Frees, admissions, and every eighth time a flush."""
        self._iteration += 1
        self.free_one()
        if self._rng.random() < 0.5:
            self.free_one()
        for _ in range(ADMITTED_MAX):
            if not self._admit():
                break
        if self._iteration % FLUSH_EVERY == 0:
            self.compacting_ns += timed(self.chain.flush, FLUSH_MOVES).nanoseconds

    def iterate_overlapped(self) -> None:
        """The same between the record and the processing of a step."""
        number = self._iteration + 1
        self.chain.launch_step(number)
        event = self.chain.device.record_event(Stream.FORWARD)
        # Of a running batch, each request writes into its last page, which both sides still hold.
        written = [ids[-1] for ids in self._held[:WRITERS]]
        self.chain.record_step(number, event, [written] * len(self.chain.bands))
        self.iterate()
        self.chain.process_step(number)

    def free_one(self) -> None:
        """One request, by chance, is over."""
        held = self._held
        position = self._rng.randrange(len(held))
        held[position], held[-1] = held[-1], held[position]
        self.chain.free(held.pop())

    def _admit(self) -> bool:
        start, reliefs = thread_time_ns(), self.chain.counters.reliefs
        try:
            ids = self.chain.take(self._size.pages_of(self._next_tokens), 0).ids
        except Shortage:
            # The length is kept: it comes first the next time.
            return False
        if self.chain.counters.reliefs > reliefs:
            self.compacting_ns += thread_time_ns() - start
        dead = first_needed_page(self._next_tokens, WINDOW_TOKENS, self._size.slots)
        self.chain.retire(0, ids[:dead])
        self._held.append(ids)
        self._next_tokens = self._draw()
        return True

    def _draw(self) -> int:
        drawn = self._rng.randint(SHORTEST, LONGEST)
        return min(drawn, self._size.pages // LARGEST_SHARE * self._size.slots)


def churn(size: PoolSize, seed: int) -> Iterator[Measured]:
    """W4, and W5 on the state that it leaves."""
    traffic = Churn(size, seed)
    yield from _iterations("W4 churn", traffic, traffic.iterate)
    yield from _questions(size, traffic)


def overlapped_churn(size: PoolSize, seed: int) -> Iterator[Measured]:
    """W4e: a forward is in flight across the frees, the admissions and the flush."""
    traffic = Churn(size, seed)
    yield from _iterations("W4e overlapped churn", traffic, traffic.iterate_overlapped)


def _iterations(row: str, traffic: Churn, iterate: Callable[[], None]) -> Iterator[Measured]:
    times = []
    for number in range(ITERATIONS):
        if number == ITERATIONS_DROPPED:
            traffic.compacting_ns = 0
            moved, reliefs = _work_of(traffic.chain)
        times.append(timed(iterate).nanoseconds)
    kept = times[ITERATIONS_DROPPED:]
    moved_after, reliefs_after = _work_of(traffic.chain)
    yield Measured(f"{row}, median iteration", "us", median_us(kept))
    yield Measured(f"{row}, iterations", "1/s", len(kept) / sum(kept) * 1e9)
    yield Measured(f"{row}, share compacting", "%", traffic.compacting_ns / sum(kept) * 100)
    yield Measured(f"{row}, moved an iteration", "pages", (moved_after - moved) / len(kept))
    yield Measured(f"{row}, reliefs", "%", (reliefs_after - reliefs) / len(kept) * 100)


def _work_of(chain: ChainAllocator) -> tuple[int, int]:
    return chain.counters.moved_pages, chain.counters.reliefs


def _questions(size: PoolSize, traffic: Churn) -> Iterator[Measured]:
    chain = traffic.chain

    def one_more_than_the_holes() -> object:
        return chain.fits(min(band.holes for band in chain.bands) + 1, 0)

    joint = (size.pages_of(JOINT_WINDOW_TOKENS), size.pages_of(JOINT_FULL_TOKENS))
    yield Measured("W5b capacity question", "us", _asked(traffic, one_more_than_the_holes))
    yield Measured("W5c joint question", "us", _asked(traffic, lambda: chain.relief.fits(joint)))
    note = "not yet: a question cannot be credited with evictions"
    yield Measured("W5d joint, a quarter evictable", "us", None, note)


def _asked(traffic: Churn, ask: Callable[[], object]) -> float:
    times = []
    for _ in range(QUESTIONS):
        while not traffic.chain.fits(1, 0):
            traffic.free_one()
        taken = traffic.chain.take(1, 0)
        times.append(timed(ask).nanoseconds)
        traffic.chain.free(taken.ids)
    return median_us(times)
