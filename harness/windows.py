"""Windows of requests: what the engine asks the library, and what a forward reads of them.

The two are rules of their own.  Which rows are retired is the library's answer; which rows a
forward reads, and until when a row has to be kept, is said here once more, so that a row that was
given up too early is read, and one that is kept for nobody is noted.
"""

from __future__ import annotations

from unikv import advance


def first_attended_page(position: int, window: int, slots_per_page: int) -> int:
    """The first page of a request that holds a token which the token at `position` attends.

    It attends itself and the `window - 1` tokens before it, so of all tokens from 0 on the first
    `position - window + 1` are behind its window, and a page is when all of its slots are.

    Args:
        position: of a token, from 0.
        window: tokens that it attends, itself included.
        slots_per_page: page size, in slots.

    Returns:
        Page index in the request, from 0.
    """
    behind = position - (window - 1)
    return behind // slots_per_page if behind > 0 else 0


def first_kept_page(position: int, floor: int, window: int, slots_per_page: int) -> int:
    """The first page that the token at `position` or one that starts at `floor` attends.

    Args:
        position: of the next token to be launched.
        floor: position of the token with which whoever resumes at the checkpoint begins.
        window, slots_per_page: as of `first_attended_page`.

    Returns:
        Page index in the request, from 0.
    """
    starts = (position, floor)
    return min(first_attended_page(start, window, slots_per_page) for start in starts)


class Retirement:
    """How an engine that uses the library decides which window rows it still needs."""

    __slots__ = ()

    def first_needed(self, position: int, window: int, slots_per_page: int) -> int:
        """As `unikv.advance.first_needed_page`."""
        return advance.first_needed_page(position, window, slots_per_page)

    def first_retained(self, position: int, floor: int, window: int, slots_per_page: int) -> int:
        """As `unikv.advance.first_retained_page`."""
        return advance.first_retained_page(position, floor, window, slots_per_page)
