"""What truth writes down: problems seen while an operation ran, and steps that are not over."""

from __future__ import annotations

from typing import NamedTuple

from harness.violation import Site

SPACE_NAMES = {"rows": "request row", "row memory": "memory of row", "staging": "staging buffer"}
"""What a unit of a memory space is called where it belongs to no band."""


class BrokenSubject(Exception):
    """A subject raised something that is no answer: the run cannot go on."""


class Problem(NamedTuple):
    """A broken promise seen while an operation ran."""

    check: str
    detail: str
    what: str
    sites: tuple[Site, ...] = ()


class StepUse(NamedTuple):
    """A launched step that is not processed.

    Attributes:
        number: its number.
        writes: (band, pages, number) for each band that it writes; where the allocator was not
            told what it writes, for every band and without pages.
        known: whether the allocator was told what it writes.
    """

    number: int
    writes: tuple[tuple[int, frozenset[int], int], ...]
    known: bool
