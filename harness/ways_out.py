"""How the program ends: whatever stops it becomes one exit status and at most one line.

What a command does is not known here.
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType

import click

from harness.errors import InputError
from harness.packages import missing_package, needed_for
from harness.sweep.verdict import Exit


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
            case ModuleNotFoundError(name=str(module)) if (
                package := needed_for(module)
            ) is not None:
                click.echo(f"error: {missing_package(package)}", err=True)
                sys.exit(Exit.USAGE)
            case KeyboardInterrupt() | click.Abort():
                click.echo("interrupted", err=True)
                sys.exit(Exit.INTERRUPTED)
            case _:
                traceback.print_exception(error)
                click.echo("error: this is a failure of the harness itself", err=True)
                sys.exit(Exit.INTERNAL)
