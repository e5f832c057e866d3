"""The ledger: one record for every use of a page that is not over yet.

A use is a fact about work already enqueued.  It ends by logical progress (a step retires), never
because an event has fired.  What a use means for the next toucher is in `unikv.alloc.clearance`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from unikv.alloc.fences import Fences
from unikv.alloc.signals import HeldPages
from unikv.alloc.use import Use

__all__ = ["PageLedger", "PageUse", "Use"]


# What a named tuple does when it is called, without the call of ours that it makes.
_page_use = tuple.__new__


class PageUse(NamedTuple):
    """One use of some pages of one band.

    Attributes:
        use: what is being done.
        band: index of the band.
        pages: physical pages; empty where the step does not know what it writes.
        step: the use is over when this step, and so every earlier one, is retired.
    """

    use: Use
    band: int
    pages: frozenset[int]
    step: int


class PageLedger:
    """Every use that is not over, oldest first.

    Law: a page is in at most one `VACATED` use, and then it is pending in its band.

    Attributes:
        held: what stays until a transfer or a receive hold ends.
        fences: what copies between device and host do, by bytes.
    """

    __slots__ = ("_uses", "fences", "held")

    def __init__(self) -> None:
        self._uses: list[PageUse] = []
        self.held = HeldPages()
        self.fences = Fences()

    def uses(self) -> tuple[PageUse, ...]:
        """The uses, oldest first."""
        return tuple(self._uses)

    def is_empty(self) -> bool:
        """Whether every use is over."""
        return not self._uses

    def add(self, use: Use, band: int, pages: Collection[int], step: int) -> None:
        """Record that `step` uses `pages`."""
        if pages:
            self._uses.append(_page_use(PageUse, (use, band, frozenset(pages), step)))

    def newest_writer(self, band: int, pages: Collection[int]) -> int:
        """Newest step whose write of one of `pages` is not over; 0 when there is none."""
        return max(
            (
                use.step
                for use in self._uses
                if use.use is Use.FORWARD_WRITE
                and use.band == band
                and not use.pages.isdisjoint(pages)
            ),
            default=0,
        )

    def add_unknown_write(self, band: int, step: int) -> None:
        """Record that `step` may write any page of the band."""
        self._uses.append(PageUse(Use.UNKNOWN_WRITE, band, frozenset(), step))

    def has_unknown_write(self, band: int) -> bool:
        """Whether some step whose writes are unknown may still write the band."""
        return any(use.use is Use.UNKNOWN_WRITE and use.band == band for use in self._uses)

    def newest_vacated(self, band: int) -> int:
        """Newest step that a vacated page of the band waits for; 0 when there is none."""
        steps = [use.step for use in self._uses if use.use is Use.VACATED and use.band == band]
        return max(steps, default=0)

    def end_writes(self, retired_through: int) -> None:
        """Drop the writes of every step up to `retired_through`."""
        if self._uses:
            self._uses = [
                use for use in self._uses if use.use is Use.VACATED or use.step > retired_through
            ]

    def take_ready_vacated(self, band: int, retired_through: int) -> list[int]:
        """Drop the vacated uses of `band` that are over and return their pages, ascending."""
        ready = [
            use
            for use in self._uses
            if use.use is Use.VACATED and use.band == band and use.step <= retired_through
        ]
        if not ready:
            return []
        self._uses = [use for use in self._uses if use not in ready]
        return sorted(page for use in ready for page in use.pages)
