"""`python -m harness` is the command line; without what reads one, a line says what is missing."""

import sys
from importlib.util import find_spec

from harness.packages import missing_package
from harness.sweep.verdict import Exit


def start() -> None:
    """Run the command line and exit."""
    if find_spec("click") is None:
        sys.stderr.write(f"error: {missing_package('click')}\n")
        sys.exit(Exit.USAGE)
    from harness.cli import main

    main()


# A worker process imports this module under another name, and must not start a command.
if __name__ == "__main__":
    start()
