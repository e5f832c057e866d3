"""What is here, what is not, what that switches off, and whether runs repeat.

The insight: a run that is not a function of its seed proves nothing, and whether it is one depends
on this machine's interpreter and packages too.  So the doctor runs one seed in two new processes
whose hash seeds differ, and compares.

It is asked where something is missing, so it needs the standard library alone.  Torch is asked for
devices in a process of its own: importing it takes seconds, and may fail in any way.
"""

from __future__ import annotations

import json
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from harness.errors import InputError
from harness.packages import NEEDED, OPTIONAL, REMEDY, installed_version
from harness.printed import json_line
from harness.program import DEFAULT_SCENARIOS
from harness.sweep.verdict import Exit
from unikv import __version__

if TYPE_CHECKING:
    from harness.commands import Screen

SELF_CHECK = DEFAULT_SCENARIOS / "everything.yaml"
HASH_SEEDS = ("1", "4242")
CHECK_OPERATIONS = 200
CHECK_SECONDS_MAX = 120
TORCH_SECONDS_MAX = 120

_ASK_TORCH = """
import json, torch
names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
print(json.dumps({"cuda": torch.version.cuda, "devices": names}))
"""


class Part(NamedTuple):
    """One package: its version, None where it is absent, and what it is for."""

    name: str
    version: str | None
    serves: str


class Determinism(NamedTuple):
    """What one seed gave in new processes, twice in each.

    Attributes:
        digests: of the first run of each process.
        steady: whether the second run of each process gave the same as its first.
        trouble: why a process said nothing about that, in a line; empty if each did.
    """

    digests: tuple[str, ...]
    steady: bool
    trouble: str

    @property
    def holds(self) -> bool:
        """Whether all runs agree."""
        return not self.trouble and self.steady and len(set(self.digests)) == 1


class Answer(NamedTuple):
    """How a process ended.

    Attributes:
        status: its exit status; None where it was ended.
        text: its standard output.
        trouble: what is wrong with it as an answer, in a line; empty if nothing is.
    """

    status: int | None
    text: str
    trouble: str


class Diagnosis(NamedTuple):
    """Everything that the doctor saw.

    Attributes:
        python, system: interpreter and machine.
        needed, optional: packages.
        devices: names of CUDA devices; empty where there are none.
        devices_note: why there are none, or which CUDA there is.
        determinism: the self-check.
    """

    python: str
    system: str
    needed: tuple[Part, ...]
    optional: tuple[Part, ...]
    devices: tuple[str, ...]
    devices_note: str
    determinism: Determinism

    @property
    def missing(self) -> tuple[Part, ...]:
        """Packages of the light install that are not there."""
        return tuple(part for part in self.needed if part.version is None)

    @property
    def status(self) -> Exit:
        """What all of it amounts to: an absent extra is no fault, runs that differ are one."""
        if self.missing:
            return Exit.USAGE
        if self.determinism.trouble:
            return Exit.INTERNAL
        return Exit.CLEAN if self.determinism.holds else Exit.NOT_DETERMINISTIC


def doctor(screen: Screen, environment: Mapping[str, str], *, as_json: bool) -> Exit:
    """See what is installed and whether runs repeat.

    Raises:
        InputError: if the scenario of the self-check is not there.
    """
    diagnosis = examine(environment)
    for line in diagnosis_lines(diagnosis):
        screen.say(line)
    if as_json:
        screen.say(json_line(diagnosis_record(diagnosis)))
    return diagnosis.status


def examine(environment: Mapping[str, str]) -> Diagnosis:
    """Look at everything; a few seconds.

    Args:
        environment: of the processes that are started.

    Raises:
        InputError: if the scenario of the self-check is not there.
    """
    devices, note = _devices(environment)
    return Diagnosis(
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.machine()}",
        needed=tuple(Part(name, installed_version(name), "everything") for name in NEEDED),
        optional=tuple(Part(name, installed_version(name), use) for name, use in OPTIONAL.items()),
        devices=devices,
        devices_note=note,
        determinism=_determinism(environment),
    )


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """What a person reads."""
    said = [f"unikv       {__version__}, {diagnosis.python} on {diagnosis.system}"]
    needed = ", ".join(f"{part.name} {part.version or 'MISSING'}" for part in diagnosis.needed)
    said.append(f"needed      {needed}")
    if diagnosis.missing:
        said.append(f"to install  {REMEDY}")
    there = [f"{part.name} {part.version}" for part in diagnosis.optional if part.version]
    said.append(f"optional    {', '.join(there) or 'none'}")
    for part in diagnosis.optional:
        if part.version is None:
            said.append(f"absent      {part.name}; without it no {part.serves}")
    devices = ", ".join(diagnosis.devices) or "none"
    said.append(
        f"devices     modeled, where everything runs; CUDA: {devices} ({diagnosis.devices_note})"
    )
    check = diagnosis.determinism
    if check.holds:
        said.append(f"repeats     yes: two processes, two hash seeds, digest {check.digests[0]}")
    elif check.trouble:
        said.append(f"repeats     unknown: {check.trouble}")
    elif not check.steady:
        said.append("repeats     NO: one seed gave two digests in one process")
    else:
        said.append(f"repeats     NO: one seed gave {' and '.join(check.digests)}")
    if not check.trouble and not check.holds:
        said.append(f"to see it   {shlex.join(['python', *_replay_of(SELF_CHECK)])}")
    return said


def diagnosis_record(diagnosis: Diagnosis) -> dict[str, object]:
    """What a program reads."""
    return {
        "command": "doctor",
        "unikv": __version__,
        "python": diagnosis.python,
        "system": diagnosis.system,
        "needed": {part.name: part.version for part in diagnosis.needed},
        "optional": {part.name: part.version for part in diagnosis.optional},
        "switched_off": {p.name: p.serves for p in diagnosis.optional if p.version is None},
        "devices": list(diagnosis.devices),
        "devices_note": diagnosis.devices_note,
        "deterministic": diagnosis.determinism.holds,
        "steady": diagnosis.determinism.steady,
        "digests": list(diagnosis.determinism.digests),
        "trouble": diagnosis.determinism.trouble,
    }


def _devices(environment: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Names of CUDA devices, and a word about them."""
    if installed_version("torch") is None:
        return (), "torch, which would know, is not installed"
    answer = _answer([sys.executable, "-c", _ASK_TORCH], environment, TORCH_SECONDS_MAX)
    if answer.trouble:
        return (), f"torch cannot be imported: {answer.trouble}"
    told = json.loads(answer.text.splitlines()[-1])
    return tuple(told["devices"]), f"torch with CUDA {told['cuda'] or 'nothing'}"


def _determinism(environment: Mapping[str, str]) -> Determinism:
    if not SELF_CHECK.exists():
        raise InputError(
            f"{SELF_CHECK}: is not there; run from a checkout, which has the scenarios"
        )
    digests: list[str] = []
    steady = True
    for hash_seed in HASH_SEEDS:
        answer = _answer(
            [sys.executable, *_replay_of(SELF_CHECK), "--json"],
            {**environment, "PYTHONHASHSEED": hash_seed},
            CHECK_SECONDS_MAX,
            answers=(Exit.CLEAN, Exit.VIOLATION, Exit.NOT_DETERMINISTIC),
        )
        if answer.trouble:
            return Determinism(tuple(digests), steady, answer.trouble)
        digests.append(json.loads(answer.text.splitlines()[-1])["digest"])
        steady = steady and answer.status != Exit.NOT_DETERMINISTIC
    return Determinism(tuple(digests), steady, "")


def _replay_of(scenario: Path) -> list[str]:
    """Arguments of Python for the self-check: one seed, twice, which writes nothing."""
    options = ["--scenario", str(scenario), "--seed", "1", "--ops", str(CHECK_OPERATIONS)]
    return ["-m", "harness", "replay", *options]


def _answer(
    command: list[str],
    environment: Mapping[str, str],
    seconds_max: int,
    *,
    answers: Sequence[int] = (0,),
) -> Answer:
    """What a process says; an exit status that is none of `answers` is trouble."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=dict(environment), timeout=seconds_max
        )
    except subprocess.TimeoutExpired:
        return Answer(None, "", f"no answer within {seconds_max} s")
    if done.returncode in answers:
        return Answer(done.returncode, done.stdout, "")
    last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
    trouble = f"exit status {done.returncode}: {' '.join(last) or 'it said nothing'}"
    return Answer(done.returncode, done.stdout, trouble)
