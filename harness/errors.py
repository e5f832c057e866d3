"""What the harness refuses: wrong input from outside, with place, value and remedy."""

from __future__ import annotations


class InputError(Exception):
    """A scenario, case, traffic file or argument that cannot be used.

    The text is one line: place, value, what is allowed.  Nothing was written.
    """
