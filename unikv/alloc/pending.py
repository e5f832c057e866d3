"""Pages freed under a running forward, in batches keyed by the newest step that may touch them.

A batch returns whole: when its step is processed, or when the schedule stream has waited past it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class PendingPages:
    """Batches of one band, oldest first.

    Law: the keys ascend strictly from the oldest batch to the newest.
    """

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: deque[tuple[int, list[int]]] = deque()

    def add(self, step: int, pages: Sequence[int]) -> None:
        """Let `pages` wait for `step`, the newest recorded step that is not processed."""
        if self._batches and self._batches[-1][0] == step:
            self._batches[-1][1].extend(pages)
            return
        assert not self._batches or self._batches[-1][0] < step
        self._batches.append((step, list(pages)))

    def take_through(self, step: int) -> list[int]:
        """Remove every batch keyed at or before `step` and return their pages."""
        pages: list[int] = []
        while self._batches and self._batches[0][0] <= step:
            pages += self._batches.popleft()[1]
        return pages

    def newest(self) -> int:
        """Key of the newest batch; 0 when there is none."""
        return self._batches[-1][0] if self._batches else 0

    def batches(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Every batch as `(step, pages)`, oldest first."""
        return tuple((step, tuple(pages)) for step, pages in self._batches)
