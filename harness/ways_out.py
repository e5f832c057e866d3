"""How the program ends: whatever stops it becomes one exit status and at most one line.

What a command does is not known here.
"""

from __future__ import annotations

import sys
import traceback
from types import TracebackType
from typing import Any

import click

from harness.errors import InputError
from harness.packages import missing_package, needed_for
from harness.printed import shown
from harness.streams import OutputRefused, drop, output_only
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
                _complain(f"error: {error}")
                sys.exit(Exit.USAGE)
            case click.ClickException():
                message = " ".join(error.format_message().split())
                _complain(f"error: {message}  See --help.")
                sys.exit(Exit.USAGE)
            case OutputRefused():
                drop(sys.stdout)
                if not isinstance(error.__cause__, BrokenPipeError):
                    _complain(f"error: standard output: {error}; let it go to a file with room")
                sys.exit(Exit.INTERRUPTED)
            case ModuleNotFoundError(name=str(module)) if (
                package := needed_for(module)
            ) is not None:
                _complain(f"error: {missing_package(package)}")
                sys.exit(Exit.USAGE)
            case KeyboardInterrupt() | click.Abort():
                _complain("interrupted")
                sys.exit(Exit.INTERRUPTED)
            case _:
                _complain("".join(traceback.format_exception(error)).rstrip())
                _complain("error: this is a failure of the harness itself")
                sys.exit(Exit.INTERNAL)


class Command(click.Command):
    """A command whose `--help` may be refused."""

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        """Read the arguments; help is said here, and no file is opened."""
        with output_only():
            return super().make_context(*arguments, **settings)


def _complain(text: str) -> None:
    """Say it on standard error; the exit status says enough where that takes nothing."""
    try:
        click.echo(shown(text), err=True)
    except OSError:
        drop(sys.stderr)
