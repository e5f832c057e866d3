"""Window retirement: which pages have fallen wholly out of a sliding window.

A token at position `p` attends positions `(p - window, p]`.  The rule looks at the next position
that will be *launched*; a page freed under a forward that still reads it stays pending.
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
