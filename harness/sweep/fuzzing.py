"""A fuzzing process, followed from outside: its flags, what it says, and what it left behind.

The fuzzer ends its whole process, on time or at the first input that fails, so it has a process of
its own and tells by its exit status and its files.  What failed is run once more here, without the
fuzzer: only what fails then becomes a finding, as a case like any other.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from harness.errors import InputError
from harness.fuzz.inputs import Target, case_of, run_input
from harness.sweep.findings import Findings
from harness.sweep.interrupts import Interrupts
from harness.sweep.verdict import Exit

CRASHED, TIMED_OUT, OUT_OF_MEMORY = 77, 70, 71
"""Exit statuses of libFuzzer; any other but 0 means that the process itself went wrong."""

INPUT_SECONDS_MAX = 60
"""An input that takes longer hangs: an ordinary one takes some hundredths of a second."""

CRASH, HANG, FULL = "crash", "timeout", "oom"
"""How libFuzzer names the files of inputs that failed, took too long or filled the memory."""

_LIE_ELSEWHERE = "inputs that fail would lie where nobody looks; --artifacts DIR says where they go"
_HIDE_THE_END = "how the fuzzer ended is read from its exit status; leave this out"
_SEVERAL = (
    "one fuzzer is followed; start the command several times, each with a --seed of its own and all"
    " with one --corpus DIR"
)
_NO_FUZZING = "nothing would be fuzzed; --corpus DIR begins with the inputs of an earlier command"
_BYTES = "nothing would be fuzzed; --replay FILE runs an input, and makes its operations few"

REFUSED_FLAGS: Mapping[str, str] = {
    "artifact_prefix": _LIE_ELSEWHERE,
    "exact_artifact_path": _LIE_ELSEWHERE,
    "error_exitcode": _HIDE_THE_END,
    "timeout_exitcode": _HIDE_THE_END,
    "jobs": _SEVERAL,
    "fork": _SEVERAL,
    "merge": _NO_FUZZING,
    "set_cover_merge": _NO_FUZZING,
    "minimize_crash": _BYTES,
    "cleanse_crash": _BYTES,
    "ignore_remaining_args": "the corpus stands behind all flags and would be lost; leave this out",
}
"""Flags of libFuzzer under which what it finds gets lost, each with the reason and the way out."""

LOOK_SECONDS = 0.2
LAST_LINES = 12

_STATUS = re.compile(
    r"#(?P<executions>\d+)\s+\w+\s+cov: (?P<coverage>\d+) ft: (?P<features>\d+)"
    r" corp: (?P<corpus>\d+)/"
)


class Reached(NamedTuple):
    """How far a fuzzer has come.

    Attributes:
        executions: inputs that were run.
        coverage: counters that were ever hit, of the allocator's code and of situations.
        features: the same by how often, as libFuzzer tells them apart.
        corpus: inputs that were kept.
    """

    executions: int = 0
    coverage: int = 0
    features: int = 0
    corpus: int = 0


@dataclass(frozen=True, slots=True)
class FuzzPlan:
    """What one fuzzing process does.

    Attributes:
        scenario: the file.
        target: what every input is run on.
        folder: where everything it leaves goes; it exists.
        corpus: inputs to begin with, and where new ones are kept; it exists.
        budget_seconds: for how long.
        seed: of the fuzzer's own chance.
        flags: more for libFuzzer, which take precedence.
    """

    scenario: Path
    target: Target
    folder: Path
    corpus: Path
    budget_seconds: int
    seed: int
    flags: tuple[str, ...]

    @property
    def situations(self) -> Path:
        """Every situation in the order of first sight, each behind the number of its input."""
        return self.folder / "situations.txt"

    def command(self) -> list[str]:
        """The command line of the process."""
        return [
            *(sys.executable, "-m", "harness.fuzz.atheris_target", str(self.scenario)),
            *(self.target.plant or "", str(self.target.operations_max), str(self.situations)),
            f"-artifact_prefix={self.folder}/",
            f"-max_total_time={self.budget_seconds}",
            f"-max_len={self.target.bytes_max}",
            f"-timeout={INPUT_SECONDS_MAX}",
            f"-seed={self.seed}",
            *self.flags,
            str(self.corpus),
        ]


@dataclass(slots=True)
class Fuzzing:
    """One fuzzing process from its start to what came of it.

    Changed by `follow` alone.

    Attributes:
        plan: what it does.
        interrupts: whether somebody wants it to end.
        reached: how far it has come.
        status: its exit status; None while it runs.
    """

    plan: FuzzPlan
    interrupts: Interrupts = field(default_factory=Interrupts)
    reached: Reached = field(default_factory=Reached)
    status: int | None = None
    _last: list[str] = field(default_factory=list)
    _begin: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """Wall time since the beginning."""
        return time.monotonic() - self._begin

    def follow(self) -> Iterator[Reached]:
        """Run it to its end; where it stands, now and then."""
        with (
            self.interrupts,
            subprocess.Popen(
                self.plan.command(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            ) as process,
        ):
            assert process.stderr is not None
            for line in _lines(process, process.stderr.fileno(), self.interrupts):
                found = _STATUS.match(line)
                if found:
                    self.reached = Reached(*(int(found[name]) for name in Reached._fields))
                elif line:
                    self._last = [*self._last, line][-LAST_LINES:]
                yield self.reached
            self.status = process.wait()

    def left(self, *kinds: str) -> list[Path]:
        """Inputs that failed, hung or filled the memory, or only those of some kinds."""
        patterns = [f"{kind}-*" for kind in kinds or (CRASH, HANG, FULL)]
        return sorted(path for pattern in patterns for path in self.plan.folder.glob(pattern))

    @property
    def hung(self) -> bool:
        """Whether an input took too long."""
        return self.status == TIMED_OUT or bool(self.left(HANG))

    @property
    def filled(self) -> bool:
        """Whether an input took more memory than it may."""
        return self.status == OUT_OF_MEMORY or bool(self.left(FULL))

    @property
    def crashed(self) -> bool:
        """Whether an input failed."""
        return self.status == CRASHED or bool(self.left(CRASH))

    def situations(self) -> Counter[str]:
        """How many situations were reached, by the first word of each."""
        return Counter(words.partition(" ")[0] for _, words in self._noted() if words)

    def executions(self) -> int:
        """Inputs that were run; the fuzzer itself says so only now and then."""
        return max([self.reached.executions, *(int(number) for number, _ in self._noted())])

    def _noted(self) -> list[tuple[str, str]]:
        path = self.plan.situations
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        parted = (line.partition("\t") for line in lines)
        return [(number, words) for number, _, words in parted]

    def last_words(self) -> str:
        """What the process said last beside its status lines."""
        return "\n".join(self._last)

    def verdict(self, findings: Findings) -> Exit:
        """What all of it amounts to, once `findings` were added."""
        if len(findings):
            return Exit.VIOLATION
        if self.interrupts.seen:
            return Exit.INTERRUPTED
        # What is in the folder counts, however the process ended.
        if self.hung or self.filled:
            return Exit.VIOLATION
        if self.crashed:
            return Exit.NOT_DETERMINISTIC
        return self._quiet() if self.status == 0 else Exit.INTERNAL

    def _quiet(self) -> Exit:
        if not self.executions():
            return Exit.NOTHING_RAN
        return Exit.CLEAN if self.plan.target.plant is None else Exit.MISSED


def _lines(process: subprocess.Popen[bytes], door: int, interrupts: Interrupts) -> Iterator[str]:
    """Lines that a process writes, as they come; an empty one where it was silent for a while."""
    asked = False
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(door, selectors.EVENT_READ)
        while True:
            if interrupts.seen and not asked:
                asked = True
                process.send_signal(signal.SIGINT)
            if not selector.select(LOOK_SECONDS):
                yield ""
                continue
            piece = os.read(door, 1 << 16)
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode(errors="replace") for line in lines)
            if not piece:
                return


def add_failed_inputs(fuzzing: Fuzzing, findings: Findings) -> None:
    """Run what failed once more, without the fuzzer.

    What hung or filled the memory is not run: it would do so again.  Whatever fails in the harness
    itself is raised: no finding, but not to be lost either.
    """
    for path in fuzzing.left(CRASH):
        add_input(fuzzing.plan.target, path.read_bytes(), findings)


def add_input(target: Target, data: bytes, findings: Findings) -> None:
    """Run one input; if it fails, add it to the findings."""
    result = run_input(target, data)
    if result.violations:
        findings.add_case(case_of(target, result, result.violations[0]))


def fuzzer_version(package: str = "atheris") -> str:
    """Version of the fuzzer that a package brings.

    Raises:
        InputError: if it is not installed.
    """
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise InputError(
            f"fuzz: {package} is not installed; on Linux, pip install 'unikv[fuzz]' brings it;"
            " --replay FILE works without it"
        ) from error


def checked_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Flags for libFuzzer.

    Raises:
        InputError: if one is none, as a path would be taken for a corpus, or loses what is found.
    """
    for flag in flags:
        found = re.fullmatch(r"-([a-z_]+)=\S*", flag)
        if found is None:
            raise InputError(f"fuzz: {flag!r}: want flags of libFuzzer such as -runs=1000")
        if found[1] in REFUSED_FLAGS:
            raise InputError(f"fuzz: {flag!r}: {REFUSED_FLAGS[found[1]]}")
    return tuple(flags)
