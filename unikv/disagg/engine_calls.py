"""What an engine is told once the ranks have agreed: its answer, or why there is none.

By then every rank has changed, so a rank that left with an error of its engine would stand apart
from the others for good.  Hence every error of such a call is an answer, whatever its kind: what an
engine raises is not ours to list.  What the answer means for a transfer is not known here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from unikv.errors import TransferError

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Refused:
    """The engine raised.

    Attributes:
        reason: the words of a `TransferError`; of any other error its kind too.  Never empty.
    """

    reason: str


def tell(call: Callable[[], Answer]) -> Answer | Refused:
    """What `call`, a call of this rank's engine, answers.

    An interrupt or an exit is no answer of the engine, and is raised on.
    """
    try:
        return call()
    except Exception as error:
        words = str(error) if isinstance(error, TransferError) else ""
        return Refused(words or repr(error))
