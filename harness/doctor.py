"""What is here, what is not, what that switches off, and whether runs repeat.

The insight: a run that is not a function of its seed proves nothing, and whether it is one depends
on this machine's interpreter and packages too.  So the doctor runs one seed in two new processes
whose hash seeds differ, and compares.

Torch is asked for in a process of its own: importing it takes seconds, and may fail in any way.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from harness.errors import InputError
from harness.sweep.loading import DEFAULT_SCENARIOS
from harness.sweep.verdict import Exit
from unikv import __version__

NEEDED = ("click", "jinja2", "msgspec", "numpy", "pyyaml", "rich")
"""Packages of the light install."""

OPTIONAL: Mapping[str, str] = {
    "hypothesis": "harness.fuzz.hypothesis_machine: state machines in your own tests",
    "pytest": "harness.pytest_plugin: seeds in your own tests",
    "atheris": "fuzz: operations chosen by coverage (Linux); fuzz --replay works without it",
    "torch": "memory and streams of a real device; the modeled device needs none",
    "triton": "kernels of a real device",
    "ray": "sweeps on a cluster",
}
"""Packages that may be absent, each with what that switches off."""

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
    """What two runs of one seed in new processes said.

    Attributes:
        digests: of each run; None for one that gave none.
        trouble: why not, in a line; empty if both did.
    """

    digests: tuple[str | None, ...]
    trouble: str

    @property
    def holds(self) -> bool:
        """Whether both ran and agree."""
        return not self.trouble and len(set(self.digests)) == 1


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
        """Packages that nothing works without."""
        return tuple(part for part in self.needed if part.version is None)

    @property
    def status(self) -> Exit:
        """What all of it amounts to: an absent extra is no fault, runs that differ are one."""
        if self.missing:
            return Exit.USAGE
        if self.determinism.trouble:
            return Exit.INTERNAL
        return Exit.CLEAN if self.determinism.holds else Exit.NOT_DETERMINISTIC


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
        needed=tuple(Part(name, _version(name), "everything") for name in NEEDED),
        optional=tuple(Part(name, _version(name), use) for name, use in OPTIONAL.items()),
        devices=devices,
        devices_note=note,
        determinism=_determinism(environment),
    )


def diagnosis_lines(diagnosis: Diagnosis) -> list[str]:
    """What a person reads."""
    said = [f"unikv       {__version__}, {diagnosis.python} on {diagnosis.system}"]
    needed = ", ".join(f"{part.name} {part.version or 'MISSING'}" for part in diagnosis.needed)
    said.append(f"needed      {needed}")
    there = [f"{part.name} {part.version}" for part in diagnosis.optional if part.version]
    said.append(f"optional    {', '.join(there) or 'none'}")
    for part in diagnosis.optional:
        if part.version is None:
            said.append(f"absent      {part.name}; without it no {part.serves}")
    devices = ", ".join(diagnosis.devices) or "modeled only"
    said.append(f"devices     {devices} ({diagnosis.devices_note})")
    check = diagnosis.determinism
    if check.holds:
        said.append(f"repeats     yes: two processes, two hash seeds, digest {check.digests[0]}")
    elif check.trouble:
        said.append(f"repeats     unknown: {check.trouble}")
    else:
        said.append(f"repeats     NO: one seed gave {' and '.join(map(str, check.digests))}")
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
        "digests": list(diagnosis.determinism.digests),
        "trouble": diagnosis.determinism.trouble,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices(environment: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Names of CUDA devices, and a word about them."""
    if _version("torch") is None:
        return (), "torch is not installed"
    said, trouble = _output([sys.executable, "-c", _ASK_TORCH], environment, TORCH_SECONDS_MAX)
    if trouble:
        return (), f"torch cannot be imported: {trouble}"
    told = json.loads(said.splitlines()[-1])
    return tuple(told["devices"]), f"torch with CUDA {told['cuda'] or 'nothing'}"


def _determinism(environment: Mapping[str, str]) -> Determinism:
    scenario = DEFAULT_SCENARIOS / "everything.yaml"
    if not scenario.exists():
        raise InputError(f"{scenario}: is not there; run from a checkout, which has the scenarios")
    digests: list[str | None] = []
    trouble = ""
    for hash_seed in HASH_SEEDS:
        said, trouble = _output(
            _replay_of(scenario), {**environment, "PYTHONHASHSEED": hash_seed}, CHECK_SECONDS_MAX
        )
        if trouble:
            break
        digests.append(json.loads(said.splitlines()[-1])["digest"])
    return Determinism(tuple(digests), trouble)


def _replay_of(scenario: Path) -> list[str]:
    """The command of the self-check: one seed, which writes nothing."""
    options = ["--scenario", str(scenario), "--seed", "1", "--ops", str(CHECK_OPERATIONS)]
    return [sys.executable, "-m", "harness", "replay", *options, "--json"]


def _output(
    command: list[str], environment: Mapping[str, str], seconds_max: int
) -> tuple[str, str]:
    """What a process says, or what went wrong in a line."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=dict(environment),
            timeout=seconds_max,
            check=True,
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer within {seconds_max} s"
    except subprocess.CalledProcessError as error:
        last = [line for line in error.stderr.splitlines() if line.strip()][-1:]
        return "", f"exit status {error.returncode}: {' '.join(last) or 'it said nothing'}"
    return done.stdout, ""
