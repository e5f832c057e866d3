"""`fuzz` and `fuzz --replay`, from checked options to their exit status and what they say."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from harness.case import Case
from harness.commands import REPORTS_MAX, Screen, watch_findings
from harness.errors import InputError
from harness.fuzz.inputs import Target, case_of, run_input
from harness.loading import load_scenario, read_file
from harness.printed import json_line, shown
from harness.program import DEFAULT_SCENARIOS
from harness.report.faults import missed_text
from harness.report.replay import replay_header, replay_lines, replay_record
from harness.report.summary import DEVICE, finding_lines, violation_records
from harness.runner import SeedResult
from harness.sweep.artifacts import command_folder
from harness.sweep.findings import Findings
from harness.sweep.fuzzing import (
    Fuzzing,
    FuzzPlan,
    add_failed_inputs,
    add_input,
    fuzzer_version,
)
from harness.sweep.interrupts import Interrupts
from harness.sweep.loading import check_fault
from harness.sweep.replay import replay_twice
from harness.sweep.smaller import make_small_in_time, stopwatch
from harness.sweep.verdict import Exit
from harness.sweep.workload import About, command_line
from harness.violation import Violation
from unikv import __version__

INPUT_BYTES_MAX = 1 << 20


class Asked(NamedTuple):
    """What inputs are run on, and how a command line says so."""

    path: Path
    target: Target

    def words(self) -> list[str]:
        """The options that say it."""
        words = ["--scenario", str(self.path), "--ops", str(self.target.operations_max)]
        return words + (["--plant", self.target.plant] if self.target.plant else [])

    def command(self, file: str) -> str:
        """The command line that runs one input again."""
        return command_line(["fuzz", *self.words(), "--replay", file])


class InputReplay(NamedTuple):
    """One input of a fuzzer, run without it."""

    asked: Asked
    path: Path
    data: bytes

    def run(self) -> SeedResult:
        """Run it."""
        return run_input(self.asked.target, self.data)

    def about(self) -> About:
        """What is run."""
        target = self.asked.target
        return About(target.name, target.scenario.ranks, "swarm")

    def title(self) -> str:
        """File, scenario and length."""
        return (
            f"input {self.path}  scenario {self.asked.target.name}  {len(self.data)} bytes"
            f" ({self.asked.target.bytes_max} are read)"
        )

    def command(self) -> str:
        """The command line that does this."""
        return self.asked.command(str(self.path))

    def case(self, result: SeedResult, violation: Violation) -> Case:
        """What failed, as a case."""
        return case_of(self.asked.target, result, violation)

    def expected(self) -> Violation | None:
        """An input promises nothing."""
        return None

    def planted(self) -> str | None:
        """What was planted."""
        return self.asked.target.plant

    def stored_at(self) -> str | None:
        """It is no case."""
        return None


def load_asked(scenario: str | None, plant: str | None, operations: int) -> Asked:
    """What to run inputs on; by default the scenario that has everything.

    Raises:
        InputError: if there is no such scenario or no such fault.
    """
    if plant is not None:
        check_fault("--plant", plant)
    path = DEFAULT_SCENARIOS / "everything.yaml" if scenario is None else Path(scenario)
    return Asked(path, Target(shown(path.stem), load_scenario(path), operations, plant))


def replay_input(
    screen: Screen, asked: Asked, file: str, artifacts: Path, *, as_json: bool
) -> Exit:
    """Run one input again, twice and without the fuzzer; one that fails becomes a case.

    Raises:
        InputError: if the file cannot be read.
    """
    subject = InputReplay(asked, Path(file), read_file(Path(file), "input", INPUT_BYTES_MAX))
    screen.say(replay_header(subject))
    outcome = replay_twice(subject)
    for line in replay_lines(subject, outcome):
        screen.say(line)
    if outcome.violation is not None:
        findings = Findings(command_folder(artifacts, "fuzz"))
        add_input(asked.target, subject.data, findings)
        with Interrupts() as interrupts, screen.progress() as show:
            make_small_in_time(findings, interrupts, watch_findings(show, stopwatch()))
        for finding in findings.all():
            screen.say(f"case        {finding.smallest_case}")
    if as_json:
        screen.say(json_line(replay_record(subject, outcome) | {"command": "fuzz"}))
    return outcome.status


def fuzz(
    screen: Screen,
    asked: Asked,
    *,
    corpus: Path | None,
    budget_seconds: int,
    seed: int,
    flags: tuple[str, ...],
    artifacts: Path,
    as_json: bool,
) -> Exit:
    """Let a fuzzer choose bytes until the time is up or an input fails.

    Raises:
        InputError: if there is no fuzzer, or a folder cannot be made.
    """
    fuzzer = fuzzer_version()
    folder = command_folder(artifacts, "fuzz")
    corpus = folder / "corpus" if corpus is None else corpus
    try:
        corpus.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"--corpus: {corpus}: cannot make this folder: {error.strerror}"
        ) from error
    plan = FuzzPlan(asked.path, asked.target, folder, corpus, budget_seconds, seed, flags)
    fuzzing = Fuzzing(plan)
    screen.say(
        f"scenario {asked.target.name}  fuzzer atheris {fuzzer}, seed {seed}  device {DEVICE}"
        f"  unikv {__version__}  replay: {asked.command('INPUT')}"
    )
    screen.say(f"artifacts {folder}  corpus {corpus}  budget {budget_seconds} s")
    with screen.progress() as show:
        for reached in fuzzing.follow():
            text = f"{reached.executions} executions, coverage {reached.coverage}"
            show(min(1.0, fuzzing.seconds() / budget_seconds), text, fuzzing.seconds())
    seconds = fuzzing.seconds()
    findings = Findings(folder)
    with fuzzing.interrupts, screen.progress() as show:
        add_failed_inputs(fuzzing, findings)
        make_small_in_time(findings, fuzzing.interrupts, watch_findings(show, fuzzing.seconds))
    for line in finding_lines(findings, REPORTS_MAX):
        screen.say(line)
    for line in _summary(fuzzing, seconds):
        screen.say(line)
    status = fuzzing.verdict(findings)
    for line in _verdict_lines(fuzzing, status):
        screen.say(line)
    if as_json:
        screen.say(json_line(_record(fuzzing, findings, seconds)))
    return status


def _summary(fuzzing: Fuzzing, seconds: float) -> list[str]:
    """What was run and reached."""
    reached, situations = fuzzing.reached, fuzzing.situations()
    kinds = ", ".join(f"{word} {count}" for word, count in situations.most_common(8))
    return [
        f"executions  {fuzzing.executions()} in {seconds:.0f} s,"
        f" {_rate(fuzzing.executions(), seconds)} per second",
        f"coverage    {reached.coverage} counters, {reached.features} features,"
        f" {reached.corpus} inputs kept in {fuzzing.plan.corpus}",
        f"situations  {situations.total()} in {fuzzing.plan.situations}: {kinds or 'none'}",
    ]


def _verdict_lines(fuzzing: Fuzzing, status: Exit) -> list[str]:
    """What the exit status alone does not say."""
    files = ", ".join(map(str, fuzzing.left()))
    lines = [f"inputs      {files or 'none failed'}"]
    if fuzzing.hung:
        lines.append("hung        an input took too long; look at it with a debugger")
    if fuzzing.filled:
        lines.append("memory      an input took more memory than -rss_limit_mb allows")
    if status is Exit.NOT_DETERMINISTIC:
        lines.append("inputs      failed under the fuzzer and do not fail without it")
    elif status is Exit.INTERNAL:
        lines += ["the fuzzer ended unexpectedly; it said", *fuzzing.last_words().splitlines()]
    elif status is Exit.MISSED:
        plant = fuzzing.plan.target.plant
        assert plant is not None, "nothing else can be missed"
        lines.append(missed_text(plant))
    return lines


def _record(fuzzing: Fuzzing, findings: Findings, seconds: float) -> dict[str, object]:
    """The last line for programs."""
    target = fuzzing.plan.target
    return {
        "command": "fuzz",
        "scenario": target.name,
        "device": DEVICE,
        "ranks": target.scenario.ranks,
        "plant": target.plant,
        "seconds": round(seconds, 3),
        **fuzzing.reached._asdict(),
        "executions": fuzzing.executions(),
        "executions_per_second": _rate(fuzzing.executions(), seconds),
        "situations": fuzzing.situations().total(),
        "inputs": [str(path) for path in fuzzing.left()],
        "violations": violation_records(findings),
    }


def _rate(count: int, seconds: float) -> float:
    return round(count / seconds, 1) if seconds else 0.0
