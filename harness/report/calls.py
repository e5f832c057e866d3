"""What the engine asked of the allocator, and what that answered, in words.

A failure that is in no page is often in an answer.  Events have no names of their own, so they are
told by what they are behind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from harness.device.launches import ModeledEvent
from harness.device.submissions import LANE_NAMES
from harness.problem import BrokenSubject
from harness.report.recording import CallNote
from harness.world import World


class AskedWorld(World):
    """A world that writes down every question to its allocator, the same for all ranks.

    Attributes:
        calls: what was asked, in order.
        next_tick: the tick of what comes next.
    """

    calls: list[CallNote]
    next_tick: Callable[[], int]

    def ask(self, name: str, *arguments: object) -> object:
        """Ask, and write it down even where there is no answer."""
        at, asked = self.next_tick(), f"asked {name}({', '.join(map(value_text, arguments))})"
        place = len(self.calls)
        try:
            answer = super().ask(name, *arguments)
        except BrokenSubject:
            self._note(place, at, f"{asked}, and gives no legal answer")
            raise
        self._note(place, at, asked if answer is None else f"{asked}: {value_text(answer)}")
        return answer

    def _note(self, place: int, at: int, text: str) -> None:
        # A call that was made from within another one came second.
        self.calls.insert(place, CallNote(self.device.operation, at, f"the allocator is {text}"))


def value_text(value: object) -> str:
    """An argument or an answer as it would be written in Python, but for what has no name."""
    if isinstance(value, ModeledEvent):
        return f"<event behind {LANE_NAMES[value.stream]} #{value.epoch}>"
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {value_text(own)}' for key, own in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return _sequence_text(value)
    return repr(value)


def _sequence_text(values: Sequence[object]) -> str:
    names = getattr(values, "_fields", ())
    if names:
        parts = [f"{name}={value_text(own)}" for name, own in zip(names, values, strict=True)]
        return f"{type(values).__name__}({', '.join(parts)})"
    return f"[{', '.join(map(value_text, values))}]"
