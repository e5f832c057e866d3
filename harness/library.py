"""Calls of the library that the engine makes itself, beside the allocator of each rank.

The engine asks for nothing that may not be, so whatever such a call raises is a violation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from harness.mistakes import NO_ANSWERS, broken_promise
from harness.problem import BrokenSubject

if TYPE_CHECKING:
    from harness.world import World

T = TypeVar("T")


def answer_of(world: World, call: Callable[..., T], *arguments: object) -> T:
    """What the library answers.

    Raises:
        BrokenSubject: if it refuses, or fails.
    """
    try:
        return call(*arguments)
    except NO_ANSWERS as error:
        world.truth.note(*broken_promise(call.__name__, arguments, error, world.layout))
        raise BrokenSubject from error
