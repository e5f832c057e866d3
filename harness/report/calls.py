"""What the engine asked of the allocator, and what that answered, in words.

A failure that is in no page is often in an answer.  What one rank alone hears of a peer, and what
it answers that peer, is not asked of all ranks and not told here.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.problem import BrokenSubject
from harness.report.recording import CallNote
from harness.values import call_text, value_text
from harness.world import World

ASKED = "the allocator is asked "
"""How the text of every question begins."""


class AskedWorld(World):
    """A world that writes down every question to its allocator, the same for all ranks.

    Attributes:
        calls: what was asked, in order.
        tick_now: the tick of what comes next.
    """

    calls: list[CallNote]
    tick_now: Callable[[], int]

    def ask(self, name: str, *arguments: object) -> object:
        """Ask, and write it down even where there is no answer."""
        at, asked = self.tick_now(), f"{ASKED}{call_text(name, arguments)}"
        try:
            answer = super().ask(name, *arguments)
        except BrokenSubject:
            self._note(at, f"{asked}, and the run ends there")
            raise
        self._note(at, asked if answer is None else f"{asked}: {value_text(answer)}")
        return answer

    def _note(self, at: int, text: str) -> None:
        self.calls.append(CallNote(self.device.operation, at, text))
