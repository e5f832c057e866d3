"""Who asked this rank to stop a transfer, and whom it has to tell once nothing touches its pages.

A request may reach one rank only, before the transfer is known here or after it is over.  So it is
a veto of this rank under that name, and the answer is due once no page of it can be touched: at
once if nothing of that name exists, because the veto keeps it from ever starting.
"""

from __future__ import annotations

from typing import NamedTuple

from unikv.disagg.agreement import Wish


class Drained(NamedTuple):
    """The answer to a peer that asked to stop a transfer.

    Attributes:
        name: the transfer, which touches no page from now on.
        requester: who asked.
    """

    name: str
    requester: str


class Aborts:
    """The vetoes of one rank and the answers it owes.

    Law: a requester is owed one answer for each time it asked.
    """

    __slots__ = ("_due", "_stopped", "_waiting")

    def __init__(self) -> None:
        self._stopped: set[str] = set()
        self._waiting: dict[str, list[str]] = {}
        self._due: list[Drained] = []

    def wish(self, name: str) -> Wish:
        """What this rank wants of `name`."""
        return Wish.STOP if name in self._stopped else Wish.GO_ON

    def stop(self, name: str) -> None:
        """Veto `name`, whether it is known yet or not."""
        self._stopped.add(name)

    def owe(self, name: str, requester: str) -> None:
        """Answer `requester` once `name` is over."""
        self._waiting.setdefault(name, []).append(requester)

    def answer(self, name: str, requester: str) -> None:
        """Answer `requester` at the next occasion."""
        self._due.append(Drained(name, requester))

    def over(self, name: str) -> None:
        """`name` touches no page any more: answers fall due, and the veto has done its work."""
        self._due += [Drained(name, requester) for requester in self._waiting.pop(name, [])]
        self._stopped.discard(name)

    def forget(self, name: str) -> None:
        """Drop the veto of a name that cannot come any more."""
        self._stopped.discard(name)

    def take_due(self) -> tuple[Drained, ...]:
        """The answers that are due, each handed out once, in the order in which they fell due."""
        due, self._due = tuple(self._due), []
        return due
