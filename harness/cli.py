"""The command line: arguments in, exit status out, and everything that is printed.

`--help` and a wrong argument have to be answered at once, so what runs seeds is imported by the
command that does.  What a command does is not known here.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import click

from harness import options
from harness.errors import InputError
from harness.sweep.verdict import Exit

if TYPE_CHECKING:
    from harness.commands import Show

PLAIN_PROGRESS_SECONDS = 5.0


class Terminal:
    """Standard output: a bar where somebody watches, else a line now and then."""

    def say(self, line: str) -> None:
        """Print a line."""
        click.echo(line)

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
        shown = 0.0

        def show(share: float, text: str, seconds: float) -> None:
            nonlocal shown
            if seconds - shown >= PLAIN_PROGRESS_SECONDS:
                shown = seconds
                self.say(f"progress {share:.0%}  {text}  {seconds:.0f} s")

        yield show


class WaysOut:
    """Ends the program with one of `Exit`, whatever stopped it; only the unforeseen is traced."""

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Say what went wrong, and exit accordingly."""
        match error:
            case None | SystemExit():
                return
            case InputError():
                click.echo(f"error: {error}", err=True)
                sys.exit(Exit.USAGE)
            case click.ClickException():
                message = " ".join(error.format_message().split())
                click.echo(f"error: {message}  See --help.", err=True)
                sys.exit(Exit.USAGE)
            case KeyboardInterrupt() | click.Abort():
                click.echo("interrupted", err=True)
                sys.exit(Exit.INTERRUPTED)
            case _:
                traceback.print_exception(error)
                click.echo("error: this is a failure of the harness itself", err=True)
                sys.exit(Exit.INTERNAL)


class Program(click.Group):
    """A group whose commands return an `Exit`; also a wrong argument ends with one."""

    def main(self, *arguments: Any, **settings: Any) -> NoReturn:
        """Run a command and exit."""
        settings["standalone_mode"] = False
        with WaysOut():
            status: int = super().main(*arguments, **settings)
        sys.exit(status)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it returns is the exit status."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever read the output has left.  The library would exit with 1, which is a
            # violation here; and what is still buffered must not fail once more at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return Exit.INTERRUPTED


@click.group(
    cls=Program,
    no_args_is_help=False,
    epilog="Exit status: 0 clean and something ran, 1 violation, 2 interrupted (what was found is"
    " on disk), 3 internal error, 4 wrong usage or input, 5 nothing ran, 6 not deterministic,"
    " 7 a planted fault was missed or a stored failure no longer fails.",
)
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
@options.shared("ops", "plant", "ranks", "strategy", "traffic", "json")
def replay(
    *,
    case: str | None,
    scenario: str | None,
    seed: int | None,
    until: int | None,
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
    elif scenario is not None and seed is not None:
        work = seed_work(
            [scenario], ops, plant=plant, ranks=ranks, strategy=strategy, traffic=traffic
        )
        subject = SeedReplay(work, seed, until)
    else:
        raise InputError("replay: no CASE: want a case file, or --scenario with --seed")
    return commands.replay(Terminal(), subject, as_json=as_json)


@main.command()
@click.option("--only", multiple=True, metavar="ID", help="May be repeated.  [all]")
@click.option(
    "--edges",
    is_flag=True,
    help="Instead, take out each ordering edge and show the fewest operations that miss it.",
)
@options.shared("jobs", "artifacts", "json")
def faults(
    *, only: Sequence[str], edges: bool, jobs: int | None, artifacts: str, as_json: bool
) -> Exit:
    """Hunt planted faults: each has to be caught by a check that may see it."""
    from harness import commands

    hunt = commands.edges if edges else commands.faults
    return hunt(
        Terminal(),
        only,
        workers=jobs or options.core_count(),
        artifacts=Path(artifacts),
        as_json=as_json,
    )
