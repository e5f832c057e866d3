"""Worker processes, kept busy until the queue is empty, and what each of them sends.

The insight: one pipe per process keeps a death private.  The others go on, the dead one's journal
names the seed that killed it, and the rest of its chunk goes back to the queue.

A crew of one runs in this process, with the same journal and the same events; there, what a
workload lets through is raised.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol

from harness.sweep.interrupts import Interrupts, deaf_children
from harness.sweep.jobs import Job, JobQueue, Workload
from harness.sweep.journal import Journal, Started, read_journal
from harness.sweep.worker import Finished, Ready, journal_path, log_path, run_job, work

POLL_SECONDS = 0.2
"""How long a crew waits before it looks for an interrupt or a hang."""

DEAF_SECONDS_MAX = 10 * POLL_SECONDS
"""How long a crew may not look at its processes until it must itself have been stopped."""

START_SECONDS_MAX = 120.0
"""How long a process may take to start, on a machine that has much else to do."""

ABORT_SECONDS = 2.0
"""How long a process that hangs gets to say where."""

LOG_BYTES_MAX = 4000
"""How much of a dead worker's last words is kept."""

BARREN_DEATHS_MAX = 3
"""How many workers may die before their first seed until it is no accident any more."""

RAISED = 1
"""Exit status of a Python process that an exception ended."""


class Died(NamedTuple):
    """A job ended its process.

    Attributes:
        job: the seed that was running.
        how: `signal 9`, `exit status 1` or `no result within 60 s`.
        log: the last words of the process.
        raised: whether a Python exception ended it.
    """

    job: Job
    how: str
    log: str
    raised: bool


Event = Finished | Died


class CrewError(Exception):
    """Workers keep ending before they have started a seed."""


@dataclass(frozen=True, slots=True)
class CrewPlan:
    """What a crew needs: how many, what to run, where to write, how long a seed may take."""

    size: int
    workload: Workload
    folder: Path
    chunk_jobs: int
    seed_seconds_max: float


class Crew(Protocol):
    """Runs the jobs of a queue."""

    def __enter__(self) -> Crew: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def events(self, queue: JobQueue, interrupts: Interrupts) -> Iterator[Event]:
        """What becomes of each job, as it happens; ends with the queue or an interrupt."""
        ...


def crew_for(plan: CrewPlan) -> Crew:
    """This process alone, or as many processes as the plan says."""
    return Solo(plan) if plan.size == 1 else Team(plan)


class Solo:
    """The crew that is this process."""

    def __init__(self, plan: CrewPlan) -> None:
        self._plan = plan
        self._journal = Journal(journal_path(plan.folder, 1), 1, os.getpid())
        self._job: Job | None = None

    def __enter__(self) -> Solo:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._journal.close()
        if error is not None and self._job is not None:
            scenario = self._plan.workload.name(self._job)
            error.add_note(f"while running seed {self._job.seed} of scenario {scenario}")

    def events(self, queue: JobQueue, interrupts: Interrupts) -> Iterator[Event]:
        """One seed after the other; an interrupt ends the one that is running."""
        while not interrupts.seen and (jobs := queue.take(1)):
            self._job = jobs[0]
            try:
                with interrupts.raising():
                    finished = run_job(self._plan.workload, self._job, self._journal)
            except KeyboardInterrupt:
                return
            self._job = None
            yield finished


@dataclass(slots=True)
class Member:
    """One worker process.

    Attributes:
        number, process, pipe: which one, and how to talk to it.
        heard: monotonic seconds of its last sign of life.
        silence_max: seconds from then until it counts as hanging.
        waiting: what it was given and has not answered, in order.
        keeps_journal: whether it can write down which of those runs; if not, it is the first.
    """

    number: int
    process: BaseProcess
    pipe: Connection
    heard: float
    silence_max: float
    waiting: list[Job] = field(default_factory=list)
    keeps_journal: bool = True


class Team:
    """A crew of processes.

    Invariant: every job taken from the queue is finished, died, put back, or waiting with exactly
    one member.  Changed by `events` alone.
    """

    def __init__(self, plan: CrewPlan) -> None:
        self._plan = plan
        self._context = multiprocessing.get_context("spawn")
        self._members: list[Member] = []
        self._hired = 0
        self._barren = 0
        self._looked = time.monotonic()

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End every process at once and drop logs that say nothing."""
        for member in self._members:
            member.process.kill()
        for member in self._members:
            member.process.join()
            member.pipe.close()
        self._members.clear()
        for number in range(1, self._hired + 1):
            log = log_path(self._plan.folder, number)
            if log.exists() and not log.stat().st_size:
                log.unlink()

    def events(self, queue: JobQueue, interrupts: Interrupts) -> Iterator[Event]:
        """Results as they come; an interrupt ends seeds that are running."""
        for _ in range(self._plan.size):
            self._hire(queue)
        while self._members and not interrupts.seen:
            for member in self._ready():
                # A signal to the whole group ends workers too, and none of their seeds is to blame.
                if not interrupts.seen:
                    yield from self._listen(member, queue)
            if not interrupts.seen:
                yield from self._bury_the_hung(queue)
        for member in list(self._members):
            yield from self._received(member)

    def _hire(self, queue: JobQueue) -> None:
        """Start a process if there is work for it."""
        jobs = queue.take(self._plan.chunk_jobs)
        if not jobs:
            return
        self._hired += 1
        ours, theirs = self._context.Pipe()
        process = self._context.Process(
            target=work,
            args=(self._hired, self._plan.workload, self._plan.folder, theirs),
            daemon=True,
        )
        with deaf_children():
            process.start()
        theirs.close()
        member = Member(self._hired, process, ours, time.monotonic(), START_SECONDS_MAX)
        self._members.append(member)
        self._give(member, jobs)

    def _give(self, member: Member, jobs: list[Job]) -> None:
        member.waiting = jobs
        member.heard = time.monotonic()
        try:
            member.pipe.send(jobs)
        except BrokenPipeError:
            # It died between two chunks; the next look at its pipe finds the end of it.
            member.process.kill()

    def _ready(self) -> list[Member]:
        """Members with something to say; a death is something too."""
        ready = wait([member.pipe for member in self._members], POLL_SECONDS)
        return [member for member in self._members if member.pipe in ready]

    def _listen(self, member: Member, queue: JobQueue) -> Iterator[Event]:
        """Everything a member has sent; then more work for it, or its successor."""
        yield from self._received(member)
        if member.pipe.closed:
            yield from self._bury(member, queue)
        elif not member.waiting:
            jobs = queue.take(self._plan.chunk_jobs)
            if jobs:
                self._give(member, jobs)
            else:
                self._dismiss(member)

    def _received(self, member: Member) -> Iterator[Event]:
        """Results in its pipe; the pipe is closed if the other end is."""
        try:
            while member.pipe.poll():
                message: Ready | Finished = member.pipe.recv()
                member.heard = time.monotonic()
                member.silence_max = self._plan.seed_seconds_max
                member.keeps_journal = not message.trouble
                if isinstance(message, Finished):
                    member.waiting = member.waiting[1:]
                    yield message
        except (EOFError, OSError):
            member.pipe.close()

    def _dismiss(self, member: Member) -> None:
        """No more work: its pipe closes, and it ends by itself."""
        member.pipe.close()
        member.process.join(POLL_SECONDS)
        member.process.kill()
        member.process.join()
        self._members.remove(member)

    def _bury_the_hung(self, queue: JobQueue) -> Iterator[Event]:
        looked, self._looked = self._looked, time.monotonic()
        if self._looked - looked > DEAF_SECONDS_MAX:
            # Ctrl-Z stops every process of a terminal, and nobody hears what was said meanwhile.
            for member in self._members:
                member.heard = self._looked
        for member in list(self._members):
            if time.monotonic() - member.heard > member.silence_max:
                how = f"no result within {member.silence_max:.0f} s"
                _abort(member.process)
                yield from self._received(member)
                yield from self._bury(member, queue, how)

    def _bury(self, member: Member, queue: JobQueue, how: str = "") -> Iterator[Event]:
        """Tell of the seed that was running, put the others back, and hire a successor."""
        member.process.join()
        member.pipe.close()
        self._members.remove(member)
        status = member.process.exitcode or 0
        how = how or (f"signal {-status}" if status < 0 else f"exit status {status}")
        log = _last_words(log_path(self._plan.folder, member.number))
        journal = read_journal(journal_path(self._plan.folder, member.number))
        rest = member.waiting
        has_started = bool(journal) and isinstance(journal[-1], Started)
        if rest and (has_started or not member.keeps_journal):
            yield Died(rest[0], how, log, status == RAISED)
            rest = rest[1:]
        elif len(journal) <= 1:
            self._note_barren(f"worker {member.number} ended before its first seed: {how}\n{log}")
        queue.put_back(rest)
        self._hire(queue)

    def _note_barren(self, what: str) -> None:
        self._barren += 1
        if self._barren > BARREN_DEATHS_MAX:
            raise CrewError(what)


def _abort(process: BaseProcess) -> None:
    """End a process that hangs, and have it write down where."""
    if process.pid is not None:
        os.kill(process.pid, signal.SIGABRT)
    process.join(ABORT_SECONDS)
    process.kill()


def _last_words(path: Path) -> str:
    text = path.read_bytes()[-LOG_BYTES_MAX:] if path.exists() else b""
    return text.decode("utf-8", "replace").strip()
