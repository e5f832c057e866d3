"""What a command tells the program that called it, as one number."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit status of every command."""

    CLEAN = 0  # and something ran
    VIOLATION = 1
    INTERRUPTED = 2  # what was found is on disk
    INTERNAL = 3  # an error of the harness itself
    USAGE = 4  # arguments, a scenario, a case or traffic that cannot be used
    NOTHING_RAN = 5
    NOT_DETERMINISTIC = 6
    MISSED = 7  # a planted fault was not caught, or a stored failure no longer fails
