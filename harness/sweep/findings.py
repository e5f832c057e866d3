"""Violations folded by signature, each with a folder of its own.

The insight: a thousand seeds that fail alike are one finding.  The first in order of the seeds
owns the folder, the others are only counted.

How a failing trace is made smaller is not known here, only where the smaller one goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from harness.case import Case, save_case
from harness.errors import InputError
from harness.report.folder import PAGE, REPORT, files_of, plain_report
from harness.report.length import Length
from harness.report.text import render, render_crash
from harness.shrinking import Smaller
from harness.sweep.artifacts import new_folder, write_files, write_text
from harness.sweep.crew import Died
from harness.sweep.workload import command_line
from harness.unikv_subject import UnikvSubject
from harness.world import SubjectFactory

CRASH = "crash"
"""Stands for the check of a finding that no check made: a seed ended its process."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The first failure of one signature.

    Attributes:
        operation: index of the operation after which it was seen; None for a crash.
        what: one sentence.
        folder: where its files are.
        case: the trace as found; None for a crash, which leaves no trace.
        replay: the command that shows it again.
    """

    signature: str
    check: str
    scenario: str
    seed: int
    operation: int | None
    what: str
    folder: Path
    case: Case | None
    replay: str

    @property
    def smallest_case(self) -> Path | None:
        """The file to replay: the shrunk one where there is one."""
        paths = [self.folder / "min.json", self.folder / "case.json"]
        return next((path for path in paths if path.exists()), None)

    @property
    def report(self) -> Path:
        """The file a person reads."""
        return self.folder / REPORT


def replay_command(path: Path) -> str:
    """The command that replays a case file."""
    return command_line(["replay", str(path)])


class Findings:
    """All findings of one command, in the order they were first seen.

    Invariant: one finding per signature, and its folder holds what the disk took.  Changed by
    `add_case`, `add_met`, `add_crash`, `add_smaller` and `complete`.

    Args:
        folder: where each gets one of its own.
        subject: the allocator under test.
        command: the command that replays a case file.
    """

    def __init__(
        self,
        folder: Path,
        subject: SubjectFactory = UnikvSubject,
        command: Callable[[Path], str] = replay_command,
    ) -> None:
        self._folder = folder
        self._subject = subject
        self._command = command
        self._waiting: set[str] = set()
        self._by_signature: dict[str, Finding] = {}
        self._counts: dict[str, int] = {}
        self._reports: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._by_signature)

    def all(self) -> list[Finding]:
        """Every finding, the first seen first."""
        return list(self._by_signature.values())

    def is_waiting(self, finding: Finding) -> bool:
        """Whether it is a case that nobody has made smaller or completed."""
        return finding.signature in self._waiting

    def count(self, finding: Finding) -> int:
        """How many seeds failed like this one."""
        return self._counts[finding.signature]

    def add_case(self, case: Case) -> None:
        """Fold a failed seed in; the first of its signature is written down."""
        violation = case.violation
        if self._seen(violation.signature):
            return
        folder = self._folder / violation.short_signature
        replay = self._command(folder / "case.json")
        try:
            folder = new_folder(self._folder, violation.short_signature)
            replay = self._command(folder / "case.json")
            save_case(folder / "case.json", case)
            text = render(case, violation, replay, Length.AS_FOUND)
            self._write(violation.signature, folder, text)
        except InputError as error:
            # A full disk must not lose what was found: it is still counted and printed.
            text = render(case, violation, replay, Length.AS_FOUND)
            self._reports[violation.signature] = f"{text.rstrip()}\n\nnot written: {error}\n"
        self._waiting.add(violation.signature)
        self._by_signature[violation.signature] = Finding(
            signature=violation.signature,
            check=violation.check,
            scenario=case.scenario,
            seed=case.seed,
            operation=violation.operation,
            what=violation.what,
            folder=folder,
            case=case,
            replay=replay,
        )

    def add_met(self, case: Case) -> None:
        """Keep a failure that was met while another was made small; no seed is counted for it."""
        if case.violation.signature not in self._by_signature:
            self.add_case(case)
            self._counts[case.violation.signature] = 0

    def add_crash(self, died: Died, scenario: str, replay: str) -> None:
        """Fold a seed in that ended its process."""
        signature = f"{CRASH} | {died.how}{_raised_name(died)}"
        if self._seen(signature):
            return
        short = blake2b(signature.encode(), digest_size=4).hexdigest()
        folder = self._folder / f"{CRASH}-{short}"
        what = f"seed {died.job.seed} of scenario {scenario} ended its process: {died.how}"
        text = render_crash(what, died.log, replay)
        try:
            folder = new_folder(self._folder, folder.name)
            self._write(signature, folder, text)
        except InputError as error:
            self._reports[signature] = f"{text.rstrip()}\n\nnot written: {error}\n"
        self._by_signature[signature] = Finding(
            signature=signature,
            check=CRASH,
            scenario=scenario,
            seed=died.job.seed,
            operation=None,
            what=what,
            folder=folder,
            case=None,
            replay=replay,
        )

    def add_smaller(self, finding: Finding, smaller: Smaller) -> None:
        """Write the shrunk case beside the one as found, and the report that shows it."""
        self._waiting.discard(finding.signature)
        path, case = finding.folder / "min.json", smaller.case
        length = Length.of(complete=smaller.complete)
        text = render(case, case.violation, self._command(path), length)
        self._reports[finding.signature] = text
        try:
            save_case(path, case)
            is_told = self._tell(finding, case, self._command(path), length)
            # What was told of the case as found says more than a report in plain text.
            if not is_told and not (finding.folder / PAGE).exists():
                write_text(finding.report, plain_report(text))
        except InputError as error:
            self._add_words(finding, f"not written: {error}")

    def complete(self, finding: Finding, reason: str = "") -> None:
        """Write what there is to tell of the case as found, where nobody makes it smaller.

        Args:
            finding: of a case.
            reason: why it could not be made smaller; empty where nobody tried.
        """
        assert finding.case is not None, "a crash leaves no case"
        self._waiting.discard(finding.signature)
        if reason:
            self._add_words(finding, f"not made small: {reason}")
        try:
            self._tell(finding, finding.case, finding.replay, Length.AS_FOUND)
        except InputError as error:
            self._add_words(finding, f"not written: {error}")

    def report(self, finding: Finding) -> str:
        """What a person reads about it, also where it could not be written."""
        return self._reports[finding.signature]

    def _add_words(self, finding: Finding, words: str) -> None:
        text = self._reports[finding.signature]
        self._reports[finding.signature] = f"{text.rstrip()}\n\n{words}\n"

    def _write(self, signature: str, folder: Path, text: str) -> None:
        self._reports[signature] = text
        write_text(folder / REPORT, plain_report(text))

    def _tell(self, finding: Finding, case: Case, replay: str, length: Length) -> bool:
        """Replay a case and write its report, its pictures and its test; whether it failed again.

        Raises:
            InputError: if the folder takes no more.
        """
        files = files_of(case, replay, self._subject, length)
        write_files(finding.folder, files)
        return bool(files)

    def _seen(self, signature: str) -> bool:
        self._counts[signature] = self._counts.get(signature, 0) + 1
        return signature in self._by_signature


def _raised_name(died: Died) -> str:
    """The class of the exception that ended the process, without its text, which names ids."""
    last = died.log.rpartition("\n")[2]
    name = re.match(r"[A-Za-z_][\w.]*(?=:|$)", last) if died.raised else None
    return f" | {name[0]}" if name else ""
