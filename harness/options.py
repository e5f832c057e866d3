"""What a command line says, checked: texts become numbers, ranges and times.

Every refusal names the option, the value and what is allowed, and comes before anything is
written or run.  Files are not opened here, and nothing is loaded that `--help` does not need.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from harness.errors import InputError
from harness.sweep.jobs import JOBS_MAX

SEED_MAX = (1 << 63) - 1
OPERATIONS_MAX = 100_000
"""Operations of a seed; with those that bring it to rest they have to fit into a case file."""

WORKERS_MAX = 256
FUZZER_SEED_MAX = (1 << 31) - 1
EXPLAIN_SEEDS_MAX = 1_000_000
UNTIL_MAX = 200_000
"""Operations that a case file may hold."""

RANKS_MAX = 8
STRATEGIES = ("random", "swarm")
"""How operations may be drawn."""

BUDGET_SECONDS_MAX = 7 * 24 * 3600

SECONDS = {"s": 1, "m": 60, "h": 3600}

Callback = Callable[[click.Context, click.Parameter, str | None], int | None]
Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def whole(low: int, high: int) -> Callback:
    """Reads a whole number in `[low, high]`; an option that was not given stays None."""

    def read(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
        return None if value is None else parse_whole(option.opts[0], value, low, high)

    return read


def parse_whole(place: str, value: str, low: int, high: int) -> int:
    """A whole number in `[low, high]`.

    Raises:
        InputError: if it is no such number.
    """
    # More digits than any bound has would only cost time to convert.
    if re.fullmatch(r"[0-9]{1,19}", value, re.ASCII) and low <= int(value) <= high:
        return int(value)
    raise InputError(f"{place}: {value!r}: want a whole number from {low} to {high}")


def parse_seeds(context: click.Context, option: click.Parameter, value: str) -> range:
    """`7` is one seed, `1..200` is two hundred: both ends are run."""
    found = re.fullmatch(r"([0-9]{1,19})(?:\.\.([0-9]{1,19}))?", value, re.ASCII)
    if found is not None:
        low = int(found[1])
        high = low if found[2] is None else int(found[2])
        if low <= high <= SEED_MAX and high - low < JOBS_MAX:
            return range(low, high + 1)
    raise InputError(
        f"{option.opts[0]}: {value!r}: want a seed such as 7, or LOW..HIGH such as 1..200 with LOW"
        f" at most HIGH, at most {JOBS_MAX} seeds"
    )


def parse_budget(context: click.Context, option: click.Parameter, value: str) -> int:
    """Seconds of a budget such as `20s`, `10m` or `2h`."""
    found = re.fullmatch(r"([0-9]{1,9})([smh])", value, re.ASCII)
    if found is not None:
        seconds = int(found[1]) * SECONDS[found[2]]
        if 1 <= seconds <= BUDGET_SECONDS_MAX:
            return seconds
    raise InputError(
        f"{option.opts[0]}: {value!r}: want a time such as 20s, 10m or 2h,"
        f" at most {BUDGET_SECONDS_MAX // 3600}h"
    )


def whole_option(name: str, default: str | None, low: int, high: int, text: str) -> Decorator:
    """An option that takes a whole number in `[low, high]`."""
    read = whole(low, high)
    return click.option(name, default=default, callback=read, metavar="N", help=text)


SHARED: Mapping[str, Decorator] = {
    "ops": whole_option("--ops", "400", 1, OPERATIONS_MAX, "Operations of a seed.  [400]"),
    "jobs": whole_option(
        "--jobs", None, 1, WORKERS_MAX, "Worker processes; 1 runs in this one.  [all cores]"
    ),
    "ranks": whole_option("--ranks", None, 1, RANKS_MAX, "Ranks.  [the scenario's]"),
    "plant": click.option(
        "--plant", metavar="FAULT", help="Plant this fault; not to find it is then a failure."
    ),
    "strategy": click.option(
        "--strategy",
        default="swarm",
        type=click.Choice(STRATEGIES),
        help="How operations are drawn.  [swarm]",
    ),
    "traffic": click.option(
        "--traffic", metavar="FILE", help="Let these recorded requests arrive (JSON lines)."
    ),
    "artifacts": click.option(
        "--artifacts", default="artifacts", metavar="DIR", help="Where findings go.  [artifacts]"
    ),
    "json": click.option("--json", "as_json", is_flag=True, help="End with one line for programs."),
}
"""Options that several commands have: the same word means the same everywhere."""


def shared(*names: str) -> Decorator:
    """Options of `SHARED`, in this order."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = SHARED[name](command)
        return command

    return decorate


def refuse_with_case(context: click.Context) -> None:
    """A case holds its scenario and its operations, so options that name others are refused.

    Raises:
        InputError: if one was given.
    """
    for name in ("scenario", "seed", "ops", "ranks", "strategy", "traffic"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"--{name}: {context.params[name]}: a case holds its own; want only --until,"
                " --plant and --json with it"
            )


def refuse_beside_shrink(context: click.Context) -> None:
    """`faults --shrink` has options of its own and goes with no other kind of hunt.

    Raises:
        InputError: if an option was given that would do nothing.
    """
    given = context.params
    for name in ("seeds", "out"):
        if not given["small"] and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"--{name}: {given[name]}: is only for failing seeds that are made small; add"
                f" --shrink, or leave --{name} out"
            )
    if given["small"] and given["listing"]:
        raise InputError("--shrink: --list hunts nothing; want only one of them")
    if given["small"] and given["edges"]:
        raise InputError(
            "--shrink: --edges shows the fewest operations by itself; want only one of them"
        )


def core_count() -> int:
    """Processor cores that this process may use, at most `WORKERS_MAX`."""
    if sys.platform == "linux":
        return min(WORKERS_MAX, len(os.sched_getaffinity(0)))
    return min(WORKERS_MAX, os.cpu_count() or 1)
