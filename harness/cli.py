"""The command line: arguments in, exit status out, and everything that is printed.

`--help` and a wrong argument have to be answered at once, so what runs seeds is imported by the
command that does.  What a command does is not known here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from harness import options
from harness.errors import InputError
from harness.printed import shown
from harness.streams import output_only, prepare_streams
from harness.sweep.verdict import Exit
from harness.ways_out import Command, WaysOut
from unikv import __version__

if TYPE_CHECKING:
    from harness.commands import Show

PLAIN_PROGRESS_SECONDS = 5.0


class Terminal:
    """Standard output: a bar where somebody watches, else a line now and then."""

    def say(self, line: str) -> None:
        """Print a line."""
        with output_only():
            click.echo(shown(line))

    def ask(self, prompt: str) -> str | None:
        """A line from standard input; None at its end.  One that nobody types is shown."""
        with output_only():
            click.echo(prompt, nl=False)
        line = sys.stdin.readline()
        if not sys.stdin.isatty():
            self.say(line.rstrip("\n"))
        return line.rstrip("\n") if line else None

    @contextmanager
    def progress(self) -> Iterator[Show]:
        """Show progress until it is left."""
        if sys.stdout.isatty():
            from rich.progress import Progress

            with Progress(transient=True) as bar:
                task = bar.add_task("", total=1.0)
                yield lambda share, text, seconds: bar.update(
                    task, completed=share, description=text
                )
            return
        told = 0.0

        def show(share: float, text: str, seconds: float) -> None:
            nonlocal told
            if seconds - told >= PLAIN_PROGRESS_SECONDS:
                told = seconds
                self.say(f"progress {share:.0%}  {text}  {seconds:.0f} s")

        yield show


class Program(Command, click.Group):
    """A group whose commands return an `Exit`; also a wrong argument ends with one."""

    command_class = Command

    def main(self, *arguments: Any, **settings: Any) -> NoReturn:
        """Run a command and exit."""
        settings["standalone_mode"] = False
        prepare_streams()
        with WaysOut():
            status: int = super().main(*arguments, **settings)
        sys.exit(status)


@click.group(
    cls=Program,
    no_args_is_help=False,
    epilog="Exit status: 0 clean and something ran, 1 violation, 2 interrupted (what was found is"
    " on disk), 3 internal error, 4 wrong usage or input, 5 nothing ran, 6 not deterministic,"
    " 7 a planted fault was missed or a stored failure no longer fails.",
)
@click.version_option(__version__, prog_name="unikv", message="%(prog)s %(version)s")
def main() -> None:
    """Drive a KV-cache allocator with generated operations, and watch it.

    `operations_per_second` always means applied operations per second of processor time that
    workers spent running seeds: the pace of one core, however many there are.
    """


@main.command()
@click.option("--scenario", required=True, metavar="FILE", help="Scenario to run.")
@click.option(
    "--seeds",
    required=True,
    callback=options.parse_seeds,
    metavar="RANGE",
    help="7, or 1..200 with both ends run.",
)
@click.option("--keep-going", is_flag=True, help="Run every seed, whatever is found.")
@options.shared("ops", "jobs", "plant", "ranks", "strategy", "traffic", "artifacts", "json")
def run(
    *,
    scenario: str,
    seeds: range,
    keep_going: bool,
    ops: int,
    jobs: int | None,
    plant: str | None,
    ranks: int | None,
    strategy: str,
    traffic: str | None,
    artifacts: str,
    as_json: bool,
) -> Exit:
    """Run a range of seeds of one scenario, up to the first that fails."""
    from harness import commands
    from harness.sweep.campaign import After
    from harness.sweep.loading import seed_work

    work = seed_work([scenario], ops, plant=plant, ranks=ranks, strategy=strategy, traffic=traffic)
    return commands.run(
        Terminal(),
        work,
        seeds,
        workers=jobs or options.core_count(),
        after=After.GO_ON if keep_going else After.STOP,
        artifacts=Path(artifacts),
        as_json=as_json,
    )


@main.command()
@click.option(
    "--budget",
    required=True,
    callback=options.parse_budget,
    metavar="TIME",
    help="20s, 10m or 2h; a seed that has started then is finished.",
)
@click.option("--scenario", multiple=True, metavar="FILE", help="May be repeated.  [all]")
@options.shared("ops", "jobs", "traffic", "artifacts", "json")
def sweep(
    *,
    budget: int,
    scenario: Sequence[str],
    ops: int,
    jobs: int | None,
    traffic: str | None,
    artifacts: str,
    as_json: bool,
) -> Exit:
    """Look for trouble until the time is up, whatever is found."""
    from harness import commands
    from harness.sweep.loading import default_scenarios, seed_work

    return commands.sweep(
        Terminal(),
        seed_work(scenario or default_scenarios(), ops, traffic=traffic),
        budget,
        workers=jobs or options.core_count(),
        artifacts=Path(artifacts),
        as_json=as_json,
    )


@main.command()
@options.shared("artifacts", "json")
def smoke(*, artifacts: str, as_json: bool) -> Exit:
    """Run fixed seeds of every scenario, and see that each was under pressure."""
    from harness import commands

    return commands.smoke(
        Terminal(),
        workers=options.core_count(),
        artifacts=Path(artifacts),
        as_json=as_json,
    )


@main.command()
@click.argument("case", required=False)
@click.option("--scenario", metavar="FILE", help="Instead of a case: the scenario of a seed.")
@options.whole_option("--seed", None, 0, options.SEED_MAX, "The seed.")
@options.whole_option(
    "--until", None, 0, options.UNTIL_MAX, "Stop after this operation; they count from 0."
)
@click.option("--step", is_flag=True, help="Walk along a CASE; commands come from the input.")
@options.shared("ops", "plant", "ranks", "strategy", "traffic", "json")
def replay(
    *,
    case: str | None,
    scenario: str | None,
    seed: int | None,
    until: int | None,
    step: bool,
    ops: int,
    plant: str | None,
    ranks: int | None,
    strategy: str,
    traffic: str | None,
    as_json: bool,
) -> Exit:
    """Run a stored CASE or one seed again, twice, and compare."""
    from harness import commands
    from harness.sweep.loading import load_replay, seed_work
    from harness.sweep.replay import Replayable, SeedReplay

    subject: Replayable
    if case is not None:
        options.refuse_with_case(click.get_current_context())
        subject = load_replay(Path(case), plant, until)
        if step and as_json:
            raise InputError("--json: a walk is for people; want only one of --step and --json")
        if step:
            from harness.walk.dialogue import walk_through

            return walk_through(Terminal(), subject)
    elif step:
        raise InputError("--step: no CASE: want a case file; run writes one for a seed that fails")
    elif scenario is not None and seed is not None:
        work = seed_work(
            [scenario], ops, plant=plant, ranks=ranks, strategy=strategy, traffic=traffic
        )
        subject = SeedReplay(work, seed, until)
    else:
        raise InputError("replay: no CASE: want a case file, or --scenario with --seed")
    return commands.replay(Terminal(), subject, as_json=as_json)


@main.command()
@click.argument("case")
@options.whole_option(
    "--seeds", "1000", 0, options.EXPLAIN_SEEDS_MAX, "Further seeds to run with the edge.  [1000]"
)
@options.shared("ops", "jobs", "artifacts", "json")
def explain(
    *, case: str, seeds: int, ops: int, jobs: int | None, artifacts: str, as_json: bool
) -> Exit:
    """Say why a stored CASE fails, add the missing edge to the model, and see what still fails.

    The status is 1 for a CASE that fails, whatever the edge changes: that is in the verdict.
    """
    from harness.explain import explain as run_explain
    from harness.sweep.loading import load_replay

    return run_explain(
        Terminal(),
        load_replay(Path(case), None, None),
        seeds,
        ops,
        workers=jobs or options.core_count(),
        artifacts=Path(artifacts),
        as_json=as_json,
    )


@main.command()
@click.argument("case")
@click.option(
    "--budget",
    default="30s",
    callback=options.parse_budget,
    metavar="TIME",
    help="20s, 10m or 2h; what is found by then is written.  [30s]",
)
@options.whole_option("--jobs", "1", 1, options.WORKERS_MAX, "Processes; same result.  [1]")
@options.shared("json")
def shrink(*, case: str, budget: int, jobs: int | None, as_json: bool) -> Exit:
    """Make a stored CASE small: min.json beside it, and nothing replaced.

    What is cut short goes on where it was when it is asked for again.
    """
    from harness import shrink_command

    return shrink_command.shrink(
        Terminal(), Path(case), budget_seconds=budget, jobs=jobs or 1, as_json=as_json
    )


@main.command()
@click.option("--only", multiple=True, metavar="ID", help="May be repeated.  [all]")
@click.option(
    "--edges",
    is_flag=True,
    help="Instead, take out each ordering edge and show the fewest operations that miss it.",
)
@click.option("--list", "listing", is_flag=True, help="Only name them and what was broken.")
@click.option("--shrink", "small", is_flag=True, help="Make failing seeds of each fault small.")
@options.whole_option("--seeds", "5", 1, 1000, "With --shrink: failing seeds of a fault.  [5]")
@click.option("--out", metavar="DIR", help="With --shrink: where rows are kept and not done again.")
@options.shared("jobs", "artifacts", "json")
def faults(
    *,
    only: Sequence[str],
    edges: bool,
    listing: bool,
    small: bool,
    seeds: int | None,
    out: str | None,
    jobs: int | None,
    artifacts: str,
    as_json: bool,
) -> Exit:
    """Hunt planted faults: each has to be caught by a check that may see it."""
    from harness import commands

    options.refuse_beside_shrink(click.get_current_context())
    if listing:
        named = commands.name_edges if edges else commands.name_faults
        return named(Terminal(), only, as_json=as_json)
    if small:
        from harness.shrink_command import shrink_faults

        return shrink_faults(
            Terminal(),
            only,
            seeds or 1,
            workers=jobs or options.core_count(),
            artifacts=Path(artifacts),
            out=Path(out) if out else None,
            as_json=as_json,
        )
    hunt = commands.edges if edges else commands.faults
    return hunt(
        Terminal(),
        only,
        workers=jobs or options.core_count(),
        artifacts=Path(artifacts),
        as_json=as_json,
    )


@main.command()
@click.option("--scenario", metavar="FILE", help="What inputs are run on.  [everything]")
@click.option(
    "--budget",
    default="60s",
    callback=options.parse_budget,
    metavar="TIME",
    help="20s, 10m or 2h; the first input that fails ends it.  [60s]",
)
@click.option("--corpus", metavar="DIR", help="Inputs to begin with, and where new ones go.")
@options.whole_option("--seed", "1", 1, options.FUZZER_SEED_MAX, "Of the fuzzer's chance.  [1]")
@click.option("--replay", "file", metavar="FILE", help="Only run this input; needs no fuzzer.")
@options.shared("ops", "plant", "artifacts", "json")
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
def fuzz(
    *,
    scenario: str | None,
    budget: int,
    corpus: str | None,
    seed: int,
    file: str | None,
    ops: int,
    plant: str | None,
    artifacts: str,
    as_json: bool,
    flags: tuple[str, ...],
) -> Exit:
    """Let coverage choose the operations; behind `--`, FLAGS go to libFuzzer."""
    from harness.fuzz import command
    from harness.sweep.fuzzing import checked_flags

    asked = command.load_asked(scenario, plant, ops)
    if file is not None:
        return command.replay_input(Terminal(), asked, file, Path(artifacts), as_json=as_json)
    return command.fuzz(
        Terminal(),
        asked,
        corpus=None if corpus is None else Path(corpus),
        budget_seconds=budget,
        seed=seed,
        flags=checked_flags(flags),
        artifacts=Path(artifacts),
        as_json=as_json,
    )


@main.command()
@options.shared("json")
def doctor(*, as_json: bool) -> Exit:
    """See what is installed, what is not, and whether runs repeat; a few seconds."""
    from harness.doctor import doctor as run_doctor

    return run_doctor(Terminal(), os.environ, as_json=as_json)
