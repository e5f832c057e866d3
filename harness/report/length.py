"""Whether the operations of a trace are all needed, as far as whoever tells of it knows.

The insight: a reader asks of each operation why it is there.  Of a trace that was made small to the
end the answer is known without looking; of any other he must not spend time on that question.
"""

from __future__ import annotations

from enum import Enum


class Length(Enum):
    """How far a trace has been made small, in a sentence."""

    AS_FOUND = "It is as it was found: some operations may have nothing to do with the failure"
    CUT_SHORT = (
        "It was not made small to the end: some operations may have nothing to do with the failure"
    )
    SMALLEST = "No operation can be left out: without any one of them the rest does not fail so"

    @classmethod
    def of(cls, *, complete: bool) -> Length:
        """Of what a reduction left, which came to its end or did not."""
        return cls.SMALLEST if complete else cls.CUT_SHORT
