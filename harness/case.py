"""A failing run as a file: versioned, self-contained, data only.

A case holds the whole scenario, the concrete setup and every operation, so it replays without the
scenario file and without the seed.  Files come from strangers: sizes are bounded, unknown keys are
refused, and nothing in them is executed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.errors import InputError
from harness.loading import check_scenario, read_file
from harness.ops import Operation
from harness.scenario import Ranks, Scenario, Setup, Strategy
from harness.setup import check_setup
from harness.violation import Violation
from unikv.errors import UnikvError

CASE_VERSION = 1
CASE_BYTES_MAX = 32 << 20
OPERATIONS_MAX = 200_000


class Drawn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the operations of a seed were drawn, beside its scenario.

    Attributes:
        strategy: `swarm` or `random`.
        ranks: instead of the scenario's; None keeps them.
        traffic: name of the file whose recorded requests arrived; empty where they were drawn.
    """

    strategy: Strategy
    ranks: Ranks | None
    traffic: str


class Case(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """One failing run.

    Attributes:
        version: of this format.
        unikv: version of the program that wrote it.
        scenario, scenario_data: the scenario's name and the whole scenario.
        setup: the storage and engine that the seed drew.
        seed: the seed; it is not needed to replay.
        plant: id of the planted fault, if one was.
        operations: the trace.
        violation: what the last operation broke.
        drawn: how the seed was drawn, for more seeds like it; None where nobody wrote it down.
    """

    version: int
    unikv: str
    scenario: str
    scenario_data: Scenario
    setup: Setup
    seed: int
    plant: str | None
    operations: Annotated[tuple[Operation, ...], Meta(max_length=OPERATIONS_MAX)]
    violation: Violation
    drawn: Drawn | None = None


class _Version(msgspec.Struct):
    """What every version of the format begins with."""

    version: int


def load_case(path: Path) -> Case:
    """Read and check a case file.

    Raises:
        InputError: if it is unreadable, truncated, of another version, or holds anything that a
            case may not; with file, place, value and what is allowed.
    """
    data = read_file(path, "case", CASE_BYTES_MAX)
    try:
        version = msgspec.json.decode(data, type=_Version).version
        if version != CASE_VERSION:
            remedy = "use a newer unikv" if version > CASE_VERSION else "record the case again"
            raise InputError(
                f"{path}: version is {version}; this program reads version {CASE_VERSION}; {remedy}"
            )
        case = msgspec.json.decode(data, type=Case)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnikvError) as error:
        raise InputError(f"{path}: not a case: {error}") from error
    check_scenario(case.scenario_data, f"{path}: scenario_data")
    check_setup(case.setup, str(path))
    if not case.operations:
        raise InputError(f"{path}: operations is empty; a case has one or more")
    return case


def save_case(path: Path, case: Case) -> None:
    """Write a case so that the file is whole or absent; a file that is there is never replaced.

    Raises:
        InputError: if the folder cannot be written or `path` exists.
    """
    text = msgspec.json.format(msgspec.json.encode(case), indent=1) + b"\n"
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            temporary.write_bytes(text)
            os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError as error:
        raise InputError(f"{path}: exists already; a case is never overwritten") from error
    except OSError as error:
        raise InputError(f"{path}: cannot write this case: {error.strerror}") from error
