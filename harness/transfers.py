"""Truth about network transfers: which pages peers may touch, and which were freed under them.

It learns from what the allocator handed to a transfer engine, from what it let the host wait for,
and from answers.  It reads no bookkeeping of the allocator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

EVERY_PART = range(1 << 30)
"""Of any transfer."""


@dataclass(slots=True)
class TransferUse:
    """Pages that a peer may touch.

    Attributes:
        kind: `network_send` or `network_receive`.
        pages: per band.
        parts: the same for each part that is not over, by its number.
    """

    kind: str
    pages: list[set[int]]
    parts: dict[int, list[set[int]]] = field(default_factory=dict)


@dataclass(slots=True)
class TransferTruth:
    """What must hold now, as far as transfers are concerned.

    Attributes:
        uses: transfers that were handed to an engine and are not over, by name.
        held: rows taken for receives that were not published, as ids per band, by name.
        stuck: per band, pages freed under transfers that are not over, with their names.
        isolated: transfers whose engine was told to stop: only a proof ends them.
        handed: how many parts of each transfer an engine was handed.
        begun: parts that hold pages, in the order in which they came to; a receive is one, from the
            take of its rows on.
    """

    bands: int
    uses: dict[str, TransferUse] = field(default_factory=dict)
    held: dict[str, list[list[int]]] = field(default_factory=dict)
    stuck: list[dict[int, set[str]]] = field(default_factory=list)
    isolated: set[str] = field(default_factory=set)
    handed: Counter[str] = field(default_factory=Counter)
    begun: dict[tuple[str, int], None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.stuck = [{} for _ in range(self.bands)]

    def holds(self, name: str, ids: list[list[int]]) -> None:
        """Rows were taken for a receive, as ids per band."""
        self.held[name] = ids
        self.begun[name, 0] = None

    def began(self, name: str, kind: str, pages: Sequence[Sequence[int]]) -> None:
        """An engine was handed pages: a receive's hold is over, its peer may write."""
        self.held.pop(name, None)
        use = self.uses.setdefault(name, TransferUse(kind, [set() for _ in range(self.bands)]))
        self.begun.setdefault((name, self.handed[name]))
        part = use.parts[self.handed[name]] = [{page for page in units if page} for units in pages]
        self.handed[name] += 1
        for own, units in zip(use.pages, part, strict=True):
            own |= units

    def over(self, name: str, parts: Container[int] = EVERY_PART) -> list[tuple[int, int]]:
        """Parts of a transfer are over; (band, page) of what was stuck under them alone.

        A relief may need some parts only, and lets the others wait for their round.  It has waited
        until no engine touches any of them, which is the proof for a transfer that was given up.
        """
        if parts is not EVERY_PART:
            self.isolated.discard(name)
        for key in [key for key in self.begun if key[0] == name and key[1] in parts]:
            del self.begun[key]
        left: list[set[int]] = [set() for _ in range(self.bands)]
        use = self.uses.get(name)
        if use is not None:
            use.parts = {number: part for number, part in use.parts.items() if number not in parts}
            for part in use.parts.values():
                left = [own | units for own, units in zip(left, part, strict=True)]
            use.pages = left
        if use is None or not use.parts:
            self.held.pop(name, None)
            self.uses.pop(name, None)
            self.isolated.discard(name)
        if parts is EVERY_PART:
            del self.handed[name]
        loose = []
        for band, stuck in enumerate(self.stuck):
            under = [page for page, names in stuck.items() if name in names]
            for page in [page for page in under if page not in left[band]]:
                stuck[page].discard(name)
                if not stuck[page]:
                    del stuck[page]
                    loose.append((band, page))
        return loose

    def freed(self, band: int, page: int) -> None:
        """A page lost its id: under a transfer it is stuck."""
        names = {name for name, use in self.uses.items() if page in use.pages[band]}
        if names:
            self.stuck[band][page] = names

    def told(self, name: str) -> str:
        """A transfer that is not over, with what its peer may do."""
        if self.uses[name].kind == "network_send":
            return f"{name}, a send, whose peer may read it,"
        return f"{name}, a receive, whose peer may write it,"

    def kept(self, band: int) -> set[int]:
        """Pages of `band` that no wait can free: those of isolated transfers."""
        return {page for name in self.isolated for page in self.uses[name].pages[band]}

    def in_use(self, band: int) -> set[int]:
        """Pages of `band` that some peer may touch."""
        return {page for use in self.uses.values() for page in use.pages[band]}

    def bound(self, band: int, page: int) -> str:
        """A page gets an id; a transfer that still touches it, if any."""
        return min(self.stuck[band].get(page, ()), default="")

    def moving(self, band: int, sources: Sequence[int]) -> str:
        """A transfer that still touches one of these pages, if any."""
        for name, use in self.uses.items():
            if not use.pages[band].isdisjoint(sources):
                return name
        return ""
