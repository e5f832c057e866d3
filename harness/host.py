"""The engine's own account of its host tier: what is saved, and which copies are not over.

It names copies and cached prefixes, never pages or host bytes; what those must hold is truth's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.device.launches import ModeledEvent
from harness.parked import Parked
from harness.requests import Prefix

Blocks = tuple[int, ...]


@dataclass(slots=True)
class Saved:
    """A cached prefix in host memory.

    Attributes:
        slots: per band, host slots of its pages.
        tails: per window band, how many of its last pages have rows.
        backup: name of the backup that fills the slots, empty once every rank has seen it end.
        readers: loads from it that are not over.
    """

    slots: tuple[tuple[int, ...], ...]
    tails: list[int]
    backup: str
    readers: int = 0


@dataclass(slots=True)
class Backup:
    """A backup that is not over.

    Attributes:
        blocks: the prefix that it saves; none if it saves a request.
        event: after it; None until it is submitted.
    """

    blocks: Blocks
    event: ModeledEvent | None = None


@dataclass(slots=True)
class Load:
    """A load that is not over.

    Attributes:
        blocks: the prefix that it brings back; none if it brings a request back.
        prefix: where to.
        filling: ids of its owner pages that nobody has freed since.
        slot: its state slot, 0 for none or once it is freed.
        rows: per window band, the ids of the rows that it brings back.
        is_named: whether the ids name the rows.
        events: after each layer group; empty until it is submitted.
        parked: the backup of the request that it brings back; empty for a prefix.
    """

    blocks: Blocks
    prefix: Prefix
    filling: set[int]
    slot: int
    rows: list[list[int]]
    is_named: bool
    events: tuple[ModeledEvent, ...] = ()
    parked: str = ""


@dataclass(slots=True)
class HostTierState:
    """Everything that the engine knows of its host tier.

    Attributes:
        saved: what is in host memory, least recently used first.
        backups, loads: copies that are not over, by name, oldest first.
        parked: requests in host memory, by the name of the backup that saved each.
    """

    saved: dict[Blocks, Saved] = field(default_factory=dict)
    backups: dict[str, Backup] = field(default_factory=dict)
    loads: dict[str, Load] = field(default_factory=dict)
    parked: dict[str, Parked] = field(default_factory=dict)

    def is_known(self, name: str) -> bool:
        """Whether a copy of that name is not over."""
        return name in self.backups or name in self.loads or name in self.parked

    def submitted(self) -> list[str]:
        """Copies whose end can be acknowledged, backups first."""
        names = [name for name, backup in self.backups.items() if backup.event is not None]
        return names + [name for name, load in self.loads.items() if load.events]

    def unsubmitted(self) -> list[str]:
        """Copies that can still be cancelled, backups first."""
        names = [name for name, backup in self.backups.items() if backup.event is None]
        return names + [name for name, load in self.loads.items() if not load.events]

    def event_of(self, name: str) -> ModeledEvent:
        """The event after a submitted copy."""
        backup = self.backups.get(name)
        event = backup.event if backup else self.loads[name].events[-1]
        assert event is not None
        return event

    def has_unnamed_rows(self, prefix: Prefix) -> bool:
        """Whether a load is bringing the prefix back and its window rows have no ids yet."""
        return any(load.prefix is prefix and not load.is_named for load in self.loads.values())

    def loads_of(self, pages: Sequence[int], slot: int) -> list[str]:
        """Loads that fill one of these owner pages or the state slot, oldest first."""
        return [
            name
            for name, load in self.loads.items()
            if not load.filling.isdisjoint(pages) or (slot and slot == load.slot)
        ]

    def waits_for_submission(self, pages: Sequence[int], slot: int) -> bool:
        """Whether a load of these pages or this slot is not submitted: nobody may read them yet."""
        return any(not self.loads[name].events for name in self.loads_of(pages, slot))

    def is_copying(self, blocks: Blocks) -> bool:
        """Whether a submitted copy of a prefix is not over."""
        copies = [backup.blocks for backup in self.backups.values() if backup.event is not None]
        copies += [load.blocks for load in self.loads.values() if load.events]
        return blocks in copies

    def freed(self, pages: Sequence[int]) -> None:
        """These owner pages were given back: no reader of theirs waits for a load any more."""
        for load in self.loads.values():
            load.filling.difference_update(pages)

    def slots_freed(self, slots: Sequence[int]) -> None:
        """These state slots were given back."""
        for load in self.loads.values():
            if load.slot in slots:
                load.slot = 0
