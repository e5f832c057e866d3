"""One process of a crew: takes jobs from its pipe, writes them down, runs them, sends results.

It knows neither its siblings nor what its results mean.  An exception that a workload lets through
ends the process, with the traceback in its log: one seed is lost, and the crew learns which.
"""

from __future__ import annotations

import faulthandler
import os
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from harness.sweep.jobs import Job, Result, Workload
from harness.sweep.journal import Journal

STANDARD_ERROR = 2


class Ready(NamedTuple):
    """A worker has started and takes jobs.

    Attributes:
        trouble: why it cannot write down which of them runs; empty where it can.
    """

    worker: int
    trouble: str


class Finished(NamedTuple):
    """A job ran to its end, in so many seconds of processor time.

    Attributes:
        trouble: why it was not written down; empty where it was.
    """

    job: Job
    result: Result
    busy_seconds: float
    trouble: str = ""


def journal_path(folder: Path, worker: int) -> Path:
    """Where a worker writes down its seeds."""
    return folder / f"seeds-{worker}.jsonl"


def log_path(folder: Path, worker: int) -> Path:
    """Where what a worker says to its standard error goes."""
    return folder / f"worker-{worker}.log"


def run_job(workload: Workload, job: Job, journal: Journal) -> Finished:
    """Run one seed between its two lines."""
    scenario = workload.name(job)
    journal.start(job, scenario)
    begin = time.process_time()
    result = workload.run(job)
    busy = time.process_time() - begin
    journal.end(job, scenario, result)
    return Finished(job, result, busy, journal.trouble)


def work(worker: int, workload: Workload, folder: Path, pipe: Connection) -> None:
    """Run chunks of jobs until the pipe closes: the whole life of a worker process."""
    log = os.open(log_path(folder, worker), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, STANDARD_ERROR)
    faulthandler.enable()
    journal = Journal(journal_path(folder, worker), worker, os.getpid())
    try:
        pipe.send(Ready(worker, journal.trouble))
        while True:
            chunk: list[Job] = pipe.recv()
            for job in chunk:
                pipe.send(run_job(workload, job, journal))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        # The crew has closed its end, or is gone: no more jobs.
        journal.close()
