"""Window retirement: which pages have fallen wholly out of a sliding window.

A token at position `p` attends positions `(p - window, p]`.  The rule looks at the next position
that will be *launched*; a page freed under a forward that still reads it stays pending.

Where prefixes are shared, whoever resumes at a checkpoint attends the window behind it, so a
request keeps that window until the tree has taken the checkpoint.  Who takes checkpoints, and when,
is not known here.
"""

from __future__ import annotations


def first_needed_page(next_position: int, window: int, slots_per_page: int) -> int:
    """Index of the first page of a request that its next token still attends.

    Args:
        next_position: position of the first token that is not launched yet.
        window: window length, in tokens.
        slots_per_page: page size, in slots.

    Returns:
        Page index in the request; every lower page may be retired (rounds down).
    """
    return max(0, next_position - window + 1) // slots_per_page


def first_retained_page(
    next_position: int, retention_floor: int, window: int, slots_per_page: int
) -> int:
    """Index of the first page that the next token, or a resume at the retention floor, attends.

    Retirement frees `[0, first_retained_page)` and never past it.

    Args:
        next_position: as `first_needed_page`.
        retention_floor: tokens before the latest checkpoint that the tree has not taken, which is
            the position that a resume there starts at; `next_position` where there is none.
        window: window length, in tokens.
        slots_per_page: page size, in slots.

    Returns:
        Page index in the request (rounds down).
    """
    # A floor ahead of the next token would give up rows that the token itself attends.
    return first_needed_page(min(next_position, retention_floor), window, slots_per_page)
